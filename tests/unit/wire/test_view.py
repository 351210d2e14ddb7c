"""The view: every property on packets made by hand, plain ones and rare ones."""

from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.message import UserMessage
from merq.wire.view import MessageView

pytestmark = pytest.mark.spec("MS-MQMQ 2.2.20")

SOURCE_HEX = "00112233 4455 6677 8899 aabbccddeeff"
ADDRESS_HEX = "f0f1f2f3 f4f5 f6f7 f8f9 fafbfcfdfeff"
QUEUE_HEX = "c0c1c2c3c4c5c6c7c8c9cacbcccdcecf"
CORRELATION_HEX = "0102030405060708090a0b0c0d0e0f1011121314"
USER = SOURCE_HEX + ADDRESS_HEX + "3c000000 77665544 ee080000"
NAME_HEX = "4f00 5300 3a00 6800 5c00 7100"  # OS:h\q

# The names end at 116, the transaction at 136, security at 172, the properties at 244.
PLAIN = (
    "10 00 1000 4c494f52 f4000000 80510100"
    + USER
    + "23df3d00"  # RC 3, recoverable, JN, JP, DQ 7, AQ 6, RQ 5, SH, TH, MP
    + f"0e00 {NAME_HEX} 0000"
    + QUEUE_HEX
    + "09000000"
    + QUEUE_HEX
    + "02000000 07000000 44332211 05000000 04000000"
    + "8100 1000 0000 0300 00000000 00000000 0102000000000005 20000000 20020000 d0d1d2 00"
    + "0d 03 0140"
    + CORRELATION_HEX
    + "08000000 15000000 05000000 05000000 00000000 04800000 01680000 03000000"
    + "4800 6900 0000 e0e1e2 b0b1b2b3b4 beef"
    + "0100 0200 03000000 0400 0500 4000 0000"
)
# Connector type, connector GUID and DebugHeader are for the full parser.
RARE = (
    "10 00 2501 4c494f52 d4000000 ffffffff"
    + USER
    + "20ec7100"  # recoverable, DQ 3, AQ 7, RQ 1, TH, MP, CQ
    + "2a000000 0400 6100 0000 beef"
    + QUEUE_HEX
    + "01000000 07000000 44332211 05000000 04000000"
    + QUEUE_HEX
    + "00 00 0000"
    + "00" * 20
    + "00000000 00000000 03000000 08000000 05000000 0e800000 10660000 00000000"
    + "b0b1b2b3b4b5b6b7"
    + "0100 0000"
    + QUEUE_HEX
)


def test_a_plain_packet_shows_how_it_travels() -> None:
    view = MessageView(bytes.fromhex(PLAIN))
    assert view.packet == bytes.fromhex(PLAIN)
    assert view.packet_size == 244
    assert view.base_flags == 0x0010
    assert view.user_flags == 0x003DDF23
    assert view.priority == 0
    assert view.traced is False
    assert view.delivery_mode == 1
    assert view.transactional is True
    assert view.hop_count == 3
    assert view.positive_journaling is True
    assert view.negative_journaling is True
    assert view.time_to_reach_queue == 86400
    assert view.time_to_be_received == 60
    assert view.sent_time == 0x44556677


def test_a_plain_packet_shows_its_names_as_bytes() -> None:
    view = MessageView(bytes.fromhex(PLAIN))
    assert view.destination_type == 7
    assert view.destination == bytes.fromhex(NAME_HEX)
    assert view.admin_queue_type == 6
    assert view.admin_queue == bytes.fromhex(QUEUE_HEX + "09000000")
    assert view.response_queue_type == 5
    assert view.response_queue == bytes.fromhex(QUEUE_HEX)


def test_a_plain_packet_shows_what_identifies_it() -> None:
    view = MessageView(bytes.fromhex(PLAIN))
    assert view.message_id == bytes.fromhex(SOURCE_HEX + "ee080000")
    assert view.source_queue_manager == UUID("33221100-5544-7766-8899-aabbccddeeff")
    assert view.queue_manager_address == UUID("f3f2f1f0-f5f4-f7f6-f8f9-fafbfcfdfeff")
    assert view.message_ordinal == 2286


