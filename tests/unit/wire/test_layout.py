"""Flat structures: what a declaration promises, and what it refuses."""

from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire import layout as layouts
from merq.wire.layout import (
    BitField,
    Layout,
    bit,
    bit_field,
    bits,
    constant,
    flag_word,
    guid_field,
    layout,
    nested,
    number,
    other_bits,
    raw_bytes,
    spare,
    spare_bytes,
)
from merq.wire.reader import Reader

GUID = UUID("33221100-5544-7766-8899-aabbccddeeff")
GUID_HEX = "00112233445566778899aabbccddeeff"


@pytest.fixture(autouse=True)
def _undeclared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the structures made up here out of the project's list."""
    monkeypatch.setattr(layouts, "DECLARED", [])


def declare_flags() -> type[BitField]:
    @bit_field("MS-MQMQ 2.2.19.1", width=16)
    class Flags(BitField):
        """Three bits of a number, a flag and a choice."""

        small: int = bits(0, 3, "SM", default=5)
        lit: bool = bit(4, "LI", default=False)
        chosen: int = bits(8, 2, "CH", one_of=(0, 2), default=0)
        reserved: int = other_bits(default=0)

    return Flags


def declare_sample() -> type[Layout]:
    flag_form = declare_flags()

    @layout("MS-MQMQ 2.2.18.1.2", size=3)
    class Inner(Layout):
        """A structure within."""

        low: int = number(1, low=1, high=9)
        kind: int = number(2, one_of=(3, 500))

    @layout("MS-MQMQ 2.2.19.1", size=39)
    class Sample(Layout):
        """One field of each form."""

        version: int = constant(1, default=0x10)
        unused: int = spare(1, default=0)
        flags: BitField = flag_word(flag_form, default=flag_form())
        guid: UUID = guid_field(default=GUID)
        inner: Layout = nested(Inner)
        big: int = number(8, default=1)
        raw: bytes = raw_bytes(4, default=b"1234")
        filling: bytes = spare_bytes(4, default=bytes(4))

    return Sample


SAMPLE = f"10 ee 95f6 {GUID_HEX} 09 f401 0807060504030201 deadbeef cafebabe"


def test_a_layout_reads_every_form_of_field() -> None:
    value = declare_sample().parse(bytes.fromhex(SAMPLE))
    found = {
        name: getattr(value, name)
        for name in ("version", "unused", "guid", "big", "raw", "filling")
    }
    assert found == {
        "version": 0x10,
        "unused": 0xEE,
        "guid": GUID,
        "big": 0x0102030405060708,
        "raw": bytes.fromhex("deadbeef"),
        "filling": bytes.fromhex("cafebabe"),
    }
    assert repr(getattr(value, "flags")).endswith("(small=5, lit=True, chosen=2)")  # noqa: B009
    assert repr(getattr(value, "inner")).endswith("(low=9, kind=500)")  # noqa: B009


def test_a_layout_gives_back_the_bytes_it_was_read_from() -> None:
    data = bytes.fromhex(SAMPLE)
    assert declare_sample().parse(data).pack() == data


def test_reserved_fields_are_kept_but_neither_compared_nor_shown() -> None:
    sample = declare_sample()
    plain = bytes.fromhex(f"10 00 1502 {GUID_HEX} 09 f401 0807060504030201 deadbeef 00000000")
    other = sample.parse(bytes.fromhex(SAMPLE))
    assert sample.parse(plain) == other
    assert hash(sample.parse(plain)) == hash(other)
    assert "unused" not in repr(other)
    assert "filling" not in repr(other)


def test_bits_without_a_name_stay_where_they_are() -> None:
    flags = declare_flags().unpack(0xF695)
    assert flags.reserved == 0xF695 & ~0x0317
    assert flags.pack() == 0xF695


