"""Which outgoing queues were made for what others' messages caused, and for whose network."""

from __future__ import annotations

from collections.abc import Collection


class AnswerQueues:
    """Outgoing queues of acknowledgments and reports, by their names in small letters."""

    __slots__ = ("_by_network", "_networks")

    def __init__(self) -> None:
        self._networks: dict[str, str] = {}
        self._by_network: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._networks)

    def names(self) -> list[str]:
        """All of them."""
        return list(self._networks)

    def of(self, network: str) -> Collection[str]:
        """Those for one network."""
        return tuple(self._by_network.get(network, ()))

    def add(self, name: str, network: str) -> None:
        """A queue is for this network, and for no other."""
        self.remove(name)
        self._networks[name] = network
        self._by_network.setdefault(network, set()).add(name)

    def remove(self, name: str) -> None:
        """A queue is gone."""
        network = self._networks.pop(name, None)
        if network is not None:
            others = self._by_network[network]
            others.remove(name)
            if not others:
                del self._by_network[network]
