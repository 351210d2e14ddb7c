"""What messages of other queue managers take here, and from which addresses they came.

Applications of this computer and other queue managers share a quota and the memory for express
messages. The network has a part of both (`Limits.network_share_percent`), so that applications can
still send when strangers have filled theirs. Of that part an address may take as much as it leaves
for others: one alone gets a half, a second one half of the rest. So who fills is slowed, and who
comes later still finds room.

What all of them take together is exact. What an address takes is known as far as its messages came
since the start, and as long as their senders' identifiers come from one address.
"""

from __future__ import annotations

from typing import Final

from merq.model.peer_networks import peer_network

SOURCES_MAX: Final = 10_000
"""Senders of which it is known from which address they came; what others send is charged to their
address until nothing of the network is here any more."""

RELIEF: Final = 10
"""Who was refused may go on when it may take the tenth part of what is free, or more: not for every
single message that leaves."""


class Coming:
    """What one change brings.

    Attributes:
        total_bytes: From all addresses.
        by_address: From each.
        sources: The addresses of senders, by the numbers that they have here.
    """

    __slots__ = ("by_address", "sources", "total_bytes")

    def __init__(self) -> None:
        self.total_bytes = 0
        self.by_address: dict[str, int] = {}
        self.sources: dict[int, str] = {}

    def add(self, address: str, number: int, size: int) -> None:
        """Messages of a sender come from an address."""
        address = peer_network(address)
        self.total_bytes += size
        self.by_address[address] = self.by_address.get(address, 0) + size
        self.sources[number] = address

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

    __slots__ = ("_addresses", "_charges", "total_bytes")

    def __init__(self) -> None:
        self.total_bytes = 0
        self._charges: dict[str, int] = {}
        self._addresses: dict[int, str] = {}

    def settle(self, coming: Coming) -> None:
        """What a change has brought is here: addresses are charged with it."""
        for address, size in coming.by_address.items():
            self._charges[address] = self._charges.get(address, 0) + size
        for number, address in coming.sources.items():
            if len(self._addresses) < SOURCES_MAX:
                self._addresses.setdefault(number, address)

    def remove(self, number: int, size: int) -> None:
        """Messages of a sender are gone."""
        self.total_bytes -= size
        if not self.total_bytes:
            self._charges.clear()
            self._addresses.clear()
            return
        address = self._addresses.get(number)
        if address is not None:
            rest = self._charges.get(address, 0) - size
            if rest > 0:
                self._charges[address] = rest
            else:
                self._charges.pop(address, None)

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
