"""What flows share: progress, the summary at the end, waiting for streams, and failures."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from types import FrameType
from typing import Any, Final, Protocol, TypeAlias

from merq.errors import MerqError
from merq.spark import flows

LOOK_S: Final = 0.2
"""How often it is looked whether a stream has ended or is to end."""

REASON_CHARACTERS_MAX: Final = 2_000
"""So much is told of a failure of Spark's that is not one of ours."""

_FRAME: Final = frozenset({"__main__", "commands", "running"})
"""Modules of the package that are not flows."""

_OURS: Final = re.compile(
    r"^(?:pyspark\.[\w.]+: |Caused by: )?merq\.[\w.]+: (?P<text>.+)$", re.MULTILINE
)
_PYTHON: Final = re.compile(
    r"^(?:Caused by: |: )?([\w.$]+(?:Error|Exception)(?:: .+)?)$", re.MULTILINE
)

Figure: TypeAlias = Any
"""Something that JSON can have."""


class FlowFailed(MerqError):
    """A flow could not do what it was asked for; the text says why and what to do."""


class Progress(Protocol):
    """Who is told how far a flow is."""

    def say(self, text: str) -> None:
        """Something has happened that people want to know."""

    def step(self, name: str, done: int, total: int | None) -> None:
        """So many of something are done, of so many if that is known."""


class Quiet:
    """Nobody is told."""

    def say(self, text: str) -> None:
        """Nobody listens."""

    def step(self, name: str, done: int, total: int | None) -> None:
        """Nobody looks."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a flow has done.

    Attributes:
        figures: For programs: whatever JSON can have, by name.
        lines: For people.
        failure: What of it could not be done, in a sentence; the exit status is 1 then.
        finding: What somebody should look at, in a sentence; with `--check` the exit status is 1
            then.
    """

    figures: Mapping[str, Figure] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    failure: str = ""
    finding: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def as_json(self) -> str:
        """The figures as a JSON object in one line."""
        return json.dumps(dict(self.figures), default=str)


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow, as its module has it.

    Attributes:
        name: What it is called.
        summary: What it does, in a line.
        settings: What it can be told.
        look: Raises what is wrong, as far as that can be known without Spark; changes nothing.
        run: Does it.
    """

    name: str
    summary: str
    settings: type[Any]
    look: Callable[[Any], None]
    run: Callable[[Any, Any, Progress], Summary]


def flow_names() -> list[str]:
    """The names of the flows that there are: modules of the package beside those of the frame."""
    return sorted(each.name for each in iter_modules(flows.__path__) if each.name not in _FRAME)


def flow_named(name: str) -> Flow:
    """A flow; it is imported now.

    Raises:
        FlowFailed: There is none of that name.
    """
    names = flow_names()
    if name not in names:
        raise FlowFailed(f"there is no flow {name!r}; there are {', '.join(names)}")
    module = import_module(f"{flows.__name__}.{name}")
    return Flow(module.NAME, module.SUMMARY, module.Settings, module.look, module.run)


class Stop:
    """Ctrl-C and SIGTERM, remembered; the second time is not waited for.

    Attributes:
        is_wanted: One of them came.
    """

    def __init__(self) -> None:
        self.is_wanted = False

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """One of them comes."""
        if self.is_wanted:
            raise KeyboardInterrupt
        self.is_wanted = True

    def pause(self, seconds: float) -> None:
        """Waits, unless somebody wants to stop."""
        until = time.monotonic() + seconds
        while not self.is_wanted and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_S))


@contextmanager
def hearing() -> Iterator[Stop]:
    """Within the block the signals that end a program are remembered instead."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread hears of them
        return
    before = {each: signal.signal(each, stop.hear) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def awaited(query: Any, look: Callable[[], None] = lambda: None) -> bool:
    """Waits until a streaming query ends; says whether it did so by itself.

    Ctrl-C and SIGTERM stop it. The batch that runs then is done again from the checkpoint when the
    flow is started again, so nothing is lost, and what it had already done is not done twice.

    Args:
        query: The query.
        look: Called again and again meanwhile.

    Raises:
        FlowFailed: The query failed.
    """
    with hearing() as stop, failing():
        while query.isActive and not stop.is_wanted:
            query.awaitTermination(LOOK_S)
            look()
        if stop.is_wanted:
            query.stop()
        wrong = query.exception()
        if wrong is not None and not stop.is_wanted:
            raise wrong
    look()
    return not stop.is_wanted


@contextmanager
def failing(doing: str = "") -> Iterator[None]:
    """Failures of Spark within the block are told in a sentence.

    Raises:
        FlowFailed: What was wrong.
    """
    # Takes long, and may not be there.
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JJavaError) as wrong:
        raise FlowFailed(f"{doing}: {reason_of(wrong)}" if doing else reason_of(wrong)) from wrong


def reason_of(wrong: BaseException) -> str:
    """Why Spark failed: the sentence of ours that is deep in its text, or what it says first."""
    text = str(wrong)
    ours = _OURS.findall(text)
    if ours:
        return str(ours[-1]).strip()
    python = _PYTHON.findall(text)
    # Behind the first line come plans and stacks.
    first = text.strip().partition("\n")[0].rstrip(";")
    return (str(python[-1]) if python else first).strip()[:REASON_CHARACTERS_MAX]
