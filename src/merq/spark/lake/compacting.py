"""Joining the small files of a queue's day into larger ones.

1. The new file is written into `_staging` and put on the disk.
2. `_compacting/ID.json` says which file takes the place of which others. From here on it will
   happen: whoever compacts next ends what a crash has left.
3. The old files go, the new one comes, the record goes, and the generation is counted.

No program ever sees a message twice. One that lists the folder in the moment between going and
coming misses messages of that queue and day; `read_lake` notices and lists again. A program that
has listed the files before, and opens one after it is gone, fails and is to be started again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from merq.spark.lake.committing import STAGING
from merq.spark.lake.description import DAY, Description
from merq.spark.lake.folder import Folder, LakeError

COMPACTING: Final = "_compacting"
GENERATION: Final = "_compacting.json"
LOCK: Final = "_compacting.lock"
TARGET_BYTES: Final = 128 << 20
"""Files are joined until they are about so large."""

SMALL_PART: Final = 2
"""A file is small if it has less than this part of the target: a half."""

ROW_GROUP_ROWS: Final = 100_000
ROW_GROUP_BYTES: Final = 64 << 20
"""What is written at once: so many rows, or what takes so much."""

BATCH_ROWS: Final = 8_192
"""Rows that are read at once."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was done.

    Attributes:
        removed: Files that are gone.
        added: Files that came for them.
        rows: Messages in them.
    """

    removed: int = 0
    added: int = 0
    rows: int = 0

    def __add__(self, other: Compacted) -> Compacted:
        return Compacted(
            self.removed + other.removed, self.added + other.added, self.rows + other.rows
        )


def compact(
    folder: Folder, description: Description, target_bytes: int = TARGET_BYTES
) -> Compacted:
    """Joins small files, and ends what an earlier compaction has left.

    Raises:
        LakeError: Somebody else compacts the lake.
    """
    total = Compacted()
    with _alone(folder):
        for name in folder.files_in(COMPACTING):
            if name.endswith(".json"):
                _finish(folder, name)
        for place, names in _groups(folder, target_bytes):
            total += _join(folder, description, place, names)
    return total


def _groups(folder: Folder, target_bytes: int) -> Iterator[tuple[str, list[str]]]:
    """Small files of a queue's day that make a file of the wanted size together."""
    for day in folder.folders_in():
        if not day.startswith(f"{DAY}="):
            continue
        for queue in folder.folders_in(day):
            group: list[str] = []
            total = 0
            for name, size in folder.files_in(f"{day}/{queue}").items():
                if not name.endswith(".parquet") or size * SMALL_PART >= target_bytes:
                    continue
                if group and total + size > target_bytes:
                    if len(group) > 1:
                        yield f"{day}/{queue}", group
                    group, total = [], 0
                group.append(name)
                total += size
            if len(group) > 1:
                yield f"{day}/{queue}", group


def _join(folder: Folder, description: Description, place: str, names: list[str]) -> Compacted:
    number = str(uuid4())
    staged = f"{STAGING}/compaction/{number}.parquet"
    folder.make_folder(staged.rpartition("/")[0])
    rows = _write(folder, description.arrow, names, staged)
    folder.sync([staged])
    record = f"{COMPACTING}/{number}.json"
    folder.write_json(
        record, {"old": names, "staged": staged, "new": f"{place}/compacted-{number}.parquet"}
    )
    _finish(folder, record)
    return Compacted(len(names), 1, rows)


def _write(folder: Folder, schema: Any, names: list[str], staged: str) -> int:
    rows = 0
    with pq.ParquetWriter(
        folder.path(staged), schema, filesystem=folder.files, compression="zstd"
    ) as writer:
        waiting: list[Any] = []
        count = size = 0
        for name in names:
            with pq.ParquetFile(folder.path(name), filesystem=folder.files) as file:
                for batch in file.iter_batches(BATCH_ROWS):
                    waiting.append(_fitted(batch, schema))
                    count += batch.num_rows
                    size += batch.nbytes
                    if count >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
                        writer.write_table(pa.Table.from_batches(waiting, schema))
                        rows, waiting, count, size = rows + count, [], 0, 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, schema))
    return rows + count


def _fitted(batch: Any, schema: Any) -> Any:
    """The batch with all columns; those that older files do not have are null."""
    there = set(batch.schema.names)
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in there
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _finish(folder: Folder, record: str) -> None:
    """Carries out what a record says, or what is left of it."""
    found = folder.read_json(record)
    if not isinstance(found, dict) or not {"old", "staged", "new"} <= set(found):
        raise LakeError(f"{folder.url}/{record} is no record of a compaction: {found!r}")
    for name in found["old"]:
        folder.remove(name)
    if folder.exists(found["staged"]):
        folder.move(found["staged"], found["new"])
    folder.sync([found["new"]])
    before = folder.read_json(GENERATION) or {"generation": 0}
    folder.write_json(GENERATION, {"generation": before["generation"] + 1})
    folder.remove(record)


@contextmanager
def _alone(folder: Folder) -> Iterator[None]:
    """Only one compacts a lake: two would each put a new file in the place of the same old ones."""
    if not folder.is_local:
        # Object stores have no locks; the guide says that one compacts at a time.
        yield
        return
    import fcntl  # noqa: PLC0415 - not on every system

    descriptor = os.open(folder.path(LOCK), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as wrong:
            raise LakeError(
                f"somebody else compacts {folder.url} at this moment: wait until that is done"
            ) from wrong
        yield
    finally:
        os.close(descriptor)
