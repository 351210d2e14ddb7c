"""[MS-MQMQ] 2.2.1, 2.2.2: the public keys of a queue manager as a directory keeps them.

One key for each cryptographic provider. The key itself is a BLOBHEADER and an RSAPUBKEY, which
together are the PUBLICKEYBLOB of `merq.wire.keys`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from merq.errors import WireError
from merq.wire.keys import RSA_BITS_MAX, PublicKeyBlob, PublicKeyFields
from merq.wire.layout import Layout, layout, number
from merq.wire.reader import Reader, pack_wide

PROV_RSA_FULL: Final = 0x00000001
PROV_RSA_AES: Final = 0x00000018

PROVIDER_NAME_MAX: Final = 260
"""Characters of a provider's name that we handle; Windows' own have up to 53."""

PUBLIC_KEYS_MAX: Final = 64
"""Keys of one queue manager that we handle; [MS-MQDMPR] 3.1.3 has three."""

_KEY_BYTES_MAX: Final = PublicKeyFields.SIZE + RSA_BITS_MAX // 8


@layout("MS-MQMQ 2.2.1", size=12)
class MQDSPublicKeyFields(Layout):
    """[MS-MQMQ] 2.2.1: the part of an MQDSPUBLICKEY before the provider's name."""

    key_len: int = number(4, low=PublicKeyFields.SIZE, high=_KEY_BYTES_MAX)
    provider_len: int = number(4, low=2, high=2 * (PROVIDER_NAME_MAX + 1))
    provider_type: int = number(4, one_of=(PROV_RSA_FULL, PROV_RSA_AES))


@dataclass(frozen=True, slots=True, kw_only=True)
class MQDSPublicKey:
    """[MS-MQMQ] 2.2.1: a public key, and the provider that made it.

    The key's type is KEY_EXCHANGE, by the document, also for keys that verify signatures. One that
    says KEY_SIGNATURE is read too, and written as it came (erratum E97).
    """

    provider_type: int
    provider_name: str
    key: PublicKeyBlob

    def pack(self) -> bytes:
        """The bytes."""
        name = pack_wide(self.provider_name, "MQDSPUBLICKEY.sProviderName")
        key = self.key.pack()
        fields = MQDSPublicKeyFields(
            key_len=len(key), provider_len=len(name), provider_type=self.provider_type
        )
        return fields.pack() + name + key

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The key at the reader's position."""
        fields = MQDSPublicKeyFields.unpack(reader)
        name = reader.wide(fields.provider_len, "provider_name")
        start = reader.position
        data = reader.take(fields.key_len, "key")
        try:
            key = PublicKeyBlob.parse(data)
        except WireError as wrong:
            raise reader.fail(
                wrong.reason, wrong.field, offset=start + (wrong.offset or 0)
            ) from None
        reader.note("key", start, fields.key_len, key)
        return cls(provider_type=fields.provider_type, provider_name=name, key=key)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The key of exactly these bytes."""
        reader = Reader(data)
        with reader.part("MQDSPUBLICKEY"):
            value = cls.unpack(reader)
            reader.finish()
        return value


@layout("MS-MQMQ 2.2.2", size=8)
class MQDSPublicKeysFields(Layout):
    """[MS-MQMQ] 2.2.2: the part of an MQDSPUBLICKEYS before its keys."""

    length: int = number(4, low=8)
    count: int = number(4, high=PUBLIC_KEYS_MAX)


@dataclass(frozen=True, slots=True)
class MQDSPublicKeys:
    """[MS-MQMQ] 2.2.2: the public keys of a queue manager for one purpose."""

    keys: tuple[MQDSPublicKey, ...] = ()

    def pack(self) -> bytes:
        """The bytes."""
        keys = b"".join(each.pack() for each in self.keys)
        length = MQDSPublicKeysFields.SIZE + len(keys)
        return MQDSPublicKeysFields(length=length, count=len(self.keys)).pack() + keys

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The keys of exactly these bytes."""
        reader = Reader(data)
        with reader.part("MQDSPUBLICKEYS"):
            fields = MQDSPublicKeysFields.unpack(reader)
            if fields.length != len(data):
                reason = f"it says {fields.length} bytes, and there are {len(data)}"
                raise reader.fail(reason, "length", offset=0)
            keys: list[MQDSPublicKey] = []
            for number_of_key in range(fields.count):
                with reader.part(f"aPublicKeys[{number_of_key}]"):
                    keys.append(MQDSPublicKey.unpack(reader))
            reader.finish()
        return cls(tuple(keys))
