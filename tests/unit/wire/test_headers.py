"""BaseHeader, SessionHeader, TransactionHeader, DebugHeader and the identifiers in them."""

from typing import Any
from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.headers import (
    BaseFlags,
    BaseHeader,
    DebugFields,
    DebugFlags,
    DebugHeader,
    MessageIdentifier,
    SessionHeader,
    TransactionFields,
    TransactionFlags,
    TransactionHeader,
    TxSequenceID,
)
from merq.wire.reader import Reader

GUID = UUID("33221100-5544-7766-8899-aabbccddeeff")
GUID_HEX = "00112233 4455 6677 8899 aabbccddeeff"


def refused(parse: Any, data: str) -> WireError:
    with pytest.raises(WireError) as caught:
        parse(bytes.fromhex(data))
    return caught.value


# BaseHeader


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_a_base_header_of_a_message_is_read_and_written() -> None:
    data = bytes.fromhex("10 00 3501 4c494f52 78563400 80510100")
    header = BaseHeader(
        version_number=0x10,
        reserved=0,
        flags=BaseFlags(priority=5, session_header=True, debug_header=True, traced=True),
        signature=0x524F494C,
        packet_size=0x345678,
        time_to_reach_queue=86400,
    )
    assert BaseHeader.parse(data) == header
    assert header.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
@pytest.mark.parametrize(
    ("bits", "name", "value"),
    [
        ("0000", "priority", 0),
        ("0700", "priority", 7),
        ("0800", "internal", True),
        ("1000", "session_header", True),
        ("2000", "debug_header", True),
        ("0001", "traced", True),
    ],
)
def test_each_flag_of_a_base_header_has_its_bit(bits: str, name: str, value: int) -> None:
    header = BaseHeader.parse(bytes.fromhex(f"1000 {bits} 4c494f52 10000000 ffffffff"))
    found = {field: getattr(header.flags, field) for field, _ in BaseFlags.BITS}
    nothing: dict[str, object] = dict.fromkeys(found, False) | {"priority": 0}
    assert found == nothing | {name: value}
    assert header.flags.reserved == 0


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_reserved_bits_of_a_base_header_are_ignored_and_kept() -> None:
    data = bytes.fromhex("10 a5 c3fe 4c494f52 14000000 ffffffff")
    header = BaseHeader.parse(data)
    assert header == BaseHeader(flags=BaseFlags(priority=3), packet_size=20)
    assert header.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_a_new_message_has_priority_3_and_may_take_for_ever() -> None:
    header = BaseHeader(flags=BaseFlags(), packet_size=16)
    assert header.pack() == bytes.fromhex("10 00 0300 4c494f52 10000000 ffffffff")


@pytest.mark.spec("MS-MQMQ 2.2.19.1", "MS-MQQB 3.1.5.1.2")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        ("11 00 0300 4c494f52 10000000 ffffffff", 0, "BaseHeader.version_number"),
        ("00 00 0300 4c494f52 10000000 ffffffff", 0, "BaseHeader.version_number"),
        ("10 00 0300 524f494c 10000000 ffffffff", 4, "BaseHeader.signature"),
        ("10 00 0300 00000000 10000000 ffffffff", 4, "BaseHeader.signature"),
        ("10 00 0300 4c494f52 0f000000 ffffffff", 8, "BaseHeader.packet_size"),
        ("10 00 0300 4c494f52 00000000 ffffffff", 8, "BaseHeader.packet_size"),
        ("10 00 0300 4c494f52 01004000 ffffffff", 8, "BaseHeader.packet_size"),
        ("10 00 0300 4c494f52 ffffffff ffffffff", 8, "BaseHeader.packet_size"),
        ("10 00 0300 4c494f52 10000000 ffffff", 0, "BaseHeader"),
        ("10 00 0300 4c494f52 10000000 ffffffff 00", 16, "BaseHeader"),
        ("", 0, "BaseHeader"),
    ],
)
def test_a_base_header_that_opens_no_packet_is_refused(data: str, offset: int, field: str) -> None:
    wrong = refused(BaseHeader.parse, data)
    assert (wrong.offset, wrong.field) == (offset, field)


