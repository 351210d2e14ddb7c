"""Who waits for answers in an event loop: one caller, or many who send together."""

from __future__ import annotations

import asyncio
from collections import deque
from copy import copy
from typing import Final, Protocol

from merq.errors import InDoubt, MessageQueueError
from merq.protocol.application.codec import ID_SIZE
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Send

JOINT_MESSAGES_MAX: Final = 500
"""Messages of different callers that are sent as one request."""

JOINT_BYTES_MAX: Final = 512 << 10
"""A request of several callers is not added to once it has so many bytes."""


class Waiter(Protocol):
    """Gets an answer when it comes. An error is a value here, so that none is left unlooked at."""

    def settle(self, result: Result, connection: int, *, final: bool) -> None:
        """The answer.

        Args:
            result: What came of the request.
            connection: The count of connections when it came: what is held is held on this one.
            final: There is no queue manager to ask again.
        """


class Caller:
    """One caller who waits for one answer.

    Attributes:
        number: The request's.
        future: Done with the answer.
        result: The answer, also if it came when the caller had just been cancelled.
        connection: On which the answer came.
    """

    __slots__ = ("connection", "future", "number", "result")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[Result] = loop.create_future()
        self.number = 0
        self.result: Result = None
        self.connection = 0

    def settle(self, result: Result, connection: int, *, final: bool) -> None:
        """The answer."""
        del final
        self.connection = connection
        self.result = result
        if not self.future.done():
            self.future.set_result(result)


class Sends(Protocol):
    """Sends one message of one caller."""

    def send_alone(self, request: Send, future: asyncio.Future[Result]) -> None:
        """A message that was refused together with others is sent by itself."""


class Joint:
    """Messages of several callers for one queue, sent as one request.

    It is carried out whole or not at all. If it is refused, each message is sent by itself, in the
    same order, so that everybody gets the answer to his own.
    """

    __slots__ = (
        "_callers",
        "_dead_letter",
        "_handle",
        "_packets",
        "_sends",
        "_transaction",
        "queue",
        "size",
    )

    def __init__(
        self, sends: Sends, queue: int, transaction: int, dead_letter: str, handle: int
    ) -> None:
        self._sends = sends
        self.queue = queue
        self._transaction = transaction
        self._dead_letter = dead_letter
        self._handle = handle
        self._packets: list[bytes] = []
        self._callers: list[asyncio.Future[Result]] = []
        self.size = 0

    def takes(self, transaction: int, dead_letter: str, handle: int) -> bool:
        """Whether a message that is sent like this can come along."""
        return (
            transaction == self._transaction
            and handle == self._handle
            and dead_letter == self._dead_letter
            and len(self._packets) < JOINT_MESSAGES_MAX
            and self.size < JOINT_BYTES_MAX
        )

    def add(self, packet: bytes, future: asyncio.Future[Result]) -> None:
        """One more message."""
        self._packets.append(packet)
        self._callers.append(future)
        self.size += len(packet)

    def request(self) -> Send | None:
        """What is asked; None if nobody is left who wants it."""
        if any(map(asyncio.Future.cancelled, self._callers)):
            pairs = zip(self._packets, self._callers, strict=True)
            left = [(packet, each) for packet, each in pairs if not each.cancelled()]
            self._packets = [packet for packet, _ in left]
            self._callers = [each for _, each in left]
        return self._request(self._packets) if self._packets else None

    def _request(self, packets: list[bytes]) -> Send:
        return Send(self.queue, packets, self._transaction, self._dead_letter, self._handle)

    def settle(self, result: Result, connection: int, *, final: bool) -> None:
        """The answer to all of them."""
        del connection
        callers = self._callers
        if isinstance(result, bytes):
            assert len(result) == ID_SIZE * len(callers), "every message has an id"
            at = 0
            for future in callers:
                if not future.done():
                    future.set_result(result[at : at + ID_SIZE])
                at += ID_SIZE
            return
        is_over = final or isinstance(result, InDoubt) or len(callers) == 1
        assert isinstance(result, MessageQueueError)
        for packet, future in zip(self._packets, callers, strict=True):
            if future.done():
                continue
            if is_over:
                future.set_result(copy(result))  # each raises his own
            else:
                self._sends.send_alone(self._request([packet]), future)


class Alone:
    """One message of one caller, sent again by itself."""

    __slots__ = ("_future",)

    def __init__(self, future: asyncio.Future[Result]) -> None:
        self._future = future

    def settle(self, result: Result, connection: int, *, final: bool) -> None:
        """The answer."""
        del connection, final
        if not self._future.done():
            self._future.set_result(result)


class Room:
    """How much may be sent without an answer; whoever comes when there is none waits his turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._taken = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def taken(self) -> int:
        """Bytes without an answer."""
        return self._taken

    def take(self, size: int) -> bool:
        """Takes so many bytes at once, if there is room and nobody waits."""
        if self._waiting or (self._taken and self._taken + size > self._most):
            return False
        self._taken += size
        return True

    async def wait(self, size: int) -> None:
        """Takes so many bytes when there is room."""
        future = self._loop.create_future()
        self._waiting.append((size, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.leave(size)
            else:
                self._admit()
            raise

    def leave(self, size: int) -> None:
        """So many bytes are answered."""
        self._taken -= size
        if self._waiting:
            self._admit()

    def _admit(self) -> None:
        waiting = self._waiting
        while waiting:
            size, future = waiting[0]
            if not future.cancelled():
                if self._taken and self._taken + size > self._most:
                    return
                self._taken += size
                future.set_result(None)
            waiting.popleft()
