"""The bytes that digital signatures are about, built by hand from the document's lists."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from merq.model.names import PrivateName, PublicName
from merq.wire.build import Outline, build_packet
from merq.wire.message import UserMessage
from merq.wire.signatures import hashed_by_msmq_1, hashed_by_msmq_2, hashed_by_msmq_3

SOURCE = UUID("00112233-4455-6677-8899-aabbccddeeff")
CORRELATION = bytes(range(20))
OUTLINE = Outline(
    destination="OS:b\\q",
    source_queue_manager=SOURCE.bytes_le,
    body=b"body",
    body_type=0x11,
    label="Lé",
    priority=5,
    recoverable=True,
    admin_queue="OS:a\\p",
    response_queue="OS:r\\sx",
    acknowledgments=0x0D,
    positive_journaling=True,
    negative_journaling=True,
    correlation_id=CORRELATION,
    application_tag=0x01020304,
    message_class=0x8002,
    extension=b"ext",
)
COMMON = (
    CORRELATION.hex()
    + "04030201"  # ApplicationTag
    + b"body".hex()
    + "4c00 e900 0000"  # Label, with its null
    + "1000 4f00 5300 3a00 7200 5c00 7300 7800 0000"  # ResponseQueue, its count before it
    + "0e00 4f00 5300 3a00 6100 5c00 7000 0000"  # AdminQueue
)
DELIVERY = (
    "33221100 5544 7766 8899 aabbccddeeff"  # SourceQueueManager
    "01"  # DM: recoverable
    "05"  # PR
    "03"  # JP and JN
    "0d"  # PA, NA and NR
    "0280"  # MessageClass
    "11000000"  # BodyType
)
DESTINATION = "0e00 4f00 5300 3a00 6200 5c00 7100 0000"


def message(outline: Outline = OUTLINE) -> UserMessage:
    return UserMessage.parse(build_packet(outline))


@pytest.mark.spec("MS-MQMQ 2.5.1")
def test_the_first_signature_is_about_what_the_application_said() -> None:
    assert hashed_by_msmq_1(message()) == bytes.fromhex(COMMON)


@pytest.mark.spec("MS-MQMQ 2.5.2")
def test_the_second_is_also_about_who_sends_how_and_where_to() -> None:
    assert hashed_by_msmq_2(message()) == bytes.fromhex(COMMON + DELIVERY + DESTINATION)


@pytest.mark.spec("MS-MQMQ 2.5.3")
def test_the_third_is_about_the_extension_and_all_destinations_too() -> None:
    outline = replace(OUTLINE, destinations=("OS:b\\q", PublicName(queue=SOURCE), "OS:cc\\q"))
    names = (
        "0300 4f00 5300 3a00 6200 5c00 7100 0000"  # direct, ended by its null
        # 28 bytes into the header a public one: its GUID begins on a boundary.
        "0100 0000 33221100 5544 7766 8899aabbccddeeff"
        "0300 4f00 5300 3a00 6300 6300 5c00 7100 0000"
    )
    expected = COMMON + b"ext".hex() + names + DELIVERY
    assert hashed_by_msmq_3(message(outline)) == bytes.fromhex(expected)


@pytest.mark.spec("MS-MQMQ 2.5.3")
def test_the_third_of_a_message_to_one_queue_names_no_destination() -> None:
    expected = COMMON + b"ext".hex() + DELIVERY
    assert hashed_by_msmq_3(message()) == bytes.fromhex(expected)


@pytest.mark.spec("MS-MQMQ 2.5.3")
def test_the_third_is_the_same_for_every_copy_of_a_message() -> None:
    everybody = ("OS:b\\q", "OS:c\\q")
    first = replace(OUTLINE, destinations=everybody)
    second = replace(first, destination="OS:c\\q")
    assert hashed_by_msmq_3(message(first)) == hashed_by_msmq_3(message(second))
    assert hashed_by_msmq_2(message(first)) != hashed_by_msmq_2(message(second))


@pytest.mark.spec("MS-MQMQ 2.5.1", "MS-MQMQ 2.5.2")
@pytest.mark.spec("E98")
def test_fields_that_a_message_does_not_have_add_nothing() -> None:
    plain = message(Outline(destination="OS:b\\q", source_queue_manager=SOURCE.bytes_le))
    assert hashed_by_msmq_1(plain) == bytes(24)
    delivery = "33221100 5544 7766 8899 aabbccddeeff 00 03 00 00 0000 00000000"
    assert hashed_by_msmq_2(plain) == bytes(24) + bytes.fromhex(delivery + DESTINATION)


@pytest.mark.spec("MS-MQMQ 2.5.2")
@pytest.mark.parametrize(
    ("changed", "at", "value"),
    [
        ({"recoverable": False}, 16, 0),
        ({"priority": 0}, 17, 0),
        ({"positive_journaling": False}, 18, 1),
        ({"negative_journaling": False}, 18, 2),
        ({"acknowledgments": 2}, 19, 2),
    ],
)
def test_each_way_of_delivery_is_a_byte(changed: dict[str, object], at: int, value: int) -> None:
    other = replace(OUTLINE, **changed)  # type: ignore[arg-type]
    expected = bytearray(hashed_by_msmq_2(message()))
    expected[len(bytes.fromhex(COMMON)) + at] = value
    assert hashed_by_msmq_2(message(other)) == bytes(expected)


@pytest.mark.spec("MS-MQMQ 2.5.2", "MS-MQMQ 2.5.3")
def test_the_connector_type_stands_before_the_destination() -> None:
    sent = message()
    fields = sent.user_header.fields
    flags = replace(fields.flags, connector_type=True)
    header = replace(
        sent.user_header, fields=replace(fields, flags=flags), connector_type=UUID(int=7)
    )
    connected = replace(sent, user_header=header)
    connector = UUID(int=7).bytes_le.hex()
    assert hashed_by_msmq_2(connected) == bytes.fromhex(COMMON + DELIVERY + connector + DESTINATION)
    assert hashed_by_msmq_3(connected).endswith(bytes.fromhex(DELIVERY + connector))


@pytest.mark.spec("MS-MQMQ 2.5.1", "MS-MQMQ 2.5.2")
def test_other_forms_of_names_are_hashed_as_they_lie_in_the_packet() -> None:
    names = replace(
        OUTLINE,
        destination=PublicName(queue=SOURCE),
        admin_queue=PrivateName(computer=SOURCE, number=0x12),
        response_queue="",
    )
    guid = "33221100 5544 7766 8899 aabbccddeeff"
    sent = message(names)
    admin = sent.user_header.admin_queue
    assert admin is not None
    start = CORRELATION.hex() + "04030201" + b"body".hex() + "4c00 e900 0000"
    assert hashed_by_msmq_1(sent) == bytes.fromhex(start) + admin.pack()
    assert hashed_by_msmq_2(sent).endswith(bytes.fromhex(DELIVERY + guid))


@pytest.mark.spec("MS-MQMQ 2.5.1")
def test_the_clear_body_is_hashed_where_the_packet_has_another() -> None:
    expected = COMMON.replace(b"body".hex(), b"clear".hex())
    assert hashed_by_msmq_1(message(), b"clear") == bytes.fromhex(expected)
