"""From what applications give to requests, and from answers to what applications get.

Whoever waits for the answers, in a thread (`merq.connect`, `merq.open`) or in an event loop
(`merq.aio`), asks and reads through these. Everything that callers can get wrong is found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypedDict, TypeVar
from uuid import UUID, uuid4

from merq.client.arguments import check_timeout, of_kind, of_wrong_kind
from merq.client.messages import Message, ReceivedMessage
from merq.client.packets import Kind, Packer, destination_of, pack_copies
from merq.client.undertaking import Undertaking
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.access import Access, Share
from merq.model.body import Value
from merq.model.delivered import Delivered
from merq.model.destinations import parse_destination
from merq.model.queue import Alteration, PrivacyLevel, QueueSettings
from merq.model.queue_settings import check_settings
from merq.model.selecting import (
    AtCursor,
    ByCorrelationId,
    ByLookup,
    ByMessageId,
    First,
    Seek,
    Selection,
)
from merq.protocol.application.reports import (
    LinkReport,
    QueueReport,
    Result,
    SequenceReport,
    Sighting,
    Status,
    TransferReport,
)
from merq.protocol.application.requests import (
    AskWhy,
    ChangeQueue,
    CreateQueue,
    CreateSubqueue,
    Family,
    FindQueue,
    ListQueues,
    Move,
    Read,
    Send,
    SendManyTo,
    SendTo,
)
from merq.wire.build import Destination
from merq.wire.properties import CORRELATION_ID_SIZE

PEEKED_AT_ONCE = 100
"""Messages that `peek_all` asks for at a time."""

ORDINAL_MAX = 0xFFFFFFFF
"""[MS-MQMQ] 2.2.8: the largest number in a message id."""

ID_SIZE = 20

FIRST = First()
"""The first message of a queue."""

_MESSAGE_ID = re.compile(
    r"\{([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\}\\([0-9]{1,10})",
    re.IGNORECASE | re.ASCII,
)
_CHANGEABLE = {
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

_SETTABLE = _CHANGEABLE | {"transactional": "transactional"}
_T = TypeVar("_T")


class QueueOptions(TypedDict, total=False):
    """What a queue can be made with; what is not given is as `QueueSettings` has it.

    Attributes:
        label: A description for people.
        transactional: It takes messages in transactions only.
        journal: What is received from it is kept in its journal.
        quota_kb: The most that its messages may take, in kilobytes.
        journal_quota_kb: The most that its journal may take.
        base_priority: Of public queues only; a private queue ignores it ([MS-MQMQ] 2.3.1.6).
        type_id: A mark of the application's own.
        poison_after: After so many aborted receives a message moves to the subqueue `poison`; 0 is
            never.
        authenticate: It takes only messages that are signed.
        privacy_level: Whether it takes messages whose bodies are encrypted, others, or both.
        multicast_address: Address and port whose messages it gets, for a transport that has
            multicast.
    """

    label: str
    transactional: bool
    journal: bool
    quota_kb: int
    journal_quota_kb: int
    base_priority: int
    type_id: UUID
    poison_after: int
    authenticate: bool
    privacy_level: PrivacyLevel
    multicast_address: str


# Requests about queues.


def creation(path_name: str, options: QueueOptions) -> CreateQueue:
    """A new queue.

    Raises:
        TypeError: There is no such option.
        MessageQueueError: An option is not what it can be.
    """
    for name in options:
        if name not in _SETTABLE:
            raise TypeError(f"a queue has no {name!r}; it has {', '.join(sorted(_SETTABLE))}")
    named: dict[str, Any] = {_SETTABLE[name]: value for name, value in options.items()}
    settings = QueueSettings(**named)
    of_kind("path_name", path_name, str)
    check_settings(settings)
    return CreateQueue(path_name, settings, uuid4())


def alteration(queue: int, properties: dict[str, Any]) -> ChangeQueue:
    """Other properties for a queue.

    Raises:
        MessageQueueError: A property is not what it can be, or cannot be changed.
    """
    for name in properties:
        if name not in _CHANGEABLE:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
                f"{name} cannot be changed; these can: {', '.join(sorted(_CHANGEABLE))}",
            )
    changed = {_CHANGEABLE[name]: value for name, value in properties.items()}
    check_settings(QueueSettings(**changed))
    return ChangeQueue(queue, Alteration(**changed))


def finding(path_name: str) -> FindQueue:
    """A queue by its name."""
    return FindQueue(of_kind("path_name", path_name, str))


def check_opening(access: Access, share: Share) -> None:
    """Refuses what is no way to open a queue."""
    of_kind("access", access, Access)
    of_kind("share", share, Share)


def listing(family: Family) -> ListQueues:
    """The queues of a kind."""
    return ListQueues(of_kind("family", family, Family))


def sub_creation(queue: int, name: str) -> CreateSubqueue:
    """A subqueue."""
    return CreateSubqueue(queue, of_kind("name", name, str))


def tracing(message_id: str) -> AskWhy:
    """Where a message is."""
    return AskWhy(id_bytes(message_id))


# Requests about messages.


class Asking:
    """What can be asked of one queue: its number, the opening it is used through, and its owner.

    Attributes:
        owner: Who carries requests to its queue manager; transactions must belong to the same.
    """

    __slots__ = ("handle", "number", "owner")

    def __init__(self, owner: object, number: int, handle: int = 0) -> None:
        self.owner = owner
        self.number = number
        self.handle = handle

    def sending(self, packets: list[bytes], dead_letter: str, tx: Undertaking | None) -> Send:
        """Messages into the queue."""
        within = number_within(tx, self.owner)
        return Send(self.number, packets, within, dead_letter, self.handle)

    def receiving(
        self,
        selection: Selection,
        timeout: float | None,
        tx: Undertaking | None,
        most: int = 0,
    ) -> Read:
        """A message out of the queue, or several."""
        check_timeout(timeout)
        return Read(
            self.number,
            selection,
            wait=timeout is None or timeout > 0,
            transaction=number_within(tx, self.owner),
            most=most,
            handle=self.handle,
        )

    def holding(
        self, selection: Selection, timeout: float | None, most: int, most_bytes: int
    ) -> Read:
        """Messages that stay, locked, until it is said what becomes of them."""
        check_timeout(timeout)
        check_count(most)
        is_first = isinstance(selection, First)
        return Read(
            self.number,
            selection,
            wait=timeout is None or timeout > 0,
            most=most if is_first else 0,
            most_bytes=most_bytes if is_first else 0,
            handle=self.handle,
            held=True,
        )

    def peeking(self, selection: Selection, timeout: float | None, most: int = 0) -> Read:
        """A message that stays, or several."""
        check_timeout(timeout)
        return Read(
            self.number,
            selection,
            peek=True,
            wait=timeout is None or timeout > 0,
            most=most,
            handle=self.handle,
        )

    def moving(
        self, message: ReceivedMessage | int, target: Asking, tx: Undertaking | None
    ) -> Move:
        """A message to a subqueue, or from there.

        Raises:
            MessageQueueError: The other queue belongs to another queue manager.
        """
        if isinstance(message, ReceivedMessage):
            message = message.lookup_id
        lookup_id = of_kind("message", message, int)
        within = number_within(tx, self.owner)
        if target.owner is not self.owner:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER, "the queue belongs to another queue manager"
            )
        return Move(self.number, lookup_id, target.number, within, self.handle)


class CursorAsking:
    """What can be asked through one cursor."""

    __slots__ = ("_cursor", "_queue", "is_closed")

    def __init__(self, queue: Asking, cursor: int) -> None:
        self._queue = queue
        self._cursor = cursor
        self.is_closed = False

    def peeking(self, timeout: float | None, *, next_one: bool) -> Read:
        """The message at the cursor, or the next one; it stays."""
        self._check()
        return self._queue.peeking(AtCursor(self._cursor, next_one), timeout)

    def receiving(self, timeout: float | None, tx: Undertaking | None) -> Read:
        """The message at the cursor."""
        self._check()
        return self._queue.receiving(AtCursor(self._cursor, next_one=False), timeout, tx)

    def _check(self) -> None:
        if self.is_closed:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_HANDLE, "the cursor was closed: open another"
            )


def sending_to(
    format_name: str,
    body: Value | Message,
    properties: dict[str, Any],
    tx: Undertaking | None,
    owner: object,
) -> SendTo:
    """A message to where a format name leads."""
    message = body
    if isinstance(message, Message):
        _refuse_both(properties)
    else:
        message = Message(body=message, **properties)
    names = parse_destination(of_kind("format_name", format_name, str))
    packets = pack_copies(message, tuple(map(destination_of, names)))
    destinations = tuple(zip(map(str, names), packets, strict=True))
    return SendTo(destinations, number_within(tx, owner), message.dead_letter_queue)


def sending_many_to(
    format_name: str,
    bodies: Iterable[Value | Message],
    properties: dict[str, Any],
    tx: Undertaking | None,
    owner: object,
) -> SendManyTo | None:
    """Messages to where one format name leads; None if there are none.

    Raises:
        MessageQueueError: The name is of several queues, or a message cannot be sent.
    """
    check_bodies(bodies)
    names = parse_destination(of_kind("format_name", format_name, str))
    if len(names) != 1:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_FORMATNAME,
            f"{format_name} is {len(names)} destinations; many messages are sent to one: send "
            "each by itself",
        )
    packets, dead_letter = pack_all(Packer(destination_of(names[0])), bodies, properties)
    within = number_within(tx, owner)
    return SendManyTo(str(names[0]), packets, within, dead_letter) if packets else None


def number_within(transaction: Undertaking | None, owner: object) -> int:
    """A transaction's number for the engine, 0 for none."""
    if transaction is None:
        return 0
    given: object = transaction
    if not isinstance(given, Undertaking):
        raise of_wrong_kind("tx", given, "Transaction")
    return given.within(owner)


