"""SoapHeader, SRMPEnvelopeHeader and CompoundMessageHeader."""

import pytest

from merq.errors import WireError
from merq.wire.reader import Reader
from merq.wire.soap import (
    CompoundFields,
    CompoundMessageHeader,
    SoapHeader,
    SRMPEnvelopeHeader,
    TextSection,
)

HEADER_AB = "2003 0000 03000000 6100 6200 0000"  # 14 bytes
HEADER_ABC = "2003 0000 04000000 6100 6200 6300 0000"  # 16 bytes
BODY_X = "8403 0000 02000000 7800 0000"  # 12 bytes
BODY_XY = "8403 0000 03000000 7800 7900 0000"  # 14 bytes


def read_soap(data: bytes) -> SoapHeader:
    reader = Reader(data)
    with reader.part("soap_header"):
        header = SoapHeader.unpack(reader)
        reader.finish()
    return header


@pytest.mark.spec("MS-MQMQ 2.2.20.7")
@pytest.mark.parametrize(
    ("header", "body", "data"),
    [
        ("abc", "x", HEADER_ABC + BODY_X),
        ("ab", "x", HEADER_AB + "0000" + BODY_X),
        ("abc", "xy", HEADER_ABC + BODY_XY + "0000"),
        ("ab", "xy", HEADER_AB + "0000" + BODY_XY + "0000"),
    ],
)
@pytest.mark.spec("E16")
def test_our_sections_are_padded_to_four_bytes(header: str, body: str, data: str) -> None:
    value = SoapHeader.of(header, body)
    assert value.pack() == bytes.fromhex(data)
    assert read_soap(bytes.fromhex(data)) == value


@pytest.mark.spec("MS-MQMQ 2.2.20.7")
@pytest.mark.parametrize(
    ("header", "body", "data"),
    [
        ("ab", "x", HEADER_AB + BODY_X),
        ("ab", "xy", HEADER_AB + BODY_XY),
        ("abc", "xy", HEADER_ABC + BODY_XY),
        ("ab", "xy", HEADER_AB + "0000" + BODY_XY),
    ],
)
@pytest.mark.spec("E16")
def test_sections_without_padding_are_read_and_stay_as_they_are(
    header: str, body: str, data: str
) -> None:
    found = read_soap(bytes.fromhex(data))
    assert found == SoapHeader.of(header, body)
    assert found.pack() == bytes.fromhex(data)


