"""The server's end of a conversation with an application.

It is fed with what comes from the client and gives requests; it is told answers and gives frames.
Nothing that a client sends raises out of it: what cannot be read ends the conversation, with a
reason.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from merq.errors import MessageQueueError, WireError
from merq.hresult import HResult
from merq.protocol.application.codec import decode_request, encode_result, failed
from merq.protocol.application.frames import (
    FRAME_BYTES_MAX,
    GREETING_BYTES_MAX,
    Frame,
    FrameReader,
    Kind,
)
from merq.protocol.application.greeting import (
    OLDEST_VERSION,
    VERSION,
    Hello,
    Welcome,
    decode_hello,
    encode_welcome,
)
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import (
    Begin,
    ChangeQueue,
    CreateQueue,
    CreateSubqueue,
    DeleteQueue,
    End,
    EndPrepared,
    EndReceive,
    Move,
    Prepare,
    Purge,
    Read,
    Request,
    Send,
    SendManyTo,
    SendRows,
    SendTo,
)
from merq.protocol.application.sequence_requests import ForgetSenders

REMEMBERED_BYTES_MAX: Final = 16 << 20
"""Answers of one conversation that are kept until the client has them; beyond it, the oldest go."""

EARLIER_ANSWERS_MAX: Final = 1 << 31
"""After so many answers on a connection, those of earlier ones go: their numbers come round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What a server allows one client.

    Attributes:
        frame_bytes_max: The largest frame.
        window_bytes: The most that requests without an answer may take together.
        requests_max: How many requests may be without an answer.
        answer_bytes_max: No further message is added to an answer of this size.
        pong_ms: How long a client that is asked with a PING has to answer; 0 is for ever.
    """

    frame_bytes_max: int = FRAME_BYTES_MAX
    window_bytes: int = 8 << 20
    requests_max: int = 4096
    answer_bytes_max: int = 1 << 20
    pong_ms: int = 0


class Asked(NamedTuple):
    """A request, and the number under which it is answered."""

    number: int
    request: Request


Event: TypeAlias = Hello | Asked

LASTING: Final = (
    Begin,
    Send,
    SendTo,
    SendManyTo,
    SendRows,
    EndReceive,
    End,
    Prepare,
    EndPrepared,
    CreateQueue,
    CreateSubqueue,
    ChangeQueue,
    DeleteQueue,
    Purge,
    ForgetSenders,
    Move,
)
"""Requests that change something: made twice, they might do it twice.

