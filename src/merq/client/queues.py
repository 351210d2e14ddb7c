"""`merq.open`: queue managers, queues and transactions as applications use them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

from merq.client.embedded import Driver
from merq.client.messages import Message, ReceivedMessage
from merq.engine.changes import Delivered, Result
from merq.engine.manager import FIRST_PRIVATE_NUMBER, QueueManager, QueueSettings
from merq.engine.queue import QueueKind, QueueProperties
from merq.engine.reading import (
    ByCorrelationId,
    ByLookup,
    ByMessageId,
    First,
    Seek,
    Selector,
)
from merq.engine.state import Limits
from merq.errors import MerqError, MessageQueueError, NameSyntaxError
from merq.hresult import HResult
from merq.model.body import Value, encode_body
from merq.model.names import DirectName, parse_direct_name, parse_path_name
from merq.store.disk import FileDisk
from merq.wire.build import Outline
from merq.wire.properties import CORRELATION_ID_SIZE

PREFIX = "DIRECT="


def open_manager(
    path: str | Path, *, name: str | None = None, limits: Limits | None = None
) -> Manager:
    """Opens the queue manager whose data is in a folder, and makes it if there is none.

    Args:
        path: The folder. One process at a time can have it open.
        name: The computer name that other names call this queue manager by; the host's by default.
        limits: Quotas and such.

    Raises:
        StoreInUse: Another process has the folder open.
        StoreCorrupt: The folder's data is damaged; the text says where.
    """
    computer = name or socket.gethostname().partition(".")[0] or "localhost"
    return Manager(Driver(FileDisk(Path(path)), computer, limits or Limits()), computer)


class Manager:
    """A queue manager in this process. Use it in a `with` block, or close it."""

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver = driver
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier, made once per folder."""
        return self._driver.guid

    def close(self) -> None:
        """Makes everything durable and gives the folder back."""
        self._driver.close()

    def create_queue(
        self,
        path_name: str,
        *,
        label: str = "",
        transactional: bool = False,
        journal: bool = False,
        quota_kb: int = 0xFFFFFFFF,
        journal_quota_kb: int = 0xFFFFFFFF,
    ) -> Queue:
        r"""Makes a private queue, such as `.\private$\orders`."""
        settings = QueueSettings(
            label=label,
            transactional=transactional,
            journaling=journal,
            quota=quota_kb,
            journal_quota=journal_quota_kb,
        )
        identifier = uuid4()
        number = self._driver.run(
            lambda request: self._driver.engine.create_queue(
                request, path_name, settings, identifier
            )
        )
        assert isinstance(number, int)
        return Queue(self._driver, number)

    def queue(self, path_name: str) -> Queue:
        r"""A queue that exists: private, `;JOURNAL`, or `.\system$;DEADLETTER` and its like."""

        def find(engine: QueueManager) -> int:
            return engine.find_queue(path_name).number

        number = self._driver.look(find)
        assert isinstance(number, int)
        return Queue(self._driver, number)

    def queues(self) -> list[Queue]:
        """The private queues, without those that every queue manager has."""

        def numbers(engine: QueueManager) -> list[int]:
            return [
                number
                for number, queue in engine.state.queues.items()
                if queue.properties.kind is QueueKind.PRIVATE
                and number >= FIRST_PRIVATE_NUMBER
                and not queue.closing
            ]

        found = self._driver.look(numbers)
        assert isinstance(found, list)
        return [Queue(self._driver, number) for number in found]

    def transaction(self) -> Transaction:
        """A transaction, to be used in a `with` block: it commits, or aborts on an exception."""
        return Transaction(self._driver)


