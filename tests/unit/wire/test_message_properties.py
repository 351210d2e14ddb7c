"""MessagePropertiesHeader: label, extension, body, and the room for an encrypted one."""

import pytest

from merq.errors import WireError
from merq.wire.properties import (
    AcknowledgmentFlags,
    MessagePropertiesHeader,
    PropertiesFields,
)
from merq.wire.reader import Reader

pytestmark = pytest.mark.spec("MS-MQMQ 2.2.19.3")

CORRELATION = bytes(range(1, 21))


def fixed(
    *, label: int = 0, size: int = 0, allocated: int = 0, extension: int = 0, flags: int = 0
) -> str:
    """56 bytes by hand: class 0x4000, BodyType 8, tag 7, clear, SHA-1 and RC4."""
    return (
        f"{flags:02x} {label:02x} 0040 0102030405060708090a0b0c0d0e0f1011121314 08000000 07000000"
        f"{size.to_bytes(4, 'little').hex()} {allocated.to_bytes(4, 'little').hex()}"
        f"00000000 04800000 01680000 {extension.to_bytes(4, 'little').hex()}"
    )


def read(data: bytes) -> MessagePropertiesHeader:
    reader = Reader(data)
    with reader.part("message_properties_header"):
        header = MessagePropertiesHeader.unpack(reader)
        reader.finish()
    return header


def fields(
    *, label: int = 0, size: int = 0, allocated: int = 0, extension: int = 0
) -> PropertiesFields:
    return PropertiesFields(
        label_length=label,
        message_class=0x4000,
        correlation_id=CORRELATION,
        body_type=8,
        application_tag=7,
        message_size=size,
        allocation_body_size=allocated,
        privacy_level=0,
        hash_algorithm=0x8004,
        encryption_algorithm=0x6801,
        extension_size=extension,
    )


def test_a_header_with_everything_is_read_and_written() -> None:
    data = bytes.fromhex(
        fixed(label=3, size=5, allocated=5, extension=3)
        + "4800 6900 0000"  # the label "Hi"
        + "e0e1e2"
        + "b0b1b2b3b4"
        + "0000"
    )
    header = MessagePropertiesHeader(
        fields=fields(label=3, size=5, allocated=5, extension=3),
        label="Hi",
        extension_data=bytes.fromhex("e0e1e2"),
        message_body=bytes.fromhex("b0b1b2b3b4"),
    )
    assert read(data) == header
    assert header.pack() == data
    assert header.body == bytes.fromhex("b0b1b2b3b4")


def test_a_header_with_nothing_is_56_bytes() -> None:
    data = bytes.fromhex(fixed())
    assert len(data) == 56
    header = read(data)
    assert header == MessagePropertiesHeader(fields=fields())
    assert (header.label, header.extension_data, header.message_body) == (None, b"", b"")
    assert header.pack() == data


@pytest.mark.parametrize(
    ("bits", "name"),
    [
        (0x01, "positive_arrival"),
        (0x02, "positive_receive"),
        (0x04, "negative_arrival"),
        (0x08, "negative_receive"),
    ],
)
def test_each_acknowledgment_has_its_bit(bits: int, name: str) -> None:
    flags = read(bytes.fromhex(fixed(flags=bits))).fields.flags
    assert [field for field, _ in AcknowledgmentFlags.BITS if getattr(flags, field)] == [name]
    assert flags.reserved == 0


def test_unused_flags_and_padding_are_ignored_and_kept() -> None:
    data = bytes.fromhex(fixed(flags=0xF1, size=1, allocated=1) + "b0 abcdef")
    header = read(data)
    assert header == read(bytes.fromhex(fixed(flags=0x01, size=1, allocated=1) + "b0 000000"))
    assert header.fields.flags.reserved == 0xF0
    assert header.padding == bytes.fromhex("abcdef")
    assert header.pack() == data


@pytest.mark.parametrize(("size", "filling"), [(1, 3), (2, 2), (3, 1), (4, 0), (5, 3)])
def test_the_header_is_filled_up_to_a_multiple_of_four(size: int, filling: int) -> None:
    header = MessagePropertiesHeader(
        fields=fields(size=size, allocated=size), message_body=b"b" * size
    )
    data = bytes.fromhex(fixed(size=size, allocated=size)) + b"b" * size + bytes(filling)
    assert header.pack() == data
    assert read(data) == header


def test_a_label_without_characters_is_not_the_same_as_no_label() -> None:
    data = bytes.fromhex(fixed(label=1) + "0000 0000")
    header = read(data)
    assert header.label == ""
    assert header.pack() == data


def test_a_label_has_249_characters_at_most() -> None:
    longest = bytes.fromhex(fixed(label=0xFA)) + b"L\0" * 249 + b"\0\0"
    header = read(longest)
    assert header.label == "L" * 249
    assert header.pack() == longest
    with pytest.raises(WireError) as caught:
        read(bytes.fromhex(fixed(label=0xFB)) + b"L\0" * 250 + b"\0\0" + bytes(2))
    assert caught.value.offset == 1
    assert caught.value.field == "message_properties_header.label_length"
    with pytest.raises(WireError, match=r"0xfb is outside 0x0\.\.0xfa"):
        MessagePropertiesHeader(fields=fields(label=0xFB), label="L" * 250).pack()


