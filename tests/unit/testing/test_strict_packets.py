"""The strict peer's own packets, against the frames that [MS-MQQB] 4.1 publishes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from kit.vectors import frame as vector
from merq.testing.strict_peer.packets import (
    NO_NAME,
    ORDER_LABEL,
    Establish,
    Name,
    NotConforming,
    Parameters,
    SessionFields,
    Transaction,
    UserMessage,
    direct,
    frame,
    read_message,
    read_packet,
    write_establish,
    write_message,
    write_parameters,
    write_session_ack,
)
from merq.wire.view import MessageView

CHANCE = Random(3)  # noqa: S311 - repeatable by intent


def same(ours: bytes, theirs: bytes) -> bool:
    """Whether packets agree but for the reserved byte, which holds anything."""
    return ours[:1] + ours[2:] == theirs[:1] + theirs[2:]


@pytest.mark.spec("MS-MQQB 2.2.3", "MS-MQQB 2.2.3.1", "MS-MQQB 2.2.1")
@pytest.mark.parametrize("number", [3, 4])
def test_published_establish_connection_packets_are_read_and_written(number: int) -> None:
    packet = read_packet(vector(number))
    assert isinstance(packet, Establish)
    assert (packet.timestamp, packet.operating_system) == (501140046, 0x310)
    assert not packet.refused
    assert same(write_establish(packet, CHANCE), vector(number))


@pytest.mark.spec("MS-MQQB 2.2.2", "MS-MQQB 2.2.2.1")
@pytest.mark.parametrize("number", [5, 6])
def test_published_connection_parameters_are_read_and_written(number: int) -> None:
    packet = read_packet(vector(number))
    assert packet == Parameters(1496, 120_000, 64)
    assert same(write_parameters(Parameters(1496, 120_000, 64), CHANCE), vector(number))


@pytest.mark.spec("MS-MQQB 2.2.6", "MS-MQMQ 2.2.20.4")
def test_the_published_session_ack_is_read_and_written() -> None:
    fields = SessionFields(1, 0, 0, 0, 0, 64)
    assert read_packet(vector(8)) == fields
    assert same(write_session_ack(fields, CHANCE), vector(8))


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQMQ 2.2.19.2", "MS-MQMQ 2.2.19.3", "MS-MQMQ 2.2.20.6")
def test_the_published_user_message_is_read() -> None:
    data = vector(7)
    assert frame(data) == 2224
    message = read_packet(data + bytes(2224 - len(data)))  # the document shows 1650 bytes of it
    assert isinstance(message, UserMessage)
    assert (message.label, len(message.body)) == ("mqsender label", 2000)
    assert (message.destination, message.admin) == (direct(r"OS:a04bm02\q"), NO_NAME)
    assert (message.priority, message.recoverable, message.asked) == (3, False, 0xF)
    assert (message.time_to_reach, message.message_id) == (345_600, 2286)


@pytest.mark.spec("MS-MQQB 3.1.5.1.2", "MS-MQQB 3.1.5.1.3")
@pytest.mark.parametrize(
    ("at", "value"),
    [(0, b"\x11"), (4, b"ROIL"), (8, b"\x00\x00\x50\x00"), (12, bytes(4)), (20, bytes(4)),
     (24, b"\xe0\x22\x02\x00"), (18, b"\x07")],
)  # fmt: skip
def test_what_does_not_conform_is_not_read(at: int, value: bytes) -> None:
    data = vector(5)
    bad = data[:at] + value + data[at + len(value) :]
    with pytest.raises(NotConforming):
        read_packet(bad) if frame(bad) else None


def some_message(**fields: object) -> UserMessage:
    known: dict[str, object] = {
        "source": bytes(range(16)),
        "destination": direct(r"TCP:10.0.0.2\private$\orders"),
        "label": "Grüße",
        "body": b"12345",
        "message_id": 77,
        "sent_time": 1_700_000_000,
    }
    return UserMessage(**(known | fields))  # type: ignore[arg-type]


SHAPES: list[dict[str, object]] = [
    {},
    {"recoverable": True, "journal": True, "dead_letter": True},
    {"recoverable": True, "transaction": Transaction(0x3C, 5 << 32 | 1, 3, 2), "priority": 0},
    {"admin": direct(r"TCP:10.0.0.1\private$\a"), "asked": 15, "response": direct(r"OS:x\y")},
    {"destination": Name(3, "", 20, b"g" * 16), "address": b"g" * 16},
    {"admin": Name(6, "", 9, b"h" * 16), "asked": 1, "response": Name(1)},
    {"session": SessionFields(3, 1, 5, 9, 2, 64), "time_to_reach": 9, "time_to_receive": 8},
    {"label": "", "body": b"", "message_class": 0x8002, "correlation": bytes(range(20))},
]


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQMQ 2.2.20.5", "MS-MQMQ 2.2.18.1.5.2")
@pytest.mark.parametrize("fields", SHAPES)
def test_what_is_written_is_read_by_both_codecs(fields: dict[str, object]) -> None:
    message = some_message(**fields)
    packet = write_message(message, CHANCE)
    assert frame(packet) == len(packet)
    back = read_packet(packet)
    assert isinstance(back, UserMessage)
    for name in ("label", "body", "destination", "transaction", "asked", "session", "recoverable",
                 "journal", "dead_letter", "message_class", "correlation", "time_to_reach",
                 "time_to_receive", "message_id", "sent_time", "address"):  # fmt: skip
        assert getattr(back, name) == getattr(message, name), name
    view = MessageView(write_message(replace(message, session=None), CHANCE))
    assert view.message_id == message.source + (77).to_bytes(4, "little")
    assert (view.label, view.body, view.message_class) == (
        message.label,
        message.body,
        message.message_class,
    )
    told = message.transaction
    assert view.transactional == (told is not None)
    if told is not None:
        assert view.tx_place == (told.sequence, told.number, told.previous)


@pytest.mark.spec("MS-MQQB 2.2.4")
def test_an_order_ack_has_no_bit_but_those_that_it_must() -> None:
    name = direct(r"TCP:10.0.0.1\PRIVATE$\order_queue$")
    ack = some_message(destination=name, label=ORDER_LABEL, body=bytes(36), message_class=0xFF)
    packet = write_message(ack, CHANCE)
    assert packet[2:4] == bytes(2)
    assert int.from_bytes(packet[60:64], "little") == 1 << 21 | 7 << 10


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
def test_a_transactional_message_must_have_a_place() -> None:
    kept = write_message(
        some_message(recoverable=True, transaction=Transaction(0, 0, 0, 0)), CHANCE
    )
    assert read_message(kept, is_sent=False).transaction == Transaction(0, 0, 0, 0)
    with pytest.raises(NotConforming):
        read_packet(kept)


@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
def test_bytes_that_no_header_announces_do_not_conform() -> None:
    packet = write_message(some_message(), CHANCE) + bytes(4)
    longer = packet[:8] + len(packet).to_bytes(4, "little") + packet[12:]
    with pytest.raises(NotConforming, match="left over"):
        read_packet(longer)
