"""The flow `replay`: messages out of an archive into a queue again, each once and in order.

The first time, what the predicate selects is written as a plan: files of some hundred rows, sorted.
Each file is a batch. It goes into a stage of the queue manager and is published under the replay's
name and the batch's number, which the queue manager remembers in the same change. So a replay that
was stopped anywhere goes on where it was, and a batch that comes again is not sent twice.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from merq.client.packets import Packer
from merq.spark.flows.running import FlowFailed, Progress, Summary, failing, hearing
from merq.spark.lake.folder import Folder
from merq.spark.lake.reading import described_lake, read_lake
from merq.spark.lake.tables import table_of
from merq.spark.managers import Access, title
from merq.spark.writing import pieces, sending

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "replay"
SUMMARY: Final = "Sends messages of an archive, chosen by SQL, to a queue again, exactly once."

REPLAYS: Final = "_replays"
BATCH_MESSAGES: Final = 1_000
"""Messages that are sent at once, and at most so many as the rate allows in a second."""

SAMPLES: Final = 5
"""Messages that a dry run shows."""

RESTORED: Final = (
    "body",
    "body_type",
    "value",
    "label",
    "priority",
    "correlation_id",
    "app_tag",
    "response_queue",
    "extension",
)
"""Columns that become properties of messages again."""

_NAME: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
_ID: Final = re.compile(r"\{([0-9a-fA-F-]{36})\}\\(\d+)")
_FILE: Final = re.compile(r"part-(\d+)-.*?-?c(\d+)\.[\w.]*parquet$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    r"""What is sent again, and where to.

    Attributes:
        lake: The folder of the archive.
        where: Which messages, as SQL has it: "queue like '%orders' and day = '2026-11-16'".
        queue: The queue that they go to, such as orders or .\private$\orders.
        name: The replay's name: with the same one it goes on where it was, and sends nothing twice.
        send: Do it; without, it is only said what would be sent.
        url: The queue manager, unix:PATH or tls://HOST:PORT.
        token: For a queue manager that asks for one.
        tls_ca: Certificates to trust.
        tls_cert: The client's own certificate.
        tls_key: The key of that.
        rate: Messages a second at most; 0 is as fast as it goes.
        keep_id: Where the messages' former identifiers go: nowhere, into the extension (as text;
            messages that have one are refused then), or into the correlation id (which replaces
            what was there).
        express: Send express messages, which do not survive a restart of the queue manager.
        catalog: The catalog of PyIceberg's that has the archive, if it is one of Iceberg.
    """

    lake: str
    where: str
    queue: str
    name: str
    send: bool = False
    url: str = ""
    token: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    rate: float = 0.0
    keep_id: Literal["none", "extension", "correlation"] = "none"
    express: bool = False
    catalog: str = ""

    def check(self) -> None:
        """Refuses what cannot be.

        Raises:
            FlowFailed: The text says what, and what belongs there.
        """
        if _NAME.fullmatch(self.name) is None:
            raise FlowFailed(
                f"--name {self.name!r}: letters, digits, '.', '_' and '-' belong there, up to 64"
            )
        if self.rate < 0:
            raise FlowFailed(f"--rate {self.rate:g}: messages a second belong there, or 0")

    @property
    def access(self) -> Access:
        """The queue manager."""
        return Access(
            self.url,
            self.token or None,
            self.tls_ca or None,
            self.tls_cert or None,
            self.tls_key or None,
        )

    @property
    def batch_messages(self) -> int:
        """How many are sent at once."""
        return max(1, min(BATCH_MESSAGES, int(self.rate))) if self.rate else BATCH_MESSAGES

    def identity(self) -> dict[str, object]:
        """What must be the same when the replay goes on."""
        return {"where": self.where, "queue": self.queue.lower(), "keep_id": self.keep_id}


def look(settings: Settings) -> None:
    """Looks whether it can be done; nothing is changed.

    Raises:
        FlowFailed: The settings cannot be, or are not those that the replay was begun with.
        LakeError: There is no such archive.
        MessageQueueError: The queue is not there, or its queue manager is not.
    """
    _ready(settings)


def _ready(settings: Settings) -> tuple[_Plan, _Target]:
    """What was written down of the replay, and the queue; nothing is changed."""
    settings.check()
    folder = Folder(settings.lake)
    table_of(folder, described_lake(folder).format, settings.catalog)
    target = _Target(settings)
    return _Plan(folder, settings), target


def run(spark: SparkSession, settings: Settings, progress: Progress) -> Summary:
    """Sends messages of an archive to a queue again, exactly once, in the order of each queue.

    Without --send it only says what would be sent. Label, body and its type, priority, correlation
    id, application tag, response queue and extension are what they were; the rest is the queue
    manager's to say. What is sent is fixed when --send is given for the first time.

    merq pipeline run replay --lake L --where "label = 'order 2'" --queue orders --name again
    merq pipeline run replay --lake L --where "label = 'order 2'" --queue orders --name again --send

    Args:
        spark: The session.
        settings: What is sent again, and where to.
        progress: Who is told how far it is.

    Raises:
        FlowFailed: It could not be done.
        LakeError: There is no such archive.
    """
    plan, target = _ready(settings)
    if not settings.send:
        return _dry_run(_selected(spark, settings), settings, target)
    if not plan.is_made:
        progress.say("What is to be sent is looked up.")
        plan.make(_selected(spark, settings))
    return _send(plan, settings, target, progress)


class _Target:
    """The queue that messages go to."""

    def __init__(self, settings: Settings) -> None:
        self._manager = settings.access.manager()
        path = settings.queue if "\\" in settings.queue else rf".\private$\{settings.queue}"
        self._queue = self._manager.queue(path)
        self.title = title(self._manager.name, path)
        self._packer = Packer(f"OS:{self.title}")
        self._common = {"recoverable": not settings.express}

    def send(self, rows: Any, writer: str, batch: int) -> int:
        """Publishes a batch unless it was before; gives how many messages that were."""
        stage = self._manager.bulk.stage(self._queue, writer, batch, f"replay {time.time_ns()}")
        for part in rows.to_batches():
            for piece in pieces(part):
                sending(stage, piece, self._packer, self._common)()
        return self._manager.bulk.publish(writer, batch, [stage.number])


def _selected(spark: SparkSession, settings: Settings) -> DataFrame:
    """The rows that the predicate chooses, in no order."""
    rows = read_lake(spark, settings.lake, settings.catalog)
    with failing(f"--where {settings.where!r}"):
        found = rows.where(settings.where)
    if settings.keep_id == "extension" and "extension" in rows.columns:
        taken = found.where("length(extension) > 0").count()
        if taken:
            raise FlowFailed(
                f"--keep-id extension: {taken:,} of the messages have an extension of their own, "
                "which would be lost; choose --keep-id correlation, or others by --where"
            )
    return found


def _dry_run(rows: DataFrame, settings: Settings, target: _Target) -> Summary:
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark takes long to import

    grouped = rows.groupBy("queue").agg(
        f.count("*").alias("messages"), f.sum(f.length("body")).alias("bytes")
    )
    counts = {each["queue"]: (each["messages"], each["bytes"] or 0) for each in grouped.collect()}
    total = sum(messages for messages, _ in counts.values())
    lines = [f"{total:,} messages would be sent to {target.title}:"]
    lines += [
        f"  {queue}: {messages:,} messages, {size:,} bytes"
        for queue, (messages, size) in sorted(counts.items())
    ]
    if settings.rate and total:
        lines.append(f"At {settings.rate:g} a second that takes {total / settings.rate:,.0f} s.")
    for each in _ordered(rows).limit(SAMPLES).collect():
        text = each["body_text"] or ""
        lines.append(f"  {each['message_id']} “{_label(each)}” {text[:60]!r}")
    lines.append("Nothing was sent: give --send to do it.")
    figures = {
        "dry_run": True,
        "messages": total,
        "sent": 0,
        "bytes": sum(size for _, size in counts.values()),
        "queues": {queue: messages for queue, (messages, _) in sorted(counts.items())},
        "queue": target.title,
    }
    return Summary(figures, tuple(lines))


def _label(row: Any) -> str:
    return str(row["label"] or "") if "label" in row else ""


def _ordered(rows: DataFrame) -> DataFrame:
    """By queue manager in the order of arrival there, which is that of each of its queues too."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark takes long to import

    return rows.orderBy(f.substring_index("queue", "\\", 1), "sequence", "queue")