# Packets.


def home(computer: str, path_name: str) -> Destination:
    """Where packets for a queue of this queue manager say that they go."""
    return f"OS:{computer}{path_name[1:]}"


def abroad(path_name: str) -> Destination:
    """Where packets in an outgoing queue say that they go."""
    (name,) = parse_destination(path_name)
    return destination_of(name)


def kind_and_body(
    packer: Packer, body: Value | Message, properties: dict[str, Any]
) -> tuple[Kind, Value]:
    """How a message is packed, and what is in it."""
    if isinstance(body, Message):
        _refuse_both(properties)
        return packer.kind_of(body), body.body
    return packer.kind_with(properties), body


def pack_all(
    packer: Packer, bodies: Iterable[Value | Message], properties: dict[str, Any]
) -> tuple[list[bytes], str]:
    """Many messages that are sent at once, and their dead-letter queue.

    Raises:
        MessageQueueError: They cannot be sent at once, or one of them cannot be sent.
    """
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
    if len(dead_letters) > 1:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            "messages that are sent at once have one dead_letter_queue, not "
            + " and ".join(map(repr, dead_letters)),
        )
    return packets, next(iter(dead_letters), "")


def check_bodies(bodies: Any) -> None:
    """Refuses what is not several bodies.

    Raises:
        MessageQueueError: The text says what was found.
    """
    if isinstance(bodies, str | bytes) or not isinstance(bodies, Iterable):
        raise MessageQueueError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"bodies is {type(bodies).__name__}; several bodies belong there, in a list, say",
        )


