"""Changes: what an operation does, as data. A change is durable whole, and only then happens.

The engine plans a change, the driver writes its entries as one frame and says when it is durable,
and the engine carries out its steps and answers. A change without entries needs no disk; it happens
when the changes before it have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from merq.engine.queue import Queue, QueueProperties
from merq.engine.records import Entry
from merq.errors import MessageQueueError


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message as a reader gets it."""

    packet: bytes
    lookup_id: int
    queue: int


Result: TypeAlias = Delivered | int | bytes | MessageQueueError | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request; an error is a value here, raised at the edge."""

    request: int
    result: Result


@dataclass(frozen=True, slots=True)
class PutStep:
    """A message becomes available; `entry` is its place among the change's entries, if any."""

    queue: Queue
    lookup_id: int
    packet: bytes
    entry: int | None


@dataclass(frozen=True, slots=True)
class RemoveStep:
    """A message is gone."""

    queue: Queue
    lookup_id: int


@dataclass(frozen=True, slots=True)
class PurgeStep:
    """A message that somebody holds is marked: it goes when it is given back."""

    queue: Queue
    lookup_id: int


@dataclass(frozen=True, slots=True)
class RelocateStep:
    """A message's packet lies elsewhere, if the message is still there."""

    queue: Queue
    lookup_id: int
    entry: int


@dataclass(frozen=True, slots=True)
class DefineStep:
    """A queue is there, or is another from now on."""

    properties: QueueProperties


@dataclass(frozen=True, slots=True)
class DropStep:
    """A queue is gone, with everything in it."""

    queue: Queue


Step: TypeAlias = PutStep | RemoveStep | PurgeStep | RelocateStep | DefineStep | DropStep


@dataclass(slots=True, eq=False)
class Change:
    """What an operation does. `positions` and `end` come from the store once it is written."""

    entries: list[Entry] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    positions: tuple[int, ...] = ()
    end: int | None = None

    def is_ready(self, durable: int) -> bool:
        """Whether it may happen, now that the log is durable up to here."""
        return not self.entries or (self.end is not None and self.end <= durable)


@dataclass(frozen=True, slots=True)
class Write:
    """The driver is to write this change's entries as one frame."""

    change: Change


Effect: TypeAlias = Write | Answer
