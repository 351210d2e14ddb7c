"""Captures of network traffic to a table of the packets in them, a task for each file.

A file is read from its beginning to its end as it comes, so that its size does not matter. Each row
is a packet, or a place where there should have been one: `error` says then what was wrong. `tree`
has every field as JSON, in the form of `merq decode --json`.

Files are opened by the tasks: on a cluster they have to be where all of its computers find them
under the same name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sql

from merq.capture import PING_UDP_PORT, SESSION_TCP_PORT
from merq.capture.captured import CapturedPackets
from merq.capture.packets import Finding, Undecoded
from merq.capture.records import record_of
from merq.spark.flows.running import Progress, Summary, failing
from merq.spark.options import BadOption

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "capture"
SUMMARY: Final = "Makes a table of the packets in pcap and pcapng files."

BATCH_ROWS: Final = 1_000
"""Packets that a task hands over at once."""

FILES_MAX: Final = 100_000
"""Files of one run."""

SUFFIXES: Final = (".pcap", ".pcapng", ".cap")
"""What files in a folder are taken for captures."""

_TIME_US_MAX: Final = 253_402_300_800_000_000  # the year 10000, which no calendar here has
_SESSION: Final = {
    "ack_sequence_number": "session_ack",
    "recoverable_msg_ack_seq_number": "session_recoverable_ack",
    "recoverable_msg_ack_flags": "session_recoverable_ack_flags",
    "user_msg_sequence_number": "session_sent",
    "recoverable_msg_seq_number": "session_recoverable_sent",
    "window_size": "session_window",
}
SCHEMA: Final = pa.schema(
    [
        ("file", pa.string()),
        ("number", pa.int64()),
        ("frame", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("source", pa.string()),
        ("destination", pa.string()),
        ("packet", pa.string()),
        ("size", pa.int64()),
        ("message_id", pa.string()),
        ("label", pa.string()),
        *((name, pa.int64()) for name in _SESSION.values()),
        ("error", pa.string()),
        ("offset", pa.int64()),
        ("tree", pa.string()),
    ]
)
"""The columns; `number` counts the rows of a file, `offset` is where in its stream an error is."""

_DDL: Final = (
    "file string, number bigint, frame bigint, time timestamp, source string, destination string, "
    "packet string, size bigint, message_id string, label string, "
    + ", ".join(f"{name} bigint" for name in _SESSION.values())
    + ", error string, offset bigint, tree string"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Which captures, and where the table goes.

    Attributes:
        input: A file, or a folder with all .pcap, .pcapng and .cap files in it and below.
        output: The folder in which the table is written, of Parquet, as `packets`.
        tcp_port: The TCP port of queue managers.
        ping_port: The UDP port of their pings.
    """

    input: tuple[str, ...] = (".",)
    output: str = "captured"
    tcp_port: int = SESSION_TCP_PORT
    ping_port: int = PING_UDP_PORT


def look(settings: Settings) -> None:
    """Looks whether there are captures.

    Raises:
        BadOption: There are none.
    """
    captures(settings.input)


def run(spark: SparkSession, settings: Settings, progress: Progress) -> Summary:
    """Makes a table of the packets between queue managers that were captured into files.

    Every packet is a row, with its message's id and label, and all of its fields as JSON; so is
    every place that cannot be read, with the reason; with --check the exit status is 1 if there are
    such places. Files are decoded side by side.

    merq pipeline run capture --input ./pcaps --output ./captured

    Raises:
        BadOption: There are no captures.
        FlowFailed: Spark could not do it.
    """
    files = captures(settings.input)
    place = f"{settings.output}/packets"
    progress.say(f"{len(files):,} captures")
    with failing("capture"):
        packets(spark, files, settings).write.mode("overwrite").parquet(place)
        table = spark.read.schema(_DDL).parquet(place)
        counted = table.groupBy("packet").agg(sql.count("*").alias("rows")).collect()
        errors = table.where("error is not null").groupBy("file", "error").count()
        wrong = errors.orderBy("file", "error").limit(20).collect()
    kinds = {str(row["packet"]): int(row["rows"]) for row in counted if row["packet"] is not None}
    unread = sum(int(row["rows"]) for row in counted if row["packet"] is None)
    total = sum(kinds.values())
    lines = [f"{total:,} packets of {len(files):,} captures in {place}"]
    lines += [f"{number:,}  {kind}" for kind, number in sorted(kinds.items())]
    if unread:
        lines.append(f"{unread:,} places could not be read:")
        lines += [f"{row['file']}: {row['error']}" for row in wrong]
    figures = {"files": len(files), "packets": total, "errors": unread, "kinds": kinds}
    finding = f"{unread:,} places of the captures could not be read" if unread else ""
    return Summary(figures=figures, lines=tuple(lines), finding=finding)


