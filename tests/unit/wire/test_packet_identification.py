"""Which packet some bytes are."""

import pytest

from merq.errors import WireError
from merq.wire.acks import FinalAck, OrderAck
from merq.wire.connection import ConnectionParameters, EstablishConnection, SessionAck
from merq.wire.message import UserMessage
from merq.wire.packet import Packet, parse_packet
from merq.wire.reader import TraceNode

GUID_HEX = "00112233 4455 6677 8899 aabbccddeeff"
ACK_LABEL = "QM Ordering Ack"
BODY = bytes.fromhex("07000000 44332211 05000000 04000000") + bytes(20)
TO_ORDER_QUEUE = bytes.fromhex("04000000")
PRIVATE, DIRECT, PUBLIC = 0x00200C00, 0x00201C00, 0x00201400
RECOVERABLE = 0x20
ORDER_ACK, RECEIVED = 0x00FF, 0x4000


def wide(text: str) -> bytes:
    return text.encode("utf-16-le") + b"\0\0"


def direct(name: str) -> bytes:
    data = len(wide(name)).to_bytes(2, "little") + wide(name)
    return data + bytes(-len(data) % 4)


def packet(
    message_class: int,
    *,
    base_flags: int = 0,
    user_flags: int = PRIVATE,
    names: bytes = TO_ORDER_QUEUE,
    label: str | None = ACK_LABEL,
    body: bytes = BODY,
    spare: bytes = b"",
    tail: bytes = b"",
) -> bytes:
    """A user message by hand; what is not given is as an acknowledgment has it."""
    text = b"" if label is None else wide(label)
    properties = b"".join(
        (
            bytes([0, len(text) // 2]),
            message_class.to_bytes(2, "little"),
            bytes(28),
            len(body).to_bytes(4, "little"),
            len(body + spare).to_bytes(4, "little"),
            bytes(16),
            text + body + spare,
        )
    )
    properties += bytes(-len(properties) % 4)
    user = bytes.fromhex(GUID_HEX + GUID_HEX + "ffffffff 77665544 2a000000")
    user += user_flags.to_bytes(4, "little") + names
    size = 16 + len(user) + len(properties)
    base = b"\x10\0" + base_flags.to_bytes(2, "little") + b"LIOR" + size.to_bytes(4, "little")
    return base + b"\xff" * 4 + user + properties + tail


@pytest.mark.spec("MS-MQQB 3.1.5.1.1")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (
            "10 00 0b00 4c494f52 3c020000 ffffffff 0000 0200" + "00" * 552,
            EstablishConnection,
        ),
        (
            "10 00 0b00 4c494f52 20000000 ffffffff 0000 0300 f4010000 204e0000 0000 4000",
            ConnectionParameters,
        ),
        (
            "10 00 1b00 4c494f52 24000000 ffffffff 0000 0100" + "00" * 12 + "01000000",
            SessionAck,
        ),
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.5.1.1#internal")
def test_an_internal_packet_is_told_by_its_type(data: str, kind: type[Packet]) -> None:
    found = parse_packet(bytes.fromhex(data))
    assert type(found) is kind
    assert found.pack() == bytes.fromhex(data)


@pytest.mark.spec("MS-MQQB 3.1.5.1.1", "MS-MQQB 2.2.4")
def test_an_order_acknowledgment_to_private_queue_4_is_recognised() -> None:
    found = parse_packet(packet(ORDER_ACK))
    assert isinstance(found, OrderAck)
    assert found.body.tx_sequence_number == 5


@pytest.mark.spec("MS-MQQB 3.1.5.1.1", "MS-MQQB 2.2.5")
@pytest.mark.parametrize(
    "message_class",
    [0x4000, 0x8000, 0x8003, 0x8004, 0x8006, 0x8007, 0x8009, 0x800B, 0xC000, 0xC001, 0xC002],
    ids=hex,
)
@pytest.mark.spec("E64")
def test_a_final_acknowledgment_of_every_class_is_recognised(message_class: int) -> None:
    found = parse_packet(packet(message_class, user_flags=PRIVATE | RECOVERABLE))
    assert isinstance(found, FinalAck)
    assert found.body.tx_previous_sequence_number == 4


@pytest.mark.spec("MS-MQQB 3.1.5.1.1", "MS-MQQB 2.2.4", "MS-MQQB 2.2.5")
@pytest.mark.parametrize(
    "name",
    [
        r"TCP:10.0.0.1\PRIVATE$\order_queue$",
        r"TCP:10.0.0.1\private$\ORDER_QUEUE$",
        r"tcp:10.0.0.1\Private$\Order_Queue$",
        r"TCP:fe80::1\PRIVATE$\order_queue$",
        r"SPX:00000001.0123456789AB\PRIVATE$\order_queue$",
    ],
)
def test_acknowledgments_to_a_direct_name_are_recognised_in_any_case(name: str) -> None:
    order = parse_packet(packet(ORDER_ACK, user_flags=DIRECT, names=direct(name)))
    assert isinstance(order, OrderAck)
    final = parse_packet(packet(RECEIVED, user_flags=DIRECT | RECOVERABLE, names=direct(name)))
    assert isinstance(final, FinalAck)


@pytest.mark.spec("MS-MQQB 3.1.5.1.1", "MS-MQMQ 2.2.19.2")
@pytest.mark.parametrize(
    "more", [0x00000003, 0x00000080, 0x01000000, 0xE0000000], ids=["RC", "X1", "X2", "X4"]
)
def test_hops_and_reserved_bits_do_not_hide_an_acknowledgment(more: int) -> None:
    assert isinstance(parse_packet(packet(ORDER_ACK, user_flags=PRIVATE | more)), OrderAck)
    assert isinstance(parse_packet(packet(RECEIVED, user_flags=PRIVATE | more)), FinalAck)


NOT_AN_ACKNOWLEDGMENT = [
    pytest.param({"label": "QM Ordering ack"}, id="label in another case"),
    pytest.param({"label": "QM Ordering Ack "}, id="longer label"),
    pytest.param({"label": ""}, id="empty label"),
    pytest.param({"label": None}, id="no label"),
    pytest.param({"base_flags": 3}, id="priority 3"),
    pytest.param({"base_flags": 0x0040}, id="a reserved bit of the BaseHeader"),
    pytest.param(
        {"base_flags": 0x10, "tail": bytes(12) + b"\x01\0\0\0"}, id="a SessionHeader on it"
    ),
    pytest.param({"names": bytes.fromhex("05000000")}, id="another private queue"),
    pytest.param({"user_flags": PUBLIC, "names": bytes(16)}, id="a public queue"),
    pytest.param({"user_flags": 0x00200000, "names": b""}, id="no queue"),
    pytest.param(
        {"user_flags": DIRECT, "names": direct(r"TCP:10.0.0.1\PRIVATE$\orders")},
        id="another direct name",
    ),
    pytest.param(
        {"user_flags": DIRECT, "names": direct(r"TCP:10.0.0.1\order_queue$")},
        id="a queue of that name that is not private",
    ),
    pytest.param(
        {"user_flags": DIRECT, "names": direct(r"TCP:10.0.0.1\PRIVATE$\order_queue$;JOURNAL")},
        id="its journal",
    ),
    pytest.param({"user_flags": PRIVATE | 0x100}, id="JN"),
    pytest.param({"user_flags": PRIVATE | 0x200}, id="JP"),
    pytest.param(
        {"user_flags": PRIVATE | 0x4000, "names": bytes.fromhex("04000000 01000000")}, id="AQ"
    ),
    pytest.param({"user_flags": PRIVATE | 0x10000}, id="RQ"),
]


@pytest.mark.spec("MS-MQQB 3.1.5.1.1")
@pytest.mark.parametrize("message_class", [ORDER_ACK, RECEIVED], ids=["order", "final"])
@pytest.mark.parametrize("other", NOT_AN_ACKNOWLEDGMENT)
@pytest.mark.spec("MS-MQQB 3.1.5.1.1#UserMessage")
def test_without_one_condition_it_is_a_user_message(
    message_class: int, other: dict[str, object]
) -> None:
    data = packet(message_class, **other)  # type: ignore[arg-type]
    found = parse_packet(data)
    assert type(found) is UserMessage
    assert found.pack() == data


@pytest.mark.spec("MS-MQQB 3.1.5.1.1")
@pytest.mark.parametrize("message_class", [0, 1, 2, 0x00FE, 0x0100, 0x3FFF], ids=hex)
def test_another_class_to_the_order_queue_is_a_user_message(message_class: int) -> None:
    assert type(parse_packet(packet(message_class))) is UserMessage


@pytest.mark.spec("MS-MQQB 3.1.5.1.1")
@pytest.mark.parametrize(
    "message_class",
    [0x0001, 0x0002, 0x4000, 0x8000, 0x8004, 0x800A, 0xC000, 0xC004, 0x0100],
    ids=hex,
)
@pytest.mark.spec("MS-MQQB 3.1.5.1.1#UserMessage", "E19")
def test_administration_acknowledgments_and_reports_are_user_messages(message_class: int) -> None:
    data = packet(
        message_class,
        base_flags=3,
        user_flags=DIRECT,
        names=direct(r"OS:host\private$\admin"),
        label="the original's label",
        body=b"",
    )
    found = parse_packet(data)
    assert type(found) is UserMessage
    assert found.message_properties_header.fields.message_class == message_class
    assert found.pack() == data


@pytest.mark.spec("MS-MQQB 3.1.5.1.1", "MS-MQQB 2.2.4")
@pytest.mark.parametrize("size", [0, 35, 37, 40])
def test_an_order_acknowledgment_is_told_by_its_size_too(size: int) -> None:
    assert type(parse_packet(packet(ORDER_ACK, body=bytes(size)))) is UserMessage


@pytest.mark.spec("MS-MQQB 3.1.5.1.1", "MS-MQQB 2.2.5", "MS-MQQB 3.1.5.1.3")
@pytest.mark.parametrize("size", [0, 35, 37, 40])
def test_a_final_acknowledgment_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"{size} bytes where 36 belong") as caught:
        parse_packet(packet(RECEIVED, body=bytes(size)))
    # Base 16, user 52, properties 56 and a label of 32 bytes lie before the body.
    assert caught.value.offset == 156
    assert caught.value.field == "message_properties_header.message_body"


@pytest.mark.spec("MS-MQQB 3.1.5.1.1")
@pytest.mark.parametrize("message_class", [ORDER_ACK, RECEIVED])
def test_room_behind_an_acknowledgments_body_does_not_move_it(message_class: int) -> None:
    found = parse_packet(packet(message_class, spare=b"\xff" * 5))
    assert isinstance(found, OrderAck | FinalAck)
    assert found.body.tx_sequence_number == 5
    assert found.body.tx_previous_sequence_number == 4


@pytest.mark.spec("MS-MQQB 3.1.5.1.1")
def test_a_trace_shows_the_acknowledgment_within_the_body() -> None:
    trace = TraceNode("packet", 0)
    parse_packet(packet(ORDER_ACK), trace=trace)
    names = [node.name for node in trace.children]
    assert names == ["base_header", "user_header", "message_properties_header", "order_ack_body"]
    body = trace.children[-1]
    assert (body.offset, body.size) == (156, 36)
    assert [(node.name, node.offset) for node in body.children][:2] == [
        ("tx_sequence_id", 156),
        ("tx_sequence_number", 164),
    ]


@pytest.mark.spec("MS-MQQB 3.1.5.1.2")
@pytest.mark.parametrize(
    ("at", "value", "field"),
    [
        (0, 0x0F, "base_header.version_number"),
        (0, 0x11, "base_header.version_number"),
        (4, ord("l"), "base_header.signature"),
        (7, 0, "base_header.signature"),
    ],
)
def test_a_packet_with_another_version_or_signature_is_refused(
    at: int, value: int, field: str
) -> None:
    for good in (packet(0), bytes.fromhex("10 00 0b00 4c494f52 3c020000 ffffffff 0000 0200")):
        data = bytearray(good)
        data[at] = value
        with pytest.raises(WireError, match="may stand") as caught:
            parse_packet(bytes(data))
        assert caught.value.field == field
        assert caught.value.offset == (0 if at == 0 else 4)


@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
def test_a_packet_that_ends_anywhere_before_its_end_is_refused() -> None:
    data = packet(0, body=b"body")
    for end in range(len(data)):
        with pytest.raises(WireError):
            parse_packet(data[:end])
    assert type(parse_packet(data)) is UserMessage


@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        ("", 0, "base_header"),
        ("10", 0, "base_header"),
        ("10 00 0b00 4c494f52 10000000 ffffffff", 16, "internal_header"),
        ("10 00 0300 4c494f52 10000000 ffffffff", 16, "user_header"),
        ("10 00 0300 4c494f52 01004000 ffffffff", 8, "base_header.packet_size"),
    ],
)
def test_fragments_are_refused_with_what_is_missing(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        parse_packet(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, field)
