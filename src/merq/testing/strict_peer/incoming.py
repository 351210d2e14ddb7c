"""What a strict peer does with messages that come: [MS-MQQB] 3.1.5.8 and 3.1.7.2.

Local queues, duplicates, incoming sequences, and the acknowledgments that follow from them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from merq.testing.strict_peer.outgoing import is_system, order_queue
from merq.testing.strict_peer.packets import (
    ACK_REACH_QUEUE,
    ACK_RECEIVE,
    FINAL_ACK_BIT,
    FOREVER,
    NA,
    NACK_BAD_DST_Q,
    NACK_NOT_TRANSACTIONAL_MSG,
    NACK_NOT_TRANSACTIONAL_Q,
    NACK_Q_DELETED,
    NACK_Q_EXCEED_QUOTA,
    NACK_Q_PURGED,
    NACK_REACH_QUEUE_TIMEOUT,
    NACK_RECEIVE_TIMEOUT,
    NOBODY,
    NR,
    PA,
    PR,
    Name,
    UserMessage,
    read_message,
    write_message,
)

if TYPE_CHECKING:
    from merq.testing.strict_peer.peer import StrictPeer
    from merq.testing.strict_peer.session import Session

HEADER_BYTES: Final = 200
"""What a message takes of a quota besides its body."""

KILOBYTE: Final = 1024


@dataclass(slots=True, eq=False)
class Stored:
    """A message in a local queue, and where a FinalAck for it goes."""

    lookup: int
    message: UserMessage
    reply: str


@dataclass(slots=True, eq=False)
class LocalQueue:
    r"""A private queue.

    Attributes:
        path: As in "private$\orders".
        number: Its PrivateQueueIdentifier.
        quota: In kilobytes.
    """

    path: str
    number: int
    transactional: bool
    quota: int = FOREVER
    messages: dict[int, Stored] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes that its messages take."""
        return sum(HEADER_BYTES + len(each.message.body) for each in self.messages.values())


@dataclass(slots=True)
class IncomingSequence:
    """IncomingTransactionalTransferInfo ([MS-MQDMPR] 3.1.1.5)."""

    sequence: int = 0
    number: int = 0
    rejects: int = 0

    def accepts(self, sequence: int, number: int, previous: int) -> bool:
        """[MS-MQQB] 3.1.5.8.6."""
        if sequence == self.sequence:
            return number > self.number and previous <= self.number
        return sequence > self.sequence and not previous