def captures(names: Sequence[str]) -> list[str]:
    """The files that are meant, each once.

    Raises:
        BadOption: There are none, one is not there, or there are too many.
    """
    found: dict[str, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            below = (each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES)
            found |= dict.fromkeys(str(each.resolve()) for each in sorted(below) if each.is_file())
        elif path.is_file():
            found[str(path.resolve())] = None
        else:
            raise BadOption(f"input: {name} is not there")
    if not found:
        raise BadOption(f"input: {', '.join(names)} has no files that end in {', '.join(SUFFIXES)}")
    if len(found) > FILES_MAX:
        raise BadOption(f"input: there are {len(found):,} files; at most {FILES_MAX:,} at once")
    return list(found)


def packets(spark: SparkSession, files: list[str], settings: Settings) -> DataFrame:
    """The packets of files; each file is a task."""
    decoding = _Decoding(tuple(files), settings.tcp_port, settings.ping_port)
    numbers = spark.range(0, len(files), 1, numPartitions=len(files))
    return numbers.mapInArrow(decoding, _DDL)


@dataclass(frozen=True, slots=True)
class _Decoding:
    """What a task does: numbers of files in, packets out."""

    files: tuple[str, ...]
    tcp_port: int
    ping_port: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self.decode(self.files[number])

    def decode(self, file: str) -> Iterator[pa.RecordBatch]:
        rows = self._rows(file)
        while some := list(islice(rows, BATCH_ROWS)):
            yield pa.RecordBatch.from_pylist(some, SCHEMA)

    def _rows(self, file: str) -> Iterator[dict[str, Any]]:
        try:
            with Path(file).open("rb") as opened:
                capture = CapturedPackets(opened, tcp_port=self.tcp_port, udp_port=self.ping_port)
                for number, finding in enumerate(capture.findings()):
                    yield row_of(file, number, finding)
        except OSError as wrong:
            yield {"file": file, "error": f"the file cannot be read: {wrong.strerror}"}


def row_of(file: str, number: int, finding: Finding) -> dict[str, Any]:
    """A packet, or what could not be read, as a row."""
    record = record_of(finding)
    row: dict[str, Any] = {"file": file, "number": number, "tree": json.dumps(record)}
    origin = finding.origin
    if origin is not None:
        row |= {"frame": origin.frame, "source": origin.source, "destination": origin.destination}
        row["time"] = _time(origin.time_ns)
    if isinstance(finding, Undecoded):
        return row | {"error": finding.reason, "offset": finding.offset}
    row |= {"packet": finding.kind, "size": finding.size}
    header, properties = _part(record, "user_header"), _part(record, "message_properties_header")
    if header:
        row["message_id"] = f"{{{header['source_queue_manager']}}}\\{header['message_id']}"
    if "label" in properties:
        # A label may have halves of characters, which no text in a table can.
        row["label"] = str(properties["label"]).encode("utf-8", "replace").decode("utf-8")
    session = _part(record, "session_header")
    return row | {own: session.get(name) for name, own in _SESSION.items()}


def _part(record: Mapping[str, object], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def _time(time_ns: int | None) -> int | None:
    if time_ns is None or time_ns // 1000 >= _TIME_US_MAX:
        return None
    return time_ns // 1000
