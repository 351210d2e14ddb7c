"""Outgoing queues of a strict peer: what waits, is sent, is acknowledged, and becomes of copies.

[MS-MQQB] 3.1.1.5, 3.1.5.5 to 3.1.5.7, 3.1.6.5 and 3.1.7.1. A queue's tables belong to the peer that
its messages were transmitted to; only that peer's acknowledgments act on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from merq.testing.strict_peer.packets import (
    ACK_RECEIVE,
    FOREVER,
    NA,
    NACK_REACH_QUEUE_TIMEOUT,
    NOBODY,
    ORDER_QUEUE,
    ORDER_QUEUE_NUMBER,
    Name,
    UserMessage,
    read_message,
    write_message,
)

if TYPE_CHECKING:
    from merq.testing.strict_peer.peer import StrictPeer
    from merq.testing.strict_peer.session import Flight, Session

SYSTEM: Final = ("order_queue$", "admin_queue$", "notify_queue$")


@dataclass(slots=True, eq=False)
class Position:
    """OutgoingMessagePosition ([MS-MQQB] 3.1.1.3.1.2).

    Attributes:
        order: Its place in the table.
        sequence: TxSequenceID, once it was sent.
        number: TxSequenceNumber; 0 as long as it was not sent.
        is_sent: It was sent on the session and not called back: AwaitingAck, or acknowledged.
        received_final: A FinalAck came before the OrderAck; there is no other to wait for.
    """

    order: int
    message: UserMessage
    sequence: int = 0
    number: int = 0
    is_sent: bool = False
    received_session_ack: bool = False
    received_order_ack: bool = False
    received_final: bool = False

    @property
    def priority(self) -> int:
        """Higher ones are dispatched first ([MS-MQDMPR] 3.1.7.3.9)."""
        return 0 if self.message.transaction is not None else self.message.priority


@dataclass(slots=True, eq=False)
class OutgoingQueue:
    """An outgoing queue, with the session state that belongs to it ([MS-MQQB] 3.1.1.3.1).

    Attributes:
        table: OutgoingMessageTable, by order.
        awaiting_final: AwaitingFinalACKTable, by MessageID.
        sequence: OutgoingTxSequenceID as one number; 0 before the first.
        next_number: OutgoingTxSequenceNumber.
        unsent: What is to be dispatched, the most urgent first.
        remote: The queue manager that messages were transmitted to.
        retry_at: The Session Retry Connect Timer.
        resend_at: The Transactional Ack Wait Timer.
        resends: ResendIntervalIndex.
        is_on_hold: The queue is paused.
    """

    name: Name
    table: dict[int, Position] = field(default_factory=dict)
    awaiting_final: dict[int, Position] = field(default_factory=dict)
    sequence: int = 0
    next_number: int = 1
    unsent: list[tuple[int, int]] = field(default_factory=list)
    remote: bytes = NOBODY
    session: Session | None = None
    retry_at: float | None = None
    resend_at: float | None = None
    resends: int = 0
    is_on_hold: bool = False

    @property
    def key(self) -> str:
        """Its name in stable storage."""
        return self.name.text.lower()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, and nothing is waited for."""
        return not self.table and not self.awaiting_final

    def queue_up(self, position: Position) -> None:
        """It is to be sent, first or again."""
        position.is_sent = position.received_session_ack = False
        heappush(self.unsent, (-position.priority, position.order))

    def queue_up_all(self) -> None:
        """[MS-MQQB] 3.1.3.2: a new session begins with nothing sent."""
        for position in self.table.values():
            position.is_sent = position.received_session_ack = position.received_order_ack = False
        self.unsent = [(-each.priority, each.order) for each in self.table.values()]
        heapify(self.unsent)

    def next_unsent(self) -> Position | None:
        """The next to be dispatched; it is no longer in `unsent`."""
        while self.unsent:
            position = self.table.get(heappop(self.unsent)[1])
            if position is not None and not position.is_sent:
                return position
        return None

    def previous_number(self, position: Position) -> int:
        """TxSequenceNumber of the transactional message before it in the table; 0 without one."""
        found = 0
        for each in self.table.values():
            if each is position:
                return found
            if each.sequence == position.sequence and each.number:
                found = each.number
        return found


