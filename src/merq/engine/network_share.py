"""What messages of other queue managers take here, and from which addresses they came.

Applications of this computer and other queue managers share a quota and the memory for express
messages. The network has a part of both (`Limits.network_quota_percent`), so that applications can
still send when strangers have filled theirs. Of that part an address may take as much as it leaves
for others: one alone gets a half, a second one half of the rest. So who fills is slowed, and who
comes later still finds room.

What all of them take together is exact. What an address takes is known of messages that came since
the start, and of those before that the last checkpoint knew: it has a summary of bounded size, and
the log has no addresses. When a message goes, it is known who sent it, not from which address. If
messages of one sender came from several, because somebody claims to be another, the address with
fewest of them is relieved first: a peer is not charged for what a stranger leaves here in its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from merq.model.peer_networks import peer_network

SOURCES_MAX: Final = 10_000
ADDRESSES_OF_SOURCE_MAX: Final = 8
"""Senders of which it is known from which addresses they came, and how many of those each may have.
Addresses stay charged with anything beyond that until nothing of the network is here any more."""

CHARGES_MAX: Final = 10_000
"""Charges of addresses that a checkpoint keeps, the largest; the others are forgotten at the next
start, as are those of messages that came after the checkpoint."""

RELIEF: Final = 10
"""Who was refused may go on when it may take the tenth part of what is free, or more: not for every
single message that leaves."""


class Charge(NamedTuple):
    """What an address, or its network, is charged with for messages of a sender.

    Attributes:
        number: The sender's, here.
        address: As it is charged.
        size: Bytes.
    """

    number: int
    address: str
    size: int


class Coming:
    """What one change brings.

    Attributes:
        total_bytes: From all addresses.
        by_address: From each.
        by_source: From each, by the number that the sender has here.
    """

    __slots__ = ("by_address", "by_source", "total_bytes")

    def __init__(self) -> None:
        self.total_bytes = 0
        self.by_address: dict[str, int] = {}
        self.by_source: dict[tuple[int, str], int] = {}

    def add(self, address: str, number: int, size: int) -> None:
        """Messages of a sender come from an address."""
        address = peer_network(address)
        self.total_bytes += size
        self.by_address[address] = self.by_address.get(address, 0) + size
        pair = number, address
        self.by_source[pair] = self.by_source.get(pair, 0) + size

    def of(self, address: str) -> int:
        """What comes from an address, or its network."""
        return self.by_address.get(peer_network(address), 0)


NOTHING: Final = Coming()
"""Nothing comes."""


class NetworkShare:
    """What messages of other queue managers take of something.

    Attributes:
        total_bytes: All of them.
    """

    __slots__ = ("_by_source", "_charges", "total_bytes")

    def __init__(self) -> None:
        self.total_bytes = 0
        self._charges: dict[str, int] = {}
        self._by_source: dict[int, dict[str, int]] = {}

    def settle(self, coming: Coming) -> None:
        """What a change has brought is here: addresses are charged with it."""
        for address, size in coming.by_address.items():
            self._charges[address] = self._charges.get(address, 0) + size
        for (number, address), size in coming.by_source.items():
            parts = self._by_source.get(number)
            if parts is None and len(self._by_source) < SOURCES_MAX:
                parts = self._by_source[number] = {}
            if parts is not None and (address in parts or len(parts) < ADDRESSES_OF_SOURCE_MAX):
                parts[address] = parts.get(address, 0) + size

    def remove(self, number: int, size: int) -> None:
        """Messages of a sender are gone."""
        self.total_bytes -= size
        if not self.total_bytes:
            self._charges.clear()
            self._by_source.clear()
            return
        parts = self._by_source.get(number)
        while parts and size:
            address = min(parts, key=parts.__getitem__)
            part = min(size, parts[address])
            size -= part
            _lessen(parts, address, part)
            _lessen(self._charges, address, part)
        if parts is not None and not parts:
            del self._by_source[number]

    def charges(self, passing: NetworkShare) -> list[Charge]:
        """What addresses are charged with for messages that outlive the process, the largest first.

        Args:
            passing: What those take that do not outlive it.
        """
        found = [
            Charge(number, address, size - passing.charged(number, address))
            for number, parts in self._by_source.items()
            for address, size in parts.items()
        ]
        found = [each for each in found if each.size > 0]
        found.sort(key=lambda each: each.size, reverse=True)
        return found[:CHARGES_MAX]

    def charged(self, number: int, address: str) -> int:
        """What an address, as it is charged, is charged with for a sender."""
        return self._by_source.get(number, {}).get(address, 0)

    def restore(self, charge: Charge) -> None:
        """An address was charged before the start, and the messages are there still."""
        number, address, size = charge
        self._charges[address] = self._charges.get(address, 0) + size
        self._by_source.setdefault(number, {})[address] = size

    def used_by(self, address: str) -> int:
        """What came from an address and is here."""
        return min(self._charges.get(peer_network(address), 0), self.total_bytes)

    def room(self, address: str, most: int, coming: Coming = NOTHING) -> int:
        """How many bytes more an address may bring, if all may take so many.

        When it has brought them, it takes as much as is free.
        """
        used = self.used_by(address) + coming.of(address)
        free = most - self.total_bytes - coming.total_bytes
        return max(0, (free - used) // 2)

    def is_relieved(self, address: str, most: int, needed: int) -> bool:
        """Whether an address that was refused may go on."""
        return self.room(address, most) >= max(needed, (most - self.total_bytes) // RELIEF)


def _lessen(counts: dict[str, int], address: str, size: int) -> None:
    """Takes something off a count that goes when it is nothing."""
    rest = counts[address] - size
    if rest:
        counts[address] = rest
    else:
        del counts[address]


def foreign_sizes(keys: Sequence[int], sizes: Sequence[int], own: int | None) -> Sequence[int]:
    """The sizes of those messages that are of other queue managers; mostly all or none are."""
    low, high = min(keys) >> 32, max(keys) >> 32
    if low == high:
        return () if low == own else sizes
    return [each for key, each in zip(keys, sizes, strict=True) if key >> 32 != own]
