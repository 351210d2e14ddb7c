"""MQDSPUBLICKEY and MQDSPUBLICKEYS."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.errors import WireError
from merq.wire.keys import KEY_EXCHANGE, KEY_SIGNATURE, PublicKeyBlob, PublicKeyFields
from merq.wire.public_keys import (
    PROV_RSA_AES,
    PROV_RSA_FULL,
    PROVIDER_NAME_MAX,
    PUBLIC_KEYS_MAX,
    MQDSPublicKey,
    MQDSPublicKeys,
)

BLOB = "06 02 0000 00a40000 52534131 18000000 01000100 010203"
HEAD = "17000000 06000000 01000000"
"""23 bytes of key, 6 of name, and the provider is PROV_RSA_FULL."""
NAME = "4100 4200 0000"
ONE = HEAD + NAME + BLOB


def blob(modulus: bytes = b"\1\2\3", key_type: int = KEY_EXCHANGE) -> PublicKeyBlob:
    fields = PublicKeyFields(key_type=key_type, bit_len=8 * len(modulus), pub_exp=65537)
    return PublicKeyBlob(fields=fields, modulus=modulus)


def key(name: str = "AB", provider_type: int = PROV_RSA_FULL) -> MQDSPublicKey:
    return MQDSPublicKey(provider_type=provider_type, provider_name=name, key=blob())


@pytest.mark.spec("MS-MQMQ 2.2.1")
def test_a_public_key_says_its_size_its_provider_and_itself() -> None:
    data = bytes.fromhex(ONE)
    assert MQDSPublicKey.parse(data) == key()
    assert key().pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.1")
@pytest.mark.spec("E97")
def test_a_key_that_says_it_is_for_signing_is_read_and_written_as_it_came() -> None:
    data = bytes.fromhex(ONE.replace("00a40000", "00240000"))
    found = MQDSPublicKey.parse(data)
    assert found.key.fields.key_type == KEY_SIGNATURE
    assert found.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.1")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        (ONE.replace("17000000", "18000000"), 18, "key"),
        (ONE.replace("17000000", "16000000"), 38, "PUBLICKEYBLOB.modulus"),
        (ONE.replace("17000000", "13000000", 1), 0, "key_len"),
        (ONE.replace("17000000", "ffffffff", 1), 0, "key_len"),
        (ONE.replace("06000000", "00000000", 1), 4, "provider_len"),
        (ONE.replace("06000000", "0c020000", 1), 4, "provider_len"),
        (ONE.replace("06000000", "05000000", 1), 12, "provider_name"),
        (ONE.replace("01000000", "02000000", 1), 8, "provider_type"),
        (ONE.replace(NAME, "4100 4200 4300"), 12, "provider_name"),
        (ONE.replace("00a40000", "00a50000"), 22, "PUBLICKEYBLOB.key_type"),
        (ONE + "00", 41, ""),
        (HEAD[:-2], 0, ""),
    ],
)
def test_what_is_not_a_public_key_is_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        MQDSPublicKey.parse(bytes.fromhex(data))
    assert caught.value.offset == offset
    assert caught.value.field == ("MQDSPUBLICKEY." + field).rstrip(".")


@pytest.mark.spec("MS-MQMQ 2.2.1")
def test_a_key_of_an_unknown_provider_type_or_with_a_name_too_long_is_not_written() -> None:
    with pytest.raises(WireError, match="0x2 is not one of 0x1, 0x18"):
        key(provider_type=2).pack()
    key("x" * PROVIDER_NAME_MAX).pack()
    with pytest.raises(WireError, match="provider_len"):
        key("x" * (PROVIDER_NAME_MAX + 1)).pack()
    with pytest.raises(WireError, match="null character"):
        key("a\0b").pack()


@pytest.mark.spec("MS-MQMQ 2.2.2")
def test_keys_say_their_size_with_themselves_and_their_number() -> None:
    data = bytes.fromhex("5a000000 02000000" + ONE + ONE.replace("01000000", "18000000", 1))
    keys = MQDSPublicKeys((key(), key(provider_type=PROV_RSA_AES)))
    assert len(data) == 0x5A
    assert MQDSPublicKeys.parse(data) == keys
    assert keys.pack() == data


@pytest.mark.spec("MS-MQMQ 2.2.2")
def test_there_may_be_no_keys() -> None:
    assert MQDSPublicKeys().pack() == bytes.fromhex("08000000 00000000")
    assert MQDSPublicKeys.parse(bytes.fromhex("08000000 00000000")) == MQDSPublicKeys()


@pytest.mark.spec("MS-MQMQ 2.2.2")
@pytest.mark.parametrize(
    ("data", "field"),
    [
        ("09000000 00000000", "MQDSPUBLICKEYS.length"),
        ("07000000 00000000", "MQDSPUBLICKEYS.length"),
        ("08000000 01000000", "MQDSPUBLICKEYS.aPublicKeys[0]"),
        ("31000000 00000000" + ONE, "MQDSPUBLICKEYS"),
        ("08000000 41000000", "MQDSPUBLICKEYS.count"),
        ("08000000 ffffffff", "MQDSPUBLICKEYS.count"),
        ("08000000 0000", "MQDSPUBLICKEYS"),
    ],
)
def test_what_are_not_public_keys_is_refused(data: str, field: str) -> None:
    with pytest.raises(WireError) as caught:
        MQDSPublicKeys.parse(bytes.fromhex(data))
    assert caught.value.field == field


@pytest.mark.spec("MS-MQMQ 2.2.2")
def test_more_keys_than_we_handle_are_not_written() -> None:
    MQDSPublicKeys((key(),) * PUBLIC_KEYS_MAX).pack()
    with pytest.raises(WireError, match="count"):
        MQDSPublicKeys((key(),) * (PUBLIC_KEYS_MAX + 1)).pack()


texts = st.text(st.characters(exclude_characters="\0"), max_size=20)
some_keys = st.builds(
    MQDSPublicKey,
    provider_type=st.sampled_from([PROV_RSA_FULL, PROV_RSA_AES]),
    provider_name=texts,
    key=st.builds(
        blob, st.binary(min_size=1, max_size=40), st.sampled_from([KEY_EXCHANGE, KEY_SIGNATURE])
    ),
)


@pytest.mark.spec("MS-MQMQ 2.2.1", "MS-MQMQ 2.2.2")
@given(st.lists(some_keys, max_size=5).map(tuple))
def test_any_keys_come_back_as_they_went(keys: tuple[MQDSPublicKey, ...]) -> None:
    assert MQDSPublicKeys.parse(MQDSPublicKeys(keys).pack()) == MQDSPublicKeys(keys)


@pytest.mark.spec("MS-MQMQ 2.2.1", "MS-MQMQ 2.2.2")
@given(st.data())
def test_any_bytes_are_keys_or_a_wire_error(data: st.DataObject) -> None:
    good = bytearray(MQDSPublicKeys((key(), key("C"))).pack())
    at = data.draw(st.integers(0, len(good) - 1))
    good[at] = data.draw(st.integers(0, 255))
    junk = bytes(good[: data.draw(st.integers(0, len(good)))])
    for each in (junk, bytes(good), data.draw(st.binary(max_size=60))):
        for kind in (MQDSPublicKeys, MQDSPublicKey):
            with suppress(WireError):
                assert kind.parse(each).pack() == each
