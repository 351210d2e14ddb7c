"""The rows of a lake, each once, while others write and compact it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import pyarrow.parquet as pq

from merq.spark.lake.compacting import COMPACTING, GENERATION
from merq.spark.lake.description import DAY, NAME, PARQUET, Description, read_description
from merq.spark.lake.folder import Folder, LakeError
from merq.spark.lake.tables import table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATIENCE_S: Final = 30.0
"""How long reading waits for a compaction to end."""

PAUSE_S: Final = 0.1


def described_lake(folder: Folder) -> Description:
    """What a lake is.

    Raises:
        LakeError: There is none.
    """
    found = read_description(folder)
    if found is None:
        raise LakeError(
            f"there is no archive in {folder.url}: {NAME} is missing. "
            "`merq pipeline run archive` makes one"
        )
    return found


def read_lake(spark: SparkSession, lake: str, catalog: str = "") -> DataFrame:
    """The messages of a lake, in no order; columns that older files do not have are null there.

    Raises:
        LakeError: There is no lake, or a compaction of it does not end.
    """
    folder = Folder(lake)
    description = described_lake(folder)
    if description.format != PARQUET:
        paths = table_of(folder, description.format, catalog).paths() or []
        return _loaded(spark, folder, description, paths)
    until = time.monotonic() + PATIENCE_S
    while True:
        before = _generation(folder)
        # Spark lists the files here and now; which rows are in them does not change any more.
        found = _loaded(spark, folder, description, [folder.url])
        if before is not None and _generation(folder) == before:
            return found
        if time.monotonic() > until:
            raise LakeError(
                f"a compaction of {folder.url} is not finished: if none is running, start "
                "`merq pipeline run archive` on it with --compact, which ends what was begun"
            )
        time.sleep(PAUSE_S)


def find_message(lake: str, message_id: str) -> tuple[str, dict[str, Any]] | None:
    """The row of a message and the file that has it, without Spark; None if it is not there."""
    folder = Folder(lake)
    names = [
        name
        for day in folder.folders_in()
        if day.startswith(f"{DAY}=")
        for name in folder.files_in(day)
    ]
    for name in reversed(names):
        with pq.ParquetFile(folder.path(name), filesystem=folder.files) as file:
            for batch in file.iter_batches():
                rows = batch.filter(pc.equal(batch.column("message_id"), message_id)).to_pylist()
                if rows:
                    return name, rows[0]
    return None


def _loaded(
    spark: SparkSession, folder: Folder, description: Description, paths: list[str]
) -> DataFrame:
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in description.columns.items())
    if not paths or not _has_files(folder):
        return spark.createDataFrame([], ddl)
    return spark.read.schema(ddl).option("basePath", folder.url).parquet(*paths)


def _has_files(folder: Folder) -> bool:
    return any("=" in each for each in folder.folders_in())


def _generation(folder: Folder) -> int | None:
    """How many compactions there were; None while one is under way."""
    if any(name.endswith(".json") for name in folder.files_in(COMPACTING)):
        return None
    found: Any = folder.read_json(GENERATION)
    return 0 if found is None else int(found["generation"])
