"""Transactions in an event loop."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from uuid import UUID

from merq.aio.driving import AsyncDriver
from merq.client.undertaking import Undertaking
from merq.errors import MerqError
from merq.protocol.application.requests import Ending


class Transaction(Undertaking):
    """Sends, receives and moves that happen together or not at all.

    In an `async with` block it commits at the end, or aborts on an exception. It ends with its
    connection: if that is lost, nothing has happened.
    """

    def __init__(
        self, driver: AsyncDriver, number: int | None = None, name: UUID | None = None
    ) -> None:
        super().__init__(driver, driver.begin() if number is None else number, name)
        self._driver = driver

    async def prepare(self, name: UUID | None = None) -> UUID:
        """Promises that it can be committed, whatever happens until then: it survives a restart.

        Args:
            name: Under which `Manager.prepared_transactions` finds it again; a new one if none.
        """
        request = self._preparation(name)
        await self._driver.ask(request)
        self._name = request.identifier
        return request.identifier

    async def commit(self) -> None:
        """Everything happens, durably."""
        await self._end(Ending.COMMIT)

    async def abort(self) -> None:
        """Nothing happens; what was received goes back to its place."""
        await self._end(Ending.ABORT)

    async def _end(self, ending: Ending) -> None:
        try:
            await self._driver.ask(self._ending(ending))
        except MerqError as wrong:
            self._not_ended(wrong)
            raise
        self._ended = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._is_to_abort(error):
            await self._abort_because_of(error)
        if not self._is_to_commit(error):
            return
        try:
            await self.commit()
        except MerqError as refused:
            if not self._ended:
                await self._abort_because_of(refused)
            raise

    async def _abort_because_of(self, error: BaseException) -> None:
        try:
            await self.abort()
        except MerqError as wrong:
            error.add_note(f"aborting the transaction failed as well: {wrong}")
