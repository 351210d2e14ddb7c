"""How a batch becomes part of a lake exactly once, however often it is tried and wherever it fails.

1. Spark writes the batch's files into `_staging`, where nobody looks, into an own folder of this
   attempt.
2. The files are put on the disk, and then `_commits/WRITER/BATCH.json` is written, which names them
   and where they belong. From here on the batch is committed.
3. The files are moved to their places. A file is either here or there, never at both.
4. A table format with a log of its own is told, under the writer's name and the batch's number.
5. What attempts at this batch and at earlier ones have left in `_staging` goes.

A batch that comes again finds its record and only does what is left of 3 to 5. A driver that was
thought dead, and is not, does no harm beside the one that has taken its place: each has files of
its own, and only one of them can write the record; the other then goes by that. So whoever reads
the folder sees each message once, with any program that reads Parquet. Spark's own file sink does
the same only for readers that know its log, and a folder with that log cannot be compacted, nor be
written by two queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final, Protocol
from uuid import uuid4

import pyarrow.parquet as pq

from merq.spark.lake.description import DAY, QUEUE, Description
from merq.spark.lake.folder import Folder, LakeError, escaped, unescaped

COMMITS: Final = "_commits"
STAGING: Final = "_staging"
RECORDS_KEPT: Final = 100
"""Batches of a writer whose records are kept; Spark asks for the last one again, for no other."""

STAGED_DAY, STAGED_QUEUE = "_day", "_queue"
"""By these Spark puts rows into folders of their own; `day` and `queue` stay in the files."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file of a batch.

    Attributes:
        staged: Where Spark has written it.
        name: Where it belongs.
        day: The day of its messages.
        queue: Their queue.
        rows: How many there are.
        size: What the file takes, in bytes.
    """

    staged: str
    name: str
    day: str
    queue: str
    rows: int
    size: int


class Table(Protocol):
    """A format of lakes."""

    def prepare(self, description: Description) -> None:
        """Makes the table, or gives it columns that it does not have."""

    def add(self, files: Sequence[NewFile], writer: str, batch: int) -> None:
        """Files are part of the table; a batch that was added before is not added again."""

    def paths(self) -> list[str] | None:
        """The table's files as Spark takes them; None if it is all that the folder has."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a batch has brought.

    Attributes:
        files: Its files.
        is_new: It was not committed before.
    """

    files: tuple[NewFile, ...]
    is_new: bool

    @property
    def rows(self) -> int:
        """Its messages."""
        return sum(each.rows for each in self.files)


class Committer:
    """Makes the batches of one writer part of a lake.

    Args:
        folder: The lake.
        table: Its format.
        writer: Who writes: the same name means the same batches.
    """

    def __init__(self, folder: Folder, table: Table, writer: str) -> None:
        self._folder = folder
        self._table = table
        self._writer = writer

    def commit(self, batch: int, write: Callable[[str], None], what: str = "") -> Committed:
        """Makes a batch part of the lake unless it is.

        Args:
            batch: Its number.
            write: Writes its files into a folder that is not there yet, as Spark takes it.
            what: What the batch consists of, in any words.

        Raises:
            LakeError: There was a batch of that number that consisted of something else.
        """
        record = f"{COMMITS}/{self._writer}/{batch:012}.json"
        found = self._folder.read_json(record)
        is_new = False
        if found is None:
            attempt = f"{self._staging(batch)}/{uuid4()}"
            files = self._stage(batch, attempt, write)
            self._check_is_next(batch)
            value = {"batch": batch, "what": what, "files": [asdict(each) for each in files]}
            is_new = self._folder.create_json(record, value, f"{attempt}/record.json")
            found = value if is_new else self._folder.read_json(record)
        files = _files_of(found, record)
        # A checkpoint that was set back gives old numbers to new messages.
        if found["what"] != what:
            raise LakeError(
                f"batch {batch} is in the archive with other messages ({found['what']}) than "
                f"now ({what}): the checkpoint was set back or exchanged. Begin with another "
                "name, and with the same group if you receive"
            )
        self._place(files)
        self._table.add(files, self._writer, batch)
        self._forget(batch)
        return Committed(tuple(files), is_new)

    def _staging(self, batch: int) -> str:
        return f"{STAGING}/{self._writer}/{batch:012}"

    def _check_is_next(self, batch: int) -> None:
        """A batch without a record was never committed, unless that was so long ago that it went.

        Raises:
            LakeError: Later ones are committed.
        """
        last = max(self._folder.files_in(f"{COMMITS}/{self._writer}"), default="")
        if last > f"{COMMITS}/{self._writer}/{batch:012}.json":
            raise LakeError(
                f"batch {batch} is to be added to the archive, and {last} is there already: "
                "another driver of the same name has gone on, or the checkpoint was set back. If "
                "no other one runs, begin with another name, and with the same group if you receive"
            )

    def _stage(self, batch: int, attempt: str, write: Callable[[str], None]) -> list[NewFile]:
        write(self._folder.spark_path(attempt))
        found: list[NewFile] = []
        for name, size in self._folder.files_in(attempt).items():
            if not name.endswith(".parquet"):
                continue
            day, queue = _values_of(name)
            metadata = pq.read_metadata(self._folder.path(name), filesystem=self._folder.files)
            if metadata.num_rows:
                place = f"{place_of(day, queue)}/{self._writer}-{batch:012}-{len(found):05}.parquet"
                found.append(NewFile(name, place, day, queue, metadata.num_rows, size))
        self._folder.sync(each.staged for each in found)
        return found

    def _place(self, files: Sequence[NewFile]) -> None:
        moved = []
        for each in files:
            # What is not there any more was moved before, and may since have been compacted.
            if self._folder.exists(each.staged):
                self._folder.make_folder(each.name.rpartition("/")[0])
                # Who goes by the same record may do it just now.
                with suppress(FileNotFoundError):
                    self._folder.move(each.staged, each.name)
                    moved.append(each.name)
        self._folder.sync(moved)

    def _forget(self, batch: int) -> None:
        """What attempts at this batch and at those before it have left goes, and an old record."""
        for each in self._folder.folders_in(f"{STAGING}/{self._writer}"):
            if each <= f"{batch:012}":
                self._folder.remove_folder(f"{STAGING}/{self._writer}/{each}")
        if batch >= RECORDS_KEPT:
            self._folder.remove(f"{COMMITS}/{self._writer}/{batch - RECORDS_KEPT:012}.json")


def place_of(day: str, queue: str) -> str:
    """The folder of a queue's messages of a day."""
    return f"{DAY}={escaped(day)}/{QUEUE}={escaped(queue)}"


def _values_of(name: str) -> tuple[str, str]:
    values = dict(each.split("=", 1) for each in name.split("/") if "=" in each)
    return unescaped(values[STAGED_DAY]), unescaped(values[STAGED_QUEUE])


def _files_of(found: object, record: str) -> list[NewFile]:
    try:
        return [NewFile(**each) for each in found["files"]]  # type: ignore[index]
    except (KeyError, TypeError) as wrong:
        raise LakeError(f"{record} is no record of a batch: {wrong!r}") from wrong


def milliseconds_now() -> int:
    """The time as logs of tables have it."""
    return int(time.time() * 1000)
