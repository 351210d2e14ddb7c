"""Reading and writing by the hundred thousand: `Manager.bulk`.

A data pipeline reads a queue in ranges of the order in which messages came, and writes batches that
are published at once. `merq.spark` is built on this; so can others be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from merq.client.asking import of_type
from merq.client.driving import Driving
from merq.client.queues import Queue
from merq.errors import InDoubt, MessageQueueError
from merq.hresult import HResult
from merq.model.reservations import ClaimReport, QueueSpan, RangeReport, StageReport
from merq.model.row_batch import RowBatch
from merq.protocol.application.batches import MESSAGES_MAX
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import (
    Acknowledge,
    CreateStage,
    DescribeSpan,
    DropStages,
    ListClaims,
    ListRanges,
    ListStages,
    Publish,
    ReadRows,
    ReleaseClaim,
    Request,
    Reserve,
    Send,
    SendRows,
)
from merq.protocol.application.rows import RowsReport

ROWS: Final = 2048
ROWS_BYTES: Final = 4 << 20
"""What is read at once."""

SEQUENCE_MAX: Final = (1 << 56) - 1
"""The largest number that a message can have in the order of arrival."""

ATTEMPTS: Final = 5
"""How often something is asked for that does no harm when it is done twice."""

_T = TypeVar("_T")


class Stage:
    """A place for messages that are published later."""

    def __init__(self, driver: Driving, number: int) -> None:
        self._driver = driver
        self.number = number

    def send(self, packets: Sequence[bytes]) -> int:
        """Writes messages, all or none; they are on the disk when this returns.

        Raises:
            MessageQueueError: MQ_ERROR_INVALID_PARAMETER, there are too many for one request.
        """
        if not packets:
            return 0
        if len(packets) > MESSAGES_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"{len(packets)} messages at once: up to {MESSAGES_MAX} can be written",
            )
        return of_type(self._driver.ask(Send(self.number, packets)), int)

    def send_rows(self, rows: RowBatch) -> int:
        """The same for messages that have most in common: much quicker for both sides.

        Raises:
            MessageQueueError: MQ_ERROR_INVALID_PARAMETER, a column does not fit the others, or a
                template cannot be one; what else `send` refuses.
        """
        return of_type(self._driver.ask(SendRows(self.number, rows)), int)


class Bulk:
    """Messages by the hundred thousand.

    Everything here but what a stage sends may be asked for again if the connection is lost, and is.
    """

    def __init__(self, driver: Driving) -> None:
        self._driver = driver

    def _ask(self, request: Request) -> Result:
        for _ in range(ATTEMPTS - 1):
            try:
                return self._driver.ask(request)
            except InDoubt:
                continue
        return self._driver.ask(request)

    # Looking.

    def span(
        self, queue: Queue, since: int = 0, *, after: int = 0, most: int = 0, most_bytes: int = 0
    ) -> QueueSpan:
        """Which messages a queue has, by the order in which they came.

        Args:
            queue: The queue.
            since: Seconds since 1970: `first` is of what arrived then or later.
            after: `end` is sought behind this number,
            most: so that no more than so many messages are between,
            most_bytes: whose packets take no more than so many bytes.
        """
        request = DescribeSpan(queue.number, since, after, most, most_bytes)
        return of_type(self._ask(request), QueueSpan)

    def rows(
        self, queue: Queue, after: int, upto: int, *, most: int = ROWS, most_bytes: int = ROWS_BYTES
    ) -> Iterator[RowsReport]:
        """Messages that came behind one number and up to another, in order; they stay."""
        while after < upto:
            request = ReadRows(queue.number, "", after, upto, 0, most, most_bytes)
            found = of_type(self._ask(request), RowsReport)
            if not found.count:
                return
            yield found
            last = int.from_bytes(found.ids[-8:], "little") & SEQUENCE_MAX
            assert last > after, "rows come in order"
            after = last

    # Reserving.

    def reserve(
        self,
        queue: Queue,
        group: str,
        owner: str,
        after: int,
        *,
        most: int = 8192,
        most_bytes: int = 64 << 20,
        upto: int = SEQUENCE_MAX,
        floor: int = 0,
    ) -> RangeReport:
        """The range of a group that begins behind a number; a new one unless there is one.

        Its messages are nobody else's until they are acknowledged or released. One without messages
        means that there is nothing to reserve.
        """
        request = Reserve(queue.number, group, owner, after, most, most_bytes, upto, floor)
        return of_type(self._ask(request), RangeReport)

    def reserved(
        self,
        queue: Queue,
        group: str,
        found: RangeReport,
        *,
        most: int = ROWS,
        most_bytes: int = ROWS_BYTES,
    ) -> Iterator[RowsReport]:
        """The messages of a range, always the same until it is acknowledged."""
        skip = 0
        while skip < found.messages:
            request = ReadRows(queue.number, group, found.start, 0, skip, most, most_bytes)
            rows = of_type(self._ask(request), RowsReport)
            if not rows.count:
                return
            yield rows
            skip += rows.count

    def acknowledge(self, queue: Queue, group: str, owner: str, upto: int) -> None:
        """All ranges of a group up to a number are done: their messages are received."""
        request = Acknowledge(queue.number, group, owner, upto)
        while of_type(self._ask(request), int):
            pass

    def leave(self, queue: Queue, group: str, owner: str) -> None:
        """Whoever this was speaks for the group no longer: another may begin at once."""
        self._ask(Acknowledge(queue.number, group, owner, 0, leave=True))

    def ranges(self, queue: Queue, group: str) -> list[RangeReport]:
        """What a group has reserved of a queue."""
        return _list_of(self._ask(ListRanges(queue.number, group)), RangeReport)

    def claims(self) -> list[ClaimReport]:
        """All groups of all queues."""
        return _list_of(self._ask(ListClaims()), ClaimReport)

    def release(self, queue: Queue, group: str, *, forget: bool = False) -> int:
        """What a group has reserved is anybody's again; gives how many messages that were."""
        return of_type(self._driver.ask(ReleaseClaim(queue.number, group, forget)), int)

    # Writing.

    def stage(self, queue: Queue, writer: str, batch: int, part: str) -> Stage:
        """A place for a part of a batch; nobody sees what is there before it is published."""
        request = CreateStage(queue.number, writer, batch, part)
        return Stage(self._driver, of_type(self._ask(request), int))

    def publish(self, writer: str, batch: int, stages: Sequence[int]) -> int:
        """Stages come into their queues, all at once, in this order; gives how many messages.

        0 if that batch of that writer was published before. Other stages of it are dropped.
        """
        return of_type(self._ask(Publish(writer, batch, tuple(stages))), int)

    def drop(self, writer: str, batch: int) -> int:
        """Stages of a batch, and of those before it, go; gives how many messages."""
        return of_type(self._ask(DropStages(writer, batch)), int)

    def drop_stage(self, number: int) -> int:
        """One stage goes; gives how many messages."""
        return of_type(self._ask(DropStages(stage=number)), int)

    def stages(self) -> list[StageReport]:
        """What was written and is not published."""
        return _list_of(self._ask(ListStages()), StageReport)


def _list_of(result: Result, kind: type[_T]) -> list[_T]:
    assert isinstance(result, list), f"the queue manager answered {result!r}"
    return [each for each in result if isinstance(each, kind)]
