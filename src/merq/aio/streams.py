"""Messages one after the other, in `async for`: receiving all that come, peeking all there are."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Final, Self

from merq.aio.driving import AsyncDriver
from merq.client import asking
from merq.client.asking import FIRST, Asking
from merq.client.messages import ReceivedMessage
from merq.client.receiving import is_retaken
from merq.errors import MessageQueueError
from merq.model.delivered import Delivered
from merq.model.selecting import ByLookup, Seek
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import EndReceive, Read

PREFETCH: Final = 200
"""Messages that `receive_all` has at hand, unless it is told otherwise."""

PREFETCH_MAX: Final = 100_000
"""The most that it can be told."""


class _Batch:
    """Messages that came with one answer.

    Attributes:
        at: How many of them were given out.
        connection: On which they are held.
    """

    __slots__ = ("at", "connection", "messages")

    def __init__(self, messages: list[Delivered], connection: int) -> None:
        self.messages = messages
        self.connection = connection
        self.at = 0


class _Reading:
    """Waits for the next batch."""

    __slots__ = ("_intake", "number")

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.number = 0

    def settle(self, result: Result, connection: int, *, final: bool) -> None:
        """The batch."""
        del final
        self._intake.arrived(self, result, connection)


class _Ending:
    """Waits for word that messages are gone, or are back."""

    __slots__ = ("_delete", "_intake")

    def __init__(self, intake: Intake, *, delete: bool) -> None:
        self._intake = intake
        self._delete = delete

    def settle(self, result: Result, connection: int, *, final: bool) -> None:
        """What came of it."""
        del connection, final
        self._intake.ended(result, delete=self._delete)


class Intake:
    """Messages on their way to one stream, and what was said about those that it had.

    It outlives the stream for as long as it takes to give messages back.
    """

    def __init__(self, driver: AsyncDriver, queue: Asking, prefetch: int) -> None:
        self._driver = driver
        self._queue = queue
        self._most = max(1, prefetch // 2)
        self._credits = min(2, prefetch)
        self._ready: deque[_Batch] = deque()
        self._readings: set[_Reading] = set()
        self._ending_count = 0
        self._waiting: asyncio.Future[None] | None = None
        self._error: MessageQueueError | None = None
        self._is_over = False

    # What is asked.

    def ask_more(self) -> None:
        """Asks for as many batches as may be under way or at hand."""
        while len(self._readings) + len(self._ready) < self._credits:
            request = Read(
                self._queue.number,
                FIRST,
                wait=True,
                most=self._most,
                handle=self._queue.handle,
                held=True,
            )
            reading = _Reading(self)
            self._readings.add(reading)
            reading.number = self._driver.start(request, reading)

    def end(self, messages: list[Delivered], connection: int, *, delete: bool) -> None:
        """These messages were processed, or go back; with their connection they went back."""
        if not messages or connection != self._driver.connection:
            return
        ids = [each.lookup_id for each in messages]
        self._ending_count += 1
        request = EndReceive(self._queue.number, ids, delete=delete)
        self._driver.start(request, _Ending(self, delete=delete))

    # What comes of it.

    def arrived(self, reading: _Reading, result: Result, connection: int) -> None:
        """A batch, or why there is none."""
        self._readings.discard(reading)
        if isinstance(result, list):
            batch = _Batch([each for each in result if isinstance(each, Delivered)], connection)
            if self._is_over:
                self.end(batch.messages, connection, delete=False)
            else:
                self._ready.append(batch)
        elif isinstance(result, MessageQueueError) and not self._is_over:
            self._error = self._error or result
        self._notify()

    def ended(self, result: Result, *, delete: bool) -> None:
        """Word of messages that were processed, or went back."""
        self._ending_count -= 1
        # Refused as retaken: the connection was lost before, and they come again.
        if delete and isinstance(result, MessageQueueError) and not is_retaken(result):
            self._error = self._error or result
        self._notify()

    def _notify(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def _wait(self) -> None:
        self._waiting = self._driver.loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    async def next(self) -> _Batch:
        """The next batch, when it is there.

        Raises:
            MessageQueueError: There will be none, or what was processed could not be removed.
        """
        while True:
            self.raise_error()
            while self._ready:
                batch = self._ready.popleft()
                if batch.connection == self._driver.connection:
                    return batch
            self.ask_more()
            await self._wait()

    def raise_error(self) -> None:
        """Says, once, what went wrong."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    # The end.

    def leave(self, batch: _Batch | None, *, processed: bool) -> None:
        """No more is wanted: what was processed is removed, everything else goes back.

        Args:
            batch: The one that is being given out.
            processed: Whether the last message of it that was given out was processed.
        """
        if self._is_over:
            return
        self._is_over = True
        if batch is not None:
            done = batch.at if processed else max(0, batch.at - 1)
            self.end(batch.messages[:done], batch.connection, delete=True)
            self.end(batch.messages[done:], batch.connection, delete=False)
        for each in self._ready:
            self.end(each.messages, each.connection, delete=False)
        self._ready.clear()
        for reading in list(self._readings):
            self._driver.cancel(reading.number)

    async def wait_until_over(self) -> None:
        """Returns when everything is removed or has gone back."""
        while self._readings or self._ending_count:
            await self._wait()


