"""Groups of consumers reserve messages, and acknowledge them in ranges.

Whoever reads a queue in batches, and must see the same batch again after a crash, reserves it
first. A range that is reserved is durable before it is handed out; it goes when it is acknowledged,
as if its messages were received then.
"""

from __future__ import annotations

from array import array
from typing import Final

from merq.engine import notices, records
from merq.engine.changes import (
    AcknowledgeStep,
    Answer,
    Change,
    ReleaseStep,
    RemoveManyStep,
    ReserveStep,
)
from merq.engine.claims import Claim, Range
from merq.engine.holdings import MEMORY
from merq.engine.queue import Queue
from merq.engine.rows import Rows
from merq.engine.runs import SEQUENCE_MASK
from merq.engine.state import State
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.length_limits import GROUP_NAME_MAX
from merq.model.reservations import ClaimReport, RangeReport

RANGE_MESSAGES_MAX: Final = 8_192
RANGE_BYTES_MAX: Final = 64 << 20
"""What is reserved at once: others are served in between."""

RANGES_MAX: Final = 10_000
"""Ranges that a group may have reserved and not acknowledged."""

GROUPS_MAX: Final = 1_000
"""Groups that one queue knows."""


class Reservations:
    """Who has reserved what."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.lease_s = state.limits.lease_s

    # Reserving.

    def reserve(  # noqa: PLR0913 - a reservation has these
        self,
        request: int,
        queue: Queue,
        group: str,
        owner: str,
        after: int,
        *,
        most: int,
        most_bytes: int,
        upto: int,
        floor: int,
    ) -> None:
        """The range that begins at `after`, a new one unless it is reserved already.

        Answers with it when it is durable; one without messages if there is nothing to reserve.
        """
        claim = self._claim(queue, group, floor)
        self._lease(queue, claim, owner)
        self._check_not_releasing(queue, claim)
        found = claim.begins(after)
        if found is not None:
            self._answer_again(request, queue, claim, found)
            return
        self._check_next(queue, claim, after)
        rows = queue.positions.arrivals(
            claim.floor, min(upto, SEQUENCE_MASK), min(most, RANGE_MESSAGES_MAX), locked=False
        )
        count = _within(rows.sizes, min(most_bytes, RANGE_BYTES_MAX))
        if not count:
            self._state.answer(request, RangeReport(start=after, end=after, messages=0, size=0))
            return
        change = Change()
        ids = rows.ids[:count]
        end = max(each & SEQUENCE_MASK for each in ids)
        if end <= after:  # all of them came back, from somebody who had them before
            end = self._state.numbers.lookup_ids(0, 1, change) & SEQUENCE_MASK
        found = Range(after, end, ids)
        stored = [
            each
            for each, location in zip(ids, rows.locations, strict=False)
            if not location & MEMORY
        ]
        queue.positions.lock(ids)
        before = claim.acknowledged if group in queue.claims else None
        queue.claims[group] = claim
        if not claim.ranges and not claim.ending:
            claim.acknowledged = after
            change.entries.append(records.point(queue.number, group, after, claim.floor))
        claim.ranges.append(found)
        claim.reserving = change
        change.entries.append(records.range_(queue.number, group, found, stored))
        change.steps.append(ReserveStep(queue, claim, found, before))
        report = RangeReport(start=after, end=end, messages=count, size=sum(rows.sizes[:count]))
        change.answers.append(Answer(request, report))
        self._state.submit(change)

    def _answer_again(self, request: int, queue: Queue, claim: Claim, found: Range) -> None:
        """Somebody asks for what is reserved already; if it is not durable, he waits as well."""
        report = self._report(queue, found)
        if claim.reserving is not None and found is claim.ranges[-1]:
            claim.reserving.answers.append(Answer(request, report))
        else:
            self._state.answer(request, report)

    def _claim(self, queue: Queue, group: str, floor: int) -> Claim:
        """What a group has to do with a queue; nothing is kept of it before it reserves."""
        if queue.is_outgoing:
            raise MessageQueueError(
                HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
                f"{queue.properties.path_name} is an outgoing queue: its messages can be peeked at",
            )
        if not 1 <= len(group) <= GROUP_NAME_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"a group's name has from 1 to {GROUP_NAME_MAX} characters, this has {len(group)}",
            )
        found = queue.claims.get(group)
        if found is not None:
            return found
        if len(queue.claims) >= GROUPS_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{GROUPS_MAX} groups read {queue.properties.path_name}: forget some",
            )
        return Claim(group, floor)

    def _lease(self, queue: Queue, claim: Claim, owner: str) -> None:
        """Only one speaks for a group at a time."""
        now, path = self._state.now, queue.properties.path_name
        if owner in claim.fenced:
            raise MessageQueueError(
                HResult.MQ_ERROR_STALE_HANDLE,
                f"another reader has taken over the group {claim.group!r} of {path}: this one was "
                "not heard of for a while; only one may read at a time",
            )
        if claim.owner not in ("", owner):
            if now < claim.leased_until:
                raise MessageQueueError(
                    HResult.MQ_ERROR_SHARING_VIOLATION,
                    f"another reader of the group {claim.group!r} is at work on {path}: end it, "
                    f"choose another group, or try again in {claim.leased_until - now} s",
                )
            claim.fenced.append(claim.owner)
        claim.owner = owner
        claim.leased_until = now + self.lease_s

    def _check_not_releasing(self, queue: Queue, claim: Claim) -> None:
        """What comes of a release depends on the disk: nothing is planned upon it."""
        if claim.releasing:
            raise MessageQueueError(
                HResult.MQ_ERROR_SHARING_VIOLATION,
                f"what the group {claim.group!r} has reserved of {queue.properties.path_name} is "
                "being released: try again when it is",
            )

    def _check_not_reserving(self, queue: Queue, claim: Claim) -> None:
        """The same of a reservation."""
        if claim.reserving is not None:
            raise MessageQueueError(
                HResult.MQ_ERROR_SHARING_VIOLATION,
                f"a range of {queue.properties.path_name} is being reserved for the group "
                f"{claim.group!r}: try again when it is",
            )

    def _check_next(self, queue: Queue, claim: Claim, after: int) -> None:
        """A range begins where the one before it ends."""
        self._check_not_reserving(queue, claim)
        if (claim.ranges or claim.ending) and after != claim.end:
            first = (claim.ending or claim.ranges)[0]
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"the group {claim.group!r} has reserved {first.start} to {claim.end} of "
                f"{queue.properties.path_name}, and asks for what is behind {after}: acknowledge "
                "or release that first",
            )
        if after > self._state.numbers.last:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"the group {claim.group!r} asks for what is behind {after} in "
                f"{queue.properties.path_name}, and no message has had a number above "
                f"{self._state.numbers.last}: was the queue manager set back? Begin anew",
            )
        if after < claim.acknowledged:
            raise MessageQueueError(
                HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
                f"the group {claim.group!r} has acknowledged {queue.properties.path_name} up to "
                f"{claim.acknowledged}, and asks for what is behind {after}: that is gone",
            )
        if len(claim.ranges) >= RANGES_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{RANGES_MAX} ranges are reserved for {claim.group!r}: acknowledge some",
            )

    # Ending.

    def acknowledge(
        self, request: int, queue: Queue, group: str, owner: str, upto: int, *, leave: bool = False
    ) -> None:
        """The first range goes if it ends here or before; answers how many such ranges are left."""
        claim = queue.claims.get(group)
        if claim is None:
            self._state.answer(request, 0)
            return
        self._lease(queue, claim, owner)
        if leave:
            claim.leased_until = self._state.now
        self._check_not_releasing(queue, claim)
        due = [each for each in claim.durable if each.end <= upto]
        if claim.acknowledging is not None:
            # One at a time: whether this one is the next depends on what comes of that.
            claim.acknowledging.answers.append(Answer(request, len(due)))
            return
        if not due:
            self._state.answer(request, 0)
            return
        found = due[0]
        change = Change()
        change.entries.append(records.point(queue.number, group, found.end, claim.floor))
        change.steps.append(AcknowledgeStep(queue, claim, found))
        claim.ranges.remove(found)
        claim.ending.append(found)
        claim.acknowledging = change
        self._receive(change, queue, queue.positions.locate(found.ids))
        change.answers.append(Answer(request, len(due) - 1))
        self._state.submit(change)

    def _receive(self, change: Change, queue: Queue, rows: Rows) -> None:
        """[MS-MQQB] 3.1.7.2.1: messages are received: journal and acknowledgments."""
        state = self._state
        stored = [
            each
            for each, location in zip(rows.ids, rows.locations, strict=True)
            if not location & MEMORY
        ]
        if stored:
            change.entries.append(records.remove_many(queue.number, stored))
        if rows.ids:
            change.steps.append(RemoveManyStep(queue, list(rows.ids)))
        heads = state.heads(rows)
        for lookup_id, head in zip(rows.ids, heads, strict=True):
            if not notices.is_quiet(queue, lookup_id, head, state.source):
                place = queue.positions.get(lookup_id)
                assert place is not None, "it was just located"
                notices.received_at(state, change, queue, place)

    def release(self, request: int, queue: Queue, group: str, *, forget: bool) -> None:
        """What a group has reserved is anybody's again; answers how many messages that were.

        The group goes on behind it, unless it is to be forgotten.
        """
        claim = queue.claims.get(group)
        if claim is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"no group {group!r} has reserved anything of {queue.properties.path_name}",
            )
        self._check_not_releasing(queue, claim)
        self._check_not_reserving(queue, claim)
        change = Change()
        if forget:
            change.entries.append(records.forget_group(queue.number, group))
        else:
            change.entries.append(records.release(queue.number, group, claim.end, claim.floor))
        count = sum(len(each.ids) for each in claim.ranges)
        claim.releasing = True
        change.steps.append(ReleaseStep(queue, claim, claim.end, is_forgotten=forget))
        change.answers.append(Answer(request, count))
        self._state.submit(change)

    # Looking.

    def rows(self, queue: Queue, group: str, start: int, skip: int, most: int) -> Rows:
        """Messages of the range that begins there, in order.

        Raises:
            MessageQueueError: There is no such range.
        """
        claim = queue.claims.get(group)
        found = None if claim is None else claim.begins(start)
        if claim is None or found not in claim.durable:
            found = None
        if found is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
                f"the group {group!r} has no range of {queue.properties.path_name} reserved that "
                f"begins at {start}: it was acknowledged, or somebody released it",
            )
        return queue.positions.locate(found.ids[skip : skip + most])

    def ranges(self, queue: Queue, group: str) -> list[RangeReport]:
        """What a group has reserved, in order."""
        claim = queue.claims.get(group)
        return [] if claim is None else [self._report(queue, each) for each in claim.durable]

    def _report(self, queue: Queue, found: Range) -> RangeReport:
        size = sum(queue.positions.locate(found.ids).sizes)
        return RangeReport(start=found.start, end=found.end, messages=len(found.ids), size=size)

    def all(self) -> list[ClaimReport]:
        """All groups of all queues."""
        now = self._state.now
        return [
            ClaimReport(
                queue=queue.properties.path_name,
                group=claim.group,
                acknowledged=claim.acknowledged,
                reserved_up_to=claim.end,
                ranges=len(claim.ranges),
                messages=sum(len(each.ids) for each in claim.ranges),
                owner=claim.owner,
                lease_s=max(0, claim.leased_until - now) if claim.owner else 0,
            )
            for queue in self._state.queues.values()
            for claim in queue.claims.values()
        ]


def _within(sizes: array[int], most_bytes: int) -> int:
    """How many of these keep within so many bytes; one in any case."""
    if sum(sizes) <= most_bytes:
        return len(sizes)
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if total > most_bytes:
            return max(count, 1)
    return len(sizes)
