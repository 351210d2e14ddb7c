"""[MS-MQMQ] 2.2.20.6: the SecurityHeader: who sent a message, its signature and its key.

This is the form only; signing, verifying and decrypting are elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from merq.errors import WireError
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.layout import (
    BitField,
    Layout,
    bit,
    bit_field,
    bits,
    flag_word,
    layout,
    number,
    other_bits,
)
from merq.wire.reader import Reader, pack_wide, padded

SENDER_NONE = 0
SENDER_SID = 1
SENDER_QUEUE_MANAGER = 2

_SID_PARTS_MAX = 15
_SID_FIXED_SIZE = 8


@bit_field("MS-MQMQ 2.2.20.6", width=16)
class SecurityFlags(BitField):
    """[MS-MQMQ] 2.2.20.6: what the security data holds and how it was made."""

    sender_id_type: int = bits(
        0, 4, "ST", one_of=(SENDER_NONE, SENDER_SID, SENDER_QUEUE_MANAGER), default=0
    )
    authenticated: bool = bit(4, "AU", default=False)
    body_encrypted: bool = bit(5, "EB", default=False)
    default_provider: bool = bit(6, "DE", default=False)
    security_data: bool = bit(7, "AI", default=False)
    authentication_signature: int = bits(8, 4, "AS", default=0)
    reserved: int = other_bits(default=0)


@layout("MS-MQMQ 2.2.20.6", size=16)
class SecurityFields(Layout):
    """[MS-MQMQ] 2.2.20.6: the part of a SecurityHeader that is always there."""

    flags: SecurityFlags = flag_word(SecurityFlags)
    sender_id_size: int = number(2)
    encryption_key_size: int = number(2)
    signature_size: int = number(2)
    sender_cert_size: int = number(4, high=0xFFFF)
    provider_info_size: int = number(4, high=PACKET_SIZE_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInfo:
    """[MS-MQMQ] 2.2.20.6: the cryptographic provider that made the signature."""

    provider_type: int
    provider_name: str

    def pack(self) -> bytes:
        """The bytes, without what aligns the next item."""
        if not 0 <= self.provider_type <= 0xFFFFFFFF:
            raise WireError(f"{self.provider_type} does not fit in 32 bits", field="ProviderType")
        return self.provider_type.to_bytes(4, "little") + pack_wide(
            self.provider_name, "provider_name"
        )


_ITEMS = ("security_id", "encryption_key", "signature", "sender_cert")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityHeader:
    """[MS-MQMQ] 2.2.20.6: the sender's identity, keys, signature and certificate.

    SecurityData is read by its sizes whatever the AI bit says: [MS-MQQB] 4.1.7 has a SID while
    the bit is clear.
    """

    fields: SecurityFields
    security_id: bytes = b""
    encryption_key: bytes = b""
    signature: bytes = b""
    sender_cert: bytes = b""
    provider_info: ProviderInfo | None = None
    paddings: tuple[bytes, ...] = field(default=(), compare=False, repr=False)

    @property
    def sid(self) -> str | None:
        """The sender's security identifier as people write it, if that is what is there."""
        return (
            sid_text(self.security_id) if self.fields.flags.sender_id_type == SENDER_SID else None
        )

    @property
    def sender_queue_manager(self) -> UUID | None:
        """The queue manager that signed the packet, if that is who sent it."""
        if self.fields.flags.sender_id_type != SENDER_QUEUE_MANAGER:
            return None
        return UUID(bytes_le=self.security_id)

    @property
    def sender_text(self) -> str:
        """Who sent the packet, as people write it; empty if it does not say."""
        return self.sid or str(self.sender_queue_manager or self.security_id.hex())

    def pack(self) -> bytes:
        """The bytes."""
        items: list[bytes] = [getattr(self, name) for name in _ITEMS]
        items.append(b"" if self.provider_info is None else self.provider_info.pack())
        fields = self.fields
        for item, size, name in zip(items, _sizes(fields), (*_ITEMS, "provider_info"), strict=True):
            if len(item) != size:
                raise WireError(
                    f"{size} bytes are said, {len(item)} are there", field=f"SecurityHeader.{name}"
                )
        if problem := _contradiction(fields):
            raise WireError(problem, field="SecurityHeader")
        kept = [*self.paddings, *[b""] * (len(items) - len(self.paddings))]
        return fields.pack() + b"".join(map(padded, items, kept))

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The header at the reader's position."""
        start = reader.position
        fields = SecurityFields.unpack(reader)
        if problem := _contradiction(fields):
            raise reader.fail(problem, offset=start)
        items: list[bytes] = []
        paddings: list[bytes] = []
        for name, size in zip(_ITEMS, _sizes(fields), strict=False):
            items.append(reader.raw(size, name) if size else b"")
            paddings.append(reader.pad(start))
        provider = None
        if fields.provider_info_size:
            with reader.part("provider_info"):
                provider_type = reader.u32("provider_type")
                name = reader.wide(fields.provider_info_size - 4, "provider_name")
                provider = ProviderInfo(provider_type=provider_type, provider_name=name)
            paddings.append(reader.pad(start))
        return cls(
            fields=fields,
            security_id=items[0],
            encryption_key=items[1],
            signature=items[2],
            sender_cert=items[3],
            provider_info=provider,
            paddings=tuple(paddings),
        )


def _sizes(fields: SecurityFields) -> tuple[int, ...]:
    return (
        fields.sender_id_size,
        fields.encryption_key_size,
        fields.signature_size,
        fields.sender_cert_size,
        fields.provider_info_size,
    )


def _contradiction(fields: SecurityFields) -> str:
    """[MS-MQMQ] 2.2.20.6: what these sizes say that cannot be true; empty if nothing."""
    if not any(_sizes(fields)):
        return "all sizes are 0, but a SecurityHeader carries at least one item"
    kind, size = fields.flags.sender_id_type, fields.sender_id_size
    if kind == SENDER_NONE and size:
        return f"SenderIdSize is {size} where ST says that there is no sender identifier"
    if kind == SENDER_QUEUE_MANAGER and size != 16:
        return f"SenderIdSize is {size} where ST says that a GUID of 16 bytes follows"
    if 0 < fields.provider_info_size < 6:
        return f"ProviderInfoSize is {fields.provider_info_size}, too small for a type and a name"
    return ""


def sid_text(data: bytes) -> str | None:
    """[MS-DTYP] 2.4.2.2: a security identifier as `S-1-5-21-…`, or None if it is not one."""
    if len(data) < _SID_FIXED_SIZE or data[0] != 1 or data[1] > _SID_PARTS_MAX:
        return None
    if len(data) != _SID_FIXED_SIZE + 4 * data[1]:
        return None
    authority = int.from_bytes(data[2:8], "big")
    parts = (
        int.from_bytes(data[at : at + 4], "little") for at in range(_SID_FIXED_SIZE, len(data), 4)
    )
    return "-".join(["S-1", str(authority), *map(str, parts)])
