"""OrderAck and FinalAck: the packets, byte for byte, and their bodies."""

from dataclasses import replace
from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.acks import (
    AckEnvelope,
    FinalAck,
    FinalAckBody,
    OrderAck,
    OrderAckBody,
    final_ack,
    order_ack,
)
from merq.wire.headers import TxSequenceID
from merq.wire.packet import parse_packet

SOURCE = UUID("33221100-5544-7766-8899-aabbccddeeff")
SENDER = UUID("f3f2f1f0-f5f4-f7f6-f8f9-fafbfcfdfeff")
SOURCE_HEX = "00112233 4455 6677 8899 aabbccddeeff"
SENDER_HEX = "f0f1f2f3 f4f5 f6f7 f8f9 fafbfcfdfeff"
NAME = r"TCP:10.0.0.1\PRIVATE$\order_queue$"  # 34 characters
NAME_HEX = "4600" + NAME.encode("utf-16-le").hex() + "0000"
LABEL_HEX = "5100 4d00 2000 4f00 7200 6400 6500 7200 6900 6e00 6700 2000 4100 6300 6b00 0000"
ORDER_BODY_HEX = "07000000 44332211 05000000 04000000" + "00" * 20
FINAL_BODY_HEX = "07000000 44332211 05000000 03000000" + SENDER_HEX + "ee080000"
SEQUENCE = TxSequenceID(ordinal=7, time_stamp=0x11223344)
ORDER_BODY = OrderAckBody(
    tx_sequence_id=SEQUENCE, tx_sequence_number=5, tx_previous_sequence_number=4
)
FINAL_BODY = FinalAckBody(
    tx_sequence_id=SEQUENCE,
    tx_sequence_number=5,
    tx_previous_sequence_number=3,
    source_guid=SENDER,
    message_id=2286,
)


def properties(message_class: str) -> str:
    return (
        f"00 10 {message_class} {'00' * 20} 00000000 00000000 24000000 24000000"
        "00000000 0e800000 10660000 00000000" + LABEL_HEX
    )


def direct(flags: str, message_class: str, body: str) -> bytes:
    """To a direct name: 16 + 48 + 72 + 56 + 32 + 36 bytes."""
    return bytes.fromhex(
        "10 00 0000 4c494f52 04010000 ffffffff"
        + SOURCE_HEX
        + "00" * 16
        + f"ffffffff 77665544 2a000000 {flags}"
        + NAME_HEX
        + properties(message_class)
        + body
    )


def private(flags: str, message_class: str, body: str) -> bytes:
    """To private queue 4 of the sender: 16 + 48 + 4 + 56 + 32 + 36 bytes."""
    return bytes.fromhex(
        "10 00 0000 4c494f52 c0000000 ffffffff"
        + SOURCE_HEX
        + SENDER_HEX
        + f"ffffffff 77665544 2a000000 {flags} 04000000"
        + properties(message_class)
        + body
    )


def envelope(destination: str | UUID) -> AckEnvelope:
    return AckEnvelope(
        source_queue_manager=SOURCE, destination=destination, sent_time=0x44556677, message_id=42
    )


@pytest.mark.spec("MS-MQQB 2.2.4", "MS-MQQB 2.2.4.1")
@pytest.mark.parametrize(
    ("destination", "data"),
    [
        (NAME, direct("001c2000", "ff00", ORDER_BODY_HEX)),
        (SENDER, private("000c2000", "ff00", ORDER_BODY_HEX)),
    ],
    ids=["direct", "private"],
)
def test_an_order_acknowledgment_is_written_and_read(destination: str | UUID, data: bytes) -> None:
    ack = order_ack(envelope(destination), ORDER_BODY)
    assert ack.pack() == data
    found = parse_packet(data)
    assert isinstance(found, OrderAck)
    assert found == ack
    assert found.body == ORDER_BODY
    assert found.message.base_header.flags.pack() == 0
    assert found.message.user_header.fields.flags.delivery_mode == 0


