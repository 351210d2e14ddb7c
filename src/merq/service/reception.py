"""All applications that are connected, and the queue manager that they share.

It does no I/O: bytes and the time go in, and each connection says what is to be written to it. An
event loop drives it, and so does the simulator.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

from merq.engine.changes import Answer
from merq.errors import MessageQueueError, StoreError
from merq.exchange import Exchange
from merq.host import Desk, Hall, Host, Pending
from merq.hresult import HResult
from merq.protocol.application.codec import encode_result
from merq.protocol.application.greeting import Hello, encode_ping
from merq.protocol.application.requests import Cancel, Read
from merq.protocol.application.server import Asked, Memory, ServerLimits, ServerSession

NUMBER_BITS: Final = 32
"""The engine knows a request by the connection's number above these bits, and its own below."""

REQUESTS_A_TURN: Final = 256
"""So many requests of one client are carried out before it is the turn of others."""

REQUESTS_S: Final = 0.001
"""For how long they are, if they take longer than many do: one of them may be dear."""

REQUESTS_AT_ONCE: Final = 4
"""Requests that are carried out before the time is looked at."""

READS_AT_ONCE: Final = 8
"""After so many reads it is looked how much there is to be written: small requests have large
answers, and nobody is given more of them than he reads."""

ALONE_S: Final = 1.0
"""If no application has asked for so long, other queue managers get longer turns."""

RESUMES_MAX: Final = 100
RESUMES_S: Final = 10.0
"""A client of the first version that goes on with its conversation more often than that within this
time is refused: the earliest ones cannot read messages as they are told today, though they call
their version the same, and ask again and again without a pause."""

TOO_OLD: Final = (
    "this client asks for the same again and again, as those do that are too old to read the "
    "answer: install the version of merq that the queue manager has"
)

