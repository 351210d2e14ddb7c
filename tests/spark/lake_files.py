"""Files of a lake as Spark would write them, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merq.spark.columns import USUAL
from merq.spark.lake.description import Description, described
from merq.spark.lake.folder import Folder

QUEUE = r"alpha\private$\orders;JOURNAL"
DAY = "2026-11-16"
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def description(form: str = "parquet", names: tuple[str, ...] = USUAL) -> Description:
    return described(form, names)


def rows_of(what: Description, ids: list[str], queue: str = QUEUE) -> Any:
    """Messages with these identifiers; what else they have does not matter."""
    known: dict[str, list[Any]] = {
        "queue": [queue] * len(ids),
        "message_id": list(ids),
        "sequence": list(range(len(ids))),
        "arrived_time": [NOON] * len(ids),
        "day": [NOON.date()] * len(ids),
        "body_text": [f"text of {each}" for each in ids],
    }
    columns = [
        pa.array(known.get(field.name, [None] * len(ids)), field.type) for field in what.arrow
    ]
    return pa.Table.from_arrays(columns, schema=what.arrow)


def staging(what: Description, *files: list[str]) -> Callable[[str], None]:
    """Writes files as Spark does into the folder that it is told."""

    def write(path: str) -> None:
        place = Path(path.removeprefix("file://")) / f"_day={DAY}" / f"_queue={_spark(QUEUE)}"
        place.mkdir(parents=True)
        for number, ids in enumerate(files):
            pq.write_table(rows_of(what, ids), place / f"part-{number:05}.zstd.parquet")
        (place.parents[1] / "_SUCCESS").touch()

    return write


def _spark(value: str) -> str:
    return value.replace("\\", "%5C")


def ids_by_glob(lake: Path) -> list[str]:
    """What any program finds that reads Parquet files in folders."""
    found: list[str] = []
    for each in lake.glob("day=*/queue=*/*.parquet"):
        found += pq.ParquetFile(each).read(columns=["message_id"])["message_id"].to_pylist()
    return sorted(found)


def put(folder: Folder, what: Description, name: str, ids: list[str]) -> None:
    """A file that is part of the lake."""
    place = Path(folder.path()) / f"day={DAY}" / "queue=alpha%5Cprivate%24%5Corders%3BJOURNAL"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows_of(what, ids), place / f"{name}.parquet")