class Receiving:
    """All messages of a queue, as they come: `Queue.receive_all` makes it.

    A message counts as processed when the loop comes back for the next one. Messages that were
    processed are removed from the queue together, a batch at a time; whatever was not processed
    stays in the queue. So nothing is lost, and after a crash or a lost connection the last few come
    again: at most half of what is prefetched, and the one that was being processed.

    The message at which the loop is left, by `break` or an exception, goes back to the queue. In a
    block `async with queue.receive_all() as messages`, it goes back only if the block is left by an
    exception; otherwise it counts as processed.
    """

    def __init__(self, driver: AsyncDriver, queue: Asking, prefetch: int) -> None:
        self._driver = driver
        self._intake = Intake(driver, queue, prefetch)
        self._batch: _Batch | None = None
        self._is_waiting = False
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedMessage:
        """The next message; the one before it was processed.

        Raises:
            InDoubt: Whether messages that were processed are gone is not known.
            MessageQueueError: There is no going on; what was not processed stays in the queue.
        """
        batch = self._batch
        if (
            batch is None
            or batch.at == len(batch.messages)
            or batch.connection != self._driver.connection
        ):
            batch = await self._next_batch()
        message = batch.messages[batch.at]
        batch.at += 1
        return ReceivedMessage(message)

    async def _next_batch(self) -> _Batch:
        if self._is_over:
            raise StopAsyncIteration
        if self._is_waiting:
            raise RuntimeError("another task waits for the next message: give each its own stream")
        batch, self._batch = self._batch, None
        if batch is not None:
            self._intake.end(batch.messages, batch.connection, delete=True)
            self._intake.ask_more()
        self._is_waiting = True
        try:
            self._batch = batch = await self._intake.next()
        finally:
            self._is_waiting = False
        return batch

    async def aclose(self) -> None:
        """The message that was given out last, and those that were not, go back to the queue.

        Returns when what was processed is removed.

        Raises:
            InDoubt: Whether messages that were processed are gone is not known.
            MessageQueueError: They could not be removed.
        """
        await self._close(processed=False)

    async def _close(self, *, processed: bool) -> None:
        self._is_over = True
        batch, self._batch = self._batch, None
        self._intake.leave(batch, processed=processed)
        await self._intake.wait_until_over()
        self._intake.raise_error()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._close(processed=error is None)
        except MessageQueueError as wrong:
            if error is None:
                raise
            error.add_note(f"removing what was processed failed as well: {wrong}")

    def __del__(self) -> None:
        """A loop that was left without a word: messages go back in the next turn."""
        if not self._is_over and not self._driver.loop.is_closed():
            leave, batch = self._intake.leave, self._batch
            self._driver.loop.call_soon_threadsafe(lambda: leave(batch, processed=False))


class Peeking:
    """All messages of a queue from the first on, those included that come meanwhile."""

    def __init__(self, driver: AsyncDriver, queue: Asking) -> None:
        self._driver = driver
        self._queue = queue
        self._place = ByLookup(0, Seek.FIRST)
        self._messages: deque[ReceivedMessage] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedMessage:
        """The next message, which stays."""
        if not self._messages:
            request = self._queue.peeking(self._place, 0, asking.PEEKED_AT_ONCE)
            try:
                self._messages.extend(asking.several(await self._driver.ask(request)))
            except MessageQueueError as end:
                if asking.is_end(end):
                    raise StopAsyncIteration from None
                raise
        message = self._messages.popleft()
        self._place = ByLookup(message.lookup_id, Seek.NEXT)
        return message
