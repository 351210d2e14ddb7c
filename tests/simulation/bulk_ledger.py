"""The ledger of a queue manager that consumers in groups read and writers in batches write to.

What is more than in `manager_ledger`: a range is written before anybody is told of it, and goes
whole when it is acknowledged; a batch is published in one frame, once, with what is to be told of
its messages.
"""

from __future__ import annotations

import struct

from merq.engine import records
from merq.engine.changes import Answer
from merq.errors import MessageQueueError
from merq.model.reservations import RangeReport
from merq.wire.view import MessageView
from simulation.manager_history import Frame, Group
from simulation.manager_ledger import Doing, Ledger, _Seen

MARKS = {
    records.RANGE: ("reserve",),
    records.POINT: ("acknowledge", "reserve"),
    records.RELEASE: ("release",),
    records.FORGET: ("forget",),
    records.PUBLISH: ("publish",),
}
"""What may have been asked for when such a record is written."""

DROPPING = ("publish", "drop stages", "tick", "start", "delete")
"""What may have been asked for when a stage goes."""

GroupKey = tuple[int, str]


class BulkLedger(Ledger):
    """All that is known from outside.

    Attributes:
        told: The ranges that somebody was told of: their ends and messages that survive.
        over: The messages of the range that went with a frame.
    """

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[tuple[int, str, int], tuple[int, tuple[int, ...]]] = {}
        self.over: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.range_frames: dict[tuple[int, str, int], int] = {}
        self._ending: set[int] = set()

    # What was written.

    def observe(self, frame: Frame, doing: Doing) -> None:
        before = {key: list(group.ranges) for key, group in self.fold.groups.items()}
        kinds = [kind for kind, _ in frame.records]
        self.fold.fresh.clear()
        self._ending = self._over(frame) if doing.what == "acknowledge" else set()
        super().observe(frame, doing)
        if doing.what == "acknowledge" and records.POINT in kinds:
            left = {lookup_id for each in self.fold.messages.values() for lookup_id in each}
            assert not left & self._ending, "a range went, and not all of its messages"
            self.over[frame.sequence] = doing.queue, tuple(self._ending)
        for (queue, name), group in self.fold.groups.items():
            for start, _, _ in group.ranges:
                if start not in {each[0] for each in before.get((queue, name), [])}:
                    self.range_frames[queue, name, start] = frame.sequence
        self.forget_what_is_over()

    def _over(self, frame: Frame) -> set[int]:
        """The messages of the ranges that are over with a frame."""
        after = {key: Group(each.acknowledged, each.floor, list(each.ranges))
                 for key, each in self.fold.groups.items()}  # fmt: skip
        found: set[int] = set()
        for kind, data in frame.records:
            if kind == records.POINT:
                queue, _, acknowledged, _, size = struct.unpack_from("<IIQQH2x", data)
                name = data[28:][:size].decode("utf-8", "surrogatepass")
                for _, end, ids in after[queue, name].ranges:
                    found |= set(ids) if end <= acknowledged else set()
        return found

    def _look(self, seen: _Seen, kind: int, data: bytes) -> None:
        if kind in MARKS:
            doing = seen.doing
            assert doing.what in MARKS[kind], f"record {kind} was written in {doing.what}"
            doing.frame = seen.frame.sequence
            if kind == records.PUBLISH:
                self._look_at_publication(seen, data)
            return
        super()._look(seen, kind, data)

    def _look_at_publication(self, seen: _Seen, data: bytes) -> None:
        """What of messages is told when they arrive."""
        count = struct.unpack_from("<H", data, 14)[0]
        for stage, _, _ in struct.iter_unpack("<IIQ", data[16 : 16 + 16 * count]):
            for packet in self.fold.messages[stage].values():
                view = MessageView(packet)
                if view.delivery_mode:
                    seen.wanted_copies[view.message_id] += view.positive_journaling
                    seen.wanted_notices[view.message_id] += view.acknowledgments & 1

    # An express message is in the log if it was in a stage, but what is told of it is express.

    def _want_for_received(self, seen: _Seen, queue: int, view: MessageView) -> None:
        if view.delivery_mode:
            super()._want_for_received(seen, queue, view)

    def _want_for_lost(self, seen: _Seen, queue: int, view: MessageView) -> None:
        if view.delivery_mode:
            super()._want_for_lost(seen, queue, view)

    def _look_at_put(self, seen: _Seen, queue: int, packet: bytes) -> None:
        view = MessageView(packet)
        if self.fold.queues[queue]["kind"] != "stage":
            super()._look_at_put(seen, queue, packet)
            return
        sent = self.sent[view.application_tag]
        assert sent.queue == queue, "it was written into another stage"
        assert view.application_tag not in seen.tags, "a message is put once"
        seen.tags.add(view.application_tag)
        seen.units.add(sent.unit)

    def _reason(self, seen: _Seen, queue: int, lookup_id: int, packet: bytes) -> str:
        if lookup_id in self._ending:
            assert seen.doing.queue == queue
            return "received"
        return super()._reason(seen, queue, lookup_id, packet)

    def _look_at_drop(self, seen: _Seen, queue: int) -> None:
        if self.fold.queues[queue]["kind"] != "stage":
            super()._look_at_drop(seen, queue)
            return
        assert seen.doing.what in DROPPING, f"a stage went in {seen.doing.what}"

    # What was answered.

    def answered(self, answer: Answer) -> None:
        doing = self.asked[answer.request]
        super().answered(answer)
        result = answer.result
        if isinstance(result, MessageQueueError):
            return
        if doing.what in ("release", "forget", "drop stages", "stage") and doing.frame:
            self.claim(doing.frame)
        elif doing.what == "write":
            assert doing.unit is not None
            assert doing.unit.frame, "written, and not in the log"
            self.claim(doing.unit.frame)
        elif doing.what == "publish" and doing.frame:
            self.claim(doing.frame)
        elif doing.what == "acknowledge" and doing.frame:
            self.claim(doing.frame)
            self._acknowledged(doing)
        elif doing.what == "reserve":
            assert isinstance(result, RangeReport)

    def _acknowledged(self, doing: Doing) -> None:
        for lookup_id in self.over[doing.frame][1]:
            assert lookup_id not in self.consumed, "a message was consumed twice"
            self.consumed.add(lookup_id)

    def reserved(self, key: tuple[int, str, int], end: int, ids: tuple[int, ...]) -> None:
        """Somebody was told of a range: it must be the same until it is over."""
        frame = self.range_frames.get(key)
        assert frame, f"the range {key} is not in the log"
        self.claim(frame)
        queue, name, start = key
        assert (start, end, ids) in self.fold.groups[queue, name].ranges, "it was written otherwise"
        assert self.told.setdefault(key, (end, ids)) == (end, ids), f"the range {key} has changed"

    def failed(self, doing: Doing) -> None:
        super().failed(doing)
        if doing.what == "write" and doing.unit is not None:
            assert not doing.unit.frame, "it failed, and is in the log"
            self.end(doing.unit)

    def restarted(self, count: int) -> None:
        super().restarted(count)
        self.range_frames = {key: at for key, at in self.range_frames.items() if at <= count}
        self.over = {at: each for at, each in self.over.items() if at <= count}
        for key in [each for each in self.told if each not in self.range_frames]:
            del self.told[key]
        # A queue that is gone may give its number, and a group that was forgotten its start, again.
        self.forget_what_is_over()

    def forget_what_is_over(self) -> None:
        """Ranges that are acknowledged, released or forgotten may begin anew."""
        living = {
            (queue, name, start)
            for (queue, name), group in self.fold.groups.items()
            for start, _, _ in group.ranges
        }
        for key in [each for each in self.told if each not in living]:
            del self.told[key]
