"""A message as it is handed to a reader."""

from __future__ import annotations

from typing import final


@final
class Delivered:
    """A message as a reader gets it.

    Attributes:
        arrival: When it came into its queue, in seconds since 1970.
        aborts: How often its receive was aborted before.
        moves: How often it was moved to a subqueue, or back.
    """

    __slots__ = ("aborts", "arrival", "lookup_id", "moves", "packet")

    def __init__(
        self, packet: bytes, lookup_id: int, arrival: int, aborts: int, moves: int = 0
    ) -> None:
        self.packet = packet
        self.lookup_id = lookup_id
        self.arrival = arrival
        self.aborts = aborts
        self.moves = moves
