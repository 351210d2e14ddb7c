"""The flow `archive`: messages of queues and journals into a lake, each once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from merq.spark.columns import BY_NAME, chosen
from merq.spark.flows.running import FlowFailed, Progress, Summary, awaited
from merq.spark.lake.committing import STAGED_DAY, STAGED_QUEUE, Committed, Committer, Table
from merq.spark.lake.compacting import Compacted, compact
from merq.spark.lake.days import with_day
from merq.spark.lake.description import (
    DAY,
    DELTA,
    ICEBERG,
    PARQUET,
    QUEUE,
    Description,
    described,
    read_description,
    settle,
)
from merq.spark.lake.folder import Folder
from merq.spark.lake.tables import table_of
from merq.spark.managers import places
from merq.spark.options import read_options
from merq.spark.session import use_local_checkpoints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "archive"
SUMMARY: Final = "Archives queues and journals into Parquet, Delta or Iceberg, exactly once."

CHECKPOINTS: Final = "_checkpoints"
COMPACT_BATCHES: Final = 100
"""So many batches of a continuous archive are between compactions."""

BATCH_MESSAGES: Final = 500_000
"""Messages of a queue that one batch takes unless the settings say else: memory stays flat."""

OPEN_FILES: Final = 16
"""Folders that a task writes to at once; beyond that it sorts its rows by folder."""

MEBIBYTE: Final = 1 << 20
_NAME: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    r"""What is archived, and where.

    Attributes:
        lake: The folder of the archive.
        queue: A queue, such as orders, .\private$\orders or orders;JOURNAL.
        pattern: Queues by their path names with * and ?, such as private$\*.
        url: A queue manager, unix:PATH or tls://HOST:PORT; each of several has the queues.
        token: For a queue manager that asks for one.
        tls_ca: Certificates to trust.
        tls_cert: The client's own certificate.
        tls_key: The key of that.
        format: parquet, delta or iceberg; what the lake is, or else parquet.
        catalog: A catalog of PyIceberg's; an SQLite file in the lake by default.
        mode: once takes what is there and ends, continuous goes on until Ctrl-C.
        read_mode: peek leaves messages in their queues, receive removes what is archived.
        name: Who archives: the same name goes on where it was. Two at a time need two names.
        group: The consumer group, for receive; by default it is made of the name.
        columns: Columns of messages to keep, separated by commas; all by default.
        start: earliest or latest: where to begin the first time.
        malformed: Bodies that are not the text that they say: keep them without text, drop them, or
            fail.
        max_messages: Messages of a queue that one batch takes.
        partitions: Into how many parts a queue is split.
        every_s: Seconds between batches of a continuous archive.
        compact: Join small files afterwards; without a queue, do only that.
        file_mb: How large files become by that, in MiB.
    """

    lake: str
    queue: tuple[str, ...] = ()
    pattern: str = ""
    url: tuple[str, ...] = ()
    token: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    format: Literal["parquet", "delta", "iceberg"] | None = None
    catalog: str = ""
    mode: Literal["once", "continuous"] = "once"
    read_mode: Literal["peek", "receive"] = "peek"
    name: str = "archive"
    group: str = ""
    columns: tuple[str, ...] = ()
    start: Literal["earliest", "latest"] = "earliest"
    malformed: Literal["permissive", "dropmalformed", "failfast"] = "permissive"
    max_messages: int = BATCH_MESSAGES
    partitions: int = 1
    every_s: float = 1.0
    compact: bool = False
    file_mb: int = 128

    def check(self) -> None:
        """Refuses what cannot be.

        Raises:
            FlowFailed: The text says what, and what belongs there.
        """
        if _NAME.fullmatch(self.name) is None:
            raise FlowFailed(
                f"--name {self.name!r}: letters, digits, '.', '_' and '-' belong there, up to 64"
            )
        if not (self.queue or self.pattern or self.compact):
            raise FlowFailed("nothing is named to archive: give --queue or --pattern")
        for option, number in (("max-messages", self.max_messages), ("file-mb", self.file_mb)):
            if number < 1:
                raise FlowFailed(f"--{option} {number}: a number of at least 1 belongs there")

    def source_options(self) -> dict[str, str]:
        """What the source is told."""
        given = {
            "url": ",".join(self.url),
            "token": self.token,
            "tlsCa": self.tls_ca,
            "tlsCert": self.tls_cert,
            "tlsKey": self.tls_key,
            "queues": ",".join(self.queue),
            "queuePattern": self.pattern,
        }
        fixed = {
            "readMode": self.read_mode,
            "consumerGroup": self.group or f"archive {self.name}",
            "startingOffsets": self.start,
            "mode": self.malformed.upper(),
            "maxMessagesPerTrigger": str(self.max_messages),
            "minPartitions": str(self.partitions),
        }
        return fixed | {name: text for name, text in given.items() if text}


class _Archiving:
    """Takes the batches of a query, one after another."""

    def __init__(self, settings: Settings, folder: Folder, progress: Progress) -> None:
        self._settings = settings
        self._folder = folder
        self._progress = progress
        there = read_description(folder)
        wanted_format = settings.format or (there.format if there is not None else PARQUET)
        if settings.compact and wanted_format == ICEBERG:
            raise FlowFailed(
                "--compact: PyIceberg cannot rewrite files; let an engine that can do it compact "
                "the table, such as Spark with Iceberg's jar (CALL system.rewrite_data_files)"
            )
        names = chosen(_split(settings.columns) or ("*",))
        self.description: Description = settle(folder, described(wanted_format, names))
        self.names = [each for each in self.description.of_messages() if each in BY_NAME]
        self.table: Table = table_of(folder, wanted_format, settings.catalog)
        self.table.prepare(self.description)
        self.compacted = Compacted()
        self.messages = self.files = self.size = self.batches = self.again = 0
        self.queues: dict[str, int] = {}

    @property
    def checkpoint(self) -> str:
        return f"{CHECKPOINTS}/{self._settings.name}"

    def take(self, rows: DataFrame, batch: int) -> None:
        """A batch of Spark's."""
        session = rows.sparkSession
        # Others than Spark read the files too; and what Spark writes by default has no statistics.
        session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        # Sorting rows by their folders takes as long as writing them.
        session.conf.set("spark.sql.maxConcurrentOutputFileWriters", str(OPEN_FILES))
        ready = with_day(rows).selectExpr(
            *(f"`{name}`" for name in self.description.columns),
            f"`{DAY}` {STAGED_DAY}",
            f"`{QUEUE}` {STAGED_QUEUE}",
        )

        def write(path: str) -> None:
            writer = ready.write.partitionBy(STAGED_DAY, STAGED_QUEUE)
            writer.option("compression", "zstd").parquet(path)

        committer = Committer(self._folder, self.table, self._writer())
        self._count(committer.commit(batch, write, self._offsets(batch)))
        if self._settings.compact and batch % COMPACT_BATCHES == COMPACT_BATCHES - 1:
            self.compact()

    def _offsets(self, batch: int) -> str:
        """Which messages Spark means by a batch; from here on it will mean no others."""
        name = f"{self.checkpoint}/offsets/{batch}"
        # Spark itself does not put it on the disk.
        self._folder.sync([name])
        return self._folder.read_text(name).splitlines()[-1]

    def _writer(self) -> str:
        """The query's own identifier: another checkpoint means other batches."""
        found = self._folder.read_json(f"{self.checkpoint}/metadata")
        assert found is not None, "Spark writes it before the first batch"
        return str(found["id"])

    def _count(self, done: Committed) -> None:
        if not done.is_new:
            self.again += 1
            return
        self.batches += 1
        self.messages += done.rows
        self.files += len(done.files)
        self.size += sum(each.size for each in done.files)
        for each in done.files:
            self.queues[each.queue] = self.queues.get(each.queue, 0) + each.rows

    def compact(self) -> None:
        """Joins small files."""
        target_bytes = self._settings.file_mb * MEBIBYTE
        if self.description.format == DELTA:
            from merq.spark.lake.delta import DeltaLake  # noqa: PLC0415 - an extra

            assert isinstance(self.table, DeltaLake)
            removed, added = self.table.compact(target_bytes)
            self.compacted += Compacted(removed, added)
        else:
            self.compacted += compact(self._folder, self.description, target_bytes)

    def look(self) -> None:
        """How far it is."""
        self._progress.step("messages", self.messages, None)