A transaction that began on a connection is over with it: begun a second time, it would be another,
without what was done in the first.
"""


def is_lasting(request: Request) -> bool:
    """Whether a request, once carried out, must not be carried out again.

    What is sent or moved in a transaction lasts only with it, and it is aborted when its connection
    is lost. An answer from before that must not be given again: the client would commit without it.
    """
    if isinstance(request, Send | SendTo | SendManyTo | Move) and request.transaction:
        return False
    return isinstance(request, LASTING)


NO_REASON: Final = "the queue manager does not let this client in: its log says why"
"""What somebody is told who is not let in."""


class Memory:
    """What a conversation has done, for a client that lost its connection before it was told.

    It goes from one connection of the conversation to the next.

    Attributes:
        under_way: Requests that change something and are not answered.
        begun: Those of them that an earlier connection has made.
        answers: Answers on this connection that the client may not have, by the requests' numbers,
            each with how many there were when it was given.
        earlier: Answers on earlier connections that it may not have.
        resumes: How often it was gone on with since `resumed_since`.
    """

    __slots__ = (
        "_count",
        "_order",
        "_received",
        "_size",
        "answers",
        "begun",
        "earlier",
        "resumed_since",
        "resumes",
        "under_way",
    )

    def __init__(self) -> None:
        self.under_way: set[int] = set()
        self.begun: set[int] = set()
        self.answers: dict[int, tuple[int, bytes]] = {}
        self.earlier: dict[int, bytes] = {}
        self.resumes = 0
        self.resumed_since = 0.0
        self._order: deque[tuple[int, int]] = deque()
        self._count = 0
        self._received = 0
        self._size = 0

    def resume(self) -> None:
        """Another connection goes on with the conversation."""
        self.begun = set(self.under_way)
        for number, (_, answer) in self.answers.items():
            self._size -= len(self.earlier.pop(number, b""))
            self.earlier[number] = answer
        self.answers.clear()
        self._order.clear()
        self._count = self._received = 0

    def told(self, number: int, answer: bytes) -> None:
        """An answer is on its way to the client."""
        self._count += 1
        if number not in self.under_way:
            return
        self.under_way.remove(number)
        self.begun.discard(number)
        if number in self.answers:  # who uses a number again has got what it stood for before
            self._size -= len(self.answers[number][1])
        self.answers[number] = (self._count, answer)
        self._order.append((self._count, number))
        self._grow(answer)

    def keep(self, number: int, answer: bytes) -> None:
        """There is an answer that nobody waits for on this connection, or not yet."""
        self.under_way.discard(number)
        self.begun.discard(number)
        self._size -= len(self.earlier.pop(number, b""))
        self.earlier[number] = answer
        self._grow(answer)

    def take(self, number: int) -> bytes | None:
        """The answer that was given on an earlier connection, if there was one."""
        answer = self.earlier.pop(number, None)
        if answer is not None:
            self._size -= len(answer)
        return answer

    def got(self, received: int) -> None:
        """The client has got so many answers on its connection."""
        if received <= self._received:
            return
        self._received = received
        while self._order and self._order[0][0] <= received:
            self._forget_one()
        if self.earlier and received > EARLIER_ANSWERS_MAX:
            for number in list(self.earlier):
                self.take(number)

    def _grow(self, answer: bytes) -> None:
        self._size += len(answer)
        while self._size > REMEMBERED_BYTES_MAX:
            if self.earlier:
                self.take(next(iter(self.earlier)))
            else:
                self._forget_one()

    def _forget_one(self) -> None:
        count, number = self._order.popleft()
        known = self.answers.get(number)
        if known is not None and known[0] == count:
            self._size -= len(known[1])
            del self.answers[number]


class ServerSession:
    """One conversation.

    Attributes:
        closing: Why it has ended, empty while it goes on.
        memory: What the conversation has done, on this connection and on those before.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._reader = FrameReader(GREETING_BYTES_MAX)
        self._is_welcome = False
        self._greeted = False
        self._version = OLDEST_VERSION
        self._sizes: dict[int, int] = {}
        self._window = 0
        self.closing = ""
        self.memory = Memory()
        self._is_resumed = False

    @property
    def is_welcome(self) -> bool:
        """Whether the client was let in."""
        return self._is_welcome

    @property
    def answers_pings(self) -> bool:
        """Whether the client speaks a version that has pings."""
        return self._is_welcome and self._version > OLDEST_VERSION

    @property
    def unanswered(self) -> int:
        """How many requests are without an answer."""
        return len(self._sizes)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes came that were not looked at."""
        return self._reader.waiting_bytes

    def forget_input(self) -> None:
        """Nothing more comes: what was not looked at, or not whole, is nobody's any more."""
        self._reader = FrameReader(GREETING_BYTES_MAX)

    def feed(self, data: bytes) -> None:
        """Bytes from the client."""
        if not self.closing:
            self._reader.feed(data)

    def next(self) -> Event | None:
        """What the client wants next; None if there is nothing more, or it is over."""
        if self.closing or (self._greeted and not self._is_welcome):
            return None
        try:
            found = self._reader.next()
            while found is not None and found.kind == Kind.PONG and self.answers_pings:
                found = self._reader.next()
            if found is None:
                return None
            if not self._greeted:
                self._greeted = True
                hello = decode_hello(found)
                self._version = min(hello.newest, VERSION)
                return hello
            return self._asked(found)
        except WireError as wrong:
            self.closing = str(wrong)
            return None

    def _asked(self, found: Frame) -> Asked:
        number, sizes = found.number, self._sizes
        if not number or number in sizes:
            raise WireError(f"request number {number} is none, or is in use", field="number")
        # Who waits with as many requests as he may can end that: it is answered at once.
        if len(sizes) >= self._limits.requests_max and found.kind != Kind.CANCEL:
            raise WireError(f"more than {self._limits.requests_max} requests", field="number")
        size = found.size
        if self._window and self._window + size > self._limits.window_bytes:
            raise WireError(
                f"requests of more than {self._limits.window_bytes} bytes are without an answer",
                field="size",
            )
        request = decode_request(found)
        if isinstance(request, Read):
            most = self._limits.answer_bytes_max
            request.most_bytes = min(request.most_bytes or most, most)
            if request.wait:
                size = 0  # it is small, and what is large does not wait for it
        if is_lasting(request):
            self.memory.under_way.add(number)
        if found.received:
            self.memory.got(found.received)
        sizes[number] = size
        self._window += size
        return Asked(number, request)

    # What is told.

    def resume(self, memory: Memory) -> None:
        """The client goes on with a conversation that has done this."""
        self._is_resumed = True
        self.memory = memory
        memory.resume()

    def welcome(self, queue_manager: UUID, name: str, conversation: UUID) -> bytes:
        """The client is let in."""
        assert self._greeted, "nobody is welcome who has not said hello"
        self._is_welcome = True
        limits = self._limits
        self._reader.frame_bytes_max = limits.frame_bytes_max
        return encode_welcome(
            Welcome(
                version=self._version,
                queue_manager=queue_manager,
                name=name,
                conversation=conversation,
                resumed=self._is_resumed,
                frame_bytes_max=limits.frame_bytes_max,
                window_bytes=limits.window_bytes,
                requests_max=limits.requests_max,
                answer_bytes_max=limits.answer_bytes_max,
                pong_ms=limits.pong_ms,
            )
        )

    def refuse(self, reason: str, told: str = NO_REASON) -> bytes:
        """The client is not let in; a stranger learns no more than that."""
        self.closing = reason
        return failed(0, MessageQueueError(HResult.MQ_ERROR_ACCESS_DENIED, told))

    @property
    def is_of_oldest_version(self) -> bool:
        """Whether the client speaks the first version of this protocol."""
        return self._version == OLDEST_VERSION

    def goodbye(self) -> bytes:
        """What the client is told when the conversation has ended by its own fault."""
        error = MessageQueueError(HResult.MQ_ERROR_INVALID_PARAMETER, self.closing)
        return failed(0, error) if self._is_welcome else b""

    def known_answer(self, number: int) -> bytes | None:
        """The answer to a request that was carried out on an earlier connection, if it was."""
        return self.memory.take(number) if self._is_resumed else None

    def is_begun(self, number: int) -> bool:
        """Whether a request was made on an earlier connection and has no answer yet."""
        return self._is_resumed and number in self.memory.begun

    def answer(self, number: int, result: Result) -> bytes:
        """The frame that answers a request."""
        return self.tell(number, encode_result(number, result, self._version))

    def tell(self, number: int, answer: bytes) -> bytes:
        """The same for an answer that is a frame already."""
        size = self._sizes.pop(number, None)
        if size is None:
            return b""
        self._window -= size
        self.memory.told(number, answer)
        return answer
