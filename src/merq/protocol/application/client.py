"""The client's end of a conversation with a queue manager.

Requests go in and frames come out; bytes go in and answers come out. When the connection is lost
it goes on over the next one: what was not answered is asked again under the same number, and the
server knows what it has done already. Only a server that was started anew does not: then what
changes something, and may have reached the old one, is in doubt, and is not asked again.

A conversation may also break: the server ends it because of a frame that it refuses, or what it
says makes no sense. What was on its way then is asked again, one after the other, so that it is
known which request it was; that one is not asked a third time.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple
from uuid import UUID

from merq.errors import InDoubt, MessageQueueError, ReceiveTimeout, WireError
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.protocol.application.codec import decode_result, encode_request
from merq.protocol.application.frames import FRAME_BYTES_MAX, Frame, FrameReader, Kind
from merq.protocol.application.greeting import (
    OLDEST_VERSION,
    VERSION,
    Hello,
    Welcome,
    decode_welcome,
    encode_hello,
    encode_pong,
)
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Begin, Cancel, EndReceive, Read, Request
from merq.protocol.application.server import is_lasting

NUMBERS: Final = (1 << 32) - 1
"""Requests are numbered from 1 to here, and then anew."""

ANSWER_FRAME_BYTES_MAX: Final = 4 * FRAME_BYTES_MAX
"""The largest frame that is taken from a server."""

SPARED_SHARE: Final = 8
"""One in so many of the requests that the server allows is none that waits for a message: however
many wait, others get through, and so does what ends the waiting."""

BREAKS_MAX: Final = 2
"""A request that may have broken so many conversations is not asked again."""

_COUNT_MASK: Final = (1 << 32) - 1


class Settled(NamedTuple):
    """A request that is over; an error is a value."""

    number: int
    result: Result


class _Outstanding:
    """A request without an answer.

    Attributes:
        size: Of its frame, once it is on its way over the connection that there is; before, 0.
        was_sent: A server may have got it, over this connection or an earlier one.
        breaks: How many conversations it may have broken.
    """

    __slots__ = ("breaks", "is_abandoned", "is_cancelled", "request", "size", "was_sent")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.size = 0
        self.was_sent = False
        self.breaks = 0
        self.is_abandoned = False
        self.is_cancelled = False

    @property
    def is_begun(self) -> bool:
        """Whether a server may have begun this transaction."""
        return self.was_sent and self.is_abandoned and isinstance(self.request, Begin)

    @property
    def is_patient(self) -> bool:
        """Whether its answer may take for ever."""
        return isinstance(self.request, Read) and self.request.wait

    @property
    def window_bytes(self) -> int:
        """What it takes of the server's window: what is large does not wait for who waits."""
        return 0 if self.is_patient else self.size


