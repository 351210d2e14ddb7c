"""Queues as applications use them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from merq.client.arguments import check_timeout, of_kind
from merq.client.driving import Driving
from merq.client.holding import Holding
from merq.client.messages import Message, ReceivedMessage
from merq.client.packets import Packer, destination_of
from merq.client.transactions import Transaction, number_within
from merq.engine.administration import check_settings
from merq.engine.outgoing import parse_destination
from merq.errors import MerqError, MessageQueueError
from merq.hresult import HResult
from merq.model.body import Value
from merq.model.delivered import Delivered
from merq.model.queue import OutgoingState, QueueProperties, QueueSettings
from merq.model.selecting import (
    AtCursor,
    ByCorrelationId,
    ByLookup,
    ByMessageId,
    First,
    Seek,
    Selection,
)
from merq.protocol.application.reports import QueueReport, Result
from merq.protocol.application.requests import (
    Alteration,
    ChangeQueue,
    CloseCursor,
    CloseQueue,
    CreateSubqueue,
    DeleteQueue,
    DescribeQueue,
    Family,
    ListQueues,
    Move,
    OpenCursor,
    PauseQueue,
    Purge,
    Read,
    ResumeQueue,
    Send,
)
from merq.wire.build import Destination
from merq.wire.properties import CORRELATION_ID_SIZE

PEEKED_AT_ONCE = 100
"""Messages that `peek_all` asks for at a time."""

ORDINAL_MAX = 0xFFFFFFFF
"""[MS-MQMQ] 2.2.8: the largest number in a message id."""

_MESSAGE_ID = re.compile(
    r"\{([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\}\\([0-9]{1,10})",
    re.IGNORECASE | re.ASCII,
)
_FIRST = First()
_PROPERTY_NAMES = {
    "label": "label",
    "journal": "journaling",
    "quota_kb": "quota",
    "journal_quota_kb": "journal_quota",
    "base_priority": "base_priority",
    "type_id": "type_id",
    "poison_after": "poison_after",
    "authenticate": "authenticate",
    "privacy_level": "privacy_level",
    "multicast_address": "multicast_address",
}
"""What can be changed of a queue, and how the engine spells it, as the documents do."""


class Queue:
    """A queue. Reading methods wait up to `timeout` seconds; None is for ever."""

    def __init__(self, driver: Driving, number: int, handle: int = 0) -> None:
        self._driver = driver
        self._number = number
        self._handle = handle
        self._is_closed = False
        self._packer: Packer | None = None

    def __repr__(self) -> str:
        try:
            return f"<queue {self.path_name}>"
        except MerqError as gone:
            return f"<queue {self._number}: {gone}>"

    def __len__(self) -> int:
        return self.report.messages

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends an opening by `Manager.open_queue`; for others there is nothing to close."""
        if self._handle and not self._is_closed:
            self._driver.ask(CloseQueue(self._handle))
            self._is_closed = True

    # What it is.

    @property
    def number(self) -> int:
        """Its number on its queue manager, which no other queue ever has."""
        return self._number

    @property
    def report(self) -> QueueReport:
        """The queue and how it stands: messages, readers, what came and went."""
        report = self._driver.ask(DescribeQueue(self._number))
        assert isinstance(report, QueueReport)
        return report

    @property
    def properties(self) -> QueueProperties:
        """Everything that was set about the queue."""
        return self.report.properties

    @property
    def path_name(self) -> str:
        """Its path name."""
        return self.properties.path_name

    @property
    def label(self) -> str:
        """Its label."""
        return self.properties.label

    @property
    def transactional(self) -> bool:
        """Whether it takes messages in transactions only."""
        return self.properties.transactional

    def change(self, **properties: Any) -> None:
        """Gives the queue other properties; whether it is transactional stays.

        Args:
            **properties: label, journal, quota_kb, journal_quota_kb, base_priority, type_id,
                poison_after, authenticate, privacy_level, multicast_address, as
                `Manager.create_queue` has them.
        """
        for name in properties:
            if name not in _PROPERTY_NAMES:
                raise MessageQueueError(
                    HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
                    f"{name} cannot be changed; these can: {', '.join(sorted(_PROPERTY_NAMES))}",
                )
        changed = {_PROPERTY_NAMES[name]: value for name, value in properties.items()}
        check_settings(QueueSettings(**changed))
        self._driver.ask(ChangeQueue(self._number, Alteration(**changed)))

    # Sending.

    def send(
        self, body: Value | Message = None, *, tx: Transaction | None = None, **properties: Any
    ) -> str:
        r"""Sends a message; returns its id, `{guid}\n`, when it is as safe as it was to be.

        Args:
            body: A Python value, or a whole Message.
            tx: The transaction in which it is sent; transactional queues need one.
            **properties: As Message has them, if `body` is not one.
        """
        packer = self._packer or self._find_packer()
        if isinstance(body, Message):
            _refuse_both(properties)
            kind, body = packer.kind_of(body), body.body
        else:
            kind = packer.kind_with(properties)
        return id_text(self._send([kind.pack(body)], kind.dead_letter_queue, tx))

    def send_many(
        self,
        bodies: Iterable[Value | Message],
        *,
        tx: Transaction | None = None,
        **properties: Any,
    ) -> list[str]:
        """Sends many messages at once, all or none of them; much faster than one at a time."""
        if isinstance(bodies, str | bytes) or not isinstance(bodies, Iterable):
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"bodies is {type(bodies).__name__}; several bodies belong there, in a list, say",
            )
        packer = self._packer or self._find_packer()
        common = packer.kind_with(properties)
        dead_letters: dict[str, None] = {}
        packets: list[bytes] = []
        for body in bodies:
            if isinstance(body, Message):
                _refuse_both(properties)
                kind = packer.kind_of(body)
                packets.append(kind.pack(body.body))
            else:
                kind = common
                packets.append(kind.pack(body))
            dead_letters[kind.dead_letter_queue] = None
        if not packets:
            return []
        if len(dead_letters) > 1:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
                "messages that are sent at once have one dead_letter_queue, not "
                + " and ".join(map(repr, dead_letters)),
            )
        ids = self._send(packets, next(iter(dead_letters)), tx)
        return [id_text(ids[at : at + 20]) for at in range(0, len(ids), 20)]

    def _send(self, packets: list[bytes], dead_letter: str, tx: Transaction | None) -> bytes:
        transaction = number_within(tx, self._driver)
        ids = self._driver.ask(Send(self._number, packets, transaction, dead_letter, self._handle))
        assert isinstance(ids, bytes)
        return ids

    def _find_packer(self) -> Packer:
        self._packer = Packer(self._destination())
        return self._packer

    def _destination(self) -> Destination:
        return f"OS:{self._driver.name}{self.path_name[1:]}"

    # Receiving.

    def receive(
        self, *, timeout: float | None = None, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the first message out of the queue.

        Raises:
            ReceiveTimeout: None came in time.
        """
        return _one(self._receive(_FIRST, timeout, tx))

    def receive_many(
        self, most: int, *, timeout: float | None = None, tx: Transaction | None = None
    ) -> list[ReceivedMessage]:
        """Takes up to so many messages, those that are there; waits only for the first.

        Raises:
            ReceiveTimeout: None came in time.
        """
        _check_count(most)
        return _several(self._receive(_FIRST, timeout, tx, most))

    def receive_by_id(self, message_id: str, *, tx: Transaction | None = None) -> ReceivedMessage:
        r"""Takes the message with this id, `{guid}\n`."""
        return _one(self._receive(ByMessageId(id_bytes(message_id)), 0, tx))

    def receive_by_correlation_id(
        self, correlation_id: bytes, *, timeout: float | None = 0, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the first message with this correlation id, 20 bytes."""
        return _one(self._receive(ByCorrelationId(_correlation(correlation_id)), timeout, tx))

    def receive_by_lookup_id(
        self, lookup_id: int, seek: Seek = Seek.CURRENT, *, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the message at a lookup identifier, or the one next to it."""
        return _one(self._receive(_lookup(lookup_id, seek), 0, tx))

    def hold(
        self,
        most: int = 1,
        *,
        timeout: float | None = None,
        selection: Selection = _FIRST,
        most_bytes: int = 0,
    ) -> Holding:
        """Messages that leave the queue only when the `with` block ends well.

        Raises:
            ReceiveTimeout: None came in time.

        Args:
            most: Up to so many messages, those that are there; one if they are selected.
            timeout: How long to wait for the first, in seconds; None is for ever.
            selection: Which message is meant, if not the first.
            most_bytes: No further message is added once so many bytes are there; 0 is no limit.
        """
        check_timeout(timeout)
        _check_count(most)
        several = isinstance(selection, First)
        read = Read(
            self._number,
            selection,
            wait=timeout is None or timeout > 0,
            most=most if several else 0,
            most_bytes=most_bytes if several else 0,
            handle=self._handle,
            held=True,
        )
        return Holding(self._driver, read, timeout)

    def _receive(
        self, selection: Selection, timeout: float | None, tx: Transaction | None, most: int = 0
    ) -> Result:
        check_timeout(timeout)
        request = Read(
            self._number,
            selection,
            wait=timeout is None or timeout > 0,
            transaction=number_within(tx, self._driver),
            most=most,
            handle=self._handle,
        )
        return self._driver.ask(request, timeout)

    # Peeking.

    def peek(self, *, timeout: float | None = None) -> ReceivedMessage:
        """The first message, which stays.

        Raises:
            ReceiveTimeout: None came in time.
        """
        return _one(self._peek(_FIRST, timeout))

    def peek_by_id(self, message_id: str) -> ReceivedMessage:
        r"""The message with this id, `{guid}\n`, which stays."""
        return _one(self._peek(ByMessageId(id_bytes(message_id)), 0))

    def peek_by_correlation_id(
        self, correlation_id: bytes, *, timeout: float | None = 0
    ) -> ReceivedMessage:
        """The first message with this correlation id, 20 bytes; it stays."""
        return _one(self._peek(ByCorrelationId(_correlation(correlation_id)), timeout))

    def peek_by_lookup_id(self, lookup_id: int, seek: Seek = Seek.CURRENT) -> ReceivedMessage:
        """The message at a lookup identifier, or the one next to it, which stays."""
        return _one(self._peek(_lookup(lookup_id, seek), 0))

    def peek_all(self) -> Iterator[ReceivedMessage]:
        """All messages from the first on, those included that come meanwhile."""
        lookup_id, seek = 0, Seek.FIRST
        while True:
            try:
                messages = _several(self._peek(ByLookup(lookup_id, seek), 0, PEEKED_AT_ONCE))
            except MessageQueueError as end:
                if end.code == HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                    return
                raise
            yield from messages
            lookup_id, seek = messages[-1].lookup_id, Seek.NEXT

    def _peek(self, selection: Selection, timeout: float | None, most: int = 0) -> Result:
        check_timeout(timeout)
        request = Read(
            self._number,
            selection,
            peek=True,
            wait=timeout is None or timeout > 0,
            most=most,
            handle=self._handle,
        )
        return self._driver.ask(request, timeout)

    def cursor(self) -> Cursor:
        """A cursor before the first message."""
        return Cursor(self._driver, self._number, self._handle)

    # Everything at once, and parts.

    def purge(self) -> int:
        """Removes all messages; tells how many there were."""
        result = self._driver.ask(Purge(self._number, self._handle))
        assert isinstance(result, int)
        return result

    def delete(self) -> None:
        """Removes the queue, its journal, its subqueues and everything in them."""
        self._driver.ask(DeleteQueue(self._number))

    def subqueue(self, name: str) -> Queue:
        """A subqueue; it is made if it is not there, and goes at the next start if it is empty."""
        of_kind("name", name, str)
        number = self._driver.ask(CreateSubqueue(self._number, name))
        assert isinstance(number, int)
        return Queue(self._driver, number)

    def subqueues(self) -> list[Queue]:
        """The subqueues that there are."""
        found = reports_of(self._driver.ask(ListQueues(Family.SUBQUEUES, self._number)))
        return [Queue(self._driver, each.properties.number) for each in found]

    def move(
        self, message: ReceivedMessage | int, to: Queue, *, tx: Transaction | None = None
    ) -> None:
        """Moves a message that was peeked, or its lookup identifier, to a subqueue or from there.

        It keeps its lookup identifier, and its place among the others there.
        """
        if isinstance(message, ReceivedMessage):
            message = message.lookup_id
        lookup_id = of_kind("message", message, int)
        transaction = number_within(tx, self._driver)
        target = of_kind("to", to, Queue).number_for(self._driver)
        self._driver.ask(Move(self._number, lookup_id, target, transaction, self._handle))

    def number_for(self, driver: Driving) -> int:
        """Its number, for the queue manager that it belongs to.

        Raises:
            MessageQueueError: It belongs to another.
        """
        if driver is not self._driver:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER, "the queue belongs to another queue manager"
            )
        return self._number


class Cursor:
    """[MS-MQDMPR] 3.2: walks over the messages of a queue, which may come and go meanwhile."""

    def __init__(self, driver: Driving, number: int, handle: int) -> None:
        self._driver = driver
        self._number = number
        self._handle = handle
        cursor = driver.ask(OpenCursor(number, handle))
        assert isinstance(cursor, int)
        self._cursor = cursor
        self._is_closed = False

    def peek(self, *, timeout: float | None = 0) -> ReceivedMessage:
        """The message at the cursor, which stays; at first, the first message."""
        return self._read(timeout, peek=True)

    def peek_next(self, *, timeout: float | None = 0) -> ReceivedMessage:
        """Moves on to the next message, which stays."""
        return self._read(timeout, peek=True, next_one=True)

    def receive(
        self, *, timeout: float | None = 0, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the message at the cursor, or the next one if that was taken."""
        return self._read(timeout, transaction=number_within(tx, self._driver))

    def close(self) -> None:
        """The cursor is not needed any more; who waits through it is told so."""
        if not self._is_closed:
            self._is_closed = True
            self._driver.ask(CloseCursor(self._cursor))

    def _read(
        self,
        timeout: float | None,
        *,
        peek: bool = False,
        next_one: bool = False,
        transaction: int = 0,
    ) -> ReceivedMessage:
        check_timeout(timeout)
        if self._is_closed:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_HANDLE, "the cursor was closed: open another"
            )
        request = Read(
            self._number,
            AtCursor(self._cursor, next_one),
            peek=peek,
            wait=timeout is None or timeout > 0,
            transaction=transaction,
            handle=self._handle,
        )
        return _one(self._driver.ask(request, timeout))


class OutgoingQueue(Queue):
    """Where messages to a queue on another computer wait."""

    def _destination(self) -> Destination:
        (name,) = parse_destination(self.path_name)
        return destination_of(name)

    @property
    def destination(self) -> str:
        """The format name of the queue that they go to."""
        return self.path_name

    @property
    def state(self) -> OutgoingState:
        """How far it is with reaching the destination."""
        return self.report.state

    def pause(self) -> None:
        """Nothing leaves the queue until it is resumed."""
        self._driver.ask(PauseQueue(self._number))

    def resume(self) -> None:
        """Messages may leave the queue again."""
        self._driver.ask(ResumeQueue(self._number))


def message_of(body: Value | Message, properties: dict[str, Any]) -> Message:
    """What is to be sent: a Message, or a body with properties."""
    if isinstance(body, Message):
        _refuse_both(properties)
        return body
    return Message(body=body, **properties)


def _refuse_both(properties: dict[str, Any]) -> None:
    if properties:
        raise TypeError(
            f"a Message has its own properties: {', '.join(properties)} cannot be given too"
        )


def reports_of(result: Result) -> list[QueueReport]:
    """An answer that has to be about queues."""
    assert isinstance(result, list)
    return [each for each in result if isinstance(each, QueueReport)]


def _one(result: Result) -> ReceivedMessage:
    assert isinstance(result, Delivered)
    return ReceivedMessage(result)


def _several(result: Result) -> list[ReceivedMessage]:
    assert isinstance(result, list)
    return [ReceivedMessage(each) for each in result if isinstance(each, Delivered)]


def _lookup(lookup_id: int, seek: Seek) -> ByLookup:
    return ByLookup(of_kind("lookup_id", lookup_id, int), of_kind("seek", seek, Seek))


def _check_count(most: object) -> None:
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise MessageQueueError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"{most!r} messages: give a number from 1 on"
        )


def _correlation(correlation_id: object) -> bytes:
    if isinstance(correlation_id, bytes) and len(correlation_id) == CORRELATION_ID_SIZE:
        return correlation_id
    raise MessageQueueError(
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
        f"a correlation id has {CORRELATION_ID_SIZE} bytes, not {correlation_id!r}",
    )


def id_text(message_id: bytes) -> str:
    r"""A message id of 20 bytes as `{guid}\n`."""
    return _braced(message_id[:16]) + str(int.from_bytes(message_id[16:], "little"))


@lru_cache(maxsize=1024)
def _braced(guid: bytes) -> str:
    return f"{{{UUID(bytes_le=guid)}}}\\"


def id_bytes(message_id: object) -> bytes:
    r"""The 20 bytes of `{guid}\n`."""
    found = _MESSAGE_ID.fullmatch(message_id) if isinstance(message_id, str) else None
    if found is None or int(found[2]) > ORDINAL_MAX:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            rf"{message_id!r} is not a message id, {{guid}}\number",
        )
    return UUID(found[1]).bytes_le + int(found[2]).to_bytes(4, "little")
