"""Transactions as applications use them."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

from merq.client.arguments import of_kind
from merq.client.driving import Driving
from merq.errors import MerqError, MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.requests import End, Ending, EndPrepared, Prepare


class Transaction:
    """Sends, receives and moves that happen together or not at all.

    In a `with` block it commits at the end, or aborts on an exception.
    """

    def __init__(
        self, driver: Driving, number: int | None = None, name: UUID | None = None
    ) -> None:
        self._driver = driver
        self._number = driver.begin() if number is None else number
        self._name = name
        self._ended = False

    def __repr__(self) -> str:
        state = "ended" if self._ended else "prepared" if self._name else "open"
        return f"<transaction {self._name or self._number}, {state}>"

    @property
    def number(self) -> int:
        """Its number among those of this program; 0 for one that was prepared earlier."""
        return self._number

    @property
    def name(self) -> UUID | None:
        """The identifier under which it was prepared, if it was."""
        return self._name

    def prepare(self, name: UUID | None = None) -> UUID:
        """Promises that it can be committed, whatever happens until then: it survives a restart.

        This is for coordinators of several systems. `Manager.prepared_transactions` finds it again.

        Args:
            name: Under which it is found again; a new one if none is given.
        """
        chosen = uuid4() if name is None else of_kind("name", name, UUID)
        self._driver.ask(Prepare(self._number, chosen))
        self._name = chosen
        return chosen

    def commit(self) -> None:
        """Everything happens, durably."""
        self._end(Ending.COMMIT)

    def abort(self) -> None:
        """Nothing happens; what was received goes back to its place."""
        self._end(Ending.ABORT)

    def within(self, driver: Driving) -> int:
        """Its number, for the queue manager that it belongs to.

        Raises:
            MessageQueueError: It belongs to another.
        """
        if driver is not self._driver:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_USAGE,
                "the transaction belongs to another queue manager than the queue",
            )
        return self._number

    def _end(self, ending: Ending) -> None:
        if self._name is not None:
            self._driver.ask(EndPrepared(self._name, ending))
        else:
            try:
                self._driver.ask(End(self._number, ending))
            except MerqError as wrong:
                # Over, whatever was wrong: what fails has not happened, and cannot any more. But a
                # queue that was deleted meanwhile only keeps it from committing.
                code = wrong.code if isinstance(wrong, MessageQueueError) else 0
                self._ended = code != HResult.MQ_ERROR_QUEUE_DELETED
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
        if self._ended:
            return
        if error is not None:
            self._abort_because_of(error)
            return
        if self._name is not None:
            return  # prepared: whoever coordinates says how it ends
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


def number_within(transaction: Transaction | None, driver: Driving) -> int:
    """A transaction's number for the engine, 0 for none."""
    return 0 if transaction is None else of_kind("tx", transaction, Transaction).within(driver)
