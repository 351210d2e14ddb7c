"""What was asked of a queue manager, what it wrote and what it answered: the three must agree.

`Ledger.observe` looks at each frame when it is written: what it says must have been asked for, what
belongs together must be in it together, and what was to be told to others must be told in it.
`Ledger.answered` holds the queue manager to its answers: from then on the frame must come back.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from merq.engine import records
from merq.engine.changes import Answer, Result
from merq.errors import MessageQueueError
from merq.model.delivered import Delivered
from merq.wire.view import MessageView
from simulation.manager_history import NOTHING, Fold, Frame, Key, expiry_in

_PUT = struct.Struct("<IIQ")
LOST_IN = ("private", "subqueue", "outgoing")


@dataclass(eq=False, slots=True)
class Unit:
    """What happens together or not at all: messages sent at once, or a transaction.

    Attributes:
        tags: The recoverable messages that it sends.
        asked: How it is to end: "send", "commit" or "abort"; empty as long as it is open.
        frame: The frame in which it happened; 0 if it has not.
        guid: The name under which it was prepared.
    """

    tags: list[int] = field(default_factory=list)
    receives: list[Key] = field(default_factory=list)
    moves: list[tuple[int, int, int]] = field(default_factory=list)
    asked: str = ""
    frame: int = 0
    guid: bytes = b""
    is_over: bool = False


@dataclass(eq=False, slots=True)
class Doing:
    """A request: what was asked for.

    Attributes:
        mark: The record that says that it was done: its kind, and what it is about.
        frame: The frame that has this record.
        first: The lookup identifier that it must get.
    """

    what: str
    queue: int = 0
    unit: Unit | None = None
    mark: tuple[int, int | bytes] | None = None
    tags: tuple[int, ...] = ()
    frame: int = 0
    first: int | None = None
    lookup_id: int = 0
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """A message: with whom it was sent, and where to; 0 is another computer."""

    unit: Unit
    queue: int


@dataclass(slots=True)
class _Seen:
    """One frame, as far as it was looked at."""

    frame: Frame
    doing: Doing
    units: set[Unit] = field(default_factory=set)
    tags: set[int] = field(default_factory=set)
    removed: set[Key] = field(default_factory=set)
    moved: set[tuple[int, int, int]] = field(default_factory=set)
    copies: Counter[bytes] = field(default_factory=Counter)
    notices: Counter[bytes] = field(default_factory=Counter)
    wanted_copies: Counter[bytes] = field(default_factory=Counter)
    wanted_notices: Counter[bytes] = field(default_factory=Counter)


class Ledger:
    """All that is known from outside."""

    def __init__(self) -> None:
        self.fold = Fold()
        self.history: list[Frame] = []
        self.certain = 0
        self.now = 0
        self.sent: dict[int, Sent] = {}
        self.units: list[Unit] = []
        self.holding: dict[int, Unit] = {}
        self.asked: dict[int, Doing] = {}
        self.removed: dict[int, int] = {}
        self.consumed: set[int] = set()
        self.ids: set[bytes] = set()
        self.held: set[Key] = set()
        self.overdue: set[Key] = set()

    # What was written.

    def observe(self, frame: Frame, doing: Doing) -> None:
        """A frame that is new."""
        seen = _Seen(frame, doing)
        for kind, data in frame.records:
            self._look(seen, kind, data)
            self.fold.apply(Frame(0, 0, 0, ((kind, data),)))
            self._look_at_overdue(kind, data)
        self.history.append(frame)
        for unit in seen.units:
            self._check_unit(seen, unit)
        assert seen.copies == seen.wanted_copies, f"copies in {doing.what}: {seen}"
        assert seen.notices == seen.wanted_notices, f"acknowledgments in {doing.what}: {seen}"

    def _look(self, seen: _Seen, kind: int, data: bytes) -> None:
        what: int | bytes = data
        match kind:
            case records.PUT | records.KEEP:
                self._look_at_put(seen, _PUT.unpack_from(data)[0], data[16:])
            case records.REMOVE:
                queue, _, lookup_id = _PUT.unpack(data)
                self._look_at_removal(seen, queue, lookup_id)
                what = lookup_id
            case records.REMOVE_MANY:
                queue, lookup_ids = records.read_remove_many(data)
                for lookup_id in lookup_ids:
                    self._look_at_removal(seen, queue, lookup_id)
            case records.MOVE:
                queue, target, lookup_id = _PUT.unpack(data)
                seen.moved.add((queue, lookup_id, target))
                unit = self.holding.get(lookup_id)
                if unit is not None and unit.asked == "commit":
                    seen.units.add(unit)
                what = lookup_id
            case records.DROP:
                (dropped,) = struct.unpack("<I", data)
                self._look_at_drop(seen, dropped)
                what = dropped
            case records.QUEUE:
                what = 0  # its number is not known to who asks
            case records.PREPARE:
                what = data[:16]
            case records.RESOLVE:
                seen.units.add(next(unit for unit in self.units if unit.guid == data))
        if seen.doing.mark == (kind, what):
            seen.doing.frame = seen.frame.sequence

    def _look_at_overdue(self, kind: int, data: bytes) -> None:
        """What comes into its queue when its time is over leaves at once, whatever is done."""
        came: set[Key] = set()
        if kind in (records.PUT, records.KEEP):
            queue, _, lookup_id = _PUT.unpack_from(data)
            came = {(queue, lookup_id)}
        elif kind == records.PUBLISH:
            came = self.fold.fresh
        for queue, lookup_id in came:
            packet = self.fold.messages[queue][lookup_id]
            if expiry_in(packet, self.fold.queues[queue]["kind"]) < self.now:
                self.overdue.add((queue, lookup_id))

    def time_went_on(self, is_there: Callable[[int, int], bool]) -> None:
        """What is written and not there yet when its time runs out leaves when it is there."""
        for queue, messages in self.fold.messages.items():
            kind = self.fold.queues[queue]["kind"]
            self.overdue.update(
                (queue, lookup_id)
                for lookup_id, packet in messages.items()
                if expiry_in(packet, kind) < self.now and not is_there(queue, lookup_id)
            )

    def _look_at_put(self, seen: _Seen, queue: int, packet: bytes) -> None:
        view = MessageView(packet)
        properties = self.fold.queues[queue]
        if view.message_class and any(view.correlation_id):  # others are dead-letter copies
            seen.notices[view.correlation_id] += 1
            return
        sent = self.sent[view.application_tag]
        if sent.queue != queue and (sent.queue or properties["kind"] != "outgoing"):
            seen.copies[view.message_id] += 1
            return
        assert view.application_tag not in seen.tags, "a message is put once"
        seen.tags.add(view.application_tag)
        seen.units.add(sent.unit)
        if properties["kind"] != "outgoing":
            seen.wanted_copies[view.message_id] += view.positive_journaling
            seen.wanted_notices[view.message_id] += view.acknowledgments & 1

    def _look_at_removal(self, seen: _Seen, queue: int, lookup_id: int) -> None:
        key = queue, lookup_id
        packet = self.fold.messages[queue][lookup_id]
        seen.removed.add(key)
        self.removed[lookup_id] = seen.frame.sequence
        reason = self._reason(seen, queue, lookup_id, packet)
        if self.fold.is_kept(queue, lookup_id):
            return
        if reason == "received":
            self._want_for_received(seen, queue, MessageView(packet))
        else:
            self._want_for_lost(seen, queue, MessageView(packet))

    def _reason(self, seen: _Seen, queue: int, lookup_id: int, packet: bytes) -> str:
        """Why a message leaves its queue; there must be a reason."""
        doing, unit = seen.doing, self.holding.get(lookup_id)
        kind = self.fold.queues[queue]["kind"]
        purged = self.fold.notes.get((queue, lookup_id), NOTHING)[2] & 1
        kept = self.fold.is_kept(queue, lookup_id)
        if unit is not None and not unit.frame:
            assert doing.unit is unit, "a message in a transaction went without it"
            if unit.asked == "commit":
                seen.units.add(unit)
                return "received"
            if purged:
                return "purged"
        is_over = not kept and expiry_in(packet, kind) < self.now
        if is_over and (doing.what in ("tick", "start") or (queue, lookup_id) in self.overdue):
            return "expired"
        if (doing.what == "purge" and doing.queue == queue) or (
            doing.what in ("start", "tick") and purged
        ):
            doing.frame = seen.frame.sequence
            return "purged"
        if doing.what == "end_receive" and doing.lookup_id == lookup_id:
            return "purged" if purged else "received"
        waiting = any(
            each.what == "receive" and each.queue == queue for each in self.asked.values()
        )
        assert waiting, f"{lookup_id:#x} went from {queue} without a reason in {doing.what}"
        return "received"

    def _want_for_received(self, seen: _Seen, queue: int, view: MessageView) -> None:
        properties = self.fold.queues[queue]
        if properties["kind"] not in ("private", "subqueue"):
            return
        owner = self.fold.queues[properties["owner"]] if properties["owner"] else properties
        seen.wanted_copies[view.message_id] += owner["journaling"]
        seen.wanted_notices[view.message_id] += view.acknowledgments >> 1 & 1

    def _want_for_lost(self, seen: _Seen, queue: int, view: MessageView) -> None:
        if self.fold.queues[queue]["kind"] in LOST_IN:
            seen.wanted_copies[view.message_id] += view.negative_journaling
            # Arrival and receive are asked for together in this world.
            seen.wanted_notices[view.message_id] += view.acknowledgments >> 3 & 1

    def _look_at_drop(self, seen: _Seen, queue: int) -> None:
        properties, messages = self.fold.queues[queue], self.fold.messages[queue]
        if seen.doing.what == "start":
            assert not messages, "a queue with messages went at a start"
            return
        assert seen.doing.what == "delete"
        assert seen.doing.queue in (queue, properties["owner"])
        self.held = {key for key in self.held if key[0] != queue}
        for lookup_id, packet in messages.items():
            self.removed[lookup_id] = seen.frame.sequence
            if not self.fold.is_kept(queue, lookup_id):
                self._want_for_lost(seen, queue, MessageView(packet))

    def _check_unit(self, seen: _Seen, unit: Unit) -> None:
        assert not unit.is_over, "something that failed or was aborted has happened"
        if unit.asked == "abort":
            assert not seen.tags & set(unit.tags), "an aborted transaction has sent"
        else:
            assert unit.asked, "a transaction happened before it was committed"
            assert not unit.frame, "something happened twice"
            assert set(unit.tags) <= seen.tags, f"{unit} is not whole"
            assert set(unit.receives) <= seen.removed, f"{unit} is not whole"
            assert set(unit.moves) <= seen.moved, f"{unit} is not whole"
        unit.frame = seen.frame.sequence

    # What was answered.

    def answered(self, answer: Answer) -> None:
        """An answer: a request has one, and what it says is durable."""
        doing = self.asked.pop(answer.request, None)
        assert doing is not None, "a request was answered twice, or never asked"
        result = answer.result
        if isinstance(result, MessageQueueError):
            self.failed(doing)
            return
        if doing.mark is not None and doing.frame:
            self.claim(doing.frame)
        match doing.what:
            case "send" | "send in transaction":
                self._sent(doing, result)
            case "receive":
                for each in _delivered(result):
                    self._received(doing, each)
            case "commit" | "abort":
                self._ended(doing)
            case "prepare":
                assert doing.frame, "prepared, and not written"
            case "delete":
                assert doing.frame, "deleted, and not written"
            case "purge" if doing.frame:
                self.claim(doing.frame)

    def claim(self, frame: int) -> None:
        """Somebody was told of something in this frame: it must come back from now on."""
        self.certain = max(self.certain, frame)

    def refused(self, doing: Doing) -> None:
        """It was not even tried: a transaction is as it was before."""
        if doing.what in ("commit", "abort") and doing.unit is not None:
            doing.unit.asked = ""
        else:
            self.failed(doing)

    def failed(self, doing: Doing) -> None:
        """Somebody was told that nothing happened."""
        unit = doing.unit
        if doing.what == "end_receive" and doing.lookup_id in self.fold.messages[doing.queue]:
            self.held.add((doing.queue, doing.lookup_id))
        if unit is None or doing.what == "receive":
            return
        assert not unit.frame, f"{doing.what} failed, and happened"
        if doing.what == "send in transaction":
            unit.tags = [tag for tag in unit.tags if tag not in doing.tags]
            self.sent.update((tag, Sent(Unit(is_over=True), 0)) for tag in doing.tags)
        elif doing.what == "send" or (doing.what == "commit" and not unit.guid):
            self.end(unit)
        elif doing.what in ("commit", "abort"):
            unit.asked = ""

    def end(self, unit: Unit) -> None:
        """Nothing will come of it any more, or all has."""
        unit.is_over = True
        for lookup_id in [each for each, holder in self.holding.items() if holder is unit]:
            del self.holding[lookup_id]

    def _sent(self, doing: Doing, result: Result) -> None:
        assert isinstance(result, bytes)
        for at in range(0, len(result), 20):
            message_id = result[at : at + 20]
            assert message_id not in self.ids, "a message id was given twice"
            self.ids.add(message_id)
        unit = doing.unit
        assert unit is not None
        if doing.what == "send" and unit.tags:
            assert unit.frame, "sent, and not written"
            self.claim(unit.frame)

    def _received(self, doing: Doing, each: Delivered) -> None:
        lookup_id = each.lookup_id
        assert lookup_id not in self.consumed, "a message was consumed twice"
        assert doing.first in (None, lookup_id), f"{lookup_id:#x} was not the first"
        doing.first = None
        if doing.unit is not None:
            doing.unit.receives.append((doing.queue, lookup_id))
            self.holding[lookup_id] = doing.unit
        elif doing.what == "receive" and doing.lookup_id < 0:
            self.held.add((doing.queue, lookup_id))
        else:
            self.consumed.add(lookup_id)
            if MessageView(each.packet).delivery_mode:
                frame = self.removed.get(lookup_id)
                assert frame, "handed out, and its removal not written"
                self.claim(frame)

    def _ended(self, doing: Doing) -> None:
        unit = doing.unit
        assert unit is not None
        if doing.what == "commit":
            assert unit.frame or not (unit.tags or unit.receives or unit.moves or unit.guid)
            self.consumed.update(lookup_id for _, lookup_id in unit.receives)
        else:
            assert bool(unit.frame) == bool(unit.guid), "only what was prepared is resolved"
        self.claim(unit.frame)
        self.end(unit)

    # After a crash.

    def restarted(self, count: int) -> None:
        """So many frames came back; who waits for an answer gets none any more."""
        assert count >= self.certain, f"frame {self.certain} was certain, {count} came back"
        del self.history[count:]
        self.fold = Fold()
        for frame in self.history:
            self.fold.apply(frame)
        self.removed = {key: at for key, at in self.removed.items() if at <= count}
        self.asked.clear()
        self.held.clear()
        self.certain = count
        for unit in self.units:
            if unit.frame > count:
                unit.frame = 0
            if unit.guid in self.fold.prepared:
                unit.asked = ""
            elif not unit.is_over:
                self.end(unit)
        self.units = [unit for unit in self.units if not unit.is_over]
        living = {key for each in self.fold.messages.values() for key in each}
        assert not living & self.consumed, "what was consumed came back"


def _delivered(result: Result) -> list[Delivered]:
    if isinstance(result, Delivered):
        return [result]
    assert isinstance(result, list)
    return result
