r"""A queue manager that does what [MS-MQQB] says, and nothing else.

`StrictPeer` is without I/O: connections, bytes and the time go in; bytes, changes of stable storage
and events come out. The simulator drives it (`merq.testing.strict_machine`), and so does a process
with sockets (`merq.testing.strict_peer.sockets`).

    peer = StrictPeer(guid, addresses=("10.0.0.2",), chance=Random(7), wall=1_700_000_000)
    peer.create_queue(r"private$\orders", 20, transactional=True)
    session = peer.accepted("10.0.0.1", now)
    peer.received(session, data, now)
    make_durable(peer.stable.take_changes())   # first this,
    write(session.take_output())               # then that
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from merq.testing.strict_peer.acknowledgments import (
    Acknowledgments,
    is_for_order_queue,
    what_a_sender_must_not,
)
from merq.testing.strict_peer.connections import Connections
from merq.testing.strict_peer.incoming import Incoming
from merq.testing.strict_peer.numbers import Numbers
from merq.testing.strict_peer.outgoing import Outgoing, OutgoingQueue
from merq.testing.strict_peer.packets import (
    FINAL_ACK_BIT,
    FIRST_BIT,
    FOREVER,
    LAST_BIT,
    Transaction,
    UserMessage,
)
from merq.testing.strict_peer.readings import Readings
from merq.testing.strict_peer.session import Flight, Session, State
from merq.testing.strict_peer.stable_storage import StableStorage


@dataclass(frozen=True, slots=True)
class Event:
    """Something that became of a message.

    Attributes:
        kind: "came", "arrived", "received", "lost" (from its queue), "rejected", "journal", "dead".
        path: The queue, where there is one.
        reason: A message class, where there is one.
    """

    kind: str
    path: str
    message: UserMessage
    reason: int


class StrictPeer:
    """A queue manager by the letter.

    Args:
        guid: QueueManager.Identifier.
        addresses: Its own addresses, the first of which others see.
        chance: Fills what is uninitialized, and decides when coding errors show.
        wall: Seconds since 1970; to be set before `tick`.
        readings: How it behaves where it may choose.
        stable: What survived.

    Attributes:
        complaints: What the other side did that its section says it must not.
        miscounts: How often a SessionHeader had a wrong count on purpose.
    """

    def __init__(
        self,
        guid: bytes,
        *,
        addresses: tuple[str, ...],
        chance: Random,
        wall: int,
        readings: Readings | None = None,
        stable: StableStorage | None = None,
    ) -> None:
        self.guid = guid
        self.addresses = addresses
        self.chance = chance
        self.wall = wall
        self.readings = readings or Readings()
        self.stable = stable or StableStorage()
        self.complaints: list[str] = []
        self.miscounts = 0
        self.numbers = Numbers(self.stable, wall)
        self.connections = Connections(self)
        self.acknowledgments = Acknowledgments(self)
        self.outgoing = Outgoing(self)
        self.incoming = Incoming(self)
        self._events: list[Event] = []
        self.stable.forget_content()

    # Applications.

    def create_queue(
        self, path: str, number: int, *, transactional: bool = False, quota: int = FOREVER
    ) -> None:
        r"""Makes a private queue, as "private$\orders"; `quota` is in kilobytes."""
        self.incoming.create(path, number, transactional=transactional, quota=quota)

    def send(self, message: UserMessage, now: float) -> UserMessage:
        """Sends a message that is not transactional; gives it with its identifier."""
        assert message.transaction is None
        return self._send_all([message], now)[0]

    def commit(self, messages: Iterable[UserMessage], now: float) -> list[UserMessage]:
        """Sends messages in one transaction; gives them with their identifiers."""
        listed = list(messages)
        flags = self.numbers.next_transaction() << 4
        made = []
        for at, message in enumerate(listed):
            mark = FIRST_BIT if at == 0 else 0
            mark |= LAST_BIT if at == len(listed) - 1 else 0
            mark |= FINAL_ACK_BIT if message.journal or message.dead_letter else 0
            told = Transaction(flags | mark, 0, 0, 0)
            made.append(replace(message, transaction=told, recoverable=True))
        return self._send_all(made, now)

    def _send_all(self, messages: list[UserMessage], now: float) -> list[UserMessage]:
        sent = []
        for message in messages:
            identifier = self.numbers.next_message_id()
            sent.append(
                replace(message, source=self.guid, sent_time=self.wall, message_id=identifier)
            )
            self.outgoing.put(sent[-1])
        self.connections.go_on(now)
        return sent

    def receive(self, path: str, now: float) -> UserMessage | None:
        """Receives the first message of a queue; None if it is empty."""
        message = self.incoming.take(path)
        self.connections.go_on(now)
        return message

    def purge_queue(self, path: str, now: float) -> None:
        """Removes all messages of a queue."""
        self.incoming.purge(path)
        self.connections.go_on(now)

    def delete_queue(self, path: str, now: float) -> None:
        """Removes a queue."""
        self.incoming.delete(path)
        self.connections.go_on(now)

    def pause(self, queue: OutgoingQueue, now: float) -> None:
        """[MS-MQQB] 3.1.7.13: an outgoing queue is on hold."""
        queue.is_on_hold = True
        if queue.session is not None and queue.session.state is State.OPEN:
            queue.session.send_ack(now, window=1)

    def resume(self, queue: OutgoingQueue, now: float) -> None:
        """[MS-MQQB] 3.1.7.14."""
        queue.is_on_hold = False
        self.connections.go_on(now)

    def take_events(self) -> list[Event]:
        """What became of messages, in order."""
        events, self._events = self._events, []
        return events

    # Connections.

    def accepted(self, address: str, now: float) -> Session:
        """Somebody has connected from this address."""
        return self.connections.accept(address, now)

    def lost(self, session: Session, now: float) -> None:
        """[MS-MQQB] 3.1.7.3: a connection is gone, or could not be made."""
        session.close("", now)

    def received(self, session: Session, data: bytes, now: float) -> None:
        """Bytes have come."""
        session.receive(data, now)
        self.connections.go_on(now)

    # Time.

    def tick(self, now: float) -> None:
        """What is due happens; `wall` is set before."""
        for session in list(self.connections.sessions):
            session.tick(now)
            for key in [each for each, at in session.order_acks.items() if at <= now]:
                del session.order_acks[key]
                self.acknowledgments.order(session, key, now)
        self.outgoing.tick(now)
        self.incoming.expire()
        self.incoming.clean_history()
        self.connections.go_on(now)

    def next_deadline(self) -> float | None:
        """When something is due; None if nothing is."""
        found = [each.next_deadline() for each in self.connections.sessions]
        for queue in self.outgoing.queues.values():
            if queue.table and queue.session is None and not queue.is_on_hold:
                found.append(queue.retry_at)
            found.append(queue.resend_at)
        return min((each for each in found if each is not None), default=None)

    # As the owner of sessions and queues.

    def note(self, kind: str, path: str, message: UserMessage, reason: int) -> None:
        """Notes what became of a message."""
        self._events.append(Event(kind, path, message, reason))

    def complain(self, text: str) -> None:
        """Notes what the other side must not do."""
        self.complaints.append(text)

    def opened(self, session: Session, now: float) -> None:
        """More can be sent."""
        self.outgoing.pump(session, now)

    def closed(self, session: Session, now: float) -> None:
        """A session has ended."""
        self.connections.closed(session, now)

    def acknowledged(self, received: list[Flight], persisted: list[Flight]) -> None:
        """A SessionHeader has come."""
        self.outgoing.acknowledged(received, persisted)

    def arrived(self, session: Session, message: UserMessage, now: float) -> None:
        """A message has come and is counted."""
        self.complaints += what_a_sender_must_not(message)
        if is_for_order_queue(message):
            self.acknowledgments.take(session, message, now)
        else:
            self.incoming.arrived(session, message, now)
