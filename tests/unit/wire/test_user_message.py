"""The UserMessage packet: which headers it has, in which order, and what PacketSize counts."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from merq.errors import WireError
from merq.wire.headers import BaseFlags
from merq.wire.message import UserMessage
from merq.wire.packet import parse_packet
from merq.wire.view import MessageView

GUID_HEX = "00112233 4455 6677 8899 aabbccddeeff"


def word(number: int) -> str:
    return number.to_bytes(4, "little").hex()


def base(size: int, flags: str = "0300") -> str:
    return f"10 00 {flags} 4c494f52 {word(size)} ffffffff"


def user(flags: int, names: str = "") -> str:
    return f"{GUID_HEX} {GUID_HEX} ffffffff 77665544 ee080000 {word(flags)} {names}"


def properties(body: str = "", *, size: int = 0, label: str = "00", extension: int = 0) -> str:
    return (
        f"00 {label} 0000 {'00' * 20} 00000000 00000000 {word(size)} {word(size)}"
        f"00000000 0e800000 10660000 {word(extension)} {body}"
    )


TRANSACTION = "06000000 07000000 44332211 01000000 00000000"
SECURITY = "0000 0000 0000 0400 00000000 00000000 d0d1d2d3"
DEBUG = "0100 0000" + GUID_HEX
ENVELOPE = "f401 0000 02000000 3c00 0000"
COMPOUND = "5802 0000 04000000 02000000 01000000 a0a1a2a3"
SOAP = "2003 0000 02000000 6800 0000 8403 0000 02000000 6200 0000"
MULTI = (
    "14000000 6400 0000 01000000 0300 6100 6200 0000"
    "0c000000 c800 0000 00000000 0c000000 2c01 0000 00000000 5e01 0000 00000000"
)
SESSION = "0100 0200 03000000 0400 0500 4000 0000"

SMALLEST = base(120) + user(0x00200000) + properties()
# Base 16, user 48 + 4, transaction 20, security 20, properties 56 + 4, debug 20, envelope 12,
# compound 20, SOAP 24, lists 52; the SessionHeader's 16 are not counted.
EVERYTHING = "".join(
    (
        base(296, "3001"),
        user(0x12B80C20, "2a000000"),
        TRANSACTION,
        SECURITY,
        properties("b0b1b2 00", size=3),
        DEBUG,
        ENVELOPE,
        COMPOUND,
        SOAP,
        MULTI,
        SESSION,
    )
)


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQRR 2.2.5.1.1")
def test_the_smallest_message_has_three_headers() -> None:
    data = bytes.fromhex(SMALLEST)
    assert len(data) == 120
    message = UserMessage.parse(data)
    assert message.user_header.destination_queue is None
    assert message.message_properties_header.body == b""
    for name in (
        "transaction_header",
        "security_header",
        "debug_header",
        "srmp_envelope_header",
        "compound_message_header",
        "soap_header",
        "multi_queue_format_header",
        "session_header",
    ):
        assert getattr(message, name) is None
    assert message.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQRR 2.2.5.1", "MS-MQRR 2.2.5.1.2", "MS-MQMQ 2.2.19.1")
def test_every_header_is_read_in_the_documents_order() -> None:
    data = bytes.fromhex(EVERYTHING)
    assert len(data) == 296 + 16
    message = UserMessage.parse(data)
    assert message.base_header.packet_size == 296
    assert message.transaction_header is not None
    assert message.transaction_header.fields.tx_sequence_number == 1
    assert message.security_header is not None
    assert message.security_header.signature == bytes.fromhex("d0d1d2d3")
    assert message.message_properties_header.body == bytes.fromhex("b0b1b2")
    assert message.debug_header is not None
    assert message.debug_header.queue_identifier is not None
    assert message.srmp_envelope_header is not None
    assert message.srmp_envelope_header.envelope.data == "<"
    assert message.compound_message_header is not None
    assert message.compound_message_header.message_body == bytes.fromhex("a1a2")
    assert message.soap_header is not None
    assert (message.soap_header.header.data, message.soap_header.body.data) == ("h", "b")
    assert message.multi_queue_format_header is not None
    assert len(message.multi_queue_format_header.destination.format_name_list) == 1
    assert message.session_header is not None
    assert message.session_header.user_msg_sequence_number == 4
    assert message.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20")
@pytest.mark.parametrize(
    ("flags", "base_flags", "parts"),
    [
        pytest.param(0x00280000, "0300", properties() + SECURITY, id="security after properties"),
        pytest.param(0x00300020, "0300", properties() + TRANSACTION, id="transaction after"),
        pytest.param(
            0x00380020, "0300", SECURITY + TRANSACTION + properties(), id="security first"
        ),
        pytest.param(0x10200000, "2300", properties() + SOAP + DEBUG, id="SOAP before debug"),
        pytest.param(0x10A00000, "0300", properties() + MULTI + SOAP, id="lists before SOAP"),
        pytest.param(
            0x02200000, "0300", properties() + COMPOUND + ENVELOPE, id="compound before envelope"
        ),
    ],
)
@pytest.mark.spec("E10")
def test_headers_in_another_order_are_refused(flags: int, base_flags: str, parts: str) -> None:
    size = 16 + 48 + len(bytes.fromhex(parts))
    with pytest.raises(WireError):
        UserMessage.parse(bytes.fromhex(base(size, base_flags) + user(flags) + parts))


# Reserved fields and padding

# Base 16, user 48 + 8, transaction 20, security 28, properties 64, debug 20, SOAP 32, lists 56.
GARBAGE = "".join(
    (
        "10 a5 f0fe 4c494f52 24010000 80510100",
        user(0xFDB81CA0, "0400 6100 0000 beef"),
        "060000ff 07000000 44332211 01000000 00000000",
        "00f0 0000 0100 0200 03000000 00000000 c0 a1a2a3 d0d1 a4a5 e0e1e2 a6",
        "f1" + properties("4c00 0000 b0 a7a8a9", size=1, label="02")[2:],
        "fdff a9aa" + GUID_HEX,
        "2003 abac 03000000 6800 6900 0000 a0a1 8403 adae 03000000 6200 6300 0000 afb0",
        "14000000 6400 b1b2 01000000 0300 6100 0000 b3b4",
        "0c000000 c800 b5b6 00000000 0c000000 2c01 b7b8 00000000 5e01 b9ba 01000000 d0 bbbcbd",
        "0100 0200 03000000 0400 0500 4000 bebf",
    )
)
CLEAN = "".join(
    (
        "10 00 3000 4c494f52 24010000 80510100",
        user(0x10B81C20, "0400 6100 0000 0000"),
        "06000000 07000000 44332211 01000000 00000000",
        "0000 0000 0100 0200 03000000 00000000 c0 000000 d0d1 0000 e0e1e2 00",
        "01" + properties("4c00 0000 b0 000000", size=1, label="02")[2:],
        "0100 0000" + GUID_HEX,
        "2003 0000 03000000 6800 6900 0000 0000 8403 0000 03000000 6200 6300 0000 0000",
        "14000000 6400 0000 01000000 0300 6100 0000 0000",
        "0c000000 c800 0000 00000000 0c000000 2c01 0000 00000000 5e01 0000 01000000 d0 000000",
        "0100 0200 03000000 0400 0500 4000 0000",
    )
)


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQMQ 2.2.19.1", "MS-MQMQ 2.2.19.2", "MS-MQMQ 2.2.19.3")
def test_reserved_fields_and_padding_of_every_header_pass_unaltered() -> None:
    garbage, clean = bytes.fromhex(GARBAGE), bytes.fromhex(CLEAN)
    assert len(garbage) == len(clean) == 0x124 + 16
    message = UserMessage.parse(garbage)
    assert message == UserMessage.parse(clean)
    assert message.pack() == garbage
    assert MessageView(garbage).decode().pack() == garbage
    assert message.measured().pack() == garbage


# PacketSize and what is there


@pytest.mark.spec("MS-MQMQ 2.2.19.1", "MS-MQQB 3.1.5.1.3")
@pytest.mark.parametrize(
    "size", [16, 20, 116, 119, 121, 124, 136, 0x00400000], ids=lambda size: f"PacketSize {size}"
)
def test_a_packet_size_that_is_not_the_packets_is_refused(size: int) -> None:
    data = bytes.fromhex(base(size) + user(0x00200000) + properties())
    with pytest.raises(WireError, match=f"calls for {size} bytes, 120 are there") as caught:
        UserMessage.parse(data)
    assert (caught.value.offset, caught.value.field) == (8, "base_header.packet_size")


@pytest.mark.spec("MS-MQMQ 2.2.19.1", "MS-MQMQ 2.2.20.4")
@pytest.mark.parametrize("size", [120, 136], ids=["not counted", "counted"])
def test_a_session_header_on_a_message_is_not_counted(size: int) -> None:
    data = bytes.fromhex(base(size, "1300") + user(0x00200000) + properties() + SESSION)
    if size == 120:
        message = UserMessage.parse(data)
        assert message.session_header is not None
        assert message.session_header.window_size == 64
        assert message.pack() == data
    else:
        with pytest.raises(WireError, match="calls for 152 bytes, 136 are there") as caught:
            UserMessage.parse(data)
        assert (caught.value.offset, caught.value.field) == (8, "base_header.packet_size")


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQMQ 2.2.19.1")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        pytest.param(
            base(120, "0b00") + SMALLEST[len(base(120)) :], 2, "base_header.flags", id="IN"
        ),
        pytest.param(
            base(120, "0301") + SMALLEST[len(base(120)) :], 2, "base_header.flags", id="TR, no DH"
        ),
        pytest.param(
            base(120, "1300") + user(0x00200000) + properties() + SESSION[:-9] + "0000 0000",
            132,
            "session_header.window_size",
            id="window of 0",
        ),
        pytest.param(
            base(120, "2300") + user(0x00200000) + properties(), 120, "debug_header", id="no debug"
        ),
        pytest.param(
            base(120) + user(0x10200000) + properties(), 120, "soap_header.header", id="no SOAP"
        ),
        pytest.param(
            base(120) + user(0x00A00000) + properties(),
            120,
            "multi_queue_format_header.destination",
            id="no lists",
        ),
        pytest.param(
            base(120) + user(0x02200000) + properties(),
            120,
            "srmp_envelope_header",
            id="AH without an envelope",
        ),
        pytest.param(
            base(132) + user(0x02200000) + properties() + ENVELOPE,
            132,
            "compound_message_header",
            id="AH without a compound message",
        ),
        pytest.param(
            base(64) + user(0x00200000), 64, "message_properties_header", id="no properties"
        ),
        pytest.param(base(64) + user(0x00300020), 64, "transaction_header", id="no transaction"),
        pytest.param(base(64) + user(0x00280000), 64, "security_header", id="no security"),
        pytest.param(base(16), 16, "user_header", id="nothing but a BaseHeader"),
        pytest.param(SMALLEST[:20], 0, "base_header", id="half a BaseHeader"),
        pytest.param("", 0, "base_header", id="nothing"),
    ],
)
@pytest.mark.parametrize("parse", [UserMessage.parse, MessageView], ids=["parser", "view"])
def test_a_message_that_contradicts_its_flags_is_refused(
    parse: Any, data: str, offset: int, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        parse(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, field)


@pytest.mark.spec("MS-MQMQ 2.2.20")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(base(124) + user(0x00200000) + properties("deadbeef"), id="four bytes"),
        pytest.param(base(136) + user(0x00200000) + properties() + SESSION, id="a SessionHeader"),
    ],
)
def test_bytes_that_no_flag_announces_are_carried_along(data: str) -> None:
    packet = bytes.fromhex(data)
    message = UserMessage.parse(packet)
    assert message.trailing == packet[120:]
    assert message.pack() == message.measured().pack() == packet
    assert MessageView(packet).body == message.message_properties_header.body


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQRR 2.2.5.1.1", "MS-MQRR 2.2.5.1.2")
@pytest.mark.parametrize(
    ("part", "field"),
    [
        ("transaction_header", "TransactionHeader"),
        ("security_header", "SecurityHeader"),
        ("debug_header", "DebugHeader"),
        ("srmp_envelope_header", "SRMPEnvelopeHeader"),
        ("compound_message_header", "CompoundMessageHeader"),
        ("soap_header", "SoapHeader"),
        ("multi_queue_format_header", "MultiQueueFormatHeader"),
        ("session_header", "SessionHeader"),
    ],
)
def test_a_header_and_its_flag_go_together(part: str, field: str) -> None:
    full, small = (UserMessage.parse(bytes.fromhex(data)) for data in (EVERYTHING, SMALLEST))
    without: dict[str, Any] = {part: None}
    with pytest.raises(WireError, match="the header is missing") as caught:
        replace(full, **without).pack()
    assert caught.value.field == field
    with pytest.raises(WireError, match="not announced by its flag") as caught:
        replace(small, **{part: getattr(full, part)}).pack()
    assert caught.value.field == field


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_a_message_whose_base_header_is_not_true_is_not_written() -> None:
    message = UserMessage.parse(bytes.fromhex(SMALLEST))
    for base_header, field in (
        (replace(message.base_header, packet_size=121), "BaseHeader.packet_size"),
        (replace(message.base_header, packet_size=116), "BaseHeader.packet_size"),
        (replace(message.base_header, flags=BaseFlags(internal=True)), "BaseHeader.flags"),
    ):
        with pytest.raises(WireError) as caught:
            replace(message, base_header=base_header).pack()
        assert caught.value.field == field
    traced = UserMessage.parse(bytes.fromhex(EVERYTHING))
    flags = BaseFlags(priority=0, session_header=True, traced=True)
    with pytest.raises(WireError, match="TR is set without DH") as caught:
        replace(
            traced, base_header=replace(traced.base_header, flags=flags), debug_header=None
        ).pack()
    assert caught.value.field == "BaseHeader.flags"


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
@pytest.mark.spec("E15")
def test_a_message_over_4_mib_is_refused_before_it_is_sent() -> None:
    message = UserMessage.parse(bytes.fromhex(SMALLEST))

    def with_body(size: int) -> UserMessage:
        known = message.message_properties_header
        fields = replace(known.fields, message_size=size, allocation_body_size=size)
        header = replace(known, fields=fields, message_body=bytes(size))
        return replace(message, message_properties_header=header)

    largest = with_body(0x00400000 - 120).measured().pack()
    assert len(largest) == 0x00400000
    assert len(UserMessage.parse(largest).message_properties_header.body) == 0x00400000 - 120
    with pytest.raises(WireError, match="4194308 bytes, at most 4194304 may travel") as caught:
        with_body(0x00400000 - 119).measured()
    assert caught.value.field == "BaseHeader.packet_size"


# What a packet merely claims


def claims() -> list[Any]:
    deep = 0x00400000
    names = "0c000000 c800 0000 00000000 0c000000 2c01 0000 00000000 5e01 0000 00000000"
    security = user(0x00280000)
    claimed = [
        ("MessageSize", user(0x00200000) + properties(size=deep)),
        ("ExtensionSize", user(0x00200000) + properties(extension=deep)),
        ("LabelLength", user(0x00200000) + properties(label="fa")),
        ("direct name", user(0x00201C00, "feff") + properties()),
        ("SenderCertSize", security + "0000 0000 0000 0000 ffff0000 00000000" + properties()),
        ("SenderIdSize", security + "0100 ffff 0000 0000 00000000 00000000" + properties()),
        ("ProviderInfoSize", security + "0000 0000 0000 0000 00000000 00004000" + properties()),
        (
            "ElementCount",
            user(0x00A00000) + properties() + "0c000000 6400 0000 00400000" + names,
        ),
        ("HeaderSize", user(0x00A00000) + properties() + "00004000 6400 0000 00000000" + names),
        (
            "signature Size",
            user(0x00A00000)
            + properties()
            + "0c000000 6400 0000 00000000"
            + names[:-8]
            + word(deep),
        ),
        ("HeaderDataLength", user(0x10200000) + properties() + "2003 0000 00002000" + SOAP),
        ("DataLength", user(0x02200000) + properties() + "f401 0000 00002000" + COMPOUND),
        (
            "HTTPBodySize",
            user(0x02200000) + properties() + ENVELOPE + "5802 0000 00004000 00000000 00000000",
        ),
    ]
    return [pytest.param(data, id=name) for name, data in claimed]


@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
@pytest.mark.parametrize("rest", claims())
def test_a_length_that_is_merely_claimed_allocates_nothing(rest: str) -> None:
    body = bytes.fromhex(rest)
    data = bytes.fromhex(base(16 + len(body))) + body
    for parse in (parse_packet, UserMessage.parse, MessageView):
        tracemalloc.start()
        try:
            with pytest.raises(WireError) as caught:
                parse(data)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 200_000
        assert caught.value.offset is not None
        assert 16 < caught.value.offset <= len(data)


@pytest.mark.spec("MS-MQQB 3.1.5.1.3", "MS-MQMQ 2.2.19.1")
def test_a_packet_size_that_is_merely_claimed_allocates_nothing() -> None:
    data = bytes.fromhex(base(0x00400000) + user(0x00200000) + properties(size=0x003FFF00))
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            MessageView(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000
