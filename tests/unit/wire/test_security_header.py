"""SecurityHeader: items, their alignment, and what their sizes may say."""

from itertools import product
from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.reader import Reader
from merq.wire.security import (
    ProviderInfo,
    SecurityFields,
    SecurityFlags,
    SecurityHeader,
    sid_text,
)

pytestmark = pytest.mark.spec("MS-MQMQ 2.2.20.6")

SID_HEX = "01 02 000000000005 20000000 20020000"  # S-1-5-32-544
QM_HEX = "00112233 4455 6677 8899 aabbccddeeff"


def sizes(
    *, sender: int = 0, key: int = 0, signature: int = 0, cert: int = 0, info: int = 0
) -> str:
    return "".join(
        size.to_bytes(width, "little").hex()
        for size, width in ((sender, 2), (key, 2), (signature, 2), (cert, 4), (info, 4))
    )


def read(data: bytes) -> SecurityHeader:
    reader = Reader(data)
    with reader.part("security_header"):
        header = SecurityHeader.unpack(reader)
        reader.finish()
    return header


def fields(
    flags: SecurityFlags,
    *,
    sender: int = 0,
    key: int = 0,
    signature: int = 0,
    cert: int = 0,
    info: int = 0,
) -> SecurityFields:
    return SecurityFields(
        flags=flags,
        sender_id_size=sender,
        encryption_key_size=key,
        signature_size=signature,
        sender_cert_size=cert,
        provider_info_size=info,
    )


def test_a_header_with_all_five_items_is_read_and_written() -> None:
    data = bytes.fromhex(
        "a100 1000 0500 0300 02000000 0a000000"
        + SID_HEX
        + "c0c1c2c3c4 000000"
        + "d0d1d2 00"
        + "e0e1 0000"
        + "18000000 4100 4200 0000 0000"
    )
    header = SecurityHeader(
        fields=fields(
            SecurityFlags(sender_id_type=1, body_encrypted=True, security_data=True),
            sender=16,
            key=5,
            signature=3,
            cert=2,
            info=10,
        ),
        security_id=bytes.fromhex(SID_HEX),
        encryption_key=bytes.fromhex("c0c1c2c3c4"),
        signature=bytes.fromhex("d0d1d2"),
        sender_cert=bytes.fromhex("e0e1"),
        provider_info=ProviderInfo(provider_type=24, provider_name="AB"),
    )
    assert read(data) == header
    assert header.pack() == data
    assert header.sid == "S-1-5-32-544"
    assert header.sender_queue_manager is None


@pytest.mark.parametrize(
    ("bits", "name", "value"),
    [
        ("0100", "sender_id_type", 1),
        ("1000", "authenticated", True),
        ("2000", "body_encrypted", True),
        ("4000", "default_provider", True),
        ("8000", "security_data", True),
        ("000f", "authentication_signature", 15),
    ],
)
def test_each_flag_of_a_security_header_has_its_bits(bits: str, name: str, value: int) -> None:
    flags = read(bytes.fromhex(bits + sizes(signature=4) + "d0d1d2d3")).fields.flags
    found = {field: getattr(flags, field) for field, _ in SecurityFlags.BITS}
    expected: dict[str, object] = dict.fromkeys(found, 0)
    assert found == expected | {name: value}
    assert flags.reserved == 0


def test_unused_flags_and_padding_are_ignored_and_kept() -> None:
    items = "c0 aabbcc d0d1 ddee e0e1e2 ff 18000000 0000 a5a5"
    data = bytes.fromhex("00f0" + sizes(key=1, signature=2, cert=3, info=6) + items)
    header = read(data)
    plain = "c0 000000 d0d1 0000 e0e1e2 00 18000000 0000 0000"
    assert header == read(bytes.fromhex("0000" + sizes(key=1, signature=2, cert=3, info=6) + plain))
    assert header.pack() == data


@pytest.mark.parametrize(("key", "cert"), list(product(range(1, 6), repeat=2)))
def test_every_item_starts_on_a_boundary(key: int, cert: int) -> None:
    filling = {1: 3, 2: 2, 3: 1, 4: 0, 5: 3}
    data = (
        bytes.fromhex("0000" + sizes(key=key, cert=cert))
        + b"k" * key
        + b"\xaa" * filling[key]
        + b"c" * cert
        + b"\xbb" * filling[cert]
    )
    header = read(data)
    assert (header.encryption_key, header.signature) == (b"k" * key, b"")
    assert header.sender_cert == b"c" * cert
    assert header.pack() == data


@pytest.mark.parametrize("size", range(1, 6))
def test_a_single_item_of_any_size_is_aligned(size: int) -> None:
    tail = b"x" * size + bytes(-size % 4)
    for name, size_fields in (
        ("encryption_key", sizes(key=size)),
        ("signature", sizes(signature=size)),
        ("sender_cert", sizes(cert=size)),
    ):
        data = bytes.fromhex("0000" + size_fields) + tail
        header = read(data)
        assert getattr(header, name) == b"x" * size
        assert header.pack() == data


def test_a_queue_manager_that_signs_is_named_by_its_guid() -> None:
    data = bytes.fromhex("8200" + sizes(sender=16, signature=4) + QM_HEX + "d0d1d2d3")
    header = read(data)
    assert header.sender_queue_manager == UUID("33221100-5544-7766-8899-aabbccddeeff")
    assert header.sid is None
    assert header.pack() == data


