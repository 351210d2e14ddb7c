"""PUBLICKEYBLOB and SIMPLEBLOB."""

import pytest

from merq.errors import WireError
from merq.wire.keys import (
    AES_256,
    KEY_EXCHANGE,
    KEY_SIGNATURE,
    RSA_BITS_MAX,
    PublicKeyBlob,
    PublicKeyFields,
    SimpleBlob,
    SimpleBlobFields,
)

PUBLIC = "06 02 0000 00a40000 52534131 18000000 01000100"
SIMPLE = "01 02 0000 10660000 00a40000"


@pytest.mark.spec("MS-MQQB 2.4.1")
@pytest.mark.spec("E28")
def test_a_public_key_has_its_modulus_little_endian() -> None:
    data = bytes.fromhex(PUBLIC + "010203")
    key = PublicKeyBlob(
        fields=PublicKeyFields(key_type=KEY_EXCHANGE, bit_len=24, pub_exp=65537),
        modulus=bytes.fromhex("010203"),
    )
    assert PublicKeyBlob.parse(data) == key
    assert key.pack() == data
    assert key.n == 0x030201


@pytest.mark.spec("MS-MQQB 2.4.1", "MS-MQMQ 2.2.20.6")
@pytest.mark.spec("E28")
def test_a_public_key_may_be_for_signing() -> None:
    data = bytes.fromhex("06 02 0000 00240000 52534131 08000000 03000000 ff")
    key = PublicKeyBlob.parse(data)
    assert key.fields.key_type == KEY_SIGNATURE
    assert key.pack() == data


@pytest.mark.spec("MS-MQQB 2.4.1")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        ("07" + PUBLIC[2:] + "010203", 0, "blob_type"),
        ("06 01" + PUBLIC[5:] + "010203", 1, "version"),
        ("06 02 0100" + PUBLIC[10:] + "010203", 2, "reserved"),
        (PUBLIC.replace("00a40000", "00a50000") + "010203", 4, "key_type"),
        (PUBLIC.replace("52534131", "52534132") + "010203", 8, "magic"),
        (PUBLIC.replace("18000000", "00000000"), 12, "bit_len"),
        (PUBLIC.replace("18000000", "17000000") + "010203", 12, "bit_len"),
        (PUBLIC.replace("18000000", "08400000") + "010203", 12, "bit_len"),
        (PUBLIC.replace("18000000", "ffffffff") + "010203", 12, "bit_len"),
        (PUBLIC + "0102", 20, "modulus"),
        (PUBLIC + "01020304", 23, ""),
        (PUBLIC[:-2], 0, ""),
    ],
)
def test_what_is_not_a_public_key_is_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        PublicKeyBlob.parse(bytes.fromhex(data))
    assert caught.value.offset == offset
    assert caught.value.field == ("PUBLICKEYBLOB." + field if field else "PUBLICKEYBLOB")


@pytest.mark.spec("MS-MQQB 2.4.1")
def test_a_modulus_of_another_length_is_not_written() -> None:
    fields = PublicKeyFields(key_type=KEY_EXCHANGE, bit_len=24, pub_exp=3)
    with pytest.raises(WireError, match="bitLen is 24, the modulus has 16 bits") as caught:
        PublicKeyBlob(fields=fields, modulus=b"ab").pack()
    assert caught.value.field == "PUBLICKEYBLOB"


@pytest.mark.spec("MS-MQQB 2.4.2")
def test_a_session_key_is_read_and_written() -> None:
    encrypted = bytes(range(256))
    data = bytes.fromhex(SIMPLE) + encrypted
    key = SimpleBlob(
        fields=SimpleBlobFields(session_key_algorithm=AES_256), encrypted_key=encrypted
    )
    assert len(data) == 268
    assert SimpleBlob.parse(data) == key
    assert key.pack() == data


@pytest.mark.spec("MS-MQQB 2.4.2")
@pytest.mark.parametrize("algorithm", ["0e660000", "0f660000", "10660000", "02660000", "01680000"])
@pytest.mark.spec("E27")
def test_each_algorithm_of_the_document_is_known(algorithm: str) -> None:
    data = bytes.fromhex(f"01 02 0000 {algorithm} 00a40000") + b"k" * 128
    key = SimpleBlob.parse(data)
    assert key.fields.session_key_algorithm.to_bytes(4, "little").hex() == algorithm
    assert key.pack() == data


@pytest.mark.spec("MS-MQQB 2.4.2")
@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        ("06" + SIMPLE[2:] + "aa", 0, ".blob_type"),
        ("01 03" + SIMPLE[5:] + "aa", 1, ".version"),
        ("01 02 0001" + SIMPLE[10:] + "aa", 2, ".reserved"),
        (SIMPLE.replace("10660000", "11660000") + "aa", 4, ".session_key_algorithm"),
        (SIMPLE.replace("00a40000", "00240000") + "aa", 8, ".key_type"),
        (SIMPLE, 12, ".encrypted_key"),
        (SIMPLE + "aa" * (RSA_BITS_MAX // 8 + 1), 12, ".encrypted_key"),
        (SIMPLE[:-2], 0, ""),
    ],
)
def test_what_is_not_a_session_key_is_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        SimpleBlob.parse(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, "SIMPLEBLOB" + field)


@pytest.mark.spec("MS-MQQB 2.4.2")
@pytest.mark.parametrize("size", [0, RSA_BITS_MAX // 8 + 1])
def test_a_session_key_of_no_sensible_length_is_not_written(size: int) -> None:
    key = SimpleBlob(
        fields=SimpleBlobFields(session_key_algorithm=AES_256), encrypted_key=bytes(size)
    )
    with pytest.raises(WireError, match=f"a key of {size} bytes") as caught:
        key.pack()
    assert caught.value.field == "SIMPLEBLOB"