class ClientSession:
    """One conversation, over one connection after another.

    Attributes:
        welcome: What the server said first, on the connection that there is; None before that.
        broken: Why the connection cannot be used any more; empty while it can.
        refused: The server does not let this client in.
        refusals: Requests that were answered without asking the server; whoever asks takes them.
        connections: How often the server has said welcome. What it handed out to be held goes back
            with the connection, so whoever has got such messages compares this.
        breaks: How many conversations have broken since the last answer came; if any has, wait a
            little before the next connection.
    """

    def __init__(self, client: str, token: str = "") -> None:
        self._client = client
        self._token = token
        self._conversation: UUID | None = None
        self._reader = FrameReader(ANSWER_FRAME_BYTES_MAX)
        self._outstanding: dict[int, _Outstanding] = {}
        self._unsent: deque[int] = deque()
        self._unsent_patient: deque[int] = deque()
        self._flying = 0
        self._flying_bytes = 0
        self._number = 0
        self._received = 0
        self._on_trial = 0
        self._ending: MessageQueueError | None = None
        self._out: list[bytes] = []
        self.welcome: Welcome | None = None
        self.broken = ""
        self.refused: MessageQueueError | None = None
        self.refusals: list[Settled] = []
        self.connections = 0
        self.breaks = 0

    @property
    def unanswered(self) -> int:
        """How many requests are without an answer."""
        return len(self._outstanding)

    # Asking.

    def ask(self, request: Request) -> int:
        """A request; gives the number under which its answer comes. Look at `refusals` then."""
        number = self._number = self._number % NUMBERS + 1
        while number in self._outstanding:
            number = self._number = self._number % NUMBERS + 1
        self._outstanding[number] = asked = _Outstanding(request)
        (self._unsent_patient if asked.is_patient else self._unsent).append(number)
        self._fill()
        return number

    def cancel(self, number: int) -> None:
        """A request waits no longer for a message: it is answered, with a time-out unless with one.

        Also if the connection is lost meanwhile: it is not asked again then.
        """
        asked = self._outstanding.get(number)
        if asked is None or asked.is_cancelled or not asked.is_patient:
            return
        asked.is_cancelled = True
        if asked.size:
            self.abandon(self.ask(Cancel(number)))
        else:
            self._unsent_patient.remove(number)
            self._end_waiting(number)

    def abandon(self, number: int) -> None:
        """Nobody waits any more for this answer; a message that comes with it goes back."""
        asked = self._outstanding.get(number)
        if asked is not None:
            asked.is_abandoned = True

    @property
    def has_output(self) -> bool:
        """Whether there is something to be written to the connection."""
        return bool(self._out)

    def data_to_send(self) -> bytes:
        """What is to be written to the connection."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def _fill(self) -> None:
        """Frames for as many requests as the server allows at a time."""
        welcome = self.welcome
        if welcome is None or self.broken:
            return
        most = welcome.requests_max
        spared = max(1, most // SPARED_SHARE)
        if self._unsent:
            self._fill_from(self._unsent, welcome, most)
        if self._unsent_patient:
            self._fill_from(self._unsent_patient, welcome, max(1, most - spared))

    def _fill_from(self, unsent: deque[int], welcome: Welcome, most: int) -> None:
        while unsent and self._flying < most:
            number = unsent[0]
            asked = self._outstanding[number]
            if self._on_trial or (asked.breaks and self._is_busy()):
                return
            data = encode_request(number, asked.request, self._received & _COUNT_MASK)
            size = len(data)
            if size > welcome.frame_bytes_max:
                self._refuse(unsent.popleft(), size, welcome.frame_bytes_max)
                continue
            if self._flying_bytes and self._flying_bytes + size > welcome.window_bytes:
                return
            unsent.popleft()
            asked.was_sent = True
            asked.size = size
            self._flying += 1
            self._flying_bytes += asked.window_bytes
            self._out.append(data)
            if asked.breaks and not asked.is_patient:
                self._on_trial = number

    def _is_busy(self) -> bool:
        """Whether an answer is under way that will come soon."""
        return any(each.size and not each.is_patient for each in self._outstanding.values())

    def _refuse(self, number: int, size: int, most: int) -> None:
        """A request that the server would not take is answered here."""
        del self._outstanding[number]
        text = f"{size} bytes at once; {most} are the most that the server takes: send less"
        error = MessageQueueError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, text)
        self.refusals.append(Settled(number, error))

    def _end_waiting(self, number: int) -> None:
        asked = self._outstanding.pop(number)
        if not asked.is_abandoned:
            self.refusals.append(Settled(number, ReceiveTimeout("no message came in time")))

    # Connections.

    def connected(self) -> None:
        """There is a connection; the conversation begins, or goes on."""
        self._reader = FrameReader(ANSWER_FRAME_BYTES_MAX)
        self.welcome = None
        self.broken = ""
        self._ending = None
        self.refused = None
        hello = Hello(
            protocol="merq",
            oldest=OLDEST_VERSION,
            newest=VERSION,
            client=self._client,
            token=self._token,
            resume=self._conversation,
        )
        self._out = [encode_hello(hello)]

    def disconnected(self) -> None:
        """The connection is lost; what has no answer is asked again over the next.

        Look at `refusals` then: nobody waits again who was not to wait any longer, and nothing is
        asked again that has broken one conversation after the other.
        """
        if self.broken and self.welcome is not None:
            self._blame()
        self.welcome = None
        self._on_trial = 0
        self._out.clear()
        self._flying = self._flying_bytes = 0
        self._received = 0
        for number in [key for key, each in self._outstanding.items() if each.is_cancelled]:
            self._end_waiting(number)
        # A transaction ends with its connection. Begun again, it would commit without what it had.
        for number in [key for key, each in self._outstanding.items() if each.is_begun]:
            del self._outstanding[number]
        for each in self._outstanding.values():
            each.size = 0
        # What was held on the old connection must not be ended once it is held anew for others: so
        # the ends of receives go first, and find nothing.
        self._unsent = deque(
            sorted(
                (key for key, each in self._outstanding.items() if not each.is_patient),
                key=lambda key: not isinstance(self._outstanding[key].request, EndReceive),
            )
        )
        # In the order in which they were asked for, which is not that of numbers that come round.
        self._unsent_patient = deque(
            key for key, each in self._outstanding.items() if each.is_patient
        )

    def _blame(self) -> None:
        """The conversation broke: whatever was on its way may be the reason.

        Who waits for a message is not suspected as long as there is somebody else.
        """
        self.breaks += 1
        asked = self._outstanding
        flying = [number for number, each in asked.items() if each.size]
        soon = [number for number in flying if not asked[number].is_patient]
        for number in soon or flying or list(asked):
            each = asked[number]
            each.breaks += 1
            if each.breaks < BREAKS_MAX:
                continue
            del asked[number]
            if not each.is_abandoned:
                self.refusals.append(Settled(number, self._why_broken(each)))

    def _why_broken(self, asked: _Outstanding) -> MessageQueueError:
        if self._ending is None:
            return self._without_answer(asked, self.broken)
        # A server that has carried it out would have answered: it refused to read it.
        return MessageQueueError(self._ending.code, self.broken)

    def give_up(self, reason: str) -> list[Settled]:
        """There will be no other connection: what has no answer gets none."""
        settled = [
            Settled(number, self._without_answer(asked, reason))
            for number, asked in self._outstanding.items()
            if not asked.is_abandoned
        ]
        self._outstanding.clear()
        self._unsent.clear()
        self._unsent_patient.clear()
        self._conversation = None
        return settled

    def _without_answer(self, asked: _Outstanding, reason: str) -> MessageQueueError:
        if asked.was_sent and is_lasting(asked.request):
            name = type(asked.request).__name__
            return InDoubt(f"{reason}; whether {name} was carried out before is not known")
        return MessageQueueError(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, reason)

    # Answers.

    def receive_data(self, data: bytes) -> list[Settled]:
        """Bytes from the server; gives what they settle. Sets `broken` if they make no sense."""
        self._reader.feed(data)
        settled: list[Settled] = []
        while not self.broken:
            try:
                found = self._reader.next()
                if found is None:
                    break
                settled += self._take(found)
            except WireError as wrong:
                self.broken = f"the server said something that makes no sense: {wrong}"
        self._fill()
        return settled

    def _take(self, found: Frame) -> list[Settled]:
        if self.welcome is None:
            return self._be_welcome(found)
        number = found.number
        asked = self._outstanding.get(number)
        if asked is None or not asked.size:
            if number == 0 and found.kind == Kind.FAILED:
                ending = decode_result(found)
                assert isinstance(ending, MessageQueueError)
                self._ending = ending
                self.broken = f"the server ended the conversation: {ending}"
                return []
            if number == 0 and found.kind == Kind.PING:
                self._out.append(encode_pong(self._received & _COUNT_MASK))
                return []
            raise WireError(f"an answer to request {number}, which was not made", field="number")
        result = decode_result(found)  # one that makes no sense leaves it without an answer
        del self._outstanding[number]
        if self.breaks:
            self.breaks = 0
        if number == self._on_trial:
            self._on_trial = 0
        self._received += 1
        self._flying -= 1
        self._flying_bytes -= asked.window_bytes
        if asked.is_abandoned:
            self._put_back(asked.request, result)
            return []
        return [Settled(number, result)]

    def _be_welcome(self, found: Frame) -> list[Settled]:
        if found.kind == Kind.FAILED:
            refusal = decode_result(found)
            assert isinstance(refusal, MessageQueueError)
            self.refused = refusal
            self.broken = refusal.text
            return []
        self.welcome = decode_welcome(found)
        settled: list[Settled] = []
        if self._conversation is not None and not self.welcome.resumed:
            settled = self._doubt()
        self._conversation = self.welcome.conversation
        self.connections += 1
        return settled

    def _doubt(self) -> list[Settled]:
        """The server was started anew: it does not know what the one before has done."""
        settled = []
        for number, asked in list(self._outstanding.items()):
            if asked.was_sent and is_lasting(asked.request):
                del self._outstanding[number]
                self._unsent.remove(number)
                reason = "the queue manager was started anew before it answered"
                if not asked.is_abandoned:
                    settled.append(Settled(number, self._without_answer(asked, reason)))
        return settled

    def _put_back(self, request: Request, result: Result) -> None:
        """A message that nobody waits for any more stays in its queue."""
        if not isinstance(request, Read) or not request.held:
            return
        messages = result if isinstance(result, list) else [result]
        ids = [each.lookup_id for each in messages if isinstance(each, Delivered)]
        if ids:
            self.abandon(self.ask(EndReceive(request.queue, ids, delete=False)))