@pytest.mark.spec("MS-MQMQ 2.2.20.7", "MS-MQMQ 2.2.20")
@pytest.mark.parametrize(
    ("body", "filling"), [("7800 7900 0000", ""), ("7800 0000", "eeee")], ids=["even", "filled"]
)
def test_what_follows_sections_without_padding_starts_on_a_boundary_of_the_packet(
    body: str, filling: str
) -> None:
    text = bytes.fromhex(body)
    data = bytes.fromhex("2003 0000 03000000 6100 6200 0000")
    data += bytes.fromhex("8403 0000") + (len(text) // 2).to_bytes(4, "little") + text
    data += bytes.fromhex(filling)
    reader = Reader(data + b"next header!")
    header = SoapHeader.unpack(reader)
    assert reader.position == len(data)
    assert header.header.data == "ab"
    assert header.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.7")
def test_where_both_places_fit_the_boundary_wins() -> None:
    # Padding that happens to be the body's identifier.
    data = bytes.fromhex(HEADER_AB + "8403" + BODY_X)
    found = read_soap(data)
    assert found == SoapHeader.of("ab", "x")
    assert found.header.padding == bytes.fromhex("8403")
    assert found.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.7")
def test_empty_sections_and_empty_texts_are_not_the_same() -> None:
    nothing = bytes.fromhex("2003 0000 00000000 8403 0000 00000000")
    assert (read_soap(nothing).header.data, read_soap(nothing).body.data) == (None, None)
    assert read_soap(nothing).pack() == nothing
    empty = bytes.fromhex("2003 0000 01000000 0000 0000 8403 0000 01000000 0000 0000")
    assert read_soap(empty) == SoapHeader.of("", "")
    assert read_soap(empty).pack() == empty


@pytest.mark.spec("MS-MQMQ 2.2.20.7")
def test_reserved_fields_and_padding_of_soap_are_ignored_and_kept() -> None:
    data = bytes.fromhex(
        "2003 aaaa 03000000 6100 6200 0000 bbbb 8403 cccc 03000000 7800 7900 0000 dddd"
    )
    found = read_soap(data)
    assert found == SoapHeader.of("ab", "xy")
    assert (found.header.reserved, found.body.reserved) == (0xAAAA, 0xCCCC)
    assert found.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.20.7")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        pytest.param(BODY_X + HEADER_ABC, 0, ".header.section_id", id="body first"),
        pytest.param("2103 0000 00000000" + BODY_X, 0, ".header.section_id", id="0x0321"),
        pytest.param(HEADER_ABC + HEADER_ABC, 16, ".body.section_id", id="header twice"),
        pytest.param(HEADER_AB + "0000" + HEADER_AB, 16, ".body.section_id", id="after padding"),
        pytest.param(
            "2003 0000 01002000" + BODY_X, 4, ".header.data_length", id="header over 4 MiB"
        ),
        pytest.param(
            "2003 0000 00002000" + BODY_X, 8, ".header.data", id="header beyond the packet"
        ),
        pytest.param(
            "2003 0000 02000000 6100 6200" + BODY_X, 8, ".header.data", id="no terminator"
        ),
        pytest.param(
            "2003 0000 03000000 6100 0000 0000 0000" + BODY_X, 8, ".header.data", id="null inside"
        ),
        pytest.param(HEADER_ABC + "8403 0000 02000000 7800", 24, ".body.data", id="body cut off"),
        pytest.param(HEADER_ABC, 16, ".body", id="no body"),
        pytest.param(HEADER_ABC + BODY_X + "00", 28, "", id="bytes left over"),
        pytest.param(HEADER_ABC + BODY_XY + "000000", 32, "", id="left over after padding"),
    ],
)
def test_soap_sections_that_do_not_follow_the_document_are_refused(
    data: str, offset: int, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        read_soap(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, "soap_header" + field)


@pytest.mark.spec("MS-MQMQ 2.2.20.7")
@pytest.mark.parametrize(("first", "second"), [(0x384, 0x320), (0x320, 0x320), (0, 0x384)])
def test_sections_with_other_identifiers_are_not_written(first: int, second: int) -> None:
    header = SoapHeader(header=TextSection(section_id=first), body=TextSection(section_id=second))
    with pytest.raises(WireError, match="are not header and body") as caught:
        header.pack()
    assert caught.value.field == "SoapHeader"


# SRMPEnvelopeHeader


def read_envelope(data: bytes) -> SRMPEnvelopeHeader:
    reader = Reader(data)
    with reader.part("srmp_envelope_header"):
        header = SRMPEnvelopeHeader.unpack(reader)
        reader.finish()
    return header


@pytest.mark.spec("MS-MQRR 2.2.5.1.2.1")
@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("<e", "f401 0000 03000000 3c00 6500 0000 0000"),
        ("<e/", "f401 0000 04000000 3c00 6500 2f00 0000"),
        (None, "f401 0000 00000000"),
    ],
)
@pytest.mark.spec("E17")
def test_an_envelope_counts_characters_with_the_terminator(text: str | None, data: str) -> None:
    value = SRMPEnvelopeHeader(envelope=TextSection(section_id=500, data=text))
    assert read_envelope(bytes.fromhex(data)) == value
    assert value.pack() == bytes.fromhex(data)


@pytest.mark.spec("MS-MQRR 2.2.5.1.2.1")
def test_an_envelope_keeps_its_identifier_reserved_field_and_padding() -> None:
    data = bytes.fromhex("0700 beef 01000000 0000 cafe")
    found = read_envelope(data)
    assert (found.envelope.section_id, found.envelope.reserved) == (7, 0xEFBE)
    assert found.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5.1.2.1")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        ("f401 0000 03000000 3c00 6500", 8, ".data"),
        ("f401 0000 02000000 3c00 6500", 8, ".data"),
        ("f401 0000 02000000 0000 0000", 8, ".data"),
        ("f401 0000 ffffffff", 4, ".data_length"),
        ("f401 0000 000000", 0, ""),
    ],
)
def test_an_envelope_that_is_no_text_is_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        read_envelope(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, "srmp_envelope_header" + field)