@pytest.mark.parametrize(
    ("at", "found", "offset", "field", "reason"),
    [
        (0, "11", 0, "Sample.version", "0x11 where only 0x10 may stand"),
        (2, "9501", 2, "Sample.flags.chosen", "0x1 is not one of 0x0, 0x2"),
        (20, "00", 20, "Sample.inner.low", "0x0 is outside 0x1..0x9"),
        (20, "0a", 20, "Sample.inner.low", "0xa is outside 0x1..0x9"),
        (21, "0400", 21, "Sample.inner.kind", "0x4 is not one of 0x3, 0x1f4"),
    ],
)
def test_what_a_field_may_not_hold_is_refused_when_read(
    at: int, found: str, offset: int, field: str, reason: str
) -> None:
    data = bytearray.fromhex(SAMPLE)
    data[at : at + len(found) // 2] = bytes.fromhex(found)
    with pytest.raises(WireError) as caught:
        declare_sample().parse(bytes(data))
    wrong = caught.value
    assert (wrong.offset, wrong.field, wrong.reason) == (offset, field, reason)
    assert str(wrong) == f"{field}: {reason} (at offset {offset})"


def test_too_few_bytes_are_refused_with_the_structures_name() -> None:
    with pytest.raises(WireError, match="39 bytes are needed, 38 are left") as caught:
        declare_sample().parse(bytes.fromhex(SAMPLE)[:-1])
    assert (caught.value.offset, caught.value.field) == (0, "Sample")


def test_a_byte_too_many_is_refused_where_it_stands() -> None:
    with pytest.raises(WireError, match="1 bytes are left over") as caught:
        declare_sample().parse(bytes.fromhex(SAMPLE + "00"))
    assert (caught.value.offset, caught.value.field) == (39, "Sample")


def test_a_layout_is_read_where_the_reader_stands() -> None:
    sample = declare_sample()
    reader = Reader(b"??" + bytes.fromhex(SAMPLE) + b"!!", start=2)
    assert sample.unpack(reader) == sample.parse(bytes.fromhex(SAMPLE))
    assert reader.position == 41


def test_offsets_follow_from_the_declaration() -> None:
    info = declare_sample().LAYOUT
    assert [(name, offset) for name, offset, _ in info.offsets()] == [
        ("version", 0),
        ("unused", 1),
        ("flags", 2),
        ("guid", 4),
        ("inner", 20),
        ("big", 23),
        ("raw", 31),
        ("filling", 35),
    ]
    assert info.section == "MS-MQMQ 2.2.19.1"


def test_what_a_field_may_not_hold_is_refused_when_written() -> None:
    @layout("MS-MQMQ 2.2.18.1.2", size=8)
    class Narrow(Layout):
        """A range, a choice, a constant and bytes."""

        low: int = number(1, low=1, high=9, default=1)
        kind: int = number(2, one_of=(3, 500), default=3)
        fixed: int = constant(1, default=0x10)
        raw: bytes = raw_bytes(4, default=b"1234")

    assert Narrow().pack() == bytes.fromhex("01 0300 10 31323334")
    for value, field, reason in (
        (Narrow(low=0), "Narrow.low", "0x0 is outside 0x1..0x9"),
        (Narrow(low=-1), "Narrow.low", "-0x1 is outside 0x1..0x9"),
        (Narrow(low=256), "Narrow.low", "0x100 is outside 0x1..0x9"),
        (Narrow(kind=4), "Narrow.kind", "0x4 is not one of 0x3, 0x1f4"),
        (Narrow(fixed=0x11), "Narrow.fixed", "0x11 where only 0x10 may stand"),
        (Narrow(raw=b"12345"), "Narrow.raw", "5 bytes where 4 belong"),
    ):
        with pytest.raises(WireError) as caught:
            value.pack()
        assert (caught.value.field, caught.value.reason) == (field, reason)


def test_a_bit_field_refuses_what_does_not_fit_when_written() -> None:
    @bit_field("MS-MQMQ 2.2.19.1", width=8)
    class Narrow(BitField):
        """Three bits and a choice."""

        small: int = bits(0, 3, "SM", default=0)
        chosen: int = bits(3, 2, "CH", one_of=(0, 2), default=0)
        reserved: int = other_bits(default=0)

    assert Narrow(small=7, chosen=2, reserved=0xFF).pack() == 0xF7
    for value, field, reason in (
        (Narrow(small=8), "Narrow.small", "8 does not fit in 3 bits"),
        (Narrow(small=-1), "Narrow.small", "-1 does not fit in 3 bits"),
        (Narrow(chosen=3), "Narrow.chosen", "0x3 is not one of 0x0, 0x2"),
    ):
        with pytest.raises(WireError) as caught:
            value.pack()
        assert (caught.value.field, caught.value.reason) == (field, reason)


def test_a_declaration_that_does_not_give_the_documents_size_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="Short is 2 bytes, not 4"):

        @layout("MS-MQMQ 2.2.18.1.2", size=4)
        class Short(Layout):
            """Two bytes."""

            only: int = number(2)


def test_bits_that_overlap_or_stick_out_are_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match=r"Twice\.second overlaps"):

        @bit_field("MS-MQMQ 2.2.19.1", width=8)
        class Twice(BitField):
            """Bit 2 has two names."""

            first: int = bits(0, 3, "FI", default=0)
            second: bool = bit(2, "SE", default=False)
            reserved: int = other_bits(default=0)

    with pytest.raises(AssertionError, match="Wide is wider than 8 bits"):

        @bit_field("MS-MQMQ 2.2.19.1", width=8)
        class Wide(BitField):
            """Bit 8 of 8."""

            beyond: bool = bit(8, "BE", default=False)
            reserved: int = other_bits(default=0)


def test_what_is_declared_is_listed_for_references_and_tests() -> None:
    sample = declare_sample()
    assert [one.__name__ for one in layouts.DECLARED] == ["Flags", "Inner", "Sample"]
    assert sample in layouts.DECLARED