def test_a_label_counts_utf_16_units() -> None:
    data = bytes.fromhex(fixed(label=4) + "4100 3dd8 00de 0000")
    header = read(data)
    assert header.label == "A\U0001f600"
    assert header.pack() == data


@pytest.mark.spec("E24")
def test_an_encrypted_body_is_as_long_as_its_allocation() -> None:
    data = bytes.fromhex(fixed(size=3, allocated=8) + "b0b1b2b3b4b5b6b7")
    header = read(data)
    assert header.message_body == bytes.fromhex("b0b1b2b3b4b5b6b7")
    assert header.body == bytes.fromhex("b0b1b2")
    assert header.fields.body_length == 8
    assert header.pack() == data


@pytest.mark.spec("E24")
def test_a_body_is_never_shorter_than_its_message_size() -> None:
    data = bytes.fromhex(fixed(size=4, allocated=0) + "b0b1b2b3")
    assert read(data).body == bytes.fromhex("b0b1b2b3")
    assert read(data).pack() == data


@pytest.mark.parametrize("value", ["00000000", "01000000", "03000000", "05000000", "63000000"])
@pytest.mark.spec("E22")
def test_values_that_later_stages_judge_pass_unaltered(value: str) -> None:
    # PrivacyLevel, HashAlgorithm and EncryptionAlgorithm: a wrong one is a failed authentication
    # or decryption, not a malformed packet.
    data = bytearray.fromhex(fixed())
    data[40:52] = bytes.fromhex(value * 3)
    assert read(bytes(data)).pack() == data
    assert read(bytes(data)).fields.privacy_level == int.from_bytes(bytes.fromhex(value), "little")


@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        pytest.param(fixed(label=2) + "4800 4900", 56, ".label", id="label without terminator"),
        pytest.param(fixed(label=3) + "4800 0000 0000 0000", 56, ".label", id="null inside"),
        pytest.param(fixed(label=2) + "0000 0000", 56, ".label", id="null first"),
        pytest.param(fixed(label=3) + "4800 6900", 56, ".label", id="label beyond the packet"),
        pytest.param(fixed(extension=5) + "e0e1e2e3", 56, ".extension_data", id="extension beyond"),
        pytest.param(
            fixed(label=1, extension=7) + "0000 e0e1e2e3e4e5",
            58,
            ".extension_data",
            id="extension beyond, after a label",
        ),
        pytest.param(
            fixed(size=5, allocated=5) + "b0b1b2b3", 56, ".message_body", id="body beyond"
        ),
        pytest.param(
            fixed(size=0, allocated=5) + "b0b1b2b3", 56, ".message_body", id="allocation beyond"
        ),
        pytest.param(
            fixed(size=0x400000, allocated=0x400000), 56, ".message_body", id="body of 4 MiB"
        ),
        pytest.param(fixed(size=0x400001), 32, ".message_size", id="body over 4 MiB"),
        pytest.param(fixed(size=0xFFFFFFFF), 32, ".message_size", id="body of 4 GiB"),
        pytest.param(
            fixed(allocated=0x400001), 36, ".allocation_body_size", id="allocation over 4 MiB"
        ),
        pytest.param(fixed(extension=0x400001), 52, ".extension_size", id="extension over 4 MiB"),
        pytest.param(fixed(size=1, allocated=1) + "b0 00", 57, ".padding", id="padding cut off"),
        pytest.param(fixed() + "00000000", 56, "", id="bytes left over"),
        pytest.param(fixed()[:-2], 0, "", id="fixed part cut off"),
    ],
)
def test_sizes_and_labels_that_do_not_fit_are_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        read(bytes.fromhex(data))
    assert caught.value.offset == offset
    assert caught.value.field == "message_properties_header" + field


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (MessagePropertiesHeader(fields=fields(label=2), label="Hi"), "label_length"),
        (MessagePropertiesHeader(fields=fields(label=2)), "label_length"),
        (MessagePropertiesHeader(fields=fields(), label=""), "label_length"),
        (MessagePropertiesHeader(fields=fields(extension=1)), "extension_size"),
        (MessagePropertiesHeader(fields=fields(), extension_data=b"e"), "extension_size"),
        (MessagePropertiesHeader(fields=fields(size=2), message_body=b"b"), "message_size"),
        (MessagePropertiesHeader(fields=fields(allocated=2), message_body=b"b"), "message_size"),
        (MessagePropertiesHeader(fields=fields(), message_body=b"b"), "message_size"),
    ],
)
def test_a_size_that_is_not_true_is_not_written(
    header: MessagePropertiesHeader, field: str
) -> None:
    with pytest.raises(WireError, match=r"\d is said, \d is there") as caught:
        header.pack()
    assert caught.value.field == f"MessagePropertiesHeader.{field}"