class _Plan:
    """What a replay sends, fixed once, and how far it is."""

    def __init__(self, folder: Folder, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        self._place = f"{REPLAYS}/{settings.name}"
        there = folder.read_json(f"{self._place}/replay.json")
        self.is_made = there is not None
        self._writer = "" if there is None else str(there["writer"])
        # A dry run begins nothing, whatever has its name.
        if settings.send and there is not None and there["identity"] != settings.identity():
            raise FlowFailed(
                f"the replay {settings.name!r} was begun with {there['identity']}, and "
                f"{settings.identity()} was asked for: give it another --name, or the same"
            )

    @property
    def writer(self) -> str:
        """The name under which the queue manager remembers what was sent."""
        return self._writer

    def make(self, rows: DataFrame) -> None:
        """Writes down what is to be sent; what an attempt before has left goes."""
        place = f"{self._place}/plan"
        self._folder.remove_folder(self._place)
        wanted = [each for each in rows.columns if each in {*RESTORED, "queue", "message_id"}]
        with failing("looking up what is to be sent"):
            writer = _ordered(rows).select(*wanted).write
            writer.option("maxRecordsPerFile", self._settings.batch_messages).parquet(
                self._folder.spark_path(place)
            )
        self._folder.sync(self._folder.files_in(place))
        # A replay that is begun anew under the same name is another one to the queue manager.
        self._writer = f"replay {self._settings.name} {uuid4()}"
        self._folder.write_json(
            f"{self._place}/replay.json",
            {"writer": self._writer, "identity": self._settings.identity()},
        )

    def batches(self) -> list[str]:
        """The files, in order."""
        found = []
        for name in self._folder.files_in(f"{self._place}/plan"):
            if name.endswith(".parquet"):
                numbers = _FILE.search(name)
                assert numbers is not None, f"Spark named a file {name}"
                found.append((int(numbers[1]), int(numbers[2]), name))
        return [name for _, _, name in sorted(found)]

    def rows(self, name: str) -> Any:
        """The rows of a file."""
        return pq.ParquetFile(self._folder.path(name), filesystem=self._folder.files).read()

    @property
    def done(self) -> tuple[int, int]:
        """Batches and messages that were sent, as far as is known here."""
        found = self._folder.read_json(f"{self._place}/done.json")
        return (0, 0) if found is None else (int(found["batches"]), int(found["messages"]))

    def note(self, batches: int, messages: int) -> None:
        """So many were sent."""
        self._folder.write_json(
            f"{self._place}/done.json", {"batches": batches, "messages": messages}
        )


def _send(plan: _Plan, settings: Settings, target: _Target, progress: Progress) -> Summary:
    names = plan.batches()
    begun, total = plan.done
    sent = again = 0
    began = time.monotonic()
    with hearing() as stop:
        for number, name in list(enumerate(names))[begun:]:
            stop.pause(_pause_s(settings, sent, began))
            if stop.is_wanted:
                break
            rows = _restored(plan.rows(name), settings)
            published = target.send(rows, plan.writer, number) if rows.num_rows else 0
            sent += published
            again += rows.num_rows - published
            total += rows.num_rows
            plan.note(number + 1, total)
            progress.step("messages", total, None)
    return _summary(
        settings, target, sent=sent, total=total, again=again, is_done=not stop.is_wanted
    )


def _pause_s(settings: Settings, sent: int, began: float) -> float:
    """How long to wait so that the rate is not exceeded."""
    if not settings.rate:
        return 0.0
    return max(0.0, began + sent / settings.rate - time.monotonic())


def _restored(rows: Any, settings: Settings) -> Any:
    """Rows as messages have them, with their former identifiers where they are wanted."""
    if settings.keep_id != "none":
        ids = rows.column("message_id").to_pylist()
        if settings.keep_id == "extension":
            kept = pa.array([each.encode() for each in ids], pa.binary())
            column = "extension"
        else:
            kept = pa.array([_id_bytes(each) for each in ids], pa.binary())
            column = "correlation_id"
        rows = _replaced(rows, column, kept)
    return rows.select([each for each in rows.column_names if each in RESTORED])


def _replaced(rows: Any, column: str, values: Any) -> Any:
    if column in rows.column_names:
        return rows.set_column(rows.column_names.index(column), column, values)
    return rows.append_column(column, values)


def _id_bytes(message_id: str) -> bytes:
    """[MS-MQMQ] 2.2.8: the 20 bytes of an identifier, as a correlation id has them."""
    found = _ID.fullmatch(message_id)
    if found is None:
        raise FlowFailed(f"{message_id!r} in the archive is no message identifier")
    return UUID(found[1]).bytes_le + int(found[2]).to_bytes(4, "little")


def _summary(
    settings: Settings, target: _Target, *, sent: int, total: int, again: int, is_done: bool
) -> Summary:
    lines = [f"{sent:,} messages were sent to {target.title}; {total:,} altogether."]
    if again:
        lines.append(f"{again:,} were found to be sent before, and were not sent again.")
    if not is_done:
        lines.append("Stopped; started again with the same name it goes on from here.")
    figures = {
        "dry_run": False,
        "messages": total,
        "sent": sent,
        "sent_before": again,
        "queue": target.title,
        "name": settings.name,
        "stopped": not is_done,
    }
    return Summary(figures, tuple(lines))
