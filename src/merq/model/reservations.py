"""What is told of messages that groups of consumers have reserved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeReport:
    """Messages that are reserved together.

    Attributes:
        start: The range is what came behind this number,
        end: and up to this one.
        messages: How many messages are in it.
        size: What they take, in bytes.
    """

    start: int
    end: int
    messages: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReport:
    """What a group of consumers has to do with a queue.

    Attributes:
        queue: The queue's path name.
        group: The group's name.
        acknowledged: Up to this number everything is done.
        reserved_up_to: What came behind that and up to this number is reserved.
        ranges: In how many ranges.
        messages: How many messages are reserved.
        owner: Who spoke for the group last; empty if nobody has since the service started.
        lease_s: How long nobody else may.
    """

    queue: str
    group: str
    acknowledged: int
    reserved_up_to: int
    ranges: int
    messages: int
    owner: str
    lease_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReport:
    """Messages that were written to be published later.

    Attributes:
        stage: Its number.
        queue: The path name of the queue that they are for.
        writer: Who writes; the same for all batches of a query.
        batch: The batch that they are part of.
        part: Which part of the batch, and which attempt at it.
        messages: How many there are.
        size: What they take, in bytes.
        created: When it was begun, in seconds since 1970.
    """

    stage: int
    queue: str
    writer: str
    batch: int
    part: str
    messages: int
    size: int
    created: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSpan:
    """Which messages a queue has, by the order in which they came.

    Attributes:
        first: The number of the message that came first; 0 if there is none.
        last: The number up to which messages have come, of those that are or were here lately.
        given: No message of the queue manager has a higher number, in whatever queue.
        end: The same, or a lower one if only so many messages were to be before it.
        messages: How many there are.
        size: What they take, in bytes.
    """

    first: int
    last: int
    given: int
    end: int
    messages: int
    size: int
