"""The options of the source and of the sink, read from the texts that Spark hands over."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeVar

from merq.errors import MerqError

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
PERMISSIVE, DROPMALFORMED, FAILFAST = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"
MODES: Final = (PERMISSIVE, DROPMALFORMED, FAILFAST)
PEEK, RECEIVE = "peek", "receive"
READ_MODES: Final = (PEEK, RECEIVE)

POLL_S: Final = 1.0
"""How long a stream waits for messages before it tells Spark that there are none."""

PARTITIONS_MAX: Final = 10_000
"""The most that `minPartitions` can be."""

PRIORITY_MAX: Final = 7
TIME_MAX: Final = 0xFFFFFFFF
"""The last second that messages can tell."""

_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})
_T = TypeVar("_T")

ASYNC: Final = "asyncprogresstrackingenabled"
SPARKS: Final = frozenset(
    {"checkpointlocation", ASYNC, "asyncprogresstrackingcheckpointintervalms"}
)
"""Options of Spark's own that it shows to sinks too."""

Offsets: TypeAlias = dict[str, int]
NONE: Final[tuple[str, ...]] = ()
_FIRST: Final[str | Offsets] = EARLIEST
_LAST: Final[str | Offsets] = LATEST


class BadOption(MerqError):
    """An option of `format("msmq")` that is not what it can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    r"""What was asked for.

    Attributes:
        urls: Queue managers; several are separated by commas.
        token: Who the client is, for TCP.
        ca: The certificate of the authority to trust, for TLS.
        cert: The client's certificate.
        key: Its key.
        queues: Path names, or DIRECT= names of outgoing queues; from `queue`, `queues` or `path`.
        pattern: Path names with `*`, `?` and `[...]`, matched without the computer.
        columns: Which columns there are; empty for the usual ones.
        mode: What becomes of a message whose body is not the text that it says.
        read_mode: `peek` leaves messages where they are, `receive` removes what Spark committed.
        group: Who reads, for `receive`.
        starting: `earliest`, `latest`, or a number for each queue.
        ending: The same, for batches.
        since: Seconds since 1970: only what arrived then or later.
        most: Messages for one micro-batch, of each queue; 0 is all.
        most_bytes: What their packets take; 0 is all.
        partitions: Into how many parts a queue is split at least, if it has enough messages.
        fail_on_loss: A stream fails if messages that it was to read are gone.
        poll_s: How long a stream waits for messages before it tells Spark that there are none.
        writer: The name under which batches are remembered, together with the query's identifier
            within a stream; for a job by itself, the name under which it is done once.
        batch: Which batch of that writer a job writes; for `foreachBatch`, which is told it.
        properties: What messages are like that are written, where no column says it.
    """

    urls: tuple[str, ...] = ("",)
    token: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    queues: tuple[str, ...] = ()
    pattern: str = ""
    columns: tuple[str, ...] = ()
    mode: str = PERMISSIVE
    read_mode: str = PEEK
    group: str = ""
    starting: str | Offsets = EARLIEST
    ending: str | Offsets = LATEST
    since: int = 0
    most: int = 0
    most_bytes: int = 0
    partitions: int = 1
    fail_on_loss: bool = True
    poll_s: float = POLL_S
    writer: str = ""
    batch: int = 0
    properties: tuple[tuple[str, Any], ...] = ()


PROPERTIES: Final = {
    "label": str,
    "priority": int,
    "delivery": str,
    "timeToReachQueue": int,
    "timeToBeReceived": int,
    "journal": bool,
    "deadLetter": bool,
    "responseQueue": str,
    "adminQueue": str,
    "acknowledge": str,
    "appTag": int,
}
"""What messages are like that are written, where no column says it."""


class _Reading:
    """Takes options one by one, and knows which were not asked for."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._left = {name.lower(): (name, text) for name, text in options.items()}

    def take(self, name: str, default: _T, read: Callable[[str], _T]) -> _T:
        found = self._left.pop(name.lower(), None)
        if found is None:
            return default
        text = found[1].strip()
        try:
            return read(text)
        except BadOption as wrong:
            raise BadOption(f"option {name}: {wrong}") from wrong

    def finish(self, known: set[str]) -> None:
        if self._left.get(ASYNC, ("", "false"))[1].lower() == "true":
            raise BadOption(
                "option asyncProgressTrackingEnabled is true: Spark then says that a batch is done "
                "before it is in its commit log, and messages could be lost; leave it out"
            )
        unknown = [name for lower, (name, _) in self._left.items() if lower not in SPARKS]
        if unknown:
            raise BadOption(
                f"option {unknown[0]} is not known; known are {', '.join(sorted(known))}"
            )


