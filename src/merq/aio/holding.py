"""Messages that are handed out and stay, locked, until it is known what becomes of them."""

from __future__ import annotations

from types import TracebackType

from merq.aio.driving import AsyncDriver
from merq.client.messages import ReceivedMessage
from merq.client.receiving import removal_of, return_of, went_back
from merq.errors import MerqError
from merq.model.delivered import Delivered
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Read


class Holding:
    """[MS-MQDMPR] 3.1.7.1.11, 3.1.7.1.12: a receive in two steps, for an `async with` block.

    The messages leave the queue when the block ends, and go back to their places on an exception,
    or when the connection is lost. Nobody else gets them meanwhile. Unlike an aborted transaction
    this does not count against a message.
    """

    def __init__(self, driver: AsyncDriver, read: Read, timeout: float | None) -> None:
        self._driver = driver
        self._read = read
        self._timeout = timeout
        self._received: Result = None
        self._connection = 0

    async def __aenter__(self) -> list[ReceivedMessage]:
        self._received, self._connection = await self._driver.hold(self._read, self._timeout)
        found = self._received if isinstance(self._received, list) else [self._received]
        return [ReceivedMessage(each) for each in found if isinstance(each, Delivered)]

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_held = self._connection == self._driver.connection
        if error is None:
            # On another connection the same messages may be held for others: not ours to remove.
            if not is_held:
                raise went_back()
            await self._driver.ask(removal_of(self._read, self._received))
            return
        back = return_of(self._read, self._received)
        if back is not None and is_held:
            try:
                await self._driver.ask(back)
            except MerqError as wrong:
                error.add_note(f"giving the messages back failed as well: {wrong}")