class Transaction:
    """Sends and receives that happen together or not at all."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        identifier = driver.look(lambda engine: engine.transactions.begin())
        assert isinstance(identifier, int)
        self._identifier = identifier
        self._ended = False

    @property
    def identifier(self) -> int:
        """Its number, for as long as the queue manager is open."""
        return self._identifier

    def commit(self) -> None:
        """Everything happens, durably."""
        self._end(self._driver.engine.transactions.commit)

    def abort(self) -> None:
        """Nothing happens; what was received goes back to its place."""
        self._end(self._driver.engine.transactions.abort)

    def within(self, driver: Driver) -> int:
        """Its number, for the queue manager that it belongs to.

        Raises:
            MessageQueueError: It belongs to another.
        """
        if driver is not self._driver:
            raise MessageQueueError(
                HResult.MQ_ERROR_TRANSACTION_USAGE,
                "the transaction belongs to another queue manager than the queue",
            )
        return self._identifier

    def _end(self, end: Callable[[int, int], None]) -> None:
        def ask(request: int) -> None:
            end(request, self._identifier)
            # From here on it is over, whatever the disk says: what fails has not happened.
            self._ended = True

        self._driver.run(ask)

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


class Queue:
    """A queue. Reading methods wait up to `timeout` seconds; None is for ever."""

    def __init__(self, driver: Driver, number: int) -> None:
        self._driver = driver
        self._number = number
        self._destination = ""

    def __repr__(self) -> str:
        try:
            return f"<queue {self.path_name}>"
        except MerqError as gone:
            return f"<queue {self._number}: {gone}>"

    def __len__(self) -> int:
        count = self._driver.look(lambda engine: len(engine.queue(self._number).positions))
        assert isinstance(count, int)
        return count

    @property
    def properties(self) -> QueueProperties:
        """Everything that was set about the queue."""
        found = self._driver.look(lambda engine: engine.queue(self._number).properties)
        assert isinstance(found, QueueProperties)
        return found

    @property
    def path_name(self) -> str:
        """Its path name."""
        return self.properties.path_name

    def send(
        self, message: Message | Value = None, *, tx: Transaction | None = None, **fields: object
    ) -> str:
        r"""Sends a message, or a body with the fields of `Message`; gives its id, `{guid}\n`.

        It returns when the message is as safe as it was to be: a recoverable one is on disk, one
        in a transaction is when that commits.
        """
        if not isinstance(message, Message):
            message = Message(body=message, **fields)  # type: ignore[arg-type]
        elif fields:
            raise TypeError(
                "a Message has its fields already; give a body with fields, or a Message"
            )
        outline = self._outline(message)
        transaction = 0 if tx is None else tx.within(self._driver)
        result = self._driver.run(
            lambda request: self._driver.engine.send(request, self._number, outline, transaction)
        )
        assert isinstance(result, bytes)
        return f"{{{UUID(bytes_le=result[:16])}}}\\{int.from_bytes(result[16:], 'little')}"

    def _outline(self, message: Message) -> Outline:
        message.check()
        kind, data = encode_body(message.body)
        # A queue's name never changes.
        self._destination = self._destination or f"OS:{self.path_name}"
        return Outline(
            source_queue_manager=bytes(16),
            message_ordinal=0,
            sent_time=0,
            destination=self._destination,
            body=data,
            body_type=kind,
            label=message.label,
            priority=message.priority,
            recoverable=message.recoverable,
            admin_queue=_direct(message.admin_queue),
            response_queue=_direct(message.response_queue),
            acknowledgments=message.acknowledge,
            positive_journaling=message.journal,
            negative_journaling=message.dead_letter,
            time_to_reach_queue=message.time_to_reach_queue,
            time_to_be_received=message.time_to_be_received,
            correlation_id=message.correlation_id,
            application_tag=message.app_specific,
            extension=message.extension,
        )

    def receive(
        self, *, timeout: float | None = None, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the first message out of the queue.

        Raises:
            ReceiveTimeout: None came in time.
        """
        return self._receive(First(), timeout, tx)

    def receive_by_id(self, message_id: str, *, tx: Transaction | None = None) -> ReceivedMessage:
        r"""Takes the message with this id, `{guid}\n`."""
        return self._receive(ByMessageId(_id_bytes(message_id)), 0, tx)

    def receive_by_correlation_id(
        self, correlation_id: bytes, *, timeout: float | None = 0, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the first message with this correlation id, 20 bytes."""
        return self._receive(ByCorrelationId(_correlation(correlation_id)), timeout, tx)

    def receive_by_lookup_id(
        self, lookup_id: int, seek: Seek = Seek.CURRENT, *, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the message at a lookup identifier, or the one next to it."""
        return self._receive(ByLookup(lookup_id, seek), 0, tx)

    def _receive(
        self, selector: Selector, timeout: float | None, tx: Transaction | None
    ) -> ReceivedMessage:
        transaction = 0 if tx is None else tx.within(self._driver)
        return _received(
            self._driver.run(
                lambda request: self._driver.engine.receive(
                    request,
                    self._number,
                    selector,
                    wait=timeout is None or timeout > 0,
                    transaction=transaction,
                ),
                self._number,
                timeout,
            )
        )

    def peek(self, *, timeout: float | None = None) -> ReceivedMessage:
        """The first message, which stays.

        Raises:
            ReceiveTimeout: None came in time.
        """
        return self._peek(First(), timeout)

    def peek_by_id(self, message_id: str) -> ReceivedMessage:
        r"""The message with this id, `{guid}\n`, which stays."""
        return self._peek(ByMessageId(_id_bytes(message_id)), 0)

    def peek_by_lookup_id(self, lookup_id: int, seek: Seek = Seek.CURRENT) -> ReceivedMessage:
        """The message at a lookup identifier, or the one next to it, which stays."""
        return self._peek(ByLookup(lookup_id, seek), 0)

    def peek_all(self) -> Iterator[ReceivedMessage]:
        """All messages from the first on, those included that come meanwhile."""
        lookup_id, seek = 0, Seek.FIRST
        while True:
            try:
                message = self.peek_by_lookup_id(lookup_id, seek)
            except MessageQueueError as end:
                if end.code == HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                    return
                raise
            yield message
            lookup_id, seek = message.lookup_id, Seek.NEXT

    def _peek(self, selector: Selector, timeout: float | None) -> ReceivedMessage:
        wait = timeout is None or timeout > 0
        return _received(
            self._driver.run(
                lambda request: self._driver.engine.peek(
                    request, self._number, selector, wait=wait
                ),
                self._number,
                timeout,
            )
        )

    def purge(self) -> int:
        """Removes all messages; tells how many there were."""
        result = self._driver.run(lambda request: self._driver.engine.purge(request, self._number))
        assert isinstance(result, int)
        return result

    def delete(self) -> None:
        """Removes the queue, its journal and everything in them."""
        self._driver.run(lambda request: self._driver.engine.delete_queue(request, self._number))


def _received(result: Result) -> ReceivedMessage:
    assert isinstance(result, Delivered)
    return ReceivedMessage(result)


def _direct(name: str) -> str:
    """A path name or direct format name as packets carry it."""
    if not name:
        return ""
    try:
        if name.upper().startswith(PREFIX):
            return parse_direct_name(name[len(PREFIX) :]).without_prefix()
        return DirectName.of_path(parse_path_name(name)).without_prefix()
    except NameSyntaxError as wrong:
        raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, str(wrong)) from wrong


def _correlation(correlation_id: object) -> bytes:
    if isinstance(correlation_id, bytes) and len(correlation_id) == CORRELATION_ID_SIZE:
        return correlation_id
    raise MessageQueueError(
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
        f"a correlation id has {CORRELATION_ID_SIZE} bytes, not {correlation_id!r}",
    )


def _id_bytes(message_id: str) -> bytes:
    r"""The 20 bytes of `{guid}\n`."""
    try:
        guid, _, ordinal = message_id.partition("\\")
        return UUID(guid.strip("{}")).bytes_le + int(ordinal).to_bytes(4, "little")
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            rf"{message_id!r} is not a message id, {{guid}}\number",
        ) from None
