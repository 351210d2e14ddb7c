"""UserHeader: flags, and the three names with their alignment."""

from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.queues import (
    DirectQueueFormatName,
    PrivateQueueFormatName,
    PrivateQueueFormatNameId,
    PublicQueueFormatName,
    QueueFormat,
    write_queue,
)
from merq.wire.reader import Reader
from merq.wire.user import UserFields, UserFlags, UserHeader

SOURCE = UUID("03020100-0504-0706-0809-0a0b0c0d0e0f")
ADDRESS = UUID("13121110-1514-1716-1819-1a1b1c1d1e1f")
QUEUE = UUID("33221100-5544-7766-8899-aabbccddeeff")
QUEUE_HEX = "00112233 4455 6677 8899 aabbccddeeff"
# Source, address, TimeToBeReceived 60, SentTime 0x44556677, MessageID 2286.
FIXED = (
    "00010203 0405 0607 0809 0a0b0c0d0e0f 10111213 1415 1617 1819 1a1b1c1d1e1f"
    "3c000000 77665544 ee080000"
)
MP = 0x00200000
NAME = r"OS:h\q"
NAME_HEX = "0e00 4f00 5300 3a00 6800 5c00 7100 0000"
LONGER_NAME = r"OS:ho\q"
LONGER_NAME_HEX = "1000 4f00 5300 3a00 6800 6f00 5c00 7100 0000"


def with_flags(flags: int, rest: str = "") -> bytes:
    return bytes.fromhex(FIXED) + flags.to_bytes(4, "little") + bytes.fromhex(rest)


def read(data: bytes) -> UserHeader:
    reader = Reader(data)
    with reader.part("user_header"):
        header = UserHeader.unpack(reader)
        reader.finish()
    return header


def fields(flags: UserFlags) -> UserFields:
    return UserFields(
        source_queue_manager=SOURCE,
        queue_manager_address=ADDRESS,
        time_to_be_received=60,
        sent_time=0x44556677,
        message_id=2286,
        flags=flags,
    )


@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQMQ 2.2.18.1.5.1")
def test_a_header_for_a_private_queue_is_read_and_written() -> None:
    data = with_flags(0x00200C00, "2a000000")
    header = UserHeader(
        fields=fields(UserFlags(destination_queue_type=3)),
        destination_queue=PrivateQueueFormatNameId(private_queue_identifier=42),
    )
    assert read(data) == header
    assert header.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
@pytest.mark.parametrize(
    ("bits", "name", "value"),
    [
        (0x0000001D, "hop_count", 0x1D),
        (0x00000020, "delivery_mode", 1),
        (0x00000100, "negative_journaling", True),
        (0x00000200, "positive_journaling", True),
        (0x00001400, "destination_queue_type", 5),
        (0x0000C000, "admin_queue_type", 6),
        (0x00040000, "response_queue_type", 4),
        (0x00080000, "security_header", True),
        (0x00400000, "connector_type", True),
        (0x00800000, "multi_queue_format_header", True),
        (0x02000000, "from_http", True),
        (0x10000000, "soap_header", True),
    ],
)
def test_each_flag_of_a_user_header_has_its_bits(bits: int, name: str, value: int) -> None:
    flags = UserFlags.unpack(MP | bits)
    found = {field: getattr(flags, field) for field, _ in UserFlags.BITS}
    expected: dict[str, object] = dict.fromkeys(found, 0)
    assert found == expected | {"message_properties_header": True, name: value}
    assert flags.reserved == 0


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
def test_reserved_bits_of_a_user_header_are_ignored_and_kept() -> None:
    data = with_flags(MP | 0xED000080)
    header = read(data)
    assert header == read(with_flags(MP))
    assert header.fields.flags.reserved == 0xED000080
    assert header.pack() == data