def test_a_plain_packet_shows_what_the_application_said() -> None:
    view = MessageView(bytes.fromhex(PLAIN))
    assert view.acknowledgments == 0x0D
    assert view.message_class == 0x4001
    assert view.correlation_id == bytes.fromhex(CORRELATION_HEX)
    assert view.body_type == 8
    assert view.application_tag == 21
    assert view.label == "Hi"
    assert view.extension == bytes.fromhex("e0e1e2")
    assert view.body_size == 5
    assert view.body == bytes.fromhex("b0b1b2b3b4")


def test_a_plain_packet_shows_its_place_in_a_sequence() -> None:
    view = MessageView(bytes.fromhex(PLAIN))
    assert view.tx_sequence_id == 0x11223344_00000007
    assert view.tx_sequence_number == 5
    assert view.previous_tx_sequence_number == 4
    assert view.final_ack_required is True


def test_a_view_gives_the_whole_message_as_a_value() -> None:
    for data in (bytes.fromhex(PLAIN), bytes.fromhex(RARE)):
        assert MessageView(data).decode() == UserMessage.parse(data)
        assert MessageView(data).decode().pack() == data


def test_a_rare_packet_shows_the_same_properties() -> None:
    view = MessageView(bytes.fromhex(RARE))
    assert view.packet_size == 212
    assert view.base_flags == 0x0125
    assert view.user_flags == 0x0071EC20
    assert view.priority == 0, "its bits say 5, but it is transactional"
    assert view.traced is True
    assert view.delivery_mode == 1
    assert view.transactional is True
    assert view.hop_count == 0
    assert view.positive_journaling is False
    assert view.negative_journaling is False
    assert view.time_to_reach_queue == 0xFFFFFFFF
    assert view.time_to_be_received == 60
    assert view.sent_time == 0x44556677
    assert (view.destination_type, view.destination) == (3, bytes.fromhex("2a000000"))
    assert (view.admin_queue_type, view.admin_queue) == (7, b"a\0")
    assert (view.response_queue_type, view.response_queue) == (1, b"")
    assert view.message_id == bytes.fromhex(SOURCE_HEX + "ee080000")
    assert view.source_queue_manager == UUID("33221100-5544-7766-8899-aabbccddeeff")
    assert view.queue_manager_address == UUID("f3f2f1f0-f5f4-f7f6-f8f9-fafbfcfdfeff")
    assert view.message_ordinal == 2286
    assert view.acknowledgments == 0
    assert view.message_class == 0
    assert view.correlation_id == bytes(20)
    assert view.body_type == 0
    assert view.application_tag == 0
    assert view.label == ""
    assert view.extension == b""
    assert view.body_size == 3
    assert view.body == bytes.fromhex("b0b1b2")
    assert view.tx_sequence_id == 0x11223344_00000007
    assert view.tx_sequence_number == 5
    assert view.previous_tx_sequence_number == 4
    assert view.final_ack_required is False


def small(
    properties: str, *, flags: str = "00002000", size: int = 120, base_flags: str = "0500"
) -> bytes:
    total = size.to_bytes(4, "little").hex()
    return bytes.fromhex(
        f"10 00 {base_flags} 4c494f52 {total} ffffffff" + USER + flags + properties
    )


def fields(*, size: str = "00000000", allocated: str = "00000000", label: str = "00") -> str:
    return (
        f"00 {label} 0000 {'00' * 20} 00000000 00000000 {size} {allocated}"
        "00000000 0e800000 10660000 00000000"
    )


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_an_express_message_without_names_label_and_body_is_plain() -> None:
    view = MessageView(small(fields()))
    assert view.priority == 5
    assert view.delivery_mode == 0
    assert view.transactional is False
    assert (view.destination_type, view.destination) == (0, b"")
    assert (view.admin_queue_type, view.admin_queue) == (0, b"")
    assert (view.response_queue_type, view.response_queue) == (0, b"")
    assert (view.label, view.extension, view.body, view.body_size) == ("", b"", b"", 0)


