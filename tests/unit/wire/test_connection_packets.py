"""EstablishConnection, ConnectionParameters and SessionAck packets."""

from dataclasses import replace
from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.connection import (
    ConnectionParameters,
    ConnectionParametersHeader,
    EstablishConnection,
    EstablishConnectionHeader,
    InternalFlags,
    InternalHeader,
    OperatingSystemFlags,
    SessionAck,
)
from merq.wire.headers import SessionHeader
from merq.wire.packet import parse_packet

CLIENT = UUID("33221100-5544-7766-8899-aabbccddeeff")
SERVER = UUID("f3f2f1f0-f5f4-f7f6-f8f9-fafbfcfdfeff")
CLIENT_HEX = "00112233 4455 6677 8899 aabbccddeeff"
SERVER_HEX = "f0f1f2f3 f4f5 f6f7 f8f9 fafbfcfdfeff"
BASE = "10 00 0b00 4c494f52 {size} ffffffff"
ESTABLISH = BASE.format(size="3c020000") + "0000 0200" + CLIENT_HEX + SERVER_HEX
PARAMETERS = BASE.format(size="20000000") + "0000 0300"
ACK_BASE = "10 00 1b00 4c494f52 24000000 ffffffff 0000 0100"
SESSION = "0100 0200 03000000 0400 0500 4000 0000"


@pytest.mark.spec("MS-MQQB 2.2.1")
@pytest.mark.parametrize(
    ("flags", "kind", "refused"), [("0100", 1, False), ("0200", 2, False), ("1300", 3, True)]
)
def test_an_internal_header_has_a_type_and_may_refuse(flags: str, kind: int, refused: bool) -> None:
    data = bytes.fromhex("0000" + flags)
    header = InternalHeader(flags=InternalFlags(packet_type=kind, refused=refused))
    assert InternalHeader.parse(data) == header
    assert header.pack() == data


@pytest.mark.spec("MS-MQQB 2.2.1")
def test_reserved_bits_of_an_internal_header_are_ignored_and_kept() -> None:
    data = bytes.fromhex("beef e2ff")
    header = InternalHeader.parse(data)
    assert header == InternalHeader(flags=InternalFlags(packet_type=2))
    assert (header.reserved, header.flags.reserved) == (0xEFBE, 0xFFE0)
    assert header.pack() == data


@pytest.mark.spec("MS-MQQB 2.2.1", "MS-MQQB 3.1.5.1.1")
@pytest.mark.parametrize("kind", [0, 4, 5, 8, 15])
def test_a_packet_type_that_the_document_does_not_have_is_refused(kind: int) -> None:
    data = bytes.fromhex(f"{BASE.format(size='20000000')} 0000 {kind:02x}00" + "00" * 12)
    with pytest.raises(WireError, match=f"{kind:#x} is not one of 0x1, 0x2, 0x3") as caught:
        parse_packet(data)
    assert (caught.value.offset, caught.value.field) == (18, "internal_header.flags.packet_type")
    with pytest.raises(WireError, match="is not one of"):
        InternalHeader(flags=InternalFlags(packet_type=kind)).pack()


# EstablishConnection


@pytest.mark.spec("MS-MQQB 2.2.3", "MS-MQQB 2.2.3.1")
def test_a_request_for_a_session_is_read_and_written() -> None:
    data = bytes.fromhex(ESTABLISH + "04030201 1007 0000" + "00" * 512)
    packet = EstablishConnection.of(
        EstablishConnectionHeader(
            client_guid=CLIENT,
            server_guid=SERVER,
            time_stamp=0x01020304,
            operating_system=OperatingSystemFlags(
                without_ping=True, server_class=True, quality_of_service=True
            ),
        )
    )
    assert len(data) == 572
    assert parse_packet(data) == packet
    assert packet.pack() == data