@pytest.mark.spec("MS-MQMQ 2.2.19.1")
def test_a_packet_of_4_mib_is_the_largest() -> None:
    largest = bytes.fromhex("10 00 0300 4c494f52 00004000 ffffffff")
    assert BaseHeader.parse(largest).packet_size == 0x00400000
    with pytest.raises(WireError, match=r"0x400001 is outside 0x10\.\.0x400000"):
        BaseHeader(flags=BaseFlags(), packet_size=0x00400001).pack()


# SessionHeader


@pytest.mark.spec("MS-MQMQ 2.2.20.4")
def test_a_session_header_is_read_and_written() -> None:
    data = bytes.fromhex("0200 0403 08070605 0a09 0c0b 4000 beef")
    header = SessionHeader.parse(data)
    assert header == SessionHeader(
        ack_sequence_number=2,
        recoverable_msg_ack_seq_number=0x0304,
        recoverable_msg_ack_flags=0x05060708,
        user_msg_sequence_number=0x090A,
        recoverable_msg_seq_number=0x0B0C,
        window_size=64,
    )
    assert header.reserved == 0xEFBE
    assert header.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.4")
def test_a_window_is_from_1_to_65535() -> None:
    for window, expected in (("0100", 1), ("ffff", 0xFFFF)):
        data = bytes.fromhex("00000000 00000000 00000000" + window + "0000")
        assert SessionHeader.parse(data).window_size == expected
    wrong = refused(SessionHeader.parse, "00000000 00000000 00000000 0000 0000")
    assert (wrong.offset, wrong.field) == (12, "SessionHeader.window_size")


# Identifiers


@pytest.mark.spec("MS-MQMQ 2.2.18.1.2")
def test_a_sequence_is_compared_as_time_stamp_above_ordinal() -> None:
    data = bytes.fromhex("04030201 0d0c0b0a")
    sequence = TxSequenceID.parse(data)
    assert sequence == TxSequenceID(ordinal=0x01020304, time_stamp=0x0A0B0C0D)
    assert int(sequence) == 0x0A0B0C0D_01020304 == int.from_bytes(data, "little")
    assert TxSequenceID.of(0x0A0B0C0D_01020304) == sequence
    assert sequence.pack() == data
    later = TxSequenceID(ordinal=0, time_stamp=0x0A0B0C0E)
    assert int(later) > int(sequence)


@pytest.mark.spec("MS-MQMQ 2.2.18.1.3")
def test_a_message_identifier_is_a_queue_manager_and_a_number() -> None:
    data = bytes.fromhex(GUID_HEX + "ee080000")
    identifier = MessageIdentifier.parse(data)
    assert identifier == MessageIdentifier(queue_manager_guid=GUID, ordinal=2286)
    assert identifier.pack() == data
    assert str(identifier) == r"{33221100-5544-7766-8899-aabbccddeeff}\2286"
    wrong = refused(MessageIdentifier.parse, GUID_HEX + "ee0800")
    assert (wrong.offset, wrong.field) == (0, "MessageIdentifier")


# TransactionHeader


def transaction(data: bytes) -> TransactionHeader:
    reader = Reader(data)
    with reader.part("transaction_header"):
        header = TransactionHeader.unpack(reader)
        reader.finish()
    return header


