"""A queue manager behind a socket, in an event loop.

Everything happens in the loop's thread, and no task is made for a request: callers wait for
futures. What is asked in one turn of the loop is written at its end, at once; messages that are
sent to one queue in the same turn become one request. A connection that is lost is made again by a
task of its own, as soon as somebody waits for something.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final
from uuid import UUID

from merq import __version__
from merq.aio.linking import Link, dial
from merq.aio.waiting import Alone, Caller, Joint, Room, Waiter
from merq.client.dialing import (
    CONNECT_S,
    FIRST_PAUSE_S,
    LAST_PAUSE_S,
    Dialing,
    denied,
    not_available,
    not_let_in,
    not_trusted,
    pause_after,
)
from merq.client.messages import received_of
from merq.client.receiving import is_retaken, is_two_phased, removal_of, return_of
from merq.errors import InDoubt, MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.client import ClientSession, Settled
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import (
    Begin,
    DescribeQueue,
    EndReceive,
    Read,
    Request,
    Send,
    SendManyTo,
)

CLIENT: Final = f"merq-python-aio/{__version__}"

UNANSWERED_BYTES_MAX: Final = 16 << 20
"""Messages that are being sent and have no answer; whoever sends more waits his turn."""

CLOSING_S: Final = 1.0
"""How long the other side has to take what was written before the connection is closed."""

_UNORDERED: Final = (Read, EndReceive, Begin, DescribeQueue)
"""What may be asked before messages that are about to be sent: whoever asks waits for neither."""


class AsyncDriver:
    """Carries requests to a queue manager, and answers back. Made by `reach`."""

    def __init__(self, how: Dialing) -> None:
        self._how = how
        self._loop = asyncio.get_running_loop()
        self._session = ClientSession(CLIENT, how.token)
        self._waiters: dict[int, Waiter] = {}
        self._joints: dict[int, Joint] = {}
        self._room = Room(self._loop, UNANSWERED_BYTES_MAX)
        self._link: Link | None = None
        self._reaching: asyncio.Task[None] | None = None
        self._transaction_count = 0
        self._is_due = False
        self._closed = False
        self._guid = UUID(int=0)
        self._name = ""

    async def reach(self) -> None:
        """Connects for the first time.

        Raises:
            MessageQueueError: Nobody answers, or does not let us in.
        """
        await self._connect_once()
        welcome = self._session.welcome
        if welcome is None:
            raise not_available(self._how, ConnectionError("the connection was lost at once"))
        self._guid, self._name = welcome.queue_manager, welcome.name

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""
        return self._guid

    @property
    def name(self) -> str:
        """The computer name that other names call the queue manager by."""
        return self._name

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop in which everything happens."""
        return self._loop

    @property
    def connection(self) -> int:
        """Which connection this is, counted from 1, and 0 if there is none.

        What is held is held on one of them, and goes back when that is lost.
        """
        return 0 if self._session.welcome is None else self._session.connections

    @property
    def unanswered(self) -> int:
        """Requests without an answer."""
        return self._session.unanswered

    # Asking.

    def begin(self) -> int:
        """A new transaction; gives its number. Nobody waits for an answer to that."""
        self._check()
        self._transaction_count += 1
        self._session.abandon(self.start(Begin(self._transaction_count), None))
        return self._transaction_count

    async def ask(self, request: Request, timeout: float | None = 0) -> Result:
        """Asks for something and waits for the answer.

        A caller who is cancelled while he waits for a message leaves it in its queue.

        Raises:
            MessageQueueError: What was asked for cannot be; nothing was changed.
            InDoubt: The queue manager went away before it answered.
        """
        if not is_two_phased(request):
            return _value(await self._call(request, timeout))
        assert isinstance(request, Read)
        request.held = True
        until = None if timeout is None else self._loop.time() + timeout
        while True:
            left = None if until is None else max(0.0, until - self._loop.time())
            caller = await self._call(request, left)
            received = _value(caller)
            if caller.connection != self.connection:
                continue  # it went back with the connection, before we could say that we have it
            try:
                _value(await self._call(removal_of(request, received), None))
            except InDoubt as doubt:
                raise InDoubt(doubt.text, received_of(received)) from None
            except MessageQueueError as wrong:
                if is_retaken(wrong):
                    continue  # it went back when the connection was lost: nobody has got it
                raise
            return received

    async def hold(self, request: Read, timeout: float | None) -> tuple[Result, int]:
        """Asks for messages that stay, held; gives them and the connection that holds them."""
        caller = await self._call(request, timeout)
        return _value(caller), caller.connection

    def start(self, request: Request, waiter: Waiter | None) -> int:
        """Asks for something; the waiter gets the answer. Gives the request's number."""
        if self._closed:
            if waiter is not None:
                self._loop.call_soon(_tell_closed, waiter)
            return 0
        if self._joints and not isinstance(request, _UNORDERED):
            self._seal_all()
        number = self._session.ask(request)
        if waiter is not None:
            self._waiters[number] = waiter
        if self._session.refusals:
            # Not before whoever asks has got his number.
            self._loop.call_soon(self._settle_refusals)
        self._wake()
        return number

    def cancel(self, number: int) -> None:
        """A request waits no longer for a message; it is answered soon."""
        self._session.cancel(number)
        self._settle_refusals()
        self._wake()

    async def _call(self, request: Request, timeout: float | None) -> Caller:
        self._check()
        caller = Caller(self._loop)
        caller.number = self.start(request, caller)
        timer = None
        if timeout is not None and isinstance(request, Read) and request.wait:
            timer = self._loop.call_later(timeout, self._be_late, caller)
        try:
            await caller.future
        except asyncio.CancelledError:
            self._leave(request, caller)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return caller

    def _be_late(self, caller: Caller) -> None:
        """A caller's time is over."""
        if self._session.welcome is None and self._waiters.pop(caller.number, None) is not None:
            self._session.abandon(caller.number)
            wrong = not_available(self._how, TimeoutError("the connection was lost"))
            caller.settle(wrong, self.connection, final=True)
        self.cancel(caller.number)

    def _leave(self, request: Request, caller: Caller) -> None:
        """A caller was cancelled; a message that was on its way to him goes back."""
        if self._closed:
            return
        if self._waiters.pop(caller.number, None) is not None:
            self._session.abandon(caller.number)
            self.cancel(caller.number)
        elif caller.connection == self.connection:
            # The answer had come, in the same turn in which the caller was cancelled.
            back = return_of(request, caller.result)
            if back is not None:
                self._session.abandon(self.start(back, None))

    def _check(self) -> None:
        if self._closed:
            raise _closed()

    # Sending.

    async def send(
        self, queue: int, packet: bytes, transaction: int, dead_letter: str, handle: int
    ) -> bytes:
        """Sends one message, together with others of the same turn; gives its id.

        A caller who is cancelled before the turn ends has sent nothing; later, it is sent.
        """
        size, room = len(packet), self._room
        if not room.take(size):
            await room.wait(size)
        try:
            self._check()
            joint = self._joints.get(queue)
            if joint is None or not joint.takes(transaction, dead_letter, handle):
                if joint is not None:
                    self._seal(joint)
                joint = Joint(self, queue, transaction, dead_letter, handle)
                self._joints[queue] = joint
            future: asyncio.Future[Result] = self._loop.create_future()
            joint.add(packet, future)
            self._wake()
            result = await future
        finally:
            room.leave(size)
        if isinstance(result, bytes):
            return result
        assert isinstance(result, MessageQueueError)
        raise result

    async def send_many(self, request: Send | SendManyTo) -> Result:
        """Sends many messages, all or none of them."""
        size = sum(map(len, request.packets))
        if not self._room.take(size):
            await self._room.wait(size)
        try:
            return await self.ask(request)
        finally:
            self._room.leave(size)

    def send_alone(self, request: Send, future: asyncio.Future[Result]) -> None:
        """A message that was refused together with others is sent by itself."""
        self.start(request, Alone(future))

    def _seal_all(self) -> None:
        for joint in list(self._joints.values()):
            self._seal(joint)

    def _seal(self, joint: Joint) -> None:
        """Nobody else joins; it is asked."""
        del self._joints[joint.queue]
        request = joint.request()
        if request is not None:
            self._waiters[self._session.ask(request)] = joint

    # Turns.

    def _wake(self) -> None:
        """What is to be written is written when this turn of the loop ends."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_due = False
        link = self._link
        if self._closed or (link is not None and link.is_paused):
            return  # while the socket takes no more, what is sent gathers
        if self._joints:
            self._seal_all()
        if self._session.refusals:
            self._settle_refusals()
        if self._session.welcome is None:
            if link is None and self._session.unanswered:
                self._reconnect_soon()
            return
        data = self._session.data_to_send()
        if data and link is not None:
            link.write(data)

    def received(self, link: Link, data: bytes) -> None:
        """Bytes came over a connection."""
        if link is not self._link:
            return
        session = self._session
        self._settle(session.receive_data(data))
        if session.welcome is not None or session.broken:
            link.greet()
        if session.broken:
            link.abort()
            self.lost(link)
        else:
            self._wake()

    def writable(self) -> None:
        """The socket takes more."""
        self._wake()

    def _settle(self, settled: list[Settled], *, final: bool = False) -> None:
        waiters, connection = self._waiters, self._session.connections
        for number, result in settled:
            waiter = waiters.pop(number, None)
            if waiter is not None:
                waiter.settle(result, connection, final=final)

    def _settle_refusals(self) -> None:
        refusals = self._session.refusals
        while refusals:
            taken = refusals.copy()
            refusals.clear()
            self._settle(taken)

    # Connecting.

    def lost(self, link: Link) -> None:
        """A connection is gone."""
        if link is not self._link:
            return
        self._link = None
        self._session.disconnected()
        link.greet()
        if not self._closed:
            self._settle_refusals()
            self._wake()

    def _reconnect_soon(self) -> None:
        if self._reaching is None:
            self._reaching = self._loop.create_task(self._reconnect(), name="merq reconnect")

    async def _reconnect(self) -> None:
        """Makes the connection again; whoever waits is told if that takes too long."""
        until = self._loop.time() + self._how.reconnect_s
        pause = FIRST_PAUSE_S
        try:
            await asyncio.sleep(pause_after(self._session.breaks))
            while self._link is None:
                try:
                    await self._connect_once()
                except MessageQueueError as wrong:
                    if self._loop.time() + pause > until or self._session.refused is not None:
                        self._give_up(wrong.text)
                        return
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LAST_PAUSE_S)
        finally:
            self._reaching = None
        self._wake()

    def _give_up(self, reason: str) -> None:
        self._seal_all()
        self._settle(self._session.give_up(reason), final=True)

    async def _connect_once(self) -> None:
        """One attempt, up to the server's welcome."""
        link = Link(self)
        try:
            async with asyncio.timeout(CONNECT_S):
                await dial(self._how, link)
                self._link = link
                self._session.connected()
                link.write(self._session.data_to_send())
                await link.greeted
        except ssl.SSLError as wrong:
            raise not_trusted(self._how.address, wrong) from wrong
        except OSError as wrong:
            raise not_available(self._how, wrong) from wrong
        finally:
            if self._session.welcome is None:
                link.abort()
                self.lost(link)
        if self._session.refused is not None:
            raise denied(self._how, self._session.refused)
        if self._session.welcome is None:
            reason = self._session.broken or "the connection was closed before a welcome"
            raise not_let_in(self._how, ConnectionError(reason))

    # The end.

    async def close(self) -> None:
        """Nothing more is asked; whoever waits is told so."""
        if self._closed:
            return
        if self._link is not None:
            self._flush()
        self._closed = True
        self._give_up("the connection was closed")
        reaching, link = self._reaching, self._link
        if reaching is not None:
            reaching.cancel()
            await asyncio.wait((reaching,))
        if link is not None:
            await link.close(CLOSING_S)


def _closed() -> MessageQueueError:
    return MessageQueueError(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, "the connection was closed")


def _tell_closed(waiter: Waiter) -> None:
    waiter.settle(_closed(), 0, final=True)


def _value(caller: Caller) -> Result:
    """The answer, if it is none that is to be raised."""
    result = caller.future.result()
    if isinstance(result, MessageQueueError):
        raise result
    return result