@pytest.mark.spec("MS-MQQB 2.2.3.1", "MS-MQQB 2.2.1")
def test_a_refusal_has_cs_set() -> None:
    header = EstablishConnectionHeader(
        client_guid=CLIENT,
        server_guid=SERVER,
        time_stamp=0,
        operating_system=OperatingSystemFlags(),
        padding=b"\x5a" * 512,
    )
    data = EstablishConnection.of(header, refused=True, base_reserved=0x5A).pack()
    assert data[:20] == bytes.fromhex("10 5a 0b00 4c494f52 3c020000 ffffffff 0000 1200")
    packet = parse_packet(data)
    assert isinstance(packet, EstablishConnection)
    assert packet.internal_header.flags.refused is True


@pytest.mark.spec("MS-MQQB 2.2.3.1")
@pytest.mark.parametrize(
    ("bits", "name"),
    [(0x0110, "without_ping"), (0x0210, "server_class"), (0x0410, "quality_of_service")],
)
def test_each_flag_of_the_operating_system_has_its_bit(bits: int, name: str) -> None:
    flags = OperatingSystemFlags.unpack(bits)
    assert flags.fixed == 0x10
    known = ("without_ping", "server_class", "quality_of_service")
    assert [field for field in known if getattr(flags, field)] == [name]
    assert flags.reserved == 0


@pytest.mark.spec("MS-MQQB 2.2.3.1")
def test_reserved_fields_and_padding_of_a_request_are_ignored_and_kept() -> None:
    garbage = bytes(range(256)) * 2
    data = bytes.fromhex(ESTABLISH + "04030201 10f8 beef") + garbage
    packet = parse_packet(data)
    assert isinstance(packet, EstablishConnection)
    assert packet == parse_packet(bytes.fromhex(ESTABLISH + "04030201 1000 0000") + bytes(512))
    assert packet.header.padding == garbage
    assert packet.header.reserved == 0xEFBE
    assert packet.header.operating_system.reserved == 0xF800
    assert packet.pack() == data


@pytest.mark.spec("MS-MQQB 2.2.3")
def test_a_request_that_is_cut_off_or_too_long_is_refused() -> None:
    whole = bytes.fromhex(ESTABLISH + "04030201 1000 0000" + "00" * 512)
    with pytest.raises(WireError, match="552 bytes are needed, 551 are left") as caught:
        parse_packet(whole[:-1])
    assert (caught.value.offset, caught.value.field) == (20, "establish_connection_header")
    with pytest.raises(WireError, match="1 bytes are left over") as caught:
        parse_packet(whole + b"\0")
    assert caught.value.offset == 572


# ConnectionParameters


@pytest.mark.spec("MS-MQQB 2.2.2", "MS-MQQB 2.2.2.1")
def test_connection_parameters_are_read_and_written() -> None:
    data = bytes.fromhex(PARAMETERS + "f4010000 204e0000 0000 2000")
    packet = ConnectionParameters.of(
        ConnectionParametersHeader(recoverable_ack_timeout=500, ack_timeout=20000, window_size=32)
    )
    assert parse_packet(data) == packet
    assert packet.pack() == data


@pytest.mark.spec("MS-MQQB 2.2.2.1")
@pytest.mark.parametrize(
    "header",
    [
        "f4010000 204e0000 0000 0000",
        "c0d40100 c0d40100 0000 ffff",
        "00000000 204e0000 0000 4000",
        "f4010000 ffffffff 0000 4000",
    ],
)
def test_time_outs_in_and_out_of_their_ranges_are_read_as_they_are(header: str) -> None:
    data = bytes.fromhex(PARAMETERS + header)
    assert parse_packet(data).pack() == data


@pytest.mark.spec("MS-MQQB 2.2.2.1")
def test_the_reserved_field_of_connection_parameters_is_ignored_and_kept() -> None:
    data = bytes.fromhex(PARAMETERS + "f4010000 204e0000 beef 4000")
    packet = parse_packet(data)
    assert packet == parse_packet(bytes.fromhex(PARAMETERS + "f4010000 204e0000 0000 4000"))
    assert packet.pack() == data