@pytest.mark.spec(
    "MS-MQMQ 2.2.19.2",
    "MS-MQMQ 2.2.18.1.5.1",
    "MS-MQMQ 2.2.18.1.5.2",
    "MS-MQMQ 2.2.18.1.7.1",
    "MS-MQMQ 2.2.18.1.7.2",
)
@pytest.mark.parametrize(
    ("flags", "rest", "destination", "admin", "response"),
    [
        pytest.param(0, "", None, None, None, id="no names"),
        pytest.param(
            0x1400,
            QUEUE_HEX,
            PublicQueueFormatName(public_queue_identifier=QUEUE),
            None,
            None,
            id="DQ 5, public",
        ),
        pytest.param(
            0x1C00,
            NAME_HEX,
            DirectQueueFormatName(direct_format_name=NAME),
            None,
            None,
            id="DQ 7, direct",
        ),
        pytest.param(
            0x4000,
            "01000000",
            None,
            PrivateQueueFormatNameId(private_queue_identifier=1),
            None,
            id="AQ 2, private on the source",
        ),
        pytest.param(
            0x6000,
            "02000000",
            None,
            PrivateQueueFormatNameId(private_queue_identifier=2),
            None,
            id="AQ 3, private on the destination",
        ),
        pytest.param(
            0xA000,
            QUEUE_HEX,
            None,
            PublicQueueFormatName(public_queue_identifier=QUEUE),
            None,
            id="AQ 5, public",
        ),
        pytest.param(
            0xC000,
            QUEUE_HEX + "04030201",
            None,
            PrivateQueueFormatName(source_queue_manager=QUEUE, private_queue_identifier=0x01020304),
            None,
            id="AQ 6, private elsewhere",
        ),
        pytest.param(
            0xE000,
            NAME_HEX,
            None,
            DirectQueueFormatName(direct_format_name=NAME),
            None,
            id="AQ 7, direct",
        ),
        pytest.param(0x10000, "", None, None, None, id="RQ 1, same as the admin queue"),
        pytest.param(
            0x20000,
            "05000000",
            None,
            None,
            PrivateQueueFormatNameId(private_queue_identifier=5),
            id="RQ 2, private on the source",
        ),
        pytest.param(
            0x30000,
            "06000000",
            None,
            None,
            PrivateQueueFormatNameId(private_queue_identifier=6),
            id="RQ 3, private on the destination",
        ),
        pytest.param(
            0x40000,
            "07000000",
            None,
            None,
            PrivateQueueFormatNameId(private_queue_identifier=7),
            id="RQ 4, private on the admin queue's host",
        ),
        pytest.param(
            0x50000,
            QUEUE_HEX,
            None,
            None,
            PublicQueueFormatName(public_queue_identifier=QUEUE),
            id="RQ 5, public",
        ),
        pytest.param(
            0x60000,
            QUEUE_HEX + "ffffffff",
            None,
            None,
            PrivateQueueFormatName(source_queue_manager=QUEUE, private_queue_identifier=0xFFFFFFFF),
            id="RQ 6, private elsewhere",
        ),
        pytest.param(
            0x70000,
            LONGER_NAME_HEX + "0000",
            None,
            None,
            DirectQueueFormatName(direct_format_name=LONGER_NAME),
            id="RQ 7, direct",
        ),
        pytest.param(
            0x4EC00,
            "01000000" + LONGER_NAME_HEX + "0000" + "02000000",
            PrivateQueueFormatNameId(private_queue_identifier=1),
            DirectQueueFormatName(direct_format_name=LONGER_NAME),
            PrivateQueueFormatNameId(private_queue_identifier=2),
            id="all three, in their order",
        ),
    ],
)
@pytest.mark.spec("E09")
def test_each_type_of_name_has_its_form(
    flags: int,
    rest: str,
    destination: QueueFormat | None,
    admin: QueueFormat | None,
    response: QueueFormat | None,
) -> None:
    data = with_flags(MP | flags, rest)
    header = UserHeader(
        fields=fields(
            UserFlags(
                destination_queue_type=flags >> 10 & 7,
                admin_queue_type=flags >> 13 & 7,
                response_queue_type=flags >> 16 & 7,
            )
        ),
        destination_queue=destination,
        admin_queue=admin,
        response_queue=response,
    )
    assert read(data) == header
    assert header.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.18.1.5.2")
