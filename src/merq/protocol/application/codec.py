"""Requests and answers as frames, and back.

What is said for every message has a form of its own; the rest is JSON in ASK and TOLD frames. Docs:
docs/reference/application-protocol.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from struct import Struct, unpack_from
from typing import Any, Final, assert_never
from uuid import UUID

from merq.errors import MessageQueueError, ReceiveTimeout, WireError
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.model.reservations import ClaimReport, QueueSpan, RangeReport, StageReport
from merq.model.selecting import (
    AtCursor,
    ByCorrelationId,
    ByLookup,
    ByMessageId,
    First,
    Seek,
    Selection,
)
from merq.protocol.application.batches import (
    MESSAGES_MAX,
    decode_send,
    decode_send_many_to,
    decode_send_to,
    encode_send,
    encode_send_many_to,
    encode_send_to,
    need,
    need_no_more,
    need_within,
    text_of,
)
from merq.protocol.application.frames import HEADER_SIZE, Frame, Kind, frame
from merq.protocol.application.greeting import OLDEST_VERSION, VERSION
from merq.protocol.application.reports import (
    FIELDS_OF_VERSION_2,
    LinkReport,
    QueueReport,
    Result,
    SequenceReport,
    Sighting,
    Status,
    TransferReport,
)
from merq.protocol.application.requests import (
    Acknowledge,
    AskStatus,
    AskWhy,
    Begin,
    BringOnline,
    Cancel,
    ChangeQueue,
    CloseCursor,
    CloseQueue,
    CreateQueue,
    CreateStage,
    CreateSubqueue,
    DeleteQueue,
    DescribeQueue,
    DescribeSpan,
    DescribeTransfer,
    DropStages,
    End,
    Ending,
    EndPrepared,
    EndReceive,
    FindQueue,
    ListClaims,
    ListLinks,
    ListPrepared,
    ListQueues,
    ListRanges,
    ListSequences,
    ListStages,
    Move,
    OpenCursor,
    OpenQueue,
    PauseQueue,
    Prepare,
    Publish,
    Purge,
    Read,
    ReadRows,
    ReleaseClaim,
    Request,
    Reserve,
    ResumeQueue,
    Send,
    SendManyTo,
    SendRows,
    SendTo,
    TakeOffline,
)
from merq.protocol.application.rows import RowsReport, decode_rows, encode_rows
from merq.protocol.application.sequence_requests import ForgetSenders
from merq.protocol.application.templated import decode_send_rows, encode_send_rows
from merq.protocol.application.values import from_plain, parse_json, to_json

ID_SIZE: Final = 20

_READ: Final = Struct("<IIIIQQQ")  # queue, most, most bytes, place, transaction, handle, value
_END_RECEIVE: Final = Struct("<II")  # queue, count
_TRANSACT: Final = Struct("<Q")
_CANCEL: Final = Struct("<I")
_U64: Final = Struct("<Q")
_U32: Final = Struct("<I")
_MESSAGE: Final = Struct("<QIIII")  # lookup identifier, arrival, aborts, moves, packet's length

PEEK: Final = 0x01
WAIT: Final = 0x02
HELD: Final = 0x04
"""Flags of READ; bits 4 to 7 say which message is meant."""

DELETE: Final = 0x01
"""Flag of END_RECEIVE: the messages go; otherwise they go back."""

BEGIN: Final = 0
COMMIT: Final = 1
ABORT: Final = 2
"""Flags of TRANSACT."""

ALONE: Final = 0x01
"""Flag of MESSAGES: one message was asked for, not a list."""

_FIRST: Final = First()
_BY_FIRST, _BY_LOOKUP, _BY_ID, _BY_CORRELATION, _BY_CURSOR = range(5)
_SEEKS: Final = tuple(Seek)

_ASKS: Final = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower(): each
    for each in (
        Acknowledge,
        AskStatus,
        AskWhy,
        BringOnline,
        ChangeQueue,
        CloseCursor,
        CloseQueue,
        CreateQueue,
        CreateStage,
        CreateSubqueue,
        DeleteQueue,
        DescribeQueue,
        DescribeSpan,
        DescribeTransfer,
        DropStages,
        EndPrepared,
        FindQueue,
        ListClaims,
        ListLinks,
        ListPrepared,
        ListQueues,
        ListRanges,
        ListSequences,
        ListStages,
        Move,
        OpenCursor,
        OpenQueue,
        PauseQueue,
        Prepare,
        Publish,
        Purge,
        ReadRows,
        ReleaseClaim,
        Reserve,
        ForgetSenders,
        ResumeQueue,
        TakeOffline,
    )
}
_ASK_NAMES: Final = {kind: name for name, kind in _ASKS.items()}


# Requests.


def encode_request(number: int, request: Request, received: int = 0) -> bytes:  # noqa: PLR0911
    """A request as a frame."""
    if isinstance(request, Send):
        return encode_send(number, request, received)
    if isinstance(request, Read):
        return _encode_read(number, request, received)
    if isinstance(request, EndReceive):
        ids = request.lookup_ids
        body = _END_RECEIVE.pack(request.queue, len(ids)) + Struct(f"<{len(ids)}Q").pack(*ids)
        flags = DELETE if request.delete else 0
        return frame(Kind.END_RECEIVE, number, body, flags=flags, received=received)
    if isinstance(request, Begin | End):
        flags = BEGIN
        if isinstance(request, End):
            flags = COMMIT if request.ending is Ending.COMMIT else ABORT
        body = _TRANSACT.pack(request.transaction)
        return frame(Kind.TRANSACT, number, body, flags=flags, received=received)
    if isinstance(request, Cancel):
        return frame(Kind.CANCEL, number, _CANCEL.pack(request.request), received=received)
    if isinstance(request, SendTo):
        return encode_send_to(number, request, received)
    if isinstance(request, SendManyTo):
        return encode_send_many_to(number, request, received)
    if isinstance(request, SendRows):
        return encode_send_rows(number, request, received)
    name = _ASK_NAMES[type(request)]
    body = b'{"%s":%s}' % (name.encode("ascii"), to_json(request))
    return frame(Kind.ASK, number, body, received=received)


def _encode_read(number: int, request: Read, received: int) -> bytes:
    selection = request.selection
    place, value, extra = 0, 0, b""
    match selection:
        case First():
            by = _BY_FIRST
        case ByLookup():
            by, place, value = _BY_LOOKUP, _SEEKS.index(selection.seek), selection.lookup_id
        case ByMessageId():
            by, extra = _BY_ID, selection.message_id
        case ByCorrelationId():
            by, extra = _BY_CORRELATION, selection.correlation_id
        case AtCursor():
            by, place, value = _BY_CURSOR, int(selection.next_one), selection.cursor
        case _:
            assert_never(selection)
    flags = by << 4
    if request.peek:
        flags |= PEEK
    if request.wait:
        flags |= WAIT
    if request.held:
        flags |= HELD
    body = _READ.pack(
        request.queue,
        request.most,
        request.most_bytes,
        place,
        request.transaction,
        request.handle,
        value & 0xFFFFFFFFFFFFFFFF,
    )
    return frame(Kind.READ, number, body, extra, flags=flags, received=received)


def decode_request(found: Frame) -> Request:
    """The request that a frame makes.

    Raises:
        WireError: It makes none; the text says what is wrong.
    """
    rule = _REQUESTS.get(found.kind)
    if rule is None:
        raise WireError(f"frame kind {found.kind} is no request", field="kind")
    return rule(found)


def _decode_read(found: Frame) -> Read:
    body, flags = found.body, found.flags
    need(body, _READ.size)
    queue, most, most_bytes, place, transaction, handle, value = _READ.unpack_from(body)
    by, extra = flags >> 4, body[_READ.size :]
    if flags & 0x08 or (by in {_BY_ID, _BY_CORRELATION}) != (len(extra) == ID_SIZE):
        raise WireError(f"flags {flags:#x} and {len(extra)} further bytes", field="flags")
    if by not in {_BY_ID, _BY_CORRELATION}:
        need_no_more(body, _READ.size)
    return Read(
        queue,
        _selection(by, place, value, extra),
        peek=flags & PEEK != 0,
        wait=flags & WAIT != 0,
        transaction=transaction,
        most=most,
        most_bytes=most_bytes,
        handle=handle,
        held=flags & HELD != 0,
    )


def _selection(by: int, place: int, value: int, extra: bytes) -> Selection:
    if by == _BY_FIRST:
        return _FIRST
    if by == _BY_LOOKUP and place < len(_SEEKS):
        return ByLookup(value, _SEEKS[place])
    if by == _BY_ID:
        return ByMessageId(extra)
    if by == _BY_CORRELATION:
        return ByCorrelationId(extra)
    if by == _BY_CURSOR and place <= 1:
        return AtCursor(value, next_one=place == 1)
    raise WireError(f"no message is meant by {by} and {place}", field="flags")


def _decode_end_receive(found: Frame) -> EndReceive:
    body = found.body
    need(body, _END_RECEIVE.size)
    queue, count = _END_RECEIVE.unpack_from(body)
    if not 1 <= count <= MESSAGES_MAX or found.flags & ~DELETE:
        raise WireError(f"{count} messages, flags {found.flags:#x}", field="count")
    need_no_more(body, _END_RECEIVE.size + 8 * count)
    ids = unpack_from(f"<{count}Q", body, _END_RECEIVE.size)
    return EndReceive(queue, ids, delete=found.flags & DELETE != 0)


def _decode_transact(found: Frame) -> Begin | End:
    need_no_more(found.body, _TRANSACT.size)
    (transaction,) = _TRANSACT.unpack(found.body)
    if found.flags == BEGIN:
        return Begin(transaction)
    if found.flags not in {COMMIT, ABORT}:
        raise WireError(f"flags {found.flags:#x}; 0, 1 or 2 belong there", field="flags")
    return End(transaction, Ending.COMMIT if found.flags == COMMIT else Ending.ABORT)


def _decode_cancel(found: Frame) -> Cancel:
    need_no_more(found.body, _CANCEL.size)
    return Cancel(*_CANCEL.unpack(found.body))


def _decode_ask(found: Frame) -> Request:
    asked = parse_json(found.body)
    if not isinstance(asked, dict) or len(asked) != 1:
        raise WireError("an ASK is an object with one name", field="ask")
    ((name, value),) = asked.items()
    kind = _ASKS.get(name)
    if kind is None:
        raise WireError(f"{str(name)[:60]!r}; known are {', '.join(_ASKS)}", field="ask")
    chosen: Any = kind
    request: Request = from_plain(chosen, value)
    if isinstance(request, AskWhy) and len(request.message_id) != ID_SIZE:
        raise WireError(f"{len(request.message_id)} bytes; {ID_SIZE} belong there", field="id")
    return request


_REQUESTS: Final[dict[int, Callable[[Frame], Request]]] = {
    Kind.ASK: _decode_ask,
    Kind.SEND: decode_send,
    Kind.SEND_TO: decode_send_to,
    Kind.SEND_MANY_TO: decode_send_many_to,
    Kind.SEND_ROWS: decode_send_rows,
    Kind.READ: _decode_read,
    Kind.END_RECEIVE: _decode_end_receive,
    Kind.TRANSACT: _decode_transact,
    Kind.CANCEL: _decode_cancel,
}


# Answers.


def encode_result(number: int, result: Result, version: int = VERSION) -> bytes:
    """An answer as a frame, for who speaks this version."""
    if isinstance(result, bytes):
        return frame(Kind.IDS, number, result)
    if result is None:
        return frame(Kind.DONE, number)
    if isinstance(result, Delivered):
        return frame(Kind.MESSAGES, number, _U32.pack(1), *_parts(result), flags=ALONE)
    if isinstance(result, int):
        return frame(Kind.NUMBER, number, _U64.pack(result))
    if isinstance(result, MessageQueueError):
        return failed(number, result)
    if isinstance(result, RowsReport):
        return encode_rows(number, result)
    if isinstance(result, list) and result and isinstance(result[0], Delivered):
        parts = [_U32.pack(len(result))]
        for each in result:
            assert isinstance(each, Delivered)
            parts += _parts(each)
        return frame(Kind.MESSAGES, number, *parts)
    name, value = _named(result)
    if version == OLDEST_VERSION:
        value = _for_version_1(value)
    return frame(Kind.TOLD, number, b'{"%s":%s}' % (name, to_json(value)))


def _for_version_1(value: Any) -> Any:
    """A report without what version 1 does not know."""
    if isinstance(value, list | tuple):
        return [_for_version_1(each) for each in value]
    unknown = FIELDS_OF_VERSION_2.get(type(value))
    if unknown is None:
        return value
    known = (each.name for each in fields(value) if each.name not in unknown)
    return {name: getattr(value, name) for name in known}


def failed(number: int, error: MessageQueueError) -> bytes:
    """A refusal as a frame."""
    text = error.text.encode("utf-8", "surrogatepass")
    return frame(Kind.FAILED, number, _U32.pack(error.code), text)


def _parts(message: Delivered) -> tuple[bytes, bytes]:
    packet = message.packet
    return (
        _MESSAGE.pack(
            message.lookup_id, message.arrival, message.aborts, message.moves, len(packet)
        ),
        packet,
    )


def _named(result: object) -> tuple[bytes, object]:
    if result == []:
        return b"nothing", result
    if isinstance(result, list):
        return _LIST_NAMES[type(result[0])], result
    return _NAMES[type(result)], result


def decode_result(found: Frame) -> Result:
    """The answer that a frame gives; an error is a value.

    Raises:
        WireError: It is none.
    """
    rule = _RESULTS.get(found.kind)
    if rule is None:
        raise WireError(f"frame kind {found.kind} is no answer", field="kind")
    return rule(found)


def _decode_messages(found: Frame) -> Delivered | list[Delivered]:
    body, end = found.buffer, found.end
    at = found.start + HEADER_SIZE
    need_within(at + 4, end)
    (count,) = _U32.unpack_from(body, at)
    at += 4
    messages = []
    for _ in range(count):
        need_within(at + _MESSAGE.size, end)
        lookup_id, arrival, aborts, moves, length = _MESSAGE.unpack_from(body, at)
        at += _MESSAGE.size
        need_within(at + length, end)
        messages.append(Delivered(body[at : at + length], lookup_id, arrival, aborts, moves))
        at += length
    if at != end:
        raise WireError(f"{end - at} bytes follow the last message", field="body")
    if found.flags != ALONE:
        return messages
    if len(messages) != 1:
        raise WireError(f"{len(messages)} messages where one belongs", field="count")
    return messages[0]


def _decode_failed(found: Frame) -> MessageQueueError:
    need(found.body, 4)
    (code,) = _U32.unpack_from(found.body)
    text = text_of(found.body[4:])
    if code == HResult.MQ_ERROR_IO_TIMEOUT:
        return ReceiveTimeout(text)
    return MessageQueueError(code, text)


def _decode_done(found: Frame) -> None:
    need_no_more(found.body, 0)


def _decode_number(found: Frame) -> int:
    need_no_more(found.body, _U64.size)
    (number,) = _U64.unpack(found.body)
    assert isinstance(number, int)
    return number


def _decode_ids(found: Frame) -> bytes:
    if not found.body or len(found.body) % ID_SIZE:
        raise WireError(f"{len(found.body)} bytes; {ID_SIZE} for each message", field="ids")
    return found.body


def _decode_told(found: Frame) -> Result:
    told = parse_json(found.body)
    if not isinstance(told, dict) or len(told) != 1:
        raise WireError("what is told is an object with one name", field="told")
    ((name, value),) = told.items()
    kind = _TOLD.get(name)
    if kind is None:
        raise WireError(f"{str(name)[:60]!r}; known are {', '.join(_TOLD)}", field="told")
    result: Result = from_plain(kind, value, name)
    return result


_TOLD: Final[dict[str, Any]] = {
    "status": Status,
    "queue": QueueReport,
    "queues": list[QueueReport],
    "transfer": TransferReport,
    "sequences": list[SequenceReport],
    "links": list[LinkReport],
    "sightings": list[Sighting],
    "identifiers": list[UUID],
    "range": RangeReport,
    "ranges": list[RangeReport],
    "claims": list[ClaimReport],
    "stages": list[StageReport],
    "span": QueueSpan,
    "nothing": list[str],
}
_NAMES: Final = {
    Status: b"status",
    QueueReport: b"queue",
    TransferReport: b"transfer",
    RangeReport: b"range",
    QueueSpan: b"span",
}
_LIST_NAMES: Final = {
    QueueReport: b"queues",
    SequenceReport: b"sequences",
    LinkReport: b"links",
    Sighting: b"sightings",
    UUID: b"identifiers",
    RangeReport: b"ranges",
    ClaimReport: b"claims",
    StageReport: b"stages",
}
_RESULTS: Final[dict[int, Callable[[Frame], Result]]] = {
    Kind.DONE: _decode_done,
    Kind.NUMBER: _decode_number,
    Kind.IDS: _decode_ids,
    Kind.MESSAGES: _decode_messages,
    Kind.TOLD: _decode_told,
    Kind.FAILED: _decode_failed,
    Kind.ROWS: decode_rows,
}
