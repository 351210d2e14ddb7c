"""Messages that are handed out and stay, locked, until it is known what becomes of them."""

from __future__ import annotations

from types import TracebackType

from merq.client.driving import Driving
from merq.client.messages import ReceivedMessage
from merq.errors import MerqError
from merq.model.delivered import Delivered
from merq.protocol.application.requests import EndReceive, Read


class Holding:
    """[MS-MQDMPR] 3.1.7.1.11, 3.1.7.1.12: a receive in two steps, to be used in a `with` block.

    The messages leave the queue when the block ends, and go back to their places on an exception,
    or when whoever holds them is gone. Nobody else gets them meanwhile. Unlike an aborted
    transaction this does not count against a message.
    """

    def __init__(self, driver: Driving, read: Read, timeout: float | None) -> None:
        self._driver = driver
        self._read = read
        self._timeout = timeout
        self._lookup_ids: list[int] = []

    def __enter__(self) -> list[ReceivedMessage]:
        result = self._driver.ask(self._read, self._timeout)
        found = result if isinstance(result, list) else [result]
        messages = [ReceivedMessage(each) for each in found if isinstance(each, Delivered)]
        self._lookup_ids = [each.lookup_id for each in messages]
        return messages

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        delete = error is None
        ending = EndReceive(self._read.queue, self._lookup_ids, delete=delete)
        try:
            self._driver.ask(ending)
        except MerqError as wrong:
            if error is None:
                raise
            error.add_note(f"giving the messages back failed as well: {wrong}")
