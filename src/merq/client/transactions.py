"""Transactions as applications use them."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from uuid import UUID

from merq.client.driving import Driving
from merq.client.undertaking import Undertaking
from merq.errors import MerqError
from merq.protocol.application.requests import Ending


class Transaction(Undertaking):
    """Sends, receives and moves that happen together or not at all.

    In a `with` block it commits at the end, or aborts on an exception.
    """

    def __init__(
        self, driver: Driving, number: int | None = None, name: UUID | None = None
    ) -> None:
        super().__init__(driver, driver.begin() if number is None else number, name)
        self._driver = driver

    def prepare(self, name: UUID | None = None) -> UUID:
        """Promises that it can be committed, whatever happens until then: it survives a restart.

        This is for coordinators of several systems. `Manager.prepared_transactions` finds it again.

        Args:
            name: Under which it is found again; a new one if none is given.
        """
        request = self._preparation(name)
        self._driver.ask(request)
        self._name = request.identifier
        return request.identifier

    def commit(self) -> None:
        """Everything happens, durably."""
        self._end(Ending.COMMIT)

    def abort(self) -> None:
        """Nothing happens; what was received goes back to its place."""
        self._end(Ending.ABORT)

    def _end(self, ending: Ending) -> None:
        try:
            self._driver.ask(self._ending(ending))
        except MerqError as wrong:
            self._not_ended(wrong)
            raise
        self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._is_to_abort(error):
            self._abort_because_of(error)
        if not self._is_to_commit(error):
            return
        try:
            self.commit()
        except BaseException as refused:
            if not self._ended:
                self._abort_because_of(refused)
            raise

    def _abort_because_of(self, error: BaseException) -> None:
        try:
            self.abort()
        except MerqError as wrong:
            error.add_note(f"aborting the transaction failed as well: {wrong}")
