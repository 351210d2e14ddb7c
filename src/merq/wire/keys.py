"""[MS-MQQB] 2.4.1, 2.4.2: RSA public keys and encrypted session keys as they travel.

[MS-MQMQ] 2.2.20.6 draws the same public key one byte short; this is the form of [MS-MQQB] 2.4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from merq.errors import WireError
from merq.wire.layout import Layout, constant, layout, number
from merq.wire.reader import Reader

RSA_BITS_MAX = 16_384
"""The longest modulus we handle."""

KEY_EXCHANGE = 0x0000A400
KEY_SIGNATURE = 0x00002400
AES_128 = 0x0000660E
AES_192 = 0x0000660F
AES_256 = 0x00006610
RC2 = 0x00006602
RC4 = 0x00006801


@layout("MS-MQQB 2.4.1", size=20)
class PublicKeyFields(Layout):
    """[MS-MQQB] 2.4.1: the part of a PUBLICKEYBLOB before its modulus."""

    blob_type: int = constant(1, default=0x06)
    version: int = constant(1, default=0x02)
    reserved: int = constant(2, default=0)
    key_type: int = number(4, one_of=(KEY_EXCHANGE, KEY_SIGNATURE))
    magic: int = constant(4, default=0x31415352)
    bit_len: int = number(4, low=8, high=RSA_BITS_MAX)
    pub_exp: int = number(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKeyBlob:
    """[MS-MQQB] 2.4.1: an RSA public key; the modulus lies on the wire little-endian."""

    fields: PublicKeyFields
    modulus: bytes

    @property
    def n(self) -> int:
        """The modulus as a number."""
        return int.from_bytes(self.modulus, "little")

    def pack(self) -> bytes:
        """The bytes."""
        if len(self.modulus) * 8 != self.fields.bit_len:
            raise WireError(
                f"bitLen is {self.fields.bit_len}, the modulus has {len(self.modulus) * 8} bits",
                field="PUBLICKEYBLOB",
            )
        return self.fields.pack() + self.modulus

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The key of exactly these bytes."""
        reader = Reader(data)
        with reader.part("PUBLICKEYBLOB"):
            fields = PublicKeyFields.unpack(reader)
            if fields.bit_len % 8:
                raise reader.fail(
                    f"{fields.bit_len} bits are not whole bytes", "bit_len", offset=12
                )
            modulus = reader.raw(fields.bit_len // 8, "modulus")
            reader.finish()
        return cls(fields=fields, modulus=modulus)


@layout("MS-MQQB 2.4.2", size=12)
class SimpleBlobFields(Layout):
    """[MS-MQQB] 2.4.2: the part of a SIMPLEBLOB before its key."""

    blob_type: int = constant(1, default=0x01)
    version: int = constant(1, default=0x02)
    reserved: int = constant(2, default=0)
    session_key_algorithm: int = number(4, one_of=(AES_128, AES_192, AES_256, RC2, RC4))
    key_type: int = constant(4, default=KEY_EXCHANGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleBlob:
    """[MS-MQQB] 2.4.2: a session key, encrypted for the receiver, little-endian.

    The document gives the key 256 bytes, which is what a 2048-bit RSA key makes; a key of another
    length makes another number, so the rest of the blob is the key.
    """

    fields: SimpleBlobFields
    encrypted_key: bytes

    def pack(self) -> bytes:
        """The bytes."""
        if not 0 < len(self.encrypted_key) <= RSA_BITS_MAX // 8:
            raise WireError(f"a key of {len(self.encrypted_key)} bytes", field="SIMPLEBLOB")
        return self.fields.pack() + self.encrypted_key

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The key of exactly these bytes."""
        reader = Reader(data)
        with reader.part("SIMPLEBLOB"):
            fields = SimpleBlobFields.unpack(reader)
            if not 0 < reader.remaining <= RSA_BITS_MAX // 8:
                raise reader.fail(f"a key of {reader.remaining} bytes", "encrypted_key")
            key = reader.raw(reader.remaining, "encrypted_key")
        return cls(fields=fields, encrypted_key=key)