class Outgoing:
    """All outgoing queues of a strict peer."""

    def __init__(self, peer: StrictPeer) -> None:
        self._peer = peer
        self.queues: dict[str, OutgoingQueue] = {}
        self._load()

    # What survives.

    def _load(self) -> None:
        stable = self._peer.stable
        for record in stable.load("outgoing"):
            queue = OutgoingQueue(reply_name(str(record.fields["name"])))
            self.queues[queue.key] = queue
            queue.sequence = int(record.fields["sequence"])
            queue.next_number = int(record.fields["next"])
            queue.remote = bytes.fromhex(str(record.fields["remote"]))
        for kind in ("position", "final"):
            for key, fields, packet in stable.load(kind):
                message = read_message(packet, is_sent=False)
                position = Position(int(key[2]), message)
                position.sequence, position.number = int(fields["sequence"]), int(fields["number"])
                position.received_final = bool(fields["final"])
                queue = self.queues[key[1]]
                if kind == "position":
                    queue.table[position.order] = position
                else:
                    queue.awaiting_final[message.message_id] = position
        for queue in self.queues.values():
            queue.queue_up_all()

    def _keep_queue(self, queue: OutgoingQueue) -> None:
        self._peer.stable.put(
            ("outgoing", queue.key),
            {
                "name": queue.name.text,
                "sequence": queue.sequence,
                "next": queue.next_number,
                "remote": queue.remote.hex(),
            },
        )

    def _keep(self, queue: OutgoingQueue, position: Position, kind: str = "position") -> None:
        if position.message.recoverable:
            self._peer.stable.put(
                (kind, queue.key, f"{position.order:012}"),
                {
                    "sequence": position.sequence,
                    "number": position.number,
                    "final": int(position.received_final),
                },
                write_message(position.message, self._peer.chance),
            )

    def _remove(self, queue: OutgoingQueue, position: Position) -> None:
        del queue.table[position.order]
        if position.message.recoverable:
            self._peer.stable.drop(("position", queue.key, f"{position.order:012}"))

    # Putting.

    def open(self, name: Name) -> OutgoingQueue:
        """The outgoing queue of a direct name."""
        key = name.text.lower()
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = OutgoingQueue(name)
            self._keep_queue(queue)
        return queue

    def put(self, message: UserMessage) -> Position:
        """[MS-MQQB] 3.1.7.12: a message waits to be sent."""
        queue = self.open(message.destination)
        position = Position(self._peer.numbers.next_order(), message)
        queue.table[position.order] = position
        self._keep(queue, position)
        queue.queue_up(position)
        return position

    # Sending.

    def pump(self, session: Session, now: float) -> None:
        """[MS-MQQB] 3.1.7.1: sends what the window allows."""
        while session.has_room:
            ready = [each for each in session.queues if each.unsent and not each.is_on_hold]
            if not ready:
                return
            queue = min(ready, key=lambda each: each.unsent[0])
            position = queue.next_unsent()
            if position is not None and not self._expired(queue, position):
                self._send(queue, position, session, now)

    def _expired(self, queue: OutgoingQueue, position: Position) -> bool:
        """[MS-MQQB] 3.1.7.1.2."""
        message, peer = position.message, self._peer
        if message.time_to_reach == FOREVER:
            return False
        if peer.wall - message.sent_time <= message.time_to_reach:
            return False
        self._remove(queue, position)
        if message.asked & NA:
            peer.acknowledgments.administration(message, NACK_REACH_QUEUE_TIMEOUT)
        if message.dead_letter:
            peer.note("dead", "", message, NACK_REACH_QUEUE_TIMEOUT)
        return True

    def _send(self, queue: OutgoingQueue, position: Position, session: Session, now: float) -> None:
        """[MS-MQQB] 3.1.7.1.3."""
        message = position.message
        if message.transaction is not None:
            if not position.number:
                if not queue.sequence:
                    queue.sequence = self._peer.numbers.next_sequence()
                position.sequence, position.number = queue.sequence, queue.next_number
                queue.next_number += 1
                previous = position.number - 1
                self._keep_queue(queue)
            else:
                previous = queue.previous_number(position)
            message = message.with_transaction(position.sequence, position.number, previous)
            position.message = message
            self._keep(queue, position)
            if queue.resend_at is None:
                queue.resend_at = now + self._interval(queue)
        position.is_sent = True
        if queue.remote != session.remote:
            queue.remote = session.remote
            self._keep_queue(queue)
        session.send(message, position, now)

    def _interval(self, queue: OutgoingQueue) -> float:
        table = self._peer.readings.resend_s
        return table[min(queue.resends, len(table) - 1)]

    def tick(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.5: transactional messages that nobody acknowledges are sent again."""
        for queue in list(self.queues.values()):
            if queue.resend_at is None or queue.resend_at > now:
                continue
            waiting = [each for each in queue.table.values() if each.number]
            queue.resend_at = None
            if not waiting:
                continue
            queue.resends += 1
            for position in waiting:
                queue.queue_up(position)
            queue.resend_at = now + self._interval(queue)
            if queue.session is not None:
                self.pump(queue.session, now)

    # Acknowledgments.

    def acknowledged(self, received: list[Flight], persisted: list[Flight]) -> None:
        """[MS-MQQB] 3.1.5.5.1 to 3.1.5.5.4."""
        for flight in received:
            position = flight.position
            position.received_session_ack = position.is_sent
            if not position.message.recoverable:
                self._delivered(position)
        for flight in persisted:
            position = flight.position
            if position.number == 0 or position.received_order_ack:
                self._delivered(position)

    def _delivered(self, position: Position) -> None:
        queue = self.queues.get(position.message.destination.text.lower())
        if queue is None or queue.table.get(position.order) is not position:
            return
        if position.number:
            self._arrived(queue, position)
            self._begin_anew(queue)
            return
        self._remove(queue, position)
        if position.message.journal and not is_system(position.message.destination):
            self._peer.note("journal", "", position.message, 0)

    def ordered(self, remote: bytes, sequence: int, number: int, now: float) -> None:
        """[MS-MQQB] 3.1.5.6: an OrderAck."""
        for queue in list(self.queues.values()):
            if queue.sequence != sequence or queue.remote != remote:
                continue
            queue.resends = 0
            for position in list(queue.table.values()):
                if not 0 < position.number <= number or position.sequence != sequence:
                    continue
                position.received_order_ack = True
                if position.received_session_ack:
                    self._arrived(queue, position)
            self._begin_anew(queue)
            if any(each.number for each in queue.table.values()):
                queue.resend_at = now + self._interval(queue)

    def _arrived(self, queue: OutgoingQueue, position: Position) -> None:
        self._remove(queue, position)
        message = position.message
        if (message.journal or message.dead_letter) and not position.received_final:
            queue.awaiting_final[message.message_id] = position
            self._keep(queue, position, "final")

    def _begin_anew(self, queue: OutgoingQueue) -> None:
        if any(each.number for each in queue.table.values()):
            return
        queue.sequence = self._peer.numbers.next_sequence()
        queue.next_number = 1
        queue.resend_at = None
        self._keep_queue(queue)

    def final(self, remote: bytes, message_id: int, message_class: int) -> None:
        """[MS-MQQB] 3.1.5.7: a FinalAck."""
        for queue in list(self.queues.values()):
            if queue.remote != remote:
                continue
            position = queue.awaiting_final.pop(message_id, None)
            if position is not None:
                key = ("final", queue.key, f"{position.order:012}")
                self._peer.stable.drop(key)
            else:
                position = next(
                    (
                        each
                        for each in queue.table.values()
                        if each.number and each.message.message_id == message_id
                    ),
                    None,
                )
                if position is None:
                    continue
                position.received_final = True
                self._keep(queue, position)
                if not self._wants_copy(position.message, message_class):
                    continue
                self._remove(queue, position)
                self._begin_anew(queue)
            self._copy(position.message, message_class)

    @staticmethod
    def _wants_copy(message: UserMessage, message_class: int) -> bool:
        return message.journal if message_class == ACK_RECEIVE else message.dead_letter

    def _copy(self, message: UserMessage, message_class: int) -> None:
        if not self._wants_copy(message, message_class):
            return
        if message_class == ACK_RECEIVE:
            self._peer.note("journal", "", message, 0)
        else:
            self._peer.note("dead", "", message, message_class)


def is_system(name: Name) -> bool:
    """Whether a queue is one of those of which no copies are kept (note 2)."""
    return name.path.rpartition("\\")[2] in SYSTEM


def order_queue(address: str, guid: bytes, *, is_direct: bool) -> Name:
    """[MS-MQQB] 3.1.7.17: where transactional acknowledgments go."""
    return reply_name(f"TCP:{address}{ORDER_QUEUE}" if is_direct else f"#{guid.hex()}")


def reply_name(text: str) -> Name:
    """A direct name, or "#" and the GUID of the queue manager whose order queue is meant."""
    if text.startswith("#"):
        return Name(3, text, ORDER_QUEUE_NUMBER, bytes.fromhex(text[1:]))
    return Name(7, text)
