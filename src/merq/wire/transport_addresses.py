"""[MS-MQMQ] 2.2.4: addresses of a computer on its networks, as a directory keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from merq.errors import WireError
from merq.wire.layout import Layout, layout, number
from merq.wire.reader import Reader

IP_ADDRESS_TYPE: Final = 1
IP_RAS_ADDRESS_TYPE: Final = 2
IPX_ADDRESS_TYPE: Final = 3
FOREIGN_ADDRESS_TYPE: Final = 5

ADDRESS_SIZES: Final = {
    IP_ADDRESS_TYPE: 4,
    IP_RAS_ADDRESS_TYPE: 4,
    IPX_ADDRESS_TYPE: 10,
    FOREIGN_ADDRESS_TYPE: 16,
}
"""[MS-MQMQ] 2.2.4, 2.2.4.1, 2.2.4.2: how many bytes an address of each type has."""

ADDRESSES_MAX: Final = 1024
"""Addresses of one computer that we handle."""


@layout("MS-MQMQ 2.2.4", size=4)
class TransportAddressFields(Layout):
    """[MS-MQMQ] 2.2.4: the part of a TA_ADDRESS before the address."""

    address_length: int = number(2, one_of=(4, 10, 16))
    address_type: int = number(2, one_of=tuple(ADDRESS_SIZES))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportAddress:
    """[MS-MQMQ] 2.2.4: TA_ADDRESS, one address of one type.

    Attributes:
        address: An IPv4 address, a network and node of IPX, or the GUID of a foreign network, as
            its bytes.
    """

    address_type: int
    address: bytes

    def pack(self) -> bytes:
        """The bytes."""
        size = ADDRESS_SIZES.get(self.address_type)
        if size is not None and len(self.address) != size:
            raise WireError(
                f"{len(self.address)} bytes where {size} belong", field="TA_ADDRESS.Address"
            )
        fields = TransportAddressFields(
            address_length=len(self.address), address_type=self.address_type
        )
        return fields.pack() + self.address

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The address at the reader's position."""
        start = reader.position
        fields = TransportAddressFields.unpack(reader)
        size = ADDRESS_SIZES[fields.address_type]
        if fields.address_length != size:
            reason = f"an address of type {fields.address_type} has {size} bytes"
            raise reader.fail(
                f"{reason}, not {fields.address_length}", "address_length", offset=start
            )
        return cls(address_type=fields.address_type, address=reader.raw(size, "address"))

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The address of exactly these bytes."""
        reader = Reader(data)
        with reader.part("TA_ADDRESS"):
            value = cls.unpack(reader)
            reader.finish()
        return value


def pack_addresses(addresses: tuple[TransportAddress, ...]) -> bytes:
    """[MS-MQMQ] 2.3.2.5: all addresses of a computer, one behind the other."""
    if len(addresses) > ADDRESSES_MAX:
        raise WireError(f"{len(addresses)} addresses; {ADDRESSES_MAX} are the most")
    return b"".join(each.pack() for each in addresses)


def parse_addresses(data: bytes) -> tuple[TransportAddress, ...]:
    """[MS-MQMQ] 2.3.2.5: the addresses of exactly these bytes."""
    reader = Reader(data)
    found: list[TransportAddress] = []
    while reader.remaining:
        if len(found) == ADDRESSES_MAX:
            raise reader.fail(f"more than {ADDRESSES_MAX} addresses")
        with reader.part(f"TA_ADDRESS[{len(found)}]"):
            found.append(TransportAddress.unpack(reader))
    return tuple(found)