@pytest.mark.parametrize(
    ("name", "data", "filling"),
    [
        ("", "0200 0000", ""),
        ("a", "0400 6100 0000", "beef"),
        ("ab", "0600 6100 6200 0000", ""),
        ("abc", "0800 6100 6200 6300 0000", "beef"),
        ("\U0001f600", "0600 3dd8 00de 0000", ""),
    ],
)
def test_a_direct_name_is_filled_up_to_a_boundary_that_count_leaves_out(
    name: str, data: str, filling: str
) -> None:
    found = bytes.fromhex(data + filling)
    reader = Reader(found + b"next")
    queue = DirectQueueFormatName.unpack(reader)
    assert queue == DirectQueueFormatName(direct_format_name=name)
    assert queue.padding == bytes.fromhex(filling)
    assert reader.position == len(found)
    assert queue.pack() == found
    zeros = bytes(len(filling) // 2)
    assert DirectQueueFormatName(direct_format_name=name).pack() == bytes.fromhex(data) + zeros


@pytest.mark.spec("MS-MQMQ 2.2.18.1.5.2")
def test_a_direct_name_longer_than_its_count_can_say_is_not_written() -> None:
    longest = DirectQueueFormatName(direct_format_name="n" * 32766)
    assert longest.pack()[:2] == bytes.fromhex("feff")
    with pytest.raises(WireError, match="65536 bytes, at most 65535 fit") as caught:
        DirectQueueFormatName(direct_format_name="n" * 32767).pack()
    assert caught.value.field == "DirectQueueFormatName"


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
def test_a_connector_type_is_there_if_and_only_if_its_flag_is_set() -> None:
    data = with_flags(MP | 0x00400C00, "2a000000" + QUEUE_HEX)
    header = read(data)
    assert header.connector_type == QUEUE
    assert header.pack() == data
    for flag, connector in ((True, None), (False, QUEUE)):
        with pytest.raises(WireError, match="present together") as caught:
            UserHeader(
                fields=fields(UserFlags(connector_type=flag)),
                destination_queue=None,
                connector_type=connector,
            ).pack()
        assert caught.value.field == "UserHeader"


FLAGS_AT = 44


@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQQB 3.1.5.1.3")
@pytest.mark.parametrize(
    ("flags", "field"),
    [
        pytest.param(MP | 0x1E, "user_header.flags.hop_count", id="RC 0x1E"),
        pytest.param(MP | 0x1F, "user_header.flags.hop_count", id="RC 0x1F"),
        pytest.param(MP | 0x40, "user_header.flags.delivery_mode", id="DM 2"),
        pytest.param(MP | 0x60, "user_header.flags.delivery_mode", id="DM 3"),
        pytest.param(MP | 0x0400, "user_header.flags.destination_queue_type", id="DQ 1"),
        pytest.param(MP | 0x0800, "user_header.flags.destination_queue_type", id="DQ 2"),
        pytest.param(MP | 0x1000, "user_header.flags.destination_queue_type", id="DQ 4"),
        pytest.param(MP | 0x1800, "user_header.flags.destination_queue_type", id="DQ 6"),
        pytest.param(MP | 0x2000, "user_header.flags.admin_queue_type", id="AQ 1"),
        pytest.param(MP | 0x8000, "user_header.flags.admin_queue_type", id="AQ 4"),
        pytest.param(0, "user_header.flags", id="MP clear"),
        pytest.param(MP | 0x00100000, "user_header.flags", id="TH on an express message"),
    ],
)
def test_flags_that_the_document_forbids_are_refused(flags: int, field: str) -> None:
    # Enough bytes for any name, so that only the flags can be at fault.
    with pytest.raises(WireError) as caught:
        read(with_flags(flags, "00" * 64))
    assert (caught.value.offset, caught.value.field) == (FLAGS_AT, field)


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (UserFlags(message_properties_header=False), "MP is clear"),
        (UserFlags(transaction_header=True, delivery_mode=0), "TH is set on an express message"),
        (UserFlags(hop_count=0x1E), "0x1e is not one of"),
        (UserFlags(delivery_mode=2), "0x2 is not one of 0x0, 0x1"),
        (UserFlags(destination_queue_type=1), "0x1 is not one of 0x0, 0x3, 0x5, 0x7"),
        (UserFlags(admin_queue_type=4), "0x4 is not one of 0x0, 0x2, 0x3, 0x5, 0x6, 0x7"),
    ],
)
def test_flags_that_the_document_forbids_are_not_written(flags: UserFlags, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        UserHeader(fields=fields(flags), destination_queue=None).pack()


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
def test_a_transactional_message_may_be_recoverable() -> None:
    assert read(with_flags(MP | 0x00100020)).fields.flags.transaction_header is True


@pytest.mark.spec("MS-MQMQ 2.2.18.1.5.1", "MS-MQMQ 2.2.18.1.5.2", "MS-MQMQ 2.2.18.1.7.1")
@pytest.mark.parametrize(
    ("flags", "rest", "offset", "field"),
    [
        (0x0C00, "2a0000", 48, "user_header.destination_queue"),
        (0x1400, QUEUE_HEX[:-2], 48, "user_header.destination_queue"),
        (0xC000, QUEUE_HEX + "010203", 48, "user_header.admin_queue"),
        (0x1C00, "0e", 48, "user_header.destination_queue.count"),
        (0x1C00, NAME_HEX[:-4], 50, "user_header.destination_queue.direct_format_name"),
        (0x1C00, "0000 0000", 50, "user_header.destination_queue.direct_format_name"),
        (0x1C00, "0400 6100 6200", 50, "user_header.destination_queue.direct_format_name"),
        (0x1C00, "0300 610000 000000", 50, "user_header.destination_queue.direct_format_name"),
        (0x1C00, "0600 6100 0000 0000", 50, "user_header.destination_queue.direct_format_name"),
        (0x1C00, "0400 6100 0000", 54, "user_header.destination_queue.padding"),
        (0x1C00, "ffff 6100 0000", 50, "user_header.destination_queue.direct_format_name"),
        (0x4EC00, "01000000 0400 6100 6200", 54, "user_header.admin_queue.direct_format_name"),
        (0x50000, QUEUE_HEX[:-2], 48, "user_header.response_queue"),
        (0x00400000, QUEUE_HEX[:-2], 48, "user_header.connector_type"),
    ],
)
def test_a_name_that_is_cut_off_or_no_text_is_refused(
    flags: int, rest: str, offset: int, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        read(with_flags(MP | flags, rest))
    assert (caught.value.offset, caught.value.field) == (offset, field)


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
@pytest.mark.parametrize(
    ("kind", "queue"),
    [
        (0, PrivateQueueFormatNameId(private_queue_identifier=1)),
        (1, PrivateQueueFormatNameId(private_queue_identifier=1)),
        (2, None),
        (3, PublicQueueFormatName(public_queue_identifier=QUEUE)),
        (5, PrivateQueueFormatNameId(private_queue_identifier=1)),
        (6, PublicQueueFormatName(public_queue_identifier=QUEUE)),
        (7, PrivateQueueFormatNameId(private_queue_identifier=1)),
    ],
)
def test_a_name_of_another_form_than_its_type_is_not_written(
    kind: int, queue: QueueFormat | None
) -> None:
    with pytest.raises(WireError, match=f"type {kind}") as caught:
        write_queue(queue, kind, "response_queue")
    assert caught.value.field == "response_queue"
