"""How much memory connections hold, and who of them gives way when it is too much."""

from __future__ import annotations

from typing import Final

from merq.exchange.links import Link

GRACE_S: Final = 1.0
"""A packet that began just now counts as if it had been under way for so long."""


class HeldBytes:
    """Bytes under way in all connections: what came and is not taken care of, half packets
    included, and what is not written yet.

    Attributes:
        most: So many may be under way.
        total: So many are.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = 0
        self._held: dict[Link, int] = {}

    def count(self, link: Link) -> None:
        """A connection holds more now, or less."""
        held = 0 if link.is_lost else link.held_bytes
        self.total += held - self._held.get(link, 0)
        if held:
            self._held[link] = held
        else:
            self._held.pop(link, None)

    @property
    def is_tight(self) -> bool:
        """Whether half of the room is taken: each connection gets one packet at a time then."""
        return self.total > self.most // 2

    def worst(self, now: float) -> Link | None:
        """Who gives way, if anybody must.

        What counts is bytes by the time that their packet has been under way, and the sum of it for
        a network: somebody whose packet comes along is never the first, neither among many
        connections of one network nor among those of many networks that stand still.
        """
        if self.total <= self.most:
            return None
        networks: dict[str, float] = {}
        costs: dict[Link, float] = {}
        for link, held in self._held.items():
            if link.closing:
                continue  # it gives way already
            began = None if link.session is None else link.session.half_packet_since
            cost = held * (GRACE_S + (0.0 if began is None else now - began))
            costs[link] = cost
            networks[link.network] = networks.get(link.network, 0.0) + cost
        return max(costs, key=lambda each: (networks[each.network], costs[each]), default=None)