SEQUENCE = TxSequenceID(ordinal=7, time_stamp=0x11223344)


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
def test_a_transaction_header_is_read_and_written() -> None:
    data = bytes.fromhex("3e2a1b00 07000000 44332211 05000000 04000000")
    header = TransactionHeader(
        fields=TransactionFields(
            flags=TransactionFlags(
                connector_guid=False,
                final_ack_required=True,
                first_message=True,
                last_message=True,
                identifier=0x1B2A3,
            ),
            tx_sequence_id=SEQUENCE,
            tx_sequence_number=5,
            previous_tx_sequence_number=4,
        )
    )
    assert transaction(data) == header
    assert header.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        ("02000000", "final_ack_required", True),
        ("04000000", "first_message", True),
        ("08000000", "last_message", True),
        ("f0ffff00", "identifier", 0xFFFFF),
        ("10000000", "identifier", 1),
    ],
)
def test_each_flag_of_a_transaction_header_has_its_bit(flags: str, name: str, value: int) -> None:
    header = transaction(bytes.fromhex(flags + "0000000000000000 01000000 00000000"))
    found = {field: getattr(header.fields.flags, field) for field, _ in TransactionFlags.BITS}
    nothing: dict[str, object] = dict.fromkeys(found, False) | {"identifier": 0}
    assert found == nothing | {name: value}


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
def test_a_connector_is_there_if_and_only_if_its_flag_is_set() -> None:
    data = bytes.fromhex("010000ff 07000000 44332211 01000000 00000000" + GUID_HEX)
    header = transaction(data)
    assert header.connector_qm_guid == GUID
    assert header.fields.flags.connector_guid is True
    assert header.fields.flags.reserved == 0xFF000000
    assert header.pack() == data
    for flag, guid in ((True, None), (False, GUID)):
        fields = TransactionFields(
            flags=TransactionFlags(connector_guid=flag),
            tx_sequence_id=SEQUENCE,
            tx_sequence_number=1,
            previous_tx_sequence_number=0,
        )
        with pytest.raises(WireError, match="present together") as caught:
            TransactionHeader(fields=fields, connector_qm_guid=guid).pack()
        assert caught.value.field == "TransactionHeader"


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        (
            "00000000 0700000044332211 00000000 00000000",
            12,
            "transaction_header.tx_sequence_number",
        ),
        (
            "00000000 0700000044332211 01000000 ffffffff",
            16,
            "transaction_header.previous_tx_sequence_number",
        ),
        ("00000000 0700000044332211 01000000 000000", 0, "transaction_header"),
        (
            "01000000 0700000044332211 01000000 00000000 00112233",
            20,
            "transaction_header.connector_qm_guid",
        ),
    ],
)
def test_a_transaction_header_out_of_range_or_cut_off_is_refused(
    data: str, offset: int, field: str
) -> None:
    wrong = refused(transaction, data)
    assert (wrong.offset, wrong.field) == (offset, field)


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
def test_the_last_numbers_of_a_sequence_are_in_range() -> None:
    header = transaction(bytes.fromhex("00000000 0000000000000000 ffffffff feffffff"))
    assert header.fields.tx_sequence_number == 0xFFFFFFFF
    assert header.fields.previous_tx_sequence_number == 0xFFFFFFFE


# DebugHeader


def debug(data: bytes) -> DebugHeader:
    reader = Reader(data)
    with reader.part("debug_header"):
        header = DebugHeader.unpack(reader)
        reader.finish()
    return header


@pytest.mark.spec("MS-MQMQ 2.2.20.8")
def test_a_debug_header_names_a_public_queue_or_none() -> None:
    named, nameless = bytes.fromhex("0100 0000" + GUID_HEX), bytes.fromhex("0000 0000")
    header = DebugHeader(fields=DebugFields(flags=DebugFlags(queue_type=1)), queue_identifier=GUID)
    assert debug(named) == header
    assert header.pack() == named
    assert debug(nameless) == DebugHeader(fields=DebugFields(flags=DebugFlags(queue_type=0)))
    assert DebugHeader(fields=DebugFields(flags=DebugFlags())).pack() == nameless


@pytest.mark.spec("MS-MQMQ 2.2.20.8")
def test_reserved_bits_of_a_debug_header_are_ignored_and_kept() -> None:
    data = bytes.fromhex("fdff cdab" + GUID_HEX)
    header = debug(data)
    assert header == debug(bytes.fromhex("0100 0000" + GUID_HEX))
    assert (header.fields.flags.reserved, header.fields.reserved) == (0xFFFC, 0xABCD)
    assert header.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.8")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        ("0200 0000" + GUID_HEX, 0, "debug_header.flags.queue_type"),
        ("0300 0000" + GUID_HEX, 0, "debug_header.flags.queue_type"),
        ("0100 0000 0011", 4, "debug_header.queue_identifier"),
        ("0000 0000" + GUID_HEX, 4, "debug_header"),
        ("0000 00", 0, "debug_header"),
    ],
)
def test_a_debug_header_of_another_form_is_refused(data: str, offset: int, field: str) -> None:
    wrong = refused(debug, data)
    assert (wrong.offset, wrong.field) == (offset, field)


@pytest.mark.spec("MS-MQMQ 2.2.20.8")
@pytest.mark.parametrize(("kind", "queue"), [(0, GUID), (1, None)])
def test_a_debug_header_whose_flag_and_queue_disagree_is_not_written(
    kind: int, queue: UUID | None
) -> None:
    header = DebugHeader(
        fields=DebugFields(flags=DebugFlags(queue_type=kind)), queue_identifier=queue
    )
    with pytest.raises(WireError, match="present together") as caught:
        header.pack()
    assert caught.value.field == "DebugHeader"
