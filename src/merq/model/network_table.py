"""Tables of what strangers may have us keep: the network that has the most loses first.

Whoever has many addresses, or claims many identifiers, would push out what is known of everybody
else if the oldest entry went. Here it pushes out its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from merq.model.peer_networks import neighbourhood

Key = TypeVar("Key", bound=Hashable)


class _Ranking:
    """Counts by name, and which name has the highest, in the same time however many there are."""

    __slots__ = ("_by_count", "_counts", "_highest")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._by_count: dict[int, dict[str, None]] = {}
        self._highest = 0

    def __bool__(self) -> bool:
        return bool(self._counts)

    def change(self, name: str, by: int) -> None:
        """A count is one more or one less."""
        before = self._counts.pop(name, 0)
        if before:
            same = self._by_count[before]
            del same[name]
            if not same:
                del self._by_count[before]
        now = before + by
        if now:
            self._counts[name] = now
            self._by_count.setdefault(now, {})[name] = None
        # It changes by one, so what is next below it is either this name or another.
        if now > self._highest:
            self._highest = now
        elif self._highest not in self._by_count:
            self._highest -= 1

    def highest(self) -> str:
        """The name that has the most; of several the one that came to it last."""
        return next(reversed(self._by_count[self._highest]))

    def falling(self) -> Iterator[str]:
        """All names, those that have the most first."""
        for count in sorted(self._by_count, reverse=True):
            yield from reversed(self._by_count[count])


class NetworkCounts:
    """How many of something each network has, and which one is to give way.

    That is the network that has the most, in the neighbourhood that has the most: whoever has ten
    thousand networks of IPv6 has them side by side. If several have as many, it is the one that
    came to it last: who was known before stays.
    """

    __slots__ = ("_neighbourhoods", "_networks", "_total")

    def __init__(self) -> None:
        self._neighbourhoods = _Ranking()
        self._networks: dict[str, _Ranking] = {}
        self._total = 0

    def __len__(self) -> int:
        """How many all networks have."""
        return self._total

    def add(self, network: str) -> None:
        """A network has one more."""
        around = neighbourhood(network)
        self._neighbourhoods.change(around, 1)
        if around not in self._networks:
            self._networks[around] = _Ranking()
        self._networks[around].change(network, 1)
        self._total += 1

    def remove(self, network: str) -> None:
        """A network has one less."""
        around = neighbourhood(network)
        self._neighbourhoods.change(around, -1)
        self._networks[around].change(network, -1)
        if not self._networks[around]:
            del self._networks[around]
        self._total -= 1

    def largest(self) -> str:
        """The network that gives way."""
        return self._networks[self._neighbourhoods.highest()].highest()

    def falling(self) -> Iterator[str]:
        """All networks in the order in which they give way."""
        for around in self._neighbourhoods.falling():
            yield from self._networks[around].falling()


class NetworkTable(Generic[Key]):
    """Keys, each of one network; those of one network in the order of their last use."""

    __slots__ = ("_by_network", "_counts", "_networks")

    def __init__(self) -> None:
        self._networks: dict[Key, str] = {}
        self._by_network: dict[str, OrderedDict[Key, None]] = {}
        self._counts = NetworkCounts()

    def __len__(self) -> int:
        return len(self._networks)

    def __contains__(self, key: object) -> bool:
        return key in self._networks

    def __iter__(self) -> Iterator[Key]:
        return iter(self._networks)

    def add(self, key: Key, network: str) -> None:
        """A key is of this network from now on, and was used last of those there."""
        if self._networks.get(key) == network:
            self._by_network[network].move_to_end(key)
            return
        self.discard(key)
        self._networks[key] = network
        self._by_network.setdefault(network, OrderedDict())[key] = None
        self._counts.add(network)

    def use(self, key: Key) -> None:
        """A key was used, if it is here."""
        network = self._networks.get(key)
        if network is not None:
            self._by_network[network].move_to_end(key)

    def discard(self, key: Key) -> None:
        """A key is here no more."""
        network = self._networks.pop(key, None)
        if network is None:
            return
        there = self._by_network[network]
        del there[key]
        if not there:
            del self._by_network[network]
        self._counts.remove(network)

    def count(self, network: str) -> int:
        """How many keys a network has."""
        return len(self._by_network.get(network, ()))

    def of(self, network: str) -> list[Key]:
        """The keys of a network, the one longest unused first."""
        return list(self._by_network.get(network, ()))

    def first_to_go(self) -> Key:
        """The key that gives way: the one longest unused of the network that has the most.

        It goes before another one is added, lest that be the last that came, and go itself.
        """
        return next(iter(self._by_network[self._counts.largest()]))

    def falling(self) -> Iterator[Key]:
        """All keys in the order in which they give way, if none is added meanwhile."""
        for network in self._counts.falling():
            yield from self._by_network[network]
