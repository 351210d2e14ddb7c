"""Who asked for what waits in an outgoing queue, and what it may be told without being known.

Acknowledgments are about messages of another queue manager, which has chosen where they go. It may
have them through a connection of its own making, whoever it is; they tell it nothing but what
became of what it sent.
"""

from __future__ import annotations

from uuid import UUID

from merq.engine import notices
from merq.engine.positions import Place
from merq.exchange.acquaintances import Acquaintances
from merq.exchange.dials import DialKind
from merq.exchange.lines import Line
from merq.exchange.routes import NULL_GUID, is_address
from merq.exchange.switchboard import Switchboard


class Askers:
    """What the messages of an outgoing queue say about why they are there."""

    def __init__(self, board: Switchboard, acquaintances: Acquaintances) -> None:
        self._board = board
        self._acquaintances = acquaintances
        self._state = board.host.engine.state

    def kind_of(self, line: Line) -> DialKind:
        """What a connection for a queue would be made for."""
        if not self.is_for_applications(line):
            return DialKind.ANSWER
        return DialKind.AGAIN if line.failures else DialKind.FRESH

    def is_for_applications(self, line: Line) -> bool:
        """Whether anything in a queue is more than what others' messages caused."""
        if line.is_order_queue:
            return False
        positions = line.queue.positions
        ends = (positions.first(), positions.last())
        return any(place is not None and self._asker_of(place) is None for place in ends)

    def first(self, line: Line) -> UUID | None:
        """Who may have the first message of a queue without being known: it is about its own.

        None if the message is something else, or cannot be read.
        """
        if line.is_order_queue:
            return None if line.guid == NULL_GUID else line.guid
        return None if line.needs_dial else self._asker_of(line.queue.positions.first())

    def may_call(self, line: Line, address: str) -> bool:
        """Whether an address that was found for a line's host may be called.

        If only acknowledgments wait, another queue manager chose the name.
        """
        if line.kind is not DialKind.ANSWER or self._acquaintances.knows_host(line.host):
            return True
        asker = self._asker_of(line.queue.positions.first())
        if asker is not None and self._board.peers.learned(asker) == address:
            return True
        return self._acquaintances.knows_host(address)

    def hops_to(self, line: Line) -> list[str]:
        """Where the queue manager is that waits for the first acknowledgment of a queue.

        [MS-MQQB] 3.1.7.15 addresses it by the name of its administration queue; if no name service
        knows the host of that, its session says where it is. Then the line is for it alone.
        """
        asker = self.first(line)
        found = None if asker is None else self._board.peers.find(asker)
        if found is None or asker is None or not is_address(found.host):
            return []
        line.guid = asker  # others may be behind the same address
        line.asker = asker
        return [found.host]

    def are_for(self, asker: UUID, packets: list[bytes]) -> bool:
        """Whether nothing but acknowledgments of a queue manager's messages is among these."""
        return all(notices.asked_by(each, self._state.source) == asker for each in packets)

    def _asker_of(self, place: Place | None) -> UUID | None:
        packet = None if place is None else self._state.readable(place)
        return None if packet is None else notices.asked_by(packet, self._state.source)