@pytest.mark.spec("MS-MQQB 2.2.2")
def test_connection_parameters_that_are_cut_off_or_too_long_are_refused() -> None:
    whole = bytes.fromhex(PARAMETERS + "f4010000 204e0000 0000 4000")
    with pytest.raises(WireError, match="12 bytes are needed, 11 are left") as caught:
        parse_packet(whole[:-1])
    assert (caught.value.offset, caught.value.field) == (20, "connection_parameters_header")
    with pytest.raises(WireError, match="4 bytes are left over") as caught:
        parse_packet(whole + bytes(4))
    assert caught.value.offset == 32


# SessionAck


@pytest.mark.spec("MS-MQQB 2.2.6", "MS-MQMQ 2.2.20.4")
def test_a_session_acknowledgment_is_read_and_written() -> None:
    data = bytes.fromhex(ACK_BASE + SESSION)
    packet = SessionAck.of(
        SessionHeader(
            ack_sequence_number=1,
            recoverable_msg_ack_seq_number=2,
            recoverable_msg_ack_flags=3,
            user_msg_sequence_number=4,
            recoverable_msg_seq_number=5,
            window_size=64,
        )
    )
    assert len(data) == 36
    assert parse_packet(data) == packet
    assert packet.pack() == data


@pytest.mark.spec("MS-MQQB 2.2.6", "MS-MQMQ 2.2.20.4")
def test_a_session_acknowledgment_with_a_window_of_0_is_refused() -> None:
    data = bytes.fromhex(ACK_BASE + "0100 0000 00000000 0000 0000 0000 0000")
    with pytest.raises(WireError, match=r"0x0 is outside 0x1\.\.0xffff") as caught:
        parse_packet(data)
    assert (caught.value.offset, caught.value.field) == (32, "session_header.window_size")


@pytest.mark.spec("MS-MQQB 2.2.6", "MS-MQQB 3.1.5.1.1")
def test_a_session_acknowledgment_without_sh_is_refused() -> None:
    data = bytes.fromhex("10 00 0b00 4c494f52 24000000 ffffffff 0000 0100" + SESSION)
    with pytest.raises(WireError, match="SH is clear in a SessionAck packet") as caught:
        parse_packet(data)
    assert caught.value.field.startswith("base_header")


# What holds for all three


@pytest.mark.spec("MS-MQMQ 2.2.19.1", "MS-MQQB 2.2.6", "MS-MQQB 2.2.2")
@pytest.mark.parametrize("size", ["14000000", "23000000", "25000000", "34000000", "00004000"])
def test_a_packet_size_that_is_not_the_internal_packets_is_refused(size: str) -> None:
    data = bytes.fromhex(f"10 00 1b00 4c494f52 {size} ffffffff 0000 0100" + SESSION)
    with pytest.raises(WireError, match="the packet has 36 bytes") as caught:
        parse_packet(data)
    assert caught.value.field.startswith("base_header")


@pytest.mark.spec("MS-MQQB 2.2.1", "MS-MQQB 2.2.2", "MS-MQQB 2.2.3", "MS-MQQB 2.2.6")
def test_an_internal_packet_that_contradicts_itself_is_not_written() -> None:
    packet = parse_packet(bytes.fromhex(ACK_BASE + SESSION))
    assert isinstance(packet, SessionAck)
    base, internal = packet.base_header, packet.internal_header
    for wrong, reason in (
        (
            replace(packet, base_header=replace(base, flags=replace(base.flags, internal=False))),
            "IN is clear",
        ),
        (
            replace(
                packet, base_header=replace(base, flags=replace(base.flags, session_header=False))
            ),
            "SH is clear",
        ),
        (
            replace(
                packet,
                internal_header=replace(internal, flags=replace(internal.flags, packet_type=2)),
            ),
            "PT is 2, not 1",
        ),
        (
            replace(packet, base_header=replace(base, packet_size=20)),
            "PacketSize is 20, the packet has 36 bytes",
        ),
    ):
        with pytest.raises(WireError, match=reason) as caught:
            wrong.pack()
        assert caught.value.field.startswith("SessionAck.")
