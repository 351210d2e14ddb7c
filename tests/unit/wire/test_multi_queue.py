"""MultiQueueFormatHeader: lists of names, where GUIDs are aligned and direct names are not."""

from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.multiqueue import (
    MQFAddressHeader,
    MQFDirectQueueFormatName,
    MQFDistributionQueueFormatName,
    MQFFormatName,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from merq.wire.queues import PrivateQueueFormatName, PublicQueueFormatName
from merq.wire.reader import Reader

QUEUE = UUID("33221100-5544-7766-8899-aabbccddeeff")
QUEUE_HEX = "00112233 4455 6677 8899 aabbccddeeff"
EMPTY_DESTINATION = "0c000000 6400 0000 00000000"
EMPTY_ADMIN = "0c000000 c800 0000 00000000"
EMPTY_RESPONSE = "0c000000 2c01 0000 00000000"
EMPTY_SIGNATURE = "5e01 0000 00000000"
AFTER = EMPTY_ADMIN + EMPTY_RESPONSE + EMPTY_SIGNATURE
WHERE = "multi_queue_format_header"

PUBLIC = PublicQueueFormatName(public_queue_identifier=QUEUE)
PRIVATE = PrivateQueueFormatName(source_queue_manager=QUEUE, private_queue_identifier=9)
LIST = MQFDistributionQueueFormatName(distribution_list_identifier=QUEUE)


def direct(name: str) -> MQFDirectQueueFormatName:
    return MQFDirectQueueFormatName(direct_format_name=name)


def read(data: bytes) -> MultiQueueFormatHeader:
    reader = Reader(data)
    with reader.part(WHERE):
        header = MultiQueueFormatHeader.unpack(reader)
        reader.finish()
    return header


def names(*of: MQFFormatName, header_id: int) -> MQFAddressHeader:
    elements = tuple(MQFFormatNameElement(format_name=name) for name in of)
    return MQFAddressHeader(header_id=header_id, format_name_list=elements)


def header(*destinations: MQFFormatName, signature: bytes = b"") -> MultiQueueFormatHeader:
    return MultiQueueFormatHeader(
        destination=names(*destinations, header_id=0x64),
        administration=names(header_id=0xC8),
        response=names(header_id=0x12C),
        signature=signature,
    )


@pytest.mark.spec("MS-MQMQ 2.2.20.1", "MS-MQMQ 2.2.20.2", "MS-MQMQ 2.2.20.3")
def test_empty_lists_and_no_signature_take_44_bytes() -> None:
    data = bytes.fromhex(EMPTY_DESTINATION + AFTER)
    assert len(data) == 44
    assert read(data) == header()
    assert header().pack() == data


@pytest.mark.spec(
    "MS-MQMQ 2.2.18.1.4",
    "MS-MQMQ 2.2.18.1.4.1",
    "MS-MQMQ 2.2.18.1.4.2",
    "MS-MQMQ 2.2.18.1.7.1",
    "MS-MQMQ 2.2.18.1.7.2",
)
@pytest.mark.parametrize(
    ("elements", "data"),
    [
        pytest.param([PUBLIC], "20000000 6400 0000 01000000 0100 0000" + QUEUE_HEX, id="1, public"),
        pytest.param(
            [PRIVATE],
            "24000000 6400 0000 01000000 0200 0000" + QUEUE_HEX + "09000000",
            id="2, private",
        ),
        pytest.param(
            [direct("ab")],
            "14000000 6400 0000 01000000 0300 6100 6200 0000",
            id="3, direct, ends on a boundary",
        ),
        pytest.param(
            [direct("a")],
            "14000000 6400 0000 01000000 0300 6100 0000 0000",
            id="3, direct, filled up",
        ),
        pytest.param(
            [LIST], "20000000 6400 0000 01000000 0600 0000" + QUEUE_HEX, id="6, distribution list"
        ),
        pytest.param(
            [direct("a"), PUBLIC, PRIVATE, LIST, direct("")],
            "54000000 6400 0000 05000000"
            "0300 6100 0000"  # ends 2 bytes past a boundary, so that
            "0100"
            + QUEUE_HEX  # needs no filling
            + "0200 0000"
            + QUEUE_HEX
            + "09000000"
            "0600 0000" + QUEUE_HEX + "0300 0000",
            id="mixed",
        ),
        pytest.param(
            [direct("ab"), direct("c"), direct("de"), LIST],
            "34000000 6400 0000 04000000"
            "0300 6100 6200 0000"
            "0300 6300 0000"
            "0300 6400 6500 0000"
            "0600" + QUEUE_HEX,
            id="direct names one after the other",
        ),
    ],
)
@pytest.mark.spec("E26")
def test_names_of_every_type_are_read_and_written(elements: list[MQFFormatName], data: str) -> None:
    whole = bytes.fromhex(data + AFTER)
    assert read(whole) == header(*elements)
    assert header(*elements).pack() == whole


@pytest.mark.spec("MS-MQMQ 2.2.20.1")
def test_all_three_lists_and_a_signature_are_read_and_written() -> None:
    data = bytes.fromhex(
        "14000000 6400 0000 01000000 0300 6100 6200 0000"
        "14000000 c800 0000 01000000 0300 6300 0000 0000"
        "20000000 2c01 0000 01000000 0100 0000" + QUEUE_HEX + "5e01 0000 05000000 d0d1d2d3d4 000000"
    )
    value = MultiQueueFormatHeader(
        destination=names(direct("ab"), header_id=0x64),
        administration=names(direct("c"), header_id=0xC8),
        response=names(PUBLIC, header_id=0x12C),
        signature=bytes.fromhex("d0d1d2d3d4"),
    )
    assert read(data) == value
    assert value.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.18.1.4.1")
def test_zeros_across_two_characters_do_not_end_a_direct_name() -> None:
    # U+0061 U+4100: bytes 61 00 00 41.
    data = bytes.fromhex("14000000 6400 0000 01000000 0300 6100 0041 0000" + AFTER)
    assert read(data) == header(direct("a\u4100"))


@pytest.mark.spec("MS-MQMQ 2.2.20.2")
@pytest.mark.parametrize("size", ["12000000", "14000000"], ids=["not counted", "counted"])
@pytest.mark.spec("E25")
def test_what_rounds_a_list_up_may_be_counted_or_not_and_is_kept(size: str) -> None:
    data = bytes.fromhex(size + "6400 0000 01000000 0300 6100 0000 beef" + AFTER)
    found = read(data)
    assert found == header(direct("a"))
    assert found.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.1", "MS-MQMQ 2.2.20.3", "MS-MQMQ 2.2.18.1.4")
def test_reserved_fields_and_padding_are_ignored_and_kept() -> None:
    data = bytes.fromhex(
        "20000000 6400 aaaa 01000000 0100 bbbb" + QUEUE_HEX + "0c000000 c800 cccc 00000000"
        "0c000000 2c01 dddd 00000000 5e01 eeee 01000000 d0 f0f1f2"
    )
    found = read(data)
    assert found == header(PUBLIC, signature=b"\xd0")
    assert found.destination.reserved == 0xAAAA
    assert found.signature_reserved == 0xEEEE
    assert found.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.3")
def test_the_signature_at_the_end_of_a_packet_may_come_without_filling() -> None:
    data = bytes.fromhex(EMPTY_DESTINATION + EMPTY_ADMIN + EMPTY_RESPONSE + "5e01 0000 01000000 d0")
    assert read(data) == header(signature=b"\xd0")
    assert read(data).pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.1", "MS-MQMQ 2.2.20.2", "MS-MQMQ 2.2.20.3", "MS-MQMQ 2.2.18.1.4")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        pytest.param(EMPTY_ADMIN + AFTER, 4, ".destination.header_id", id="admin first"),
        pytest.param(
            EMPTY_DESTINATION + EMPTY_RESPONSE + EMPTY_ADMIN + EMPTY_SIGNATURE,
            16,
            ".administration.header_id",
            id="response before admin",
        ),
        pytest.param(
            EMPTY_DESTINATION + EMPTY_ADMIN + EMPTY_ADMIN + EMPTY_SIGNATURE,
            28,
            ".response.header_id",
            id="admin twice",
        ),
        pytest.param(
            "0c000000 5e01 0000 00000000" + AFTER, 4, ".destination.header_id", id="signature's id"
        ),
        pytest.param("0c000000 6500 0000 00000000" + AFTER, 4, ".destination.header_id", id="0x65"),
        pytest.param(
            "0b000000 6400 0000 00000000" + AFTER, 0, ".destination.header_size", id="size 11"
        ),
        pytest.param(
            "2d000000 6400 0000 00000000" + AFTER, 0, ".destination.header_size", id="size beyond"
        ),
        pytest.param(
            "01004000 6400 0000 00000000" + AFTER, 0, ".destination.header_size", id="size 4 MiB"
        ),
        pytest.param(
            "10000000 6400 0000 00000000 00000000" + AFTER, 12, ".destination", id="size too large"
        ),
        pytest.param(
            "10000000 6400 0000 01000000 0300 6100 0000 0000" + AFTER,
            14,
            ".destination.format_name_list[0]",
            id="size too small for a direct name",
        ),
        pytest.param(
            "1c000000 6400 0000 01000000 0100 0000" + QUEUE_HEX + AFTER,
            16,
            ".destination.format_name_list[0]",
            id="size too small for a GUID",
        ),
        pytest.param(
            "0c000000 6400 0000 01000000" + AFTER,
            12,
            ".destination.format_name_list[0].format_type",
            id="more elements than bytes",
        ),
        pytest.param(
            "14000000 6400 0000 02000000 0300 6100 6200 0000" + AFTER,
            20,
            ".destination.format_name_list[1].format_type",
            id="an element too few",
        ),
        pytest.param(
            "0c000000 6400 0000 01400000" + AFTER, 8, ".destination.element_count", id="too many"
        ),
        *(
            pytest.param(
                f"20000000 6400 0000 01000000 {kind} 0000" + QUEUE_HEX + AFTER,
                12,
                ".destination.format_name_list[0].format_type",
                id=f"element type {kind}",
            )
            for kind in ("0000", "0400", "0500", "0700", "0101")
        ),
        pytest.param(
            "10000000 6400 0000 01000000 0300 6100" + AFTER,
            14,
            ".destination.format_name_list[0]",
            id="direct name without terminator",
        ),
        pytest.param(
            EMPTY_DESTINATION + EMPTY_ADMIN + EMPTY_RESPONSE + "5f01 0000 00000000",
            36,
            ".signature.id",
            id="signature with another id",
        ),
        pytest.param(
            EMPTY_DESTINATION + EMPTY_ADMIN + EMPTY_RESPONSE + "5e01 0000 05000000 d0d1d2d3",
            44,
            ".signature.signature",
            id="signature cut off",
        ),
        pytest.param(
            EMPTY_DESTINATION + EMPTY_ADMIN + EMPTY_RESPONSE + "5e01 0000 01004000",
            40,
            ".signature.size",
            id="signature over 4 MiB",
        ),
        pytest.param(EMPTY_DESTINATION + AFTER + "00000000", 44, "", id="bytes left over"),
        pytest.param(EMPTY_DESTINATION + EMPTY_ADMIN, 24, ".response", id="lists missing"),
    ],
)
def test_lists_that_do_not_follow_the_document_are_refused(
    data: str, offset: int, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        read(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, WHERE + field)


@pytest.mark.spec("MS-MQMQ 2.2.20.1")
def test_lists_in_another_order_are_not_written() -> None:
    with pytest.raises(WireError, match="0xc8 where 0x64 belongs") as caught:
        MultiQueueFormatHeader(
            destination=names(header_id=0xC8),
            administration=names(header_id=0x64),
            response=names(header_id=0x12C),
        ).pack()
    assert caught.value.field == "MultiQueueFormatHeader.header_id"


@pytest.mark.spec("MS-MQMQ 2.2.18.1.4")
@pytest.mark.parametrize(("name", "kind"), [(PUBLIC, 1), (PRIVATE, 2), (direct("x"), 3), (LIST, 6)])
def test_an_elements_type_follows_from_its_name(name: MQFFormatName, kind: int) -> None:
    assert MQFFormatNameElement(format_name=name).format_type == kind