@pytest.mark.spec("MS-MQMQ 2.2.19.3")
def test_the_body_is_as_long_as_message_size_where_more_is_allocated() -> None:
    view = MessageView(
        small(fields(size="03000000", allocated="08000000") + "b0b1b2b3b4b5b6b7", size=128)
    )
    assert view.body == bytes.fromhex("b0b1b2")
    assert view.body_size == 3


@pytest.mark.spec("MS-MQMQ 2.2.19.3")
def test_the_body_is_as_long_as_message_size_where_less_is_allocated() -> None:
    view = MessageView(small(fields(size="04000000", allocated="01000000") + "b0b1b2b3", size=124))
    assert view.body == bytes.fromhex("b0b1b2b3")


@pytest.mark.spec("MS-MQMQ 2.2.19.3")
@pytest.mark.parametrize(
    ("label", "text", "size"),
    [
        ("01", "0000 0000", 124),
        ("02", "0041 0000", 124),
        ("03", "6100 0041 0000 0000", 128),
        ("03", "3dd8 00de 0000 0000", 128),
    ],
)
def test_labels_with_awkward_zeros_are_read(label: str, text: str, size: int) -> None:
    data = small(fields(label=label) + text, size=size)
    expected = UserMessage.parse(data).message_properties_header.label
    assert MessageView(data).label == expected


@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        pytest.param(
            small(fields(), flags="40002000"), 60, "user_header.flags.delivery_mode", id="DM 2"
        ),
        pytest.param(
            small(fields(), flags="1e002000"), 60, "user_header.flags.hop_count", id="RC 30"
        ),
        pytest.param(
            small(fields(), flags="00042000"),
            60,
            "user_header.flags.destination_queue_type",
            id="DQ 1",
        ),
        pytest.param(
            small(fields(), flags="00802000"), 60, "user_header.flags.admin_queue_type", id="AQ 4"
        ),
        pytest.param(small(fields(), flags="00000000"), 60, "user_header.flags", id="MP clear"),
        pytest.param(small(fields(), flags="00003000"), 60, "user_header.flags", id="TH, express"),
        pytest.param(
            small(fields(label="02") + "4800 4900", size=124),
            120,
            "message_properties_header.label",
            id="label without terminator",
        ),
        pytest.param(
            small(fields(label="02") + "0000 0000", size=124),
            120,
            "message_properties_header.label",
            id="label with a null inside",
        ),
        pytest.param(
            small(fields(label="fb") + "4800" * 250 + "0000 0000", size=624),
            65,
            "message_properties_header.label_length",
            id="LabelLength 0xFB",
        ),
        pytest.param(
            small(fields(size="01000000"), size=120),
            120,
            "message_properties_header.message_body",
            id="body not there",
        ),
        pytest.param(small(fields(), size=124), 8, "base_header.packet_size", id="PacketSize more"),
        pytest.param(small(fields(), size=116), 8, "base_header.packet_size", id="PacketSize less"),
        pytest.param(
            small(fields() + "0000" * 8, base_flags="1500"),
            132,
            "session_header.window_size",
            id="window of 0",
        ),
        pytest.param(
            small("0300 6100 0000" + fields(), flags="001c2000", size=126),
            66,
            "user_header.destination_queue.direct_format_name",
            id="direct name of odd size",
        ),
        pytest.param(b"", 0, "base_header", id="nothing"),
    ],
)
def test_a_view_refuses_what_the_full_parser_refuses(data: bytes, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        MessageView(data)
    assert (caught.value.offset, caught.value.field) == (offset, field)


def test_the_place_in_a_sequence_of_a_message_without_one_is_a_mistake_of_ours() -> None:
    view = MessageView(small(fields()))
    for name in (
        "tx_sequence_id",
        "tx_sequence_number",
        "previous_tx_sequence_number",
        "final_ack_required",
    ):
        with pytest.raises(AssertionError, match="not transactional"):
            getattr(view, name)
