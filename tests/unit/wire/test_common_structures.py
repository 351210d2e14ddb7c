"""TA_ADDRESS, DL_ID and VARIANT_BOOL."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.errors import WireError
from merq.wire.distribution_lists import DOMAIN_MAX, DistributionListId
from merq.wire.transport_addresses import (
    ADDRESS_SIZES,
    ADDRESSES_MAX,
    FOREIGN_ADDRESS_TYPE,
    IP_ADDRESS_TYPE,
    IP_RAS_ADDRESS_TYPE,
    IPX_ADDRESS_TYPE,
    TransportAddress,
    pack_addresses,
    parse_addresses,
)
from merq.wire.variant_bool import pack_variant_bool, parse_variant_bool

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
GUID_HEX = "33221100 5544 7766 8899aabbccddeeff"


@pytest.mark.spec("MS-MQMQ 2.2.4")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (IP_ADDRESS_TYPE, "0400 0100 0a000008"),
        (IP_RAS_ADDRESS_TYPE, "0400 0200 0a000008"),
        (IPX_ADDRESS_TYPE, "0a00 0300 00000001 0102030405ff"),
        (FOREIGN_ADDRESS_TYPE, "1000 0500" + GUID_HEX),
    ],
)
def test_each_type_of_address_has_its_size(kind: int, data: str) -> None:
    octets = bytes.fromhex(data)
    found = TransportAddress.parse(octets)
    assert (found.address_type, found.address) == (kind, octets[4:])
    assert found.pack() == octets
    with pytest.raises(WireError, match="belong"):
        TransportAddress(address_type=kind, address=bytes(5)).pack()


@pytest.mark.spec("MS-MQMQ 2.2.4")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        ("0400 0400 0a000008", 2, ".address_type"),
        ("0400 0000 0a000008", 2, ".address_type"),
        ("0500 0100 0a00000800", 0, ".address_length"),
        ("0a00 0100 00000000000000000000", 0, ".address_length"),
        ("0400 0300 0a000008", 0, ".address_length"),
        ("0400 0100 0a0000", 4, ".address"),
        ("0400 0100 0a00000800", 8, ""),
        ("0400 01", 0, ""),
    ],
)
def test_what_is_not_an_address_is_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        TransportAddress.parse(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, "TA_ADDRESS" + field)


def test_an_address_of_an_unknown_type_is_not_written() -> None:
    with pytest.raises(WireError, match="address_type"):
        TransportAddress(address_type=4, address=bytes(4)).pack()


some_addresses = st.sampled_from(sorted(ADDRESS_SIZES)).flatmap(
    lambda kind: st.binary(min_size=ADDRESS_SIZES[kind], max_size=ADDRESS_SIZES[kind]).map(
        lambda address: TransportAddress(address_type=kind, address=address)
    )
)


@pytest.mark.spec("MS-MQMQ 2.2.4", "MS-MQMQ 2.3.2.5")
@given(st.lists(some_addresses, max_size=6).map(tuple))
def test_addresses_lie_one_behind_the_other(addresses: tuple[TransportAddress, ...]) -> None:
    data = pack_addresses(addresses)
    assert len(data) == sum(4 + len(each.address) for each in addresses)
    assert parse_addresses(data) == addresses


@pytest.mark.limit("merq.wire.transport_addresses.ADDRESSES_MAX")
def test_no_more_addresses_are_read_or_written_than_the_limit() -> None:
    one = TransportAddress(address_type=IP_ADDRESS_TYPE, address=bytes(4))
    most = pack_addresses((one,) * ADDRESSES_MAX)
    assert len(parse_addresses(most)) == ADDRESSES_MAX
    with pytest.raises(WireError, match=str(ADDRESSES_MAX)):
        parse_addresses(most + one.pack())
    with pytest.raises(WireError, match=str(ADDRESSES_MAX)):
        pack_addresses((one,) * (ADDRESSES_MAX + 1))


DL = GUID_HEX + "00000200 03000000 00000000 03000000 6100 6200 0000"


@pytest.mark.spec("MS-MQMQ 2.2.9")
def test_a_distribution_list_has_a_guid_and_a_domain_that_ends_with_a_null() -> None:
    found = DistributionListId.parse(bytes.fromhex(DL))
    assert found == DistributionListId(dl_guid=GUID, domain="ab")
    assert found.pack() == bytes.fromhex(DL)


@pytest.mark.spec("MS-MQMQ 2.2.9")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        (DL.replace("00000200", "00000000"), 16, ".referent"),
        (DL.replace("03000000 00000000", "03000000 01000000"), 24, ".offset"),
        (DL.replace("03000000 00000000", "02000000 00000000"), 28, ".actual_count"),
        (DL.replace("00000000 03000000", "00000000 00000000"), 28, ".actual_count"),
        (DL.replace("00000000 03000000", "00000000 02000000"), 32, ".domain"),
        (DL.replace("6200 0000", "0000 0000"), 32, ".domain"),
        (DL.replace("6200 0000", "6200 6300"), 32, ".domain"),
        (DL.replace("03000000 00000000", "01010000 00000000"), 20, ".max_count"),
        (DL + "00", 38, ""),
        (DL[:44], 0, ""),
    ],
)
def test_what_is_not_a_distribution_list_is_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        DistributionListId.parse(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, "DL_ID" + field)


@pytest.mark.spec("MS-MQMQ 2.2.9")
@given(st.uuids(), st.text(st.characters(exclude_characters="\0"), max_size=DOMAIN_MAX // 2))
def test_any_distribution_list_comes_back_as_it_went(guid: UUID, domain: str) -> None:
    value = DistributionListId(dl_guid=guid, domain=domain)
    assert DistributionListId.parse(value.pack()) == value


def test_a_domain_longer_than_the_limit_is_not_written() -> None:
    DistributionListId(dl_guid=GUID, domain="x" * DOMAIN_MAX).pack()
    with pytest.raises(WireError, match="max_count"):
        DistributionListId(dl_guid=GUID, domain="x" * (DOMAIN_MAX + 1)).pack()


@pytest.mark.spec("MS-MQMQ 2.2.14")
def test_true_is_all_ones_and_false_is_zero() -> None:
    assert (pack_variant_bool(True), pack_variant_bool(False)) == (b"\xff\xff", b"\0\0")
    assert parse_variant_bool(b"\xff\xff") is True
    assert parse_variant_bool(b"\0\0") is False


@pytest.mark.spec("MS-MQMQ 2.2.14")
@pytest.mark.parametrize("data", [b"", b"\xff", b"\1\0", b"\xfe\xff", b"\0\xff", b"\0\0\0"])
def test_nothing_else_is_true_or_false(data: bytes) -> None:
    with pytest.raises(WireError) as caught:
        parse_variant_bool(data)
    assert (caught.value.offset, caught.value.field) == (0, "VARIANT_BOOL")


@pytest.mark.spec("MS-MQMQ 2.2.4", "MS-MQMQ 2.2.9", "MS-MQMQ 2.2.14")
@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_wire_error(data: bytes) -> None:
    with suppress(WireError):
        assert TransportAddress.parse(data).pack() == data
    with suppress(WireError):
        assert pack_addresses(parse_addresses(data)) == data
    with suppress(WireError):
        assert pack_variant_bool(parse_variant_bool(data)) == data
    for each in (data, bytes.fromhex(GUID_HEX) + data):
        with suppress(WireError):
            DistributionListId.parse(each)