def _refuse_both(properties: dict[str, Any]) -> None:
    if properties:
        raise TypeError(
            f"a Message has its own properties: {', '.join(properties)} cannot be given too"
        )


# Selections.


def by_id(message_id: str) -> ByMessageId:
    r"""The message with this id, `{guid}\n`."""
    return ByMessageId(id_bytes(message_id))


def by_lookup(lookup_id: int, seek: Seek) -> ByLookup:
    """The message at a lookup identifier, or the one next to it."""
    return ByLookup(of_kind("lookup_id", lookup_id, int), of_kind("seek", seek, Seek))


def by_correlation(correlation_id: object) -> ByCorrelationId:
    r"""The message with this correlation id: 20 bytes, or a message id as `{guid}\n`."""
    if isinstance(correlation_id, str):
        return ByCorrelationId(id_bytes(correlation_id))
    if isinstance(correlation_id, bytes) and len(correlation_id) == CORRELATION_ID_SIZE:
        return ByCorrelationId(correlation_id)
    raise MessageQueueError(
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
        f"a correlation id has {CORRELATION_ID_SIZE} bytes, not {correlation_id!r}",
    )


def check_count(most: object) -> None:
    """Refuses what is no number of messages.

    Raises:
        MessageQueueError: The text says what was found.
    """
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise MessageQueueError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"{most!r} messages: give a number from 1 on"
        )


