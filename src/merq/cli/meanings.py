"""What the values of fields mean, for people who look at packets.

One table, by structure and field. A field that is not in it speaks for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import UUID

from merq.model.message_class import describe_class
from merq.model.variant import describe as describe_type
from merq.wire.headers import INFINITE
from merq.wire.security import sid_text

Meaning = Callable[[object], str]


def meaning(structure: str, field: str, value: object) -> str:
    """A short phrase, or nothing."""
    found = _MEANINGS.get((structure, field)) or _MEANINGS.get(("", field))
    return "" if found is None else found(value)


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _named(names: Mapping[int, str]) -> Meaning:
    return lambda value: names.get(_number(value), "unknown")


def _seconds(value: object) -> str:
    number = _number(value)
    return "never runs out" if number == INFINITE else f"{number} s"


def _moment(value: object) -> str:
    return f"{datetime.fromtimestamp(_number(value), tz=UTC):%Y-%m-%d %H:%M:%S} UTC"


def _milliseconds(value: object) -> str:
    return f"{_number(value) / 1000:g} s"


def _guid(value: object) -> str:
    return "none" if isinstance(value, UUID) and value.int == 0 else ""


def _sender(value: object) -> str:
    assert isinstance(value, bytes)
    return sid_text(value) or (f"queue manager {UUID(bytes_le=value)}" if len(value) == 16 else "")


def _acknowledged(value: object) -> str:
    bits = _number(value)
    places = [str(place) for place in range(32) if bits >> place & 1]
    return f"stored: +{', +'.join(places)}" if places else "none stored"


_QUEUE_TYPES = {
    0: "none",
    1: "the administration queue",
    2: "private queue on the source host",
    3: "private queue on the destination host",
    4: "private queue on the administration queue's host",
    5: "public queue",
    6: "private queue on another host",
    7: "direct format name",
}

_HASHES = {
    0x8001: "MD2",
    0x8002: "MD4",
    0x8003: "MD5",
    0x8004: "SHA-1",
    0x800C: "SHA-256",
    0x800E: "SHA-512",
}

_CIPHERS = {
    0x6602: "RC2",
    0x660E: "AES-128",
    0x660F: "AES-192",
    0x6610: "AES-256",
    0x6801: "RC4",
}

_MEANINGS: dict[tuple[str, str], Meaning] = {
    ("base_header", "time_to_reach_queue"): _seconds,
    ("base_header", "signature"): lambda _: "LIOR",
    ("user_header", "time_to_be_received"): _seconds,
    ("user_header", "sent_time"): _moment,
    ("user_header", "source_queue_manager"): _guid,
    ("user_header", "queue_manager_address"): _guid,
    ("", "delivery_mode"): _named({0: "express", 1: "recoverable"}),
    ("", "destination_queue_type"): _named(_QUEUE_TYPES),
    ("", "admin_queue_type"): _named(_QUEUE_TYPES),
    ("", "response_queue_type"): _named(_QUEUE_TYPES),
    ("", "packet_type"): _named(
        {1: "SessionAck", 2: "EstablishConnection", 3: "ConnectionParameters"}
    ),
    ("", "sender_id_type"): _named({0: "none", 1: "SID", 2: "queue manager GUID"}),
    ("", "queue_type"): _named({0: "none", 1: "public queue"}),
    ("security_header", "security_id"): _sender,
    ("message_properties_header", "message_class"): lambda value: describe_class(_number(value)),
    ("message_properties_header", "body_type"): lambda value: describe_type(_number(value)),
    ("message_properties_header", "privacy_level"): _named(
        {0: "in clear", 1: "40-bit encryption", 3: "128-bit encryption", 5: "AES"}
    ),
    ("message_properties_header", "hash_algorithm"): _named(_HASHES),
    ("message_properties_header", "encryption_algorithm"): _named(_CIPHERS),
    ("session_header", "recoverable_msg_ack_flags"): _acknowledged,
    ("connection_parameters_header", "recoverable_ack_timeout"): _milliseconds,
    ("connection_parameters_header", "ack_timeout"): _milliseconds,
    ("establish_connection_header", "server_guid"): _guid,
    ("", "format_type"): _named(
        {1: "public queue", 2: "private queue", 3: "direct format name", 6: "distribution list"}
    ),
    ("state", "acknowledgement_class"): lambda value: describe_class(_number(value)),
}