# CompoundMessageHeader


def read_compound(data: bytes) -> CompoundMessageHeader:
    reader = Reader(data)
    with reader.part("compound_message_header"):
        header = CompoundMessageHeader.unpack(reader)
        reader.finish()
    return header


@pytest.mark.spec("MS-MQRR 2.2.5.1.2.2")
def test_a_compound_message_is_read_and_written() -> None:
    data = bytes.fromhex("5802 0000 06000000 03000000 02000000") + b"POSTed" + bytes(2)
    header = CompoundMessageHeader(
        fields=CompoundFields(header_id=600, http_body_size=6, msg_body_size=3, msg_body_offset=2),
        data=b"POSTed",
    )
    assert read_compound(data) == header
    assert header.pack() == data
    assert header.message_body == b"STe"


@pytest.mark.spec("MS-MQRR 2.2.5.1.2.2")
def test_a_compound_message_keeps_its_reserved_field_and_padding() -> None:
    data = bytes.fromhex("5802 beef 01000000 01000000 00000000 aa cafeba")
    found = read_compound(data)
    assert found.fields.reserved == 0xEFBE
    assert found.padding == bytes.fromhex("cafeba")
    assert found.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5.1.2.2")
def test_a_compound_message_without_data_or_filling_is_read() -> None:
    nothing = bytes.fromhex("5802 0000 00000000 00000000 00000000")
    assert (read_compound(nothing).data, read_compound(nothing).message_body) == (b"", b"")
    assert read_compound(nothing).pack() == nothing
    bare = bytes.fromhex("5802 0000 01000000 01000000 00000000 aa")
    assert read_compound(bare).pack() == bare


@pytest.mark.spec("MS-MQRR 2.2.5.1.2.2")
@pytest.mark.parametrize(
    ("sizes", "data", "offset", "field"),
    [
        pytest.param("04000000 05000000 00000000", "a0a1a2a3", 0, "", id="body too long"),
        pytest.param("04000000 01000000 04000000", "a0a1a2a3", 0, "", id="body past the end"),
        pytest.param("04000000 00004000 00004000", "a0a1a2a3", 0, "", id="body far away"),
        pytest.param("05000000 00000000 00000000", "a0a1a2a3", 16, ".data", id="data cut off"),
        pytest.param("00004000 00000000 00000000", "a0a1a2a3", 16, ".data", id="4 MiB of data"),
        pytest.param("01004000 00000000 00000000", "", 4, ".http_body_size", id="over 4 MiB"),
        pytest.param("00000000 01004000 00000000", "", 8, ".msg_body_size", id="body over 4 MiB"),
        pytest.param(
            "00000000 00000000 01004000", "", 12, ".msg_body_offset", id="offset over 4 MiB"
        ),
        pytest.param("00000000 00000000", "", 0, "", id="fixed part cut off"),
    ],
)
def test_a_compound_message_whose_body_is_not_in_its_data_is_refused(
    sizes: str, data: str, offset: int, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        read_compound(bytes.fromhex("5802 0000" + sizes + data))
    assert (caught.value.offset, caught.value.field) == (
        offset,
        "compound_message_header" + field,
    )


@pytest.mark.spec("MS-MQRR 2.2.5.1.2.2")
@pytest.mark.parametrize(("http", "size", "offset"), [(3, 0, 0), (4, 5, 0), (4, 1, 4)])
def test_a_compound_message_whose_sizes_are_not_true_is_not_written(
    http: int, size: int, offset: int
) -> None:
    fields = CompoundFields(
        header_id=600, http_body_size=http, msg_body_size=size, msg_body_offset=offset
    )
    with pytest.raises(WireError) as caught:
        CompoundMessageHeader(fields=fields, data=b"data").pack()
    assert caught.value.field == "CompoundMessageHeader"