@pytest.mark.spec("E23")
def test_security_data_is_read_by_its_sizes_whatever_ai_says() -> None:
    for flags, ai in (("0100", False), ("8100", True)):
        header = read(bytes.fromhex(flags + sizes(sender=16) + SID_HEX))
        assert header.fields.flags.security_data is ai
        assert header.sid == "S-1-5-32-544"


@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        pytest.param("0000" + sizes(), 0, "", id="all sizes zero"),
        pytest.param("8100" + sizes(), 0, "", id="all sizes zero, ST 1"),
        pytest.param("0000" + sizes(sender=4) + "a0a1a2a3", 0, "", id="ST 0 with a sender"),
        pytest.param("0300" + sizes(key=4) + "c0c1c2c3", 0, ".flags.sender_id_type", id="ST 3"),
        pytest.param("0f00" + sizes(key=4) + "c0c1c2c3", 0, ".flags.sender_id_type", id="ST 15"),
        pytest.param("0200" + sizes(sender=4) + "a0a1a2a3", 0, "", id="ST 2 with 4 bytes"),
        pytest.param("0200" + sizes(sender=20) + "00" * 20, 0, "", id="ST 2 with 20 bytes"),
        pytest.param("0200" + sizes(key=4) + "c0c1c2c3", 0, "", id="ST 2 without a GUID"),
        pytest.param("0000" + sizes(info=5) + "00" * 8, 0, "", id="provider without a name"),
        pytest.param("0000" + sizes(cert=0x10000), 8, ".sender_cert_size", id="64 KiB of cert"),
        pytest.param(
            "0000" + sizes(info=0x400001), 12, ".provider_info_size", id="provider over 4 MiB"
        ),
        pytest.param("0100" + sizes(sender=5) + "a0a1a2a3", 16, ".security_id", id="sender cut"),
        pytest.param("0100" + sizes(sender=0xFFFF), 16, ".security_id", id="sender not there"),
        pytest.param(
            "0000" + sizes(key=4, signature=5) + "c0c1c2c3 d0d1d2d3", 20, ".signature", id="sig cut"
        ),
        pytest.param("0000" + sizes(cert=0xFFFF), 16, ".sender_cert", id="cert not there"),
        pytest.param("0000" + sizes(key=1) + "c0 0000", 17, ".padding", id="padding cut"),
        pytest.param(
            "0000" + sizes(info=8) + "18000000 4100 4200",
            20,
            ".provider_info.provider_name",
            id="provider's name without terminator",
        ),
        pytest.param(
            "0000" + sizes(info=7) + "18000000 410000 00",
            20,
            ".provider_info.provider_name",
            id="provider's name of odd size",
        ),
        pytest.param(
            "0000" + sizes(info=8) + "18000000 0000 0000",
            20,
            ".provider_info.provider_name",
            id="null inside the provider's name",
        ),
        pytest.param(
            "0000" + sizes(info=6) + "1800", 16, ".provider_info.provider_type", id="type cut"
        ),
        pytest.param("0000" + sizes(key=4) + "c0c1c2c3 00", 20, "", id="bytes left over"),
        pytest.param("0000" + sizes()[:-2], 0, "", id="fixed part cut"),
    ],
)
def test_sizes_that_cannot_be_true_are_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        read(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, "security_header" + field)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (SecurityHeader(fields=fields(SecurityFlags())), "SecurityHeader"),
        (
            SecurityHeader(fields=fields(SecurityFlags(), sender=1), security_id=b"s"),
            "SecurityHeader",
        ),
        (
            SecurityHeader(fields=fields(SecurityFlags(), key=2), encryption_key=b"k"),
            "SecurityHeader.encryption_key",
        ),
        (
            SecurityHeader(fields=fields(SecurityFlags(), key=1)),
            "SecurityHeader.encryption_key",
        ),
        (
            SecurityHeader(
                fields=fields(SecurityFlags(), info=6),
                provider_info=ProviderInfo(provider_type=1, provider_name="A"),
            ),
            "SecurityHeader.provider_info",
        ),
    ],
)
def test_a_header_whose_sizes_are_not_true_is_not_written(
    header: SecurityHeader, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        header.pack()
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (SID_HEX, "S-1-5-32-544"),
        ("01 01 000000000001 00000000", "S-1-1-0"),
        ("01 00 000000000005", "S-1-5"),
        ("01 01 010000000000 ffffffff", "S-1-1099511627776-4294967295"),
        ("01 01 000000000001", None),
        ("01 01 000000000001 0000000000", None),
        ("02 01 000000000001 00000000", None),
        ("01 10 000000000001" + "00000000" * 16, None),
        ("", None),
    ],
)
def test_a_sid_is_written_as_people_write_it_or_is_none(data: str, text: str | None) -> None:
    assert sid_text(bytes.fromhex(data)) == text


@pytest.mark.spec("MS-MQMQ 2.2.20.6")
def test_a_provider_type_that_does_not_fit_is_not_written() -> None:
    with pytest.raises(WireError, match="32 bits"):
        ProviderInfo(provider_type=1 << 32, provider_name="p").pack()
