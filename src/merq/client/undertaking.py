"""What a transaction is, whoever waits for its answers."""

from __future__ import annotations

from uuid import UUID, uuid4

from merq.client.arguments import of_kind
from merq.errors import MerqError, MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.requests import End, Ending, EndPrepared, Prepare


class Undertaking:
    """Sends, receives and moves that happen together or not at all, and how far they are."""

    def __init__(self, owner: object, number: int, name: UUID | None = None) -> None:
        self._owner = owner
        self._number = number
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

    def within(self, owner: object) -> int:
        """Its number, for the queue manager that it belongs to.

        Raises:
            MessageQueueError: It belongs to another.
        """
        if owner is not self._owner:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_USAGE,
                "the transaction belongs to another queue manager than the queue",
            )
        return self._number

    # What ends it is the same for whoever waits for the answer.

    def _preparation(self, name: UUID | None) -> Prepare:
        chosen = uuid4() if name is None else of_kind("name", name, UUID)
        return Prepare(self._number, chosen)

    def _ending(self, ending: Ending) -> End | EndPrepared:
        if self._name is not None:
            return EndPrepared(self._name, ending)
        return End(self._number, ending)

    def _not_ended(self, wrong: MerqError) -> None:
        """Its end was refused."""
        if self._name is None:
            # Over, whatever was wrong: what fails has not happened, and cannot any more. But a
            # queue that was deleted meanwhile only keeps it from committing.
            code = wrong.code if isinstance(wrong, MessageQueueError) else 0
            self._ended = code != HResult.MQ_ERROR_QUEUE_DELETED

    def _is_to_commit(self, error: BaseException | None) -> bool:
        """Whether it commits at the end of its block; one that is prepared others end."""
        return not self._ended and error is None and self._name is None

    def _is_to_abort(self, error: BaseException | None) -> bool:
        """Whether it aborts at the end of its block."""
        return not self._ended and error is not None