# Answers.


def of_type(result: Result, kind: type[_T]) -> _T:
    """An answer that has to be of this type."""
    assert isinstance(result, kind)
    return result


def number_of(result: Result) -> int:
    """An answer that has to be a number."""
    return of_type(result, int)


def one(result: Result) -> ReceivedMessage:
    """An answer that has to be a message."""
    assert isinstance(result, Delivered)
    return ReceivedMessage(result)


def several(result: Result) -> list[ReceivedMessage]:
    """An answer that has to be messages."""
    assert isinstance(result, list)
    return [ReceivedMessage(each) for each in result if isinstance(each, Delivered)]


def reports_of(result: Result) -> list[QueueReport]:
    """An answer that has to be about queues."""
    assert isinstance(result, list)
    return [each for each in result if isinstance(each, QueueReport)]


def report_of(result: Result) -> QueueReport:
    """An answer that has to be about one queue."""
    return of_type(result, QueueReport)


def status_of(result: Result) -> Status:
    """An answer that has to be about the queue manager."""
    return of_type(result, Status)


def sightings_of(result: Result) -> list[Sighting]:
    """An answer that has to be about where a message is."""
    assert isinstance(result, list)
    return [each for each in result if isinstance(each, Sighting)]


def transfer_of(result: Result) -> TransferReport:
    """An answer that has to be about how far an outgoing queue is."""
    return of_type(result, TransferReport)


def sequences_of(result: Result) -> list[SequenceReport]:
    """An answer that has to be about sequences from other queue managers."""
    assert isinstance(result, list)
    return [each for each in result if isinstance(each, SequenceReport)]


def links_of(result: Result) -> list[LinkReport]:
    """An answer that has to be about connections with other queue managers."""
    assert isinstance(result, list)
    return [each for each in result if isinstance(each, LinkReport)]


def identifiers_of(result: Result) -> list[UUID]:
    """An answer that has to be identifiers."""
    assert isinstance(result, list)
    return [each for each in result if isinstance(each, UUID)]


def is_end(wrong: MessageQueueError) -> bool:
    """Whether there is no further message to be peeked."""
    return wrong.code == HResult.MQ_ERROR_MESSAGE_NOT_FOUND


# Identifiers.


def id_of(result: Result) -> str:
    """An answer that has to be a message's id, as text."""
    return id_text(of_type(result, bytes))


def ids_of(result: Result) -> list[str]:
    """An answer that has to be messages' ids, as texts."""
    ids = of_type(result, bytes)
    return [id_text(ids[at : at + ID_SIZE]) for at in range(0, len(ids), ID_SIZE)]


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