_NUMBER_MASK: Final = (1 << NUMBER_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceptionLimits:
    """What all applications together are allowed, and each of them.

    Attributes:
        connections_max: Connections at the same time.
        outbox_high_bytes: A client that leaves so much of its answers unread is not listened to
            until it has read them.
        outbox_bytes_max: A client that leaves more than that unread is cut off.
        conversations_max: Conversations whose connection was lost and that may be gone on with.
        resume_s: For how long they may.
        ping_s: A client that holds something and says nothing for so long is asked whether it is
            still there; 0 is never.
        silence_s: If it says nothing for so long, it is cut off, and what it held goes back.
    """

    client: ServerLimits = field(default_factory=ServerLimits)
    connections_max: int = 4096
    outbox_high_bytes: int = 4 << 20
    outbox_bytes_max: int = 64 << 20
    conversations_max: int = 10_000
    resume_s: float = 120.0
    ping_s: float = 0.0
    silence_s: float = 0.0


class Porter(Protocol):
    """Decides who is let in."""

    def refusal(self, hello: Hello, peer: str, *, is_local: bool) -> str:
        """Why a client is not let in, for the log; empty if it is."""


class LocalPorter:
    """Lets in whoever can open the socket's file, and nobody else."""

    def refusal(self, hello: Hello, peer: str, *, is_local: bool) -> str:
        """Why a client is not let in."""
        del hello, peer
        return "" if is_local else "only local clients are let in here"


class Connection:
    """One client.

    Attributes:
        peer: Who it is, for the log.
        is_local: It came through the socket's file.
        outbox: Frames to be written to it.
        unread_bytes: What was given to be written and is not gone, as the driver says.
        held_bytes: That, and what came and is not looked at or not whole, as it was counted last.
        closing: Why it is to be closed once its outbox is written; empty while it goes on.
        silent_s: How long nothing came from it, as far as somebody looked.
        is_asked: It was asked whether it is still there, and has said nothing since.
    """

    __slots__ = (
        "client",
        "closing",
        "conversation",
        "desk",
        "held_bytes",
        "is_asked",
        "is_local",
        "is_lost",
        "number",
        "outbox",
        "outbox_bytes",
        "peer",
        "session",
        "silent_s",
        "unread_bytes",
    )

    def __init__(self, number: int, peer: str, desk: Desk, limits: ServerLimits) -> None:
        self.number = number
        self.peer = peer
        self.is_local = False
        self.desk = desk
        self.session = ServerSession(limits)
        self.client = ""
        self.conversation: UUID | None = None
        self.outbox: list[bytes] = []
        self.outbox_bytes = 0
        self.unread_bytes = 0
        self.held_bytes = 0
        self.closing = ""
        self.silent_s = 0.0
        self.is_asked = False
        self.is_lost = False

    def say(self, data: bytes) -> None:
        """Puts a frame into the outbox."""
        self.outbox.append(data)
        self.outbox_bytes += len(data)


@dataclass(slots=True)
class _Lost:
    """A conversation without a connection."""

    memory: Memory
    until: float


@dataclass(slots=True)
class _Departed:
    """What a connection that is gone had under way.

    Attributes:
        numbers: Requests that will be answered.
    """

    desk: Desk
    conversation: UUID
    memory: Memory
    numbers: set[int]


class Reception:
    """Everybody who is connected.

    Attributes:
        dirty: Connections that have something to be written, or are to be closed.
        unfinished: Connections that have asked for more than was carried out in one turn.
        clock: By which it is measured how long requests take; one that stands still measures
            nothing.
    """

    def __init__(
        self,
        host: Host,
        hall: Hall,
        porter: Porter,
        new_guid: Callable[[], UUID],
        limits: ReceptionLimits | None = None,
    ) -> None:
        self._host = host
        self._hall = hall
        self._porter = porter
        self._new_guid = new_guid
        self.limits = limits or ReceptionLimits()
        self._connections: dict[int, Connection] = {}
        self._departed: dict[int, _Departed] = {}
        self._conversations: dict[UUID, Connection] = {}
        self._now = 0.0
        self._asked_at = 0.0
        self._lost: OrderedDict[UUID, _Lost] = OrderedDict()
        self._count = 0
        self._exchange: Exchange | None = None
        self.dirty: dict[Connection, None] = {}
        self.unfinished: dict[Connection, None] = {}
        self.clock: Callable[[], float] = lambda: 0.0

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def exchange(self) -> Exchange | None:
        """Shares the queue manager, for messages of other queue managers."""
        return self._exchange

    @exchange.setter
    def exchange(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._hall.sessions = exchange

    @property
    def has_arrivals(self) -> bool:
        """Whether messages of other queue managers wait for another turn."""
        return self._exchange is not None and self._exchange.inbound.has_more

    # Coming and going.

    def connected(self, peer: str, *, is_local: bool) -> Connection | None:
        """Somebody has connected; None if there are too many already."""
        if len(self._connections) >= self.limits.connections_max:
            return None
        self._count += 1
        desk = Desk(self._host, self._hall)
        connection = Connection(self._count, peer, desk, self.limits.client)
        connection.is_local = is_local
        self._connections[connection.number] = connection
        self._hall.connections = len(self._connections)
        return connection

    def lost(self, connection: Connection, now: float) -> None:
        """A connection is gone; what its client had under way is put away."""
        if connection.is_lost:
            return
        self.perform()  # what was answered before is not taken back
        connection.is_lost = True
        del self._connections[connection.number]
        self.dirty.pop(connection, None)
        self.unfinished.pop(connection, None)
        self._hall.connections = len(self._connections)
        connection.desk.close()
        connection.outbox.clear()
        connection.session.forget_input()
        if connection.conversation is not None:
            self._remember(connection, connection.conversation, now)
        self.perform()

    def _remember(self, connection: Connection, conversation: UUID, now: float) -> None:
        memory = connection.session.memory
        numbers = memory.under_way - memory.begun
        if numbers:
            departed = _Departed(connection.desk, conversation, memory, numbers)
            self._departed[connection.number] = departed
        del self._conversations[conversation]
        self._lost[conversation] = _Lost(memory, now + self.limits.resume_s)
        self.forget(now)

    def forget(self, now: float) -> None:
        """Conversations that were not gone on with in time, or are too many, are forgotten."""
        while self._lost:
            conversation, oldest = next(iter(self._lost.items()))
            if oldest.until > now and len(self._lost) <= self.limits.conversations_max:
                return
            del self._lost[conversation]

    def look_for_silent(self, passed_s: float) -> None:
        """Asks clients that hold something and are silent, and cuts off those that stay so.

        Silence is counted in looks, not by the clock: when this process itself stood still, nobody
        had a chance to be heard.
        """
        limits = self.limits
        if not limits.ping_s:
            return
        for connection in self._connections.values():
            if not connection.desk.is_holding or not connection.session.answers_pings:
                connection.silent_s = 0.0
                continue
            connection.silent_s += passed_s
            if connection.silent_s >= limits.silence_s and connection.is_asked:
                connection.closing = (
                    "it holds messages, transactions or queues and did not answer for "
                    f"{limits.silence_s:g} s: what it held goes back"
                )
                self.dirty[connection] = None
            elif connection.silent_s >= limits.ping_s and not connection.is_asked:
                connection.is_asked = True
                connection.say(encode_ping())
                self.dirty[connection] = None

    # What clients want.

    def received(self, connection: Connection, data: bytes, now: float) -> None:
        """Bytes came from a client."""
        self._now = self._asked_at = now
        connection.silent_s = 0.0
        connection.is_asked = False
        connection.session.feed(data)
        self.go_on(connection)

    def go_on(self, connection: Connection) -> None:
        """Carries out what a client wants, unless it does not read what it is told."""
        session = connection.session
        asked = reads = 0
        until = self.clock() + REQUESTS_S
        while not self.is_congested(connection):
            if asked == REQUESTS_A_TURN or (
                asked and asked % REQUESTS_AT_ONCE == 0 and self.clock() > until
            ):
                self.unfinished[connection] = None
                break
            event = session.next()
            if event is None:
                break
            asked += 1
            if not isinstance(event, Asked):
                self._greet(connection, event)
                continue
            self._carry_out(connection, event)
            if isinstance(event.request, Read):
                reads += 1
                if reads % READS_AT_ONCE == 0:
                    self.perform()
        if session.closing and not connection.closing:
            connection.closing = session.closing
            connection.say(session.goodbye())
            self.dirty[connection] = None

    def is_congested(self, connection: Connection) -> bool:
        """Whether a client has left too much unread to be listened to."""
        waiting = connection.outbox_bytes + connection.unread_bytes
        return waiting > self.limits.outbox_high_bytes or bool(connection.closing)

    def _greet(self, connection: Connection, hello: Hello) -> None:
        session = connection.session
        connection.client = hello.client
        reason = self._porter.refusal(hello, connection.peer, is_local=connection.is_local)
        self.dirty[connection] = None
        if reason:
            connection.say(session.refuse(reason))
            connection.closing = reason
            return
        lost = None if hello.resume is None else self._find_lost(hello.resume)
        if lost is not None and session.is_of_oldest_version and self._goes_round(lost.memory):
            connection.say(session.refuse(TOO_OLD, TOO_OLD))
            connection.closing = TOO_OLD
            return
        if lost is None:
            connection.conversation = self._new_guid()
        else:
            # It keeps its name: the client may never hear of another.
            connection.conversation = hello.resume
            session.resume(lost.memory)
        assert connection.conversation is not None
        self._conversations[connection.conversation] = connection
        state = self._host.engine.state
        connection.say(session.welcome(state.guid, state.name, connection.conversation))

    def _goes_round(self, memory: Memory) -> bool:
        """Whether a conversation is gone on with too often to be going anywhere."""
        if self._now - memory.resumed_since > RESUMES_S:
            memory.resumed_since, memory.resumes = self._now, 0
        memory.resumes += 1
        return memory.resumes > RESUMES_MAX

    def _find_lost(self, conversation: UUID) -> _Lost | None:
        """A conversation to go on with; its client knows before us that its connection is gone."""
        living = self._conversations.get(conversation)
        if living is not None:
            living.closing = "its client has connected anew"
            self.lost(living, self._now)
            self.dirty[living] = None
        return self._lost.pop(conversation, None)

    def _carry_out(self, connection: Connection, asked: Asked) -> None:
        session, number = connection.session, asked.number
        known = session.known_answer(number)
        if known is not None:
            self._tell(connection, session.tell(number, known))
            return
        if session.is_begun(number):
            return  # the answer comes from what the earlier connection began
        request = asked.request
        own = connection.number << NUMBER_BITS
        if isinstance(request, Cancel):
            request = Cancel(own | request.request)
        try:
            reply = connection.desk.perform(own | number, request)
        except MessageQueueError as refused:
            reply = refused
        except StoreError as wrong:
            # What the disk does not give back as it was written is refused; the rest goes on.
            reply = MessageQueueError(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED, str(wrong))
        if not isinstance(reply, Pending):
            self._tell(connection, session.answer(number, reply))

    def _tell(self, connection: Connection, data: bytes) -> None:
        connection.say(data)
        self.dirty[connection] = None
        if connection.outbox_bytes + connection.unread_bytes > self.limits.outbox_bytes_max:
            connection.closing = "it does not read its answers"

    # What comes of it.

    def perform(self, now: float | None = None) -> None:
        """Lets the host write what is to be written, and gives the answers that are due."""
        if now is not None:
            self._now = now
            if self._exchange is not None:
                self._exchange.inbound.is_alone = now - self._asked_at > ALONE_S
                self._exchange.go_on(now)
        while answers := self._host.perform():  # who is told something may leave more to do
            self.take(answers)

    def take(self, answers: list[Answer]) -> None:
        """Gives answers to who asked."""
        for answer in answers:
            if self._exchange is not None and self._exchange.is_ours(answer):
                self._exchange.take(answer, self._now)
                continue
            connection = self._connections.get(answer.request >> NUMBER_BITS)
            if connection is None:
                self._take_late(answer)
                continue
            connection.desk.settled(answer.request, answer.result)
            number = answer.request & _NUMBER_MASK
            self._tell(connection, connection.session.answer(number, answer.result))

    def _take_late(self, answer: Answer) -> None:
        """An answer for a connection that is gone; somebody may go on with its conversation."""
        departed = self._departed.get(answer.request >> NUMBER_BITS)
        number = answer.request & _NUMBER_MASK
        if departed is None or number not in departed.numbers:
            return
        departed.desk.settled(answer.request, answer.result)
        departed.numbers.remove(number)
        if not departed.numbers:
            del self._departed[answer.request >> NUMBER_BITS]
        data = encode_result(number, answer.result)
        successor = self._conversations.get(departed.conversation)
        if successor is not None and (told := successor.session.tell(number, data)):
            self._tell(successor, told)
        else:
            # Whoever goes on with it will ask for the same again.
            departed.memory.keep(number, data)
