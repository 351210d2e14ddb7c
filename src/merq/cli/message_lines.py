"""Messages as JSON lines, the form of `merq export`, `merq import` and `--json`.

One object a line. What a sender can set: `label`, `priority`, `recoverable`, `body` (base64) with
`body_type` (a PROPVARIANT type), `time_to_reach_queue_s` and `time_to_be_received_s` (null is for
ever), `journal`, `dead_letter`, `dead_letter_queue`, `acknowledge`, `admin_queue`,
`response_queue`, `correlation_id` (40 hex digits), `app_specific`, `extension` (base64). All may be
missing. `text` is the body again where it is text; a line that has no `body` is sent with it.

What was, which an import reads over: `merq` (the version of this form, 1), `id`, `lookup_id`,
`class`, `class_name`, `sent`, `arrived`, `source_machine`, `sender_id` (a SID or a queue manager's
GUID, as people write them), `destination`, `transactional`, `abort_count`, `move_count`. A message
does not tell which dead-letter queue of its own its sender chose, so an export has none.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from merq.client.asking import id_bytes
from merq.client.messages import Message, ReceivedMessage
from merq.client.packets import Packer
from merq.errors import MessageQueueError
from merq.model.body import TypedBytes, Value, decode_body
from merq.model.message_class import MessageClass
from merq.wire.headers import INFINITE
from merq.wire.properties import CORRELATION_ID_SIZE

VERSION: Final = 1
"""The version of the form."""

LINE_BYTES_MAX: Final = 16 << 20
"""The longest line: the largest message, 4 MB, in base64 and again as text, with room to spare."""

_PLAIN: Final[dict[str, type]] = {
    "label": str,
    "priority": int,
    "recoverable": bool,
    "journal": bool,
    "dead_letter": bool,
    "dead_letter_queue": str,
    "acknowledge": int,
    "admin_queue": str,
    "response_queue": str,
    "app_specific": int,
}
_TIMES: Final = {
    "time_to_reach_queue_s": "time_to_reach_queue",
    "time_to_be_received_s": "time_to_be_received",
}
_CODED: Final = frozenset({"body", "body_type", "text", "correlation_id", "extension"})
_WAS: Final = frozenset(
    {
        "merq",
        "id",
        "lookup_id",
        "class",
        "class_name",
        "sent",
        "arrived",
        "source_machine",
        "sender_id",
        "destination",
        "transactional",
        "abort_count",
        "move_count",
    }
)
_KNOWN: Final = frozenset(_PLAIN) | frozenset(_TIMES) | _CODED | _WAS

# Where it is sent decides nothing about whether a message can be.
_TRIAL: Final = Packer("OS:localhost\\private$\\trial")


def line_of(message: ReceivedMessage) -> str:
    """A message as one line, without its end."""
    return json.dumps(object_of(message), separators=(",", ":"))


def object_of(message: ReceivedMessage) -> dict[str, object]:
    """A message as an object."""
    known = MessageClass.of(message.message_class)
    values: dict[str, object] = {
        "merq": VERSION,
        "id": message.id,
        "lookup_id": message.lookup_id,
        "class": int(message.message_class),
        "class_name": known.name if known is not None else None,
        "sent": message.sent_at.isoformat(),
        "arrived": message.arrived_at.isoformat(),
        "source_machine": str(message.source_machine),
        "sender_id": message.sender,
        "destination": message.destination_queue,
        "transactional": message.transactional,
        "abort_count": message.abort_count,
        "move_count": message.move_count,
        "label": message.label,
        "priority": message.priority,
        "recoverable": message.recoverable,
        "time_to_reach_queue_s": _finite(message.time_to_reach_queue),
        "time_to_be_received_s": _finite(message.time_to_be_received),
        "journal": message.journal,
        "dead_letter": message.dead_letter,
        "acknowledge": message.acknowledge,
        "admin_queue": message.admin_queue,
        "response_queue": message.response_queue,
        "correlation_id": message.correlation_id.hex(),
        "app_specific": message.app_specific,
        "extension": base64.b64encode(message.extension).decode("ascii"),
        "body_type": message.body_type,
        "body": base64.b64encode(message.body_bytes).decode("ascii"),
    }
    if isinstance(message.body, str):
        values["text"] = message.body
    return values


def _finite(seconds: int) -> int | None:
    return None if seconds == INFINITE else seconds


def message_of(line: bytes) -> Message:
    """The message that a line is to become.

    Raises:
        ValueError: It cannot become one; the text says why.
    """
    values = _object(line)
    strange = sorted(set(values) - _KNOWN)
    if strange:
        raise ValueError(f"{', '.join(strange)}: no message has this; known is {_known()}")
    version = values.get("merq", VERSION)
    if version != VERSION:
        raise ValueError(f"it has version {version!r} of this form; this release reads {VERSION}")
    properties: dict[str, Any] = {
        name: _of_type(values, name, kind) for name, kind in _PLAIN.items() if name in values
    }
    for name, own_name in _TIMES.items():
        if name in values:
            forever = values[name] is None
            properties[own_name] = INFINITE if forever else _of_type(values, name, int)
    if "correlation_id" in values:
        properties["correlation_id"] = correlation_id_of(_of_type(values, "correlation_id", str))
    if "extension" in values:
        properties["extension"] = _decoded(values, "extension")
    message = Message(body=_body(values), **properties)
    try:
        _TRIAL.kind_of(message).pack(message.body)
    except MessageQueueError as wrong:
        raise ValueError(wrong.text) from wrong
    return message


def _known() -> str:
    return ", ".join(sorted(_KNOWN - _WAS))


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > LINE_BYTES_MAX:
        raise ValueError(f"the line is longer than {LINE_BYTES_MAX} bytes")
    try:
        values = json.loads(line)
    except UnicodeDecodeError as wrong:
        raise ValueError(f"it is not UTF-8: {wrong.reason} at byte {wrong.start}") from wrong
    except json.JSONDecodeError as wrong:
        raise ValueError(f"it is not JSON: {wrong.msg} at character {wrong.pos}") from wrong
    except RecursionError as wrong:
        raise ValueError("it is nested too deep; a flat object was expected") from wrong
    if not isinstance(values, dict):
        found = type(values).__name__
        raise ValueError(f"it is a JSON {found}; an object was expected")  # noqa: TRY004
    return values


def _of_type(values: dict[str, Any], name: str, kind: type) -> Any:
    value = values[name]
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise ValueError(f"{name} is {value!r}; {kind.__name__} belongs there")


def _decoded(values: dict[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(_of_type(values, name, str), validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise ValueError(f"{name} is not base64: {wrong}") from wrong


def correlation_id_of(text: str) -> bytes:
    r"""A correlation id from 40 hex digits, or from a message id `{guid}\n`.

    Raises:
        ValueError: It is neither.
    """
    if text.startswith("{"):
        try:
            return id_bytes(text)
        except MessageQueueError as wrong:
            raise ValueError(wrong.text) from wrong
    try:
        value = bytes.fromhex(text)
    except ValueError as wrong:
        raise ValueError(f"{text!r} is not hexadecimal") from wrong
    if len(value) != CORRELATION_ID_SIZE:
        raise ValueError(f"a correlation id has {2 * CORRELATION_ID_SIZE} hex digits, not {text!r}")
    return value


def _body(values: dict[str, Any]) -> Value:
    text = _of_type(values, "text", str) if "text" in values else None
    if "body" not in values:
        if "body_type" in values:
            raise ValueError("it has a body_type and no body")
        return text
    data = _decoded(values, "body")
    if "body_type" not in values:
        body: Value = data
    else:
        kind = _of_type(values, "body_type", int)
        if not 0 <= kind <= INFINITE:
            raise ValueError(f"body_type is {kind}; it has 32 bits")
        body = TypedBytes(kind, data)
    if text is not None:
        shown = decode_body(body.kind, body.data) if isinstance(body, TypedBytes) else body
        if shown != text:
            raise ValueError("its text is not what is in its body; leave one of the two out")
    return body