def run(spark: SparkSession, settings: Settings, progress: Progress) -> Summary:
    r"""Archives messages of queues and journals, of any number of queue managers.

    Started again with the same name it goes on where it was, also after a crash; each message is in
    the archive once. Rows are in folders by day (of arrival, in UTC) and queue.

    merq pipeline run archive --queue 'orders;JOURNAL' --lake ./lake
    merq pipeline run archive --pattern 'private$\*' --read-mode receive --mode continuous --lake L
    merq pipeline run archive --lake ./lake --compact

    Args:
        spark: The session.
        settings: What is archived, and where.
        progress: Who is told how far it is.

    Raises:
        FlowFailed: It could not be done.
        LakeError: The lake is not what it should be.
        MessageQueueError: A queue is not there, or its queue manager is not.
    """
    settings.check()
    if settings.queue or settings.pattern:
        # What is not there is told at once and in a sentence, and no folder is made for it.
        places(read_options(settings.source_options()))
    folder = Folder(settings.lake)
    folder.make_folder("")
    archiving = _Archiving(settings, folder, progress)
    is_done = True
    if settings.queue or settings.pattern:
        query = _start(spark, settings, archiving, folder)
        progress.say(
            f"Archiving into {settings.lake}"
            + (" until Ctrl-C." if settings.mode == "continuous" else ".")
        )
        is_done = awaited(query, archiving.look)
    if settings.compact and is_done:
        archiving.compact()
    return _summary(settings, archiving, is_done=is_done)