class Incoming:
    """Local queues of a strict peer, and what it knows of who sends to them."""

    def __init__(self, peer: StrictPeer) -> None:
        self._peer = peer
        self.queues: dict[str, LocalQueue] = {}
        self.sequences: dict[tuple[bytes, str], IncomingSequence] = {}
        self.history: OrderedDict[tuple[bytes, int], int] = OrderedDict()
        self._load()

    def _load(self) -> None:
        stable = self._peer.stable
        for key, fields, _ in stable.load("queue"):
            number, quota = int(fields["number"]), int(fields["quota"])
            queue = LocalQueue(key[1], number, bool(fields["transactional"]), quota)
            self.queues[key[1]] = queue
        for key, fields, packet in stable.load("message"):
            message = read_message(packet)
            stored = Stored(int(key[2]), message, str(fields["reply"]))
            self.queues[key[1]].messages[stored.lookup] = stored
        for key, fields, _ in stable.load("sequence"):
            self.sequences[bytes.fromhex(key[1]), key[2]] = IncomingSequence(
                int(fields["sequence"]), int(fields["number"]), int(fields["rejects"])
            )
        known = [
            (int(fields["time"]), bytes.fromhex(key[1]), int(key[2]))
            for key, fields, _ in stable.load("known")
        ]
        for time, guid, ordinal in sorted(known):
            self.history[guid, ordinal] = time

    # Queues.

    def create(self, path: str, number: int, *, transactional: bool, quota: int) -> None:
        """A new queue; one that is there already stays as it is."""
        if path not in self.queues:
            self.queues[path] = LocalQueue(path, number, transactional, quota)
            fields = {"number": number, "transactional": int(transactional), "quota": quota}
            self._peer.stable.put(("queue", path), fields)

    def delete(self, path: str) -> None:
        """[MS-MQDMPR] 3.1.7.1.4."""
        queue = self.queues.get(path)
        if queue is not None:
            for stored in list(queue.messages.values()):
                self.remove(queue, stored, NACK_Q_DELETED)
            del self.queues[path]
            self._peer.stable.drop(("queue", path))

    def purge(self, path: str) -> None:
        """[MS-MQDMPR] 3.1.7.1.7."""
        queue = self.queues.get(path)
        if queue is not None:
            for stored in list(queue.messages.values()):
                self.remove(queue, stored, NACK_Q_PURGED)

    def find(self, name: Name) -> LocalQueue | None:
        """[MS-MQQB] 3.1.5.8.5: the queue that a message is for."""
        if name.kind == 7:
            return self.queues.get(name.path)
        if name.kind == 3:
            return next((each for each in self.queues.values() if each.number == name.number), None)
        return None

    def take(self, path: str) -> UserMessage | None:
        """An application receives the first message of a queue."""
        queue = self.queues.get(path)
        if queue is None or not queue.messages:
            return None
        stored = min(queue.messages.values(), key=_place)
        self.remove(queue, stored, ACK_RECEIVE)
        return stored.message

    def remove(self, queue: LocalQueue, stored: Stored, reason: int) -> None:
        """[MS-MQQB] 3.1.7.2: a message leaves its queue, and who asked is told."""
        del queue.messages[stored.lookup]
        message, peer = stored.message, self._peer
        if message.recoverable:
            peer.stable.drop(("message", queue.path, f"{stored.lookup:012}"))
        peer.note("received" if reason == ACK_RECEIVE else "lost", queue.path, message, reason)
        if message.asked & (PR if reason == ACK_RECEIVE else NR):
            peer.acknowledgments.administration(message, reason)
        told = message.transaction
        is_wanted = message.journal or message.dead_letter
        if told is not None and stored.reply and (is_wanted or told.flags & FINAL_ACK_BIT):
            peer.acknowledgments.final(message, reason, stored.reply)

    def expire(self) -> None:
        """[MS-MQDMPR] 3.1.7.2.7: TimeToBeReceived of messages in queues runs out."""
        for queue in list(self.queues.values()):
            for stored in list(queue.messages.values()):
                if self._is_over(stored.message):
                    self.remove(queue, stored, NACK_RECEIVE_TIMEOUT)

    def _is_over(self, message: UserMessage) -> bool:
        limit = message.time_to_receive
        return limit != FOREVER and self._peer.wall - message.sent_time >= limit

    def next_expiry(self) -> int | None:
        """When a message expires in its queue, by the wall clock."""
        found = [
            stored.message.sent_time + stored.message.time_to_receive
            for queue in self.queues.values()
            for stored in queue.messages.values()
            if stored.message.time_to_receive != FOREVER
        ]
        return min(found, default=None)

    # Messages that come.

    def arrived(self, session: Session, message: UserMessage, now: float) -> None:
        """[MS-MQQB] 3.1.5.8, for a message that is no transactional acknowledgment."""
        peer = self._peer
        peer.note("came", "", message, 0)
        if message.transaction is None and message.identifier in self.history:
            self._know(message)
            return
        if message.destination.kind == 7:
            session.direct_format = True
        self._know(message)
        if message.address not in (NOBODY, peer.guid):
            peer.complain(f"a message for another queue manager: {message.address.hex()}")
            return
        queue = self.find(message.destination)
        reply = order_queue(session.address, session.remote, is_direct=session.direct_format)
        reason = self._misfit(queue, message)
        is_transactional = message.transaction is not None
        if not reason and self._is_late(message):
            if is_transactional and not peer.readings.expires_first:
                reason = NACK_REACH_QUEUE_TIMEOUT
            else:
                # [MS-MQMQ] 2.2.19.1: ignored by a receiver.
                if message.asked & NA:
                    peer.acknowledgments.administration(message, NACK_REACH_QUEUE_TIMEOUT)
                return
        is_late = reason == NACK_REACH_QUEUE_TIMEOUT
        counts = not reason or is_late or peer.readings.orders_rejected
        if is_transactional and counts and not self._in_sequence(session, message, now):
            return
        if not reason and queue is not None and not self._fits(queue, message):
            reason = NACK_Q_EXCEED_QUOTA
            if message.dead_letter and not is_transactional:
                peer.note("dead", "", message, reason)
        if reason or queue is None:
            self._reject(message, reason, reply.text)
            return
        self.insert(queue, message, reply.text)
        if message.asked & PA and not is_system(message.destination):
            peer.acknowledgments.administration(message, ACK_REACH_QUEUE)

    @staticmethod
    def _fits(queue: LocalQueue, message: UserMessage) -> bool:
        return queue.size + HEADER_BYTES + len(message.body) <= queue.quota * KILOBYTE

    def _know(self, message: UserMessage) -> None:
        """MessageIDHistoryTable ([MS-MQQB] 3.1.5.8.1 and 3.1.5.8.2)."""
        peer, history = self._peer, self.history
        history[message.identifier] = peer.wall
        history.move_to_end(message.identifier)
        guid, ordinal = message.identifier
        peer.stable.put(("known", guid.hex(), str(ordinal)), {"time": peer.wall})
        while len(history) > peer.readings.history_max:
            self._forget()

    def _forget(self) -> None:
        (guid, ordinal), _ = self.history.popitem(last=False)
        self._peer.stable.drop(("known", guid.hex(), str(ordinal)))

    def clean_history(self) -> None:
        """[MS-MQQB] 3.1.6.7."""
        limit = self._peer.wall - self._peer.readings.history_s
        while self.history and next(iter(self.history.values())) < limit:
            self._forget()

    @staticmethod
    def _misfit(queue: LocalQueue | None, message: UserMessage) -> int:
        """[MS-MQQB] 3.1.5.8.2: why a message does not go into a queue; 0 if it does."""
        is_transactional = message.transaction is not None
        if queue is None:
            return NACK_BAD_DST_Q
        if is_transactional and not queue.transactional:
            return NACK_NOT_TRANSACTIONAL_Q
        if not is_transactional and queue.transactional and not message.message_class:
            return NACK_NOT_TRANSACTIONAL_MSG
        return 0

    def _is_late(self, message: UserMessage) -> bool:
        limit = message.time_to_reach
        return limit != FOREVER and self._peer.wall - message.sent_time > limit

    def _reject(self, message: UserMessage, reason: int, reply: str) -> None:
        peer = self._peer
        peer.note("rejected", "", message, reason)
        insecure = reason == NACK_BAD_DST_Q and not peer.readings.insecure_nacks
        if message.asked & NA and not insecure:
            peer.acknowledgments.administration(message, reason)
        if message.transaction is not None:
            peer.acknowledgments.final(message, reason, reply)

    def _in_sequence(self, session: Session, message: UserMessage, now: float) -> bool:
        """[MS-MQQB] 3.1.5.8.6: whether a message is the next one of its sequence."""
        told = message.transaction
        assert told is not None
        name = message.destination
        key = (message.source, name.text.lower() or f"#{name.number}")
        self._schedule(session, key, now)
        incoming = self.sequences.setdefault(key, IncomingSequence())
        accepted = incoming.accepts(told.sequence, told.number, told.previous)
        if accepted:
            incoming.sequence, incoming.number = told.sequence, told.number
            incoming.rejects = 0
        else:
            incoming.rejects += 1
        fields = {"sequence": incoming.sequence, "number": incoming.number,
                  "rejects": incoming.rejects}  # fmt: skip
        self._peer.stable.put(("sequence", key[0].hex(), key[1]), fields)
        return accepted

    def _schedule(self, session: Session, key: tuple[bytes, str], now: float) -> None:
        """[MS-MQQB] 3.1.2.7: starts the Order Ack Send Timer, or starts it anew."""
        readings = self._peer.readings
        is_recent = now - session.last_order_ack < readings.order_ack_max_s
        if key not in session.order_acks or is_recent:
            session.order_acks[key] = now + readings.order_ack_s

    def insert(self, queue: LocalQueue, message: UserMessage, reply: str = "") -> None:
        """[MS-MQQB] 3.1.5.8.8: the message is in its queue."""
        stored = Stored(self._peer.numbers.next_order(), message, reply)
        queue.messages[stored.lookup] = stored
        if message.recoverable:
            self._peer.stable.put(
                ("message", queue.path, f"{stored.lookup:012}"),
                {"reply": reply},
                write_message(message, self._peer.chance),
            )
        self._peer.note("arrived", queue.path, message, 0)


def _place(stored: Stored) -> tuple[int, int]:
    """The order of a queue: by priority, except for transactional messages."""
    message = stored.message
    return (0 if message.transaction is not None else -message.priority, stored.lookup)
