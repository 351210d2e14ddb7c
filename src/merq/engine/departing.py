"""[MS-MQQB] 3.1.1.6.2, 3.1.5.5 to 3.1.5.7, 3.1.7.1, 3.1.7.1.1, 3.1.7.16: messages leave.

What is to be sent is handed out in order. A message stays in its outgoing queue until the other
side has it: a session acknowledgment ends express and recoverable ones, an OrderAck transactional
ones, and a FinalAck those whose sender wants a copy of them in a journal or dead-letter queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final

from merq.engine import damage, notices, queue_changes, records, tracing
from merq.engine.changes import Change, TransferStep
from merq.engine.positions import AVAILABLE, NEVER, PURGE_PENDING, Place
from merq.engine.queue import NO_NOTE, Queue
from merq.engine.state import State
from merq.engine.transfer import LANES, Departure, Transfer, Unordered, pack_transfer
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName, PublicName, parse_format_name
from merq.wire.build import with_previous
from merq.wire.view import MessageView, sequence_place

IN_DOUBT_S: Final = 6 * 3600
"""A message that was transmitted and not acknowledged is given up this long after its time: until
then the other side may still say what became of it."""

SEQUENCES_MAX: Final = 100_000
"""Sequences of which it is remembered whose they are."""

UNDER_WAY_S: Final = 60
"""What is on its way when it would be given up is looked at again after this time."""

SKIPPED_S: Final = 600
"""A clock that goes on by more than this at once has skipped the time between."""

ROWS: Final = 256
_LANE_SHIFT: Final = 56
_TRANSACTION_BYTE: Final = 0x10
_JOURNALING: Final = 0x03


class Departures:
    """Hands out messages of outgoing queues, and ends them when the other side has them.

    Attributes:
        in_doubt_s: See `IN_DOUBT_S`.
        ignored_acks: OrderAcks and FinalAcks that did not come from whom the messages were
            transmitted to, or are about messages that were not transmitted at all.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._doubtful: list[tuple[int, int, int]] = []
        self._doubted: set[tuple[int, int]] = set()
        self._overdue: set[tuple[int, int]] = set()
        self._sequences: dict[int, Queue] = {}
        self._blocked: dict[Queue, None] = {}
        self._last_tick = 0
        self._last_before = 0
        self.in_doubt_s = IN_DOUBT_S
        self.ignored_acks = 0

    def start(self) -> None:
        """[MS-MQQB] 3.1.1.3.1: the AwaitingFinalACKTable is as it was before the restart."""
        self._last_before = self._state.last_sequence_id
        for queue in self._state.queues.values():
            transfer = queue.transfer
            if transfer is None or transfer.ordered_up_to == transfer.sent_up_to[-1]:
                continue
            waiting: list[int] = []
            place = (LANES - 1 << _LANE_SHIFT) - 1
            while rows := queue.positions.lane_behind(place, ROWS):
                waiting += [each.lookup_id for each in rows]
                place = waiting[-1]
                if place > transfer.ordered_up_to:
                    break
            transfer.awaits_again(each for each in waiting if each <= transfer.ordered_up_to)

    # Out.

    def next(
        self,
        queue: Queue,
        most: int,
        most_bytes: int,
        remote: bytes,
        last_lane: int = LANES - 1,
    ) -> list[Departure]:
        """The next messages to send, in order; they are under way from now on.

        At least one if there is any in the lanes up to the last, whatever its size. Transactional
        ones wait until the disk knows that they are transmitted to this `remote`.
        """
        transfer = queue.transfer
        assert transfer is not None, "only outgoing queues send"
        found: list[Departure] = []
        size = 0
        for lane in range(last_lane + 1):
            while len(found) < most and size < most_bytes:
                rows = queue.positions.lane_behind(
                    transfer.sent_up_to[lane], min(most - len(found), ROWS)
                )
                if not rows:
                    break
                for place in rows:
                    if size >= most_bytes:
                        break
                    going = self._depart(queue, transfer, place, remote)
                    if going is not None:
                        found.append(going)
                        size += len(going.packet)
                    elif not transfer.holds(place.lookup_id):
                        return found  # nothing may overtake it
        return found

    def _depart(
        self, queue: Queue, transfer: Transfer, place: Place, remote: bytes
    ) -> Departure | None:
        """A message is on its way, or passed over; or neither, then it has to wait."""
        lookup_id = place.lookup_id
        if lookup_id in transfer.awaiting_final or (
            place.state == PURGE_PENDING and transfer.may_have_arrived(lookup_id)
        ):
            transfer.passed(lookup_id)
            return None
        packet = self._state.readable(place)
        if packet is None:
            transfer.passed(lookup_id)
            damage.pass_over(self._state, queue, place)
            return None
        if not self._may_go(queue, transfer, place, packet):
            self._blocked[queue] = None
            return None
        is_traced = packet[3] & 1 != 0
        if not packet[62] & _TRANSACTION_BYTE or packet[16:32] != self._state.source:
            transfer.passed(lookup_id)
            if lookup_id >> _LANE_SHIFT == LANES - 1:
                transfer.strays.add(lookup_id)
            return Departure(
                lookup_id,
                packet,
                packet[60] & 0x60 != 0,  # recoverable
                is_ordered=False,
                is_traced=is_traced,
            )
        at, sequence_id, number, said = sequence_place(packet)
        if not self._knows(queue, transfer, remote):
            self._blocked[queue] = None
            return None
        waiting = transfer.unordered
        if not waiting or waiting[-1].lookup_id < lookup_id:
            if not self._may_begin(queue, transfer, sequence_id):
                return None
            self._know(sequence_id, queue)
            wants_final = packet[61] & _JOURNALING != 0
            waiting.append(Unordered(sequence_id, number, lookup_id, wants_final))
        was_in, before = transfer.previous
        previous = before if was_in == sequence_id else 0
        transfer.previous = (sequence_id, number)
        transfer.passed(lookup_id)
        if said != previous:
            packet = with_previous(packet, at, previous)
        return Departure(
            lookup_id, packet, is_recoverable=True, is_ordered=True, is_traced=is_traced
        )

    def _knows(self, queue: Queue, transfer: Transfer, remote: bytes) -> bool:
        """Whether the disk knows whom a queue's transactional messages are transmitted to.

        Otherwise it will soon: after a restart an acknowledgment must find out whose it is before
        anything is sent again.
        """
        if transfer.remote == remote:
            return True
        # What an OrderAck has changed is not to be in the log before that OrderAck is.
        if transfer.next_remote is None and not transfer.ordering:
            transfer.next_remote = remote
            change = Change()
            change.entries.append(records.transfer(pack_transfer(queue.number, transfer, remote)))
            change.steps.append(TransferStep(queue, remote))
            self._state.submit(change)
        return False

    def _may_begin(self, queue: Queue, transfer: Transfer, sequence_id: int) -> bool:
        """[MS-MQQB] 3.1.5.6: whether a message may follow those that wait for their OrderAck.

        A new sequence begins when the one before it has arrived, and the disk knows that: a
        receiver that has begun with the new one acknowledges nothing of the old one any more.
        """
        waiting = transfer.unordered
        if waiting and waiting[-1].sequence_id != sequence_id:
            self._forget_gone(queue, transfer)
        if waiting:
            return waiting[-1].sequence_id == sequence_id
        if transfer.last_ack[0] in (0, sequence_id):
            return True
        unsettled = transfer.unsettled
        if unsettled:
            transfer.unsettled = {each for each in unsettled if queue.positions.get(each)}
        return not transfer.ordering and not transfer.unsettled

    def _know(self, sequence_id: int, queue: Queue) -> None:
        """A sequence is of this queue, for when somebody speaks of it."""
        known = self._sequences
        if sequence_id not in known:
            known[sequence_id] = queue
            if len(known) > SEQUENCES_MAX:
                del known[next(iter(known))]

    def _may_go(self, queue: Queue, transfer: Transfer, place: Place, packet: bytes) -> bool:
        """[MS-MQQB] 3.1.7.1.2: what has expired is not sent, unless the other side may have it.

        Nor is that when it is to be given up: sent again and again it would always be under way.

        It leaves with the next tick. Until then nothing overtakes it, nor what somebody holds: were
        it sent after all, when the clock was put back or it was given back, it would come too late
        in its sequence, and be dropped.
        """
        if place.state != AVAILABLE:
            return False
        if place.expires == NEVER or place.expires >= self._state.now:
            return True
        if (queue.number, place.lookup_id) in self._overdue:
            return False
        return transfer.may_have_arrived(place.lookup_id) or self._is_passing(packet)

    def _is_passing(self, packet: bytes | None) -> bool:
        """Whether a message is of another's sequence.

        Its sender sends it again until it hears of it, so another copy may have arrived: only the
        destination, which has the sequence, can say what becomes of it.
        """
        if packet is None or not packet[62] & _TRANSACTION_BYTE:
            return False
        return packet[16:32] != self._state.source

    def rewind(self, queue: Queue) -> None:
        """[MS-MQQB] 3.1.5.9, 3.1.6.5: what is under way from a queue is to be sent again."""
        assert queue.transfer is not None, "only outgoing queues send"
        self._forget_gone(queue, queue.transfer)
        queue.transfer.rewind()
        for lookup_id in list(queue.expired):
            self._doubt(queue, lookup_id)
        if queue.positions.count:
            self._state.outbound[queue] = None

    def resend(self, queue: Queue) -> None:
        """[MS-MQQB] 3.1.6.5: no OrderAck came in time, so all is to be sent again.

        But not what is over and has not arrived, as the receiver says: it may ignore what is late,
        without a word, and everything behind it would wait.
        """
        transfer = queue.transfer
        assert transfer is not None, "only outgoing queues send"
        self._forget_gone(queue, transfer)
        missing = transfer.count_round()
        self.rewind(queue)
        if missing is not None and missing in queue.expired:
            heappush(self._doubtful, (self._state.now - 1, queue.number, missing))

    def _forget_gone(self, queue: Queue, transfer: Transfer) -> None:
        """Nothing sends again what is gone, be it purged or finished before its OrderAck came."""
        transfer.strays = {each for each in transfer.strays if queue.positions.get(each)}
        waiting = transfer.unordered
        while waiting and queue.positions.get(waiting[0].lookup_id) is None:
            waiting.popleft()

    def count_under_way(self, queue: Queue) -> int:
        """How many messages were transmitted and are not acknowledged for good."""
        transfer = queue.transfer
        assert transfer is not None, "only outgoing queues send"
        passed = sum(
            queue.positions.count_up_to(sent)
            for lane, sent in enumerate(transfer.sent_up_to)
            if sent >> _LANE_SHIFT == lane
        )
        return max(0, passed - len(transfer.awaiting_final))

    def trace(self, packets: Iterable[bytes], next_hop: str) -> None:
        """[MS-MQQB] 3.1.7.1.7: messages that are traced leave for the next hop."""
        change = Change()
        for packet in packets:
            tracing.report(self._state, change, MessageView(packet), next_hop)
        if change.steps:
            self._state.submit(change)

    # Done.

    def acknowledged(self, queue: Queue, messages: Iterable[tuple[int, bool]]) -> None:
        """[MS-MQQB] 3.1.5.5.2 to 3.1.5.5.4: the other side has these, and not by OrderAck.

        Each is a lookup identifier, and whether its sender wants a copy.
        """
        change = Change()
        gone: list[Place] = []
        for lookup_id, is_journaled in messages:
            place = queue.positions.get(lookup_id)
            if place is None or place.state == PURGE_PENDING:
                continue
            packet = self._state.readable(place) if is_journaled else None
            if packet is not None and packet[16:32] == self._state.source:
                notices.delivered(self._state, change, MessageView(packet))
            queue.positions.set_state(lookup_id, PURGE_PENDING)
            gone.append(place)
            if queue.transfer is not None:
                queue.transfer.strays.discard(lookup_id)
        if gone:
            queue_changes.take_all(change, queue, gone)
            self._state.submit(change)

    def _is_from(self, queue: Queue, transfer: Transfer, remote: bytes) -> bool:
        """[MS-MQQB] 3.1.5.6, 3.1.5.7: whether an acknowledgment comes from whom we transmitted to.

        It acts on the tables of its own session only, or strangers could end our messages. The
        identifier decides, not the address, for a computer may answer from another of its own.
        Who only claims the identifier would have to guess the sequence, too (`next_places`).
        """
        if remote in (transfer.remote, self._destination(queue)):
            return True
        self.ignored_acks += 1
        return False

    def _destination(self, queue: Queue) -> bytes | None:
        """The queue manager that a queue's name is of, if it says; it may answer past the routers
        that its messages went through.
        """
        name = parse_format_name(queue.properties.path_name)
        found = None
        if isinstance(name, PrivateName):
            found = name.computer
        elif isinstance(name, PublicName):
            found = self._state.known_places.get(name.queue)
        return None if found is None else found.bytes_le

    def ordered(self, change: Change, sequence_id: int, number: int, remote: bytes) -> Queue | None:
        """[MS-MQQB] 3.1.5.6: an OrderAck: messages up to this number have arrived in order.

        Plans that they leave; gives the queue whose sequence it is, if there is one.
        """
        queue = self._sequences.get(sequence_id)
        if queue is None or queue.transfer is None:
            return None  # it is sent again, then, and acknowledged again
        transfer = queue.transfer
        if not self._is_from(queue, transfer, remote):
            return None
        transfer.last_ack_time = self._state.now
        transfer.last_ack_count += 1
        transfer.last_ack = max(transfer.last_ack, (sequence_id, number))
        gone: list[Place] = []
        kept: list[int] = []
        waiting = transfer.unordered
        while waiting and (waiting[0].sequence_id, waiting[0].number) <= (sequence_id, number):
            done = waiting.popleft()
            transfer.ordered_up_to = max(transfer.ordered_up_to, done.lookup_id)
            transfer.strays.discard(done.lookup_id)
            place = queue.positions.get(done.lookup_id)
            if place is None or place.state == PURGE_PENDING:
                continue
            if done.wants_final:
                transfer.awaiting_final.add(done.lookup_id)
                kept.append(done.lookup_id)
            else:
                queue.positions.set_state(done.lookup_id, PURGE_PENDING)
                gone.append(place)
        if waiting and (sequence_id, number) < waiting[0][:2]:
            transfer.is_behind = True
        queue_changes.take_all(change, queue, gone)
        if gone or kept:
            if kept:
                data = pack_transfer(queue.number, transfer, transfer.remote)
                change.entries.append(records.transfer(data))
            transfer.ordering += 1
            named = [place.lookup_id for place in gone] + kept
            change.steps.append(TransferStep(queue, None, named))
        self._state.outbound[queue] = None
        return queue

    def finished(
        self,
        change: Change,
        sequence_id: int,
        message_id: bytes,
        reason: int,
        remote: bytes,
    ) -> None:
        """[MS-MQQB] 3.1.5.7: a FinalAck: what became of one message in the end.

        It is sent once: if what comes of it cannot be written, it must come again. It ends only a
        message of the sequence that it names, and only one that was transmitted.
        """
        key = self._state.known_key_of(message_id)
        if key is None:
            return
        known = self._sequences.get(sequence_id)
        # After a restart it is not known whose sequence it was.
        for queue in self._state.queues.values() if known is None else (known,):
            transfer = queue.transfer
            lookup_id = None if transfer is None else queue.by_message_id.get(key)
            place = None if lookup_id is None else queue.positions.get(lookup_id)
            if transfer is None or place is None or place.state == PURGE_PENDING:
                continue
            if not self._is_in(sequence_id, place):
                continue
            # What is of a sequence from before the start may have been transmitted then.
            if sequence_id > self._last_before and not transfer.was_sent(place.lookup_id):
                self.ignored_acks += 1
                return
            if not self._is_from(queue, transfer, remote):
                return
            self._finish(change, queue, place, reason)
            return

    def _is_in(self, sequence_id: int, place: Place) -> bool:
        """Whether a message is of this sequence."""
        packet = self._state.readable(place)
        if packet is None or not packet[62] & _TRANSACTION_BYTE:
            return False
        return MessageView(packet).tx_sequence_id == sequence_id

    def _finish(self, change: Change, queue: Queue, place: Place, reason: int) -> None:
        packet = self._state.readable(place)
        if packet is not None:
            view = MessageView(packet)
            if reason == MessageClass.MQMSG_CLASS_ACK_RECEIVE:
                notices.delivered(self._state, change, view)
            else:
                note = queue.notes.get(place.lookup_id, NO_NOTE)
                notices.bury(self._state, change, view, reason, note)
        queue.positions.set_state(place.lookup_id, PURGE_PENDING)
        queue_changes.take_all(change, queue, [place])

    # Expiry of what may have arrived.

    def keeps(self, queue: Queue, lookup_id: int) -> bool:
        """Whether a message whose time has run out stays, because the other side may have it."""
        transfer, place = queue.transfer, queue.positions.get(lookup_id)
        if transfer is None or place is None:
            return False
        is_away = transfer.may_have_arrived(lookup_id)
        if not is_away and not self._is_passing(self._state.readable(place)):
            return False
        if not transfer.holds(lookup_id):
            self._doubt(queue, lookup_id)
        return True

    def _doubt(self, queue: Queue, lookup_id: int) -> None:
        place = queue.positions.get(lookup_id)
        key = queue.number, lookup_id
        if place is not None and place.state == AVAILABLE and key not in self._doubted:
            self._doubted.add(key)
            began = max(place.expires, self._state.now)
            heappush(self._doubtful, (began + self.in_doubt_s, *key))

    def next_deadline(self) -> int | None:
        """When something that may have arrived is to be given up, or a queue to be tried again."""
        if self._blocked:
            return self._state.now
        return self._doubtful[0][0] if self._doubtful else None

    def unblock(self) -> None:
        """What was in the way of a queue's messages may be gone."""
        self._state.outbound.update(self._blocked)
        self._blocked.clear()

    def given_up(self, now: int) -> list[tuple[Queue, Place]]:
        """Messages that nobody said anything about for too long.

        Time that was skipped, because the computer slept or its clock was put forward, does not
        count: nobody could have said anything in it.
        """
        skipped = now - self._last_tick if self._last_tick else 0
        self._last_tick = now
        if skipped > SKIPPED_S:
            self._doubtful = [(until + skipped, queue, one) for until, queue, one in self._doubtful]
        found: dict[tuple[int, int], tuple[Queue, Place]] = {}
        while self._doubtful and self._doubtful[0][0] < now:
            _, number, lookup_id = heappop(self._doubtful)
            self._doubted.discard((number, lookup_id))
            self._overdue.discard((number, lookup_id))
            queue = self._state.queues.get(number)
            place = None if queue is None else queue.positions.get(lookup_id)
            if queue is None or place is None or place.state != AVAILABLE:
                continue
            transfer = queue.transfer
            assert transfer is not None, "only outgoing queues have something in doubt"
            if transfer.holds(lookup_id) and lookup_id not in transfer.awaiting_final:
                self._overdue.add((number, lookup_id))
                self._doubted.add((number, lookup_id))
                heappush(self._doubtful, (now + UNDER_WAY_S, number, lookup_id))
                continue
            transfer.awaiting_final.discard(lookup_id)
            found[number, lookup_id] = (queue, place)
        return list(found.values())