def read_options(options: Mapping[str, str]) -> Options:
    """What the texts say.

    Raises:
        BadOption: The text names the option, what was found, and what belongs there.
    """
    reading = _Reading(options)
    found = Options(
        urls=reading.take("url", ("",), _list),
        token=reading.take("token", None, _text),
        ca=reading.take("tlsCa", None, _text),
        cert=reading.take("tlsCert", None, _text),
        key=reading.take("tlsKey", None, _text),
        queues=(
            *reading.take("queue", NONE, _alone),
            *reading.take("queues", NONE, _list),
            *reading.take("path", NONE, _alone),
        ),
        pattern=reading.take("queuePattern", "", _text),
        columns=reading.take("columns", NONE, _list),
        mode=reading.take("mode", PERMISSIVE, _one_of(MODES, str.upper)),
        read_mode=reading.take("readMode", PEEK, _one_of(READ_MODES, str.lower)),
        group=reading.take("consumerGroup", "", _text),
        starting=reading.take("startingOffsets", _FIRST, _offsets),
        ending=reading.take("endingOffsets", _LAST, _offsets),
        since=reading.take("startingTimestamp", 0, _time),
        most=reading.take("maxMessagesPerTrigger", 0, _number(1, 1 << 40)),
        most_bytes=reading.take("maxBytesPerTrigger", 0, _number(1, 1 << 50)),
        partitions=reading.take("minPartitions", 1, _number(1, PARTITIONS_MAX)),
        fail_on_loss=reading.take("failOnDataLoss", default=True, read=_truth),
        poll_s=reading.take("pollSeconds", POLL_S, _seconds),
        writer=reading.take("writer", "", _text),
        batch=reading.take("batch", 0, _number(0, 1 << 50)),
        properties=tuple(
            (name, reading.take(name, None, _reader_of(name, kind)))
            for name, kind in PROPERTIES.items()
            if name.lower() in {each.lower() for each in options}
        ),
    )
    reading.finish(KNOWN)
    if found.batch and not found.writer:
        raise BadOption("option batch is set, and writer is not: a batch is one of a writer's")
    if found.read_mode == RECEIVE and not found.group:
        raise BadOption(
            "option readMode is receive, and consumerGroup is not set: it is the name under which "
            "messages are reserved, the same whenever this query is started again"
        )
    return found


KNOWN: Final = {
    "url", "token", "tlsCa", "tlsCert", "tlsKey", "queue", "queues", "queuePattern", "columns",
    "mode", "readMode", "consumerGroup", "startingOffsets", "endingOffsets", "startingTimestamp",
    "maxMessagesPerTrigger", "maxBytesPerTrigger", "minPartitions", "failOnDataLoss",
    "pollSeconds", "writer", "batch", *PROPERTIES,
}  # fmt: skip
"""All options."""


def _text(text: str) -> str:
    return text


def _alone(text: str) -> tuple[str, ...]:
    return (text,)


def _list(text: str) -> tuple[str, ...]:
    found = tuple(each.strip() for each in text.split(",") if each.strip())
    if not found:
        raise BadOption("it is empty; names belong there, separated by commas")
    return found


def _one_of(known: tuple[str, ...], fold: Callable[[str], str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if fold(text) not in known:
            raise BadOption(f"{text!r} was found; one of {', '.join(known)} belongs there")
        return fold(text)

    return read


def _number(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise BadOption(f"{text!r} was found; a number from {low} to {high} belongs there")
        return number

    return read


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise BadOption(f"{text!r} was found; seconds from 0 to 3600 belong there")
    return seconds


def _truth(text: str) -> bool:
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise BadOption(f"{text!r} was found; true or false belongs there")


def _time(text: str) -> int:
    """Seconds since 1970, also written as milliseconds or as a date in ISO 8601."""
    seconds = -1
    if text.isdecimal():
        number = int(text)
        seconds = number // 1000 if number > TIME_MAX else number
    else:
        with suppress(ValueError):
            found = datetime.fromisoformat(text)
            seconds = int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    if not 0 <= seconds <= TIME_MAX:
        raise BadOption(
            f"{text!r} was found; milliseconds since 1970 or a time such as 2026-01-31T12:00:00Z "
            "belongs there"
        )
    return seconds


def _offsets(text: str) -> str | Offsets:
    if text.lower() in {EARLIEST, LATEST}:
        return text.lower()
    wanted = f'{text!r} was found; earliest, latest or {{"queue": number}} belongs there'
    try:
        found = json.loads(text)
    except ValueError:
        raise BadOption(wanted) from None
    if not isinstance(found, dict) or not all(
        type(each) is int and each >= -2 for each in found.values()
    ):
        raise BadOption(wanted)
    return {name.lower(): number for name, number in found.items()}


def _reader_of(name: str, kind: type) -> Callable[[str], Any]:
    if kind is int:
        return _number(0, PRIORITY_MAX if name == "priority" else 0xFFFFFFFF)
    return _truth if kind is bool else _text