def _start(spark: SparkSession, settings: Settings, archiving: _Archiving, folder: Folder) -> Any:
    if folder.is_local:
        use_local_checkpoints(spark)
    options = settings.source_options() | {"columns": ",".join(archiving.names)}
    messages = spark.readStream.format("msmq").options(**options).load()
    writing = (
        messages.writeStream.foreachBatch(archiving.take)
        .queryName(f"{NAME} {settings.name}")
        .option("checkpointLocation", folder.spark_path(archiving.checkpoint))
    )
    if settings.mode == "once":
        writing = writing.trigger(availableNow=True)
    else:
        writing = writing.trigger(processingTime=f"{int(settings.every_s * 1000)} milliseconds")
    return writing.start()


def _split(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.strip() for each in names for part in each.split(",") if part.strip())


def _summary(settings: Settings, done: _Archiving, *, is_done: bool) -> Summary:
    what = f"{done.files:,} files, {done.size:,} bytes, {done.batches:,} batches"
    where = f"{settings.lake} ({done.description.format})"
    lines = [f"{done.messages:,} messages archived into {where}: {what}."]
    lines += [f"  {queue}: {count:,}" for queue, count in sorted(done.queues.items())]
    if settings.compact:
        lines.append(f"{done.compacted.removed:,} files became {done.compacted.added:,}.")
    if done.again:
        lines.append(f"{done.again:,} batches were found to be there, and were not added again.")
    if not is_done:
        lines.append("Stopped; started again with the same name it goes on from here.")
    return Summary(
        {
            "messages": done.messages,
            "files": done.files,
            "bytes": done.size,
            "batches": done.batches,
            "batches_again": done.again,
            "queues": dict(sorted(done.queues.items())),
            "format": done.description.format,
            "compacted_files": done.compacted.removed,
            "compacted_into": done.compacted.added,
            "stopped": not is_done,
        },
        tuple(lines),
    )