@pytest.mark.spec("MS-MQQB 2.2.5", "MS-MQQB 2.2.5.1")
@pytest.mark.parametrize(
    ("destination", "data", "message_class"),
    [
        (NAME, direct("201c2000", "0040", FINAL_BODY_HEX), 0x4000),
        (SENDER, private("200c2000", "02c0", FINAL_BODY_HEX), 0xC002),
    ],
    ids=["direct, received", "private, timed out"],
)
def test_a_final_acknowledgment_is_written_and_read(
    destination: str | UUID, data: bytes, message_class: int
) -> None:
    ack = final_ack(envelope(destination), FINAL_BODY, message_class)
    assert ack.pack() == data
    found = parse_packet(data)
    assert isinstance(found, FinalAck)
    assert found == ack
    assert found.body == FINAL_BODY
    assert found.message.user_header.fields.flags.delivery_mode == 1
    assert found.message.message_properties_header.fields.message_class == message_class


@pytest.mark.spec("MS-MQQB 2.2.4.1")
def test_the_reserved_bytes_of_an_order_acknowledgment_are_ignored_and_kept() -> None:
    garbage = bytes(range(100, 120)).hex()
    data = private("000c2000", "ff00", ORDER_BODY_HEX[:-40] + garbage)
    found = parse_packet(data)
    assert isinstance(found, OrderAck)
    assert found.body == ORDER_BODY
    assert found.body.reserved.hex() == garbage
    assert found.pack() == data


@pytest.mark.spec("MS-MQQB 2.2.4.1", "MS-MQQB 2.2.5.1")
@pytest.mark.parametrize(
    ("numbers", "at", "name"),
    [
        ("00000000 00000000", 8, "tx_sequence_number"),
        ("01000000 ffffffff", 12, "tx_previous_sequence_number"),
    ],
)
def test_sequence_numbers_out_of_range_are_refused_where_they_lie(
    numbers: str, at: int, name: str
) -> None:
    for data, start, body in (
        (private("000c2000", "ff00", "07000000 44332211" + numbers + "00" * 20), 156, "order"),
        (direct("001c2000", "ff00", "07000000 44332211" + numbers + "00" * 20), 224, "order"),
        (private("200c2000", "0040", "07000000 44332211" + numbers + "00" * 20), 156, "final"),
    ):
        with pytest.raises(WireError) as caught:
            parse_packet(data)
        assert (caught.value.offset, caught.value.field) == (start + at, f"{body}_ack_body.{name}")


@pytest.mark.spec("MS-MQQB 2.2.4.1", "MS-MQQB 2.2.5.1")
def test_the_bodies_alone_are_36_bytes() -> None:
    order, final = bytes.fromhex(ORDER_BODY_HEX), bytes.fromhex(FINAL_BODY_HEX)
    assert len(order) == len(final) == 0x24
    assert OrderAckBody.parse(order) == ORDER_BODY
    assert ORDER_BODY.pack() == order
    assert FinalAckBody.parse(final) == FINAL_BODY
    assert FINAL_BODY.pack() == final


@pytest.mark.spec("MS-MQQB 2.2.5")
@pytest.mark.parametrize("message_class", [0, 0x0002, 0x00FF, 0x3FFF])
def test_a_final_acknowledgment_of_another_class_is_not_made(message_class: int) -> None:
    with pytest.raises(WireError, match="is below 0x4000") as caught:
        final_ack(envelope(NAME), FINAL_BODY, message_class)
    assert caught.value.field == "FinalAck"


@pytest.mark.spec("MS-MQQB 2.2.4", "MS-MQQB 2.2.5")
def test_an_acknowledgment_whose_message_carries_another_body_is_not_written() -> None:
    order = order_ack(envelope(NAME), ORDER_BODY)
    with pytest.raises(WireError, match="carries another body") as caught:
        replace(order, body=replace(ORDER_BODY, tx_sequence_number=6)).pack()
    assert caught.value.field == "OrderAck"
    final = final_ack(envelope(NAME), FINAL_BODY, 0x4000)
    with pytest.raises(WireError, match="carries another body") as caught:
        replace(final, body=replace(FINAL_BODY, message_id=1)).pack()
    assert caught.value.field == "FinalAck"
