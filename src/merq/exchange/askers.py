"""Who asked for what waits in an outgoing queue, and what it may be told without being known.

Acknowledgments are about messages of another queue manager, which has chosen where they go. It may
have them through a connection of its own making, whoever it is; they tell it nothing but what
became of what it sent.
"""

from __future__ import annotations

from uuid import UUID

from merq.exchange.acquaintances import Acquaintances
from merq.exchange.dials import DialKind
from merq.exchange.lines import Line
from merq.exchange.routes import NULL_GUID, is_address
from merq.exchange.switchboard import Switchboard


class Askers:
    """What becomes of queues that others' messages caused."""

    def __init__(self, board: Switchboard, acquaintances: Acquaintances) -> None:
        self._board = board
        self._acquaintances = acquaintances

    @staticmethod
    def kind_of(line: Line) -> DialKind:
        """What a connection for a queue would be made for."""
        if line.is_answer:
            return DialKind.ANSWER
        return DialKind.AGAIN if line.failures else DialKind.FRESH

    @staticmethod
    def asker_of(line: Line) -> UUID | None:
        """Who may have the messages of a queue without being known; None if nobody may."""
        if line.is_order_queue:
            return None if line.guid == NULL_GUID else line.guid
        return line.asker

    def may_call(self, line: Line, address: str) -> bool:
        """Whether an address that was found for a line's host may be called.

        If acknowledgments wait, another queue manager chose the name.
        """
        if line.kind is not DialKind.ANSWER or self._acquaintances.knows_host(line.host):
            return True
        if line.asker is not None and self._board.peers.learned(line.asker) == address:
            return True
        return self._acquaintances.knows_host(address)

    def hops_to(self, line: Line) -> list[str]:
        """Where the queue manager is that waits for the acknowledgments of a queue.

        [MS-MQQB] 3.1.7.15 addresses it by the name of its administration queue; if no name service
        knows the host of that, its session says where it is. Then the line is for it alone. But a
        host that the settings have is not the asker's to have, however the name service fares. Nor
        is a hop towards the asker called: by 3.1.5.8.5 it takes a direct name for one of its own.
        """
        asker, peers = line.asker, self._board.peers
        if asker is None or peers.owner_of(line.host) not in (None, asker):
            return []
        found = peers.find(asker)
        if found is not None and found.guid == asker:
            host: str | None = found.host
        else:
            host = peers.learned(asker)
        if host is None or not is_address(host):
            return []
        line.guid = asker  # others may be behind the same address
        return [host]
