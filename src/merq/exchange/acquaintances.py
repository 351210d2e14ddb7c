"""Whom messages of other queue managers may have this one call, or look up.

A message names the queue that is told what became of it. Whoever sends here can name any, so that
one packet makes a connection to a third place, and attempts to connect there again and again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final
from uuid import UUID

from merq.engine import outgoing, packet_names
from merq.exchange.routes import is_address, is_ours, plain_host
from merq.exchange.settings import AllowedAdminQueues
from merq.exchange.switchboard import Switchboard
from merq.model.names import DirectName, FormatName, PrivateName, PublicName
from merq.model.network_table import NetworkTable
from merq.model.peer_networks import peer_network
from merq.wire.view import MessageView

APPLICATION_HOSTS_MAX: Final = 10_000
"""Hosts that our applications send to and that are remembered for it; the oldest is forgotten."""


SESSION_ADDRESSES_MAX: Final = 10_000
"""Addresses with which there was a session and that are remembered; the network that has the most
loses the one whose session was opened longest ago."""


class Acquaintances:
    """Which places this queue manager knows of its own accord.

    Attributes:
        refused: How many messages of others named a place for acknowledgments that it may not be.
    """

    def __init__(self, board: Switchboard) -> None:
        self._board = board
        self._state = board.host.engine.state
        self._policy = board.settings.allowed_admin_queues
        self._application_hosts: OrderedDict[str, None] = OrderedDict()
        self._session_addresses: NetworkTable[str] = NetworkTable()
        self.refused = 0

    def meet(self, host: str) -> None:
        """An application of ours sends to a host."""
        _remember(self._application_hosts, plain_host(host), APPLICATION_HOSTS_MAX)

    def session_opened(self, address: str) -> None:
        """A session with somebody at an address is open.

        A computer may have several: its messages come from one, and want to be told at another. A
        stranger makes only addresses known by this at which it is itself.
        """
        known, host = self._session_addresses, plain_host(address)
        if host not in known and len(known) >= SESSION_ADDRESSES_MAX:
            known.discard(known.first_to_go())
        known.add(host, peer_network(address))

    def knows_host(self, host: str) -> bool:
        """Whether settings, a session or an application of ours have to do with a host."""
        if self._policy is not AllowedAdminQueues.KNOWN:
            return self._policy is AllowedAdminQueues.ANY
        host = plain_host(host)
        if host in self._application_hosts or self._board.peers.has_host(host):
            return True
        return host in self._session_addresses

    def knows(self, name: FormatName) -> bool:
        """Whether somebody else's message may have us send something to a name, and make a way."""
        if self._policy is AllowedAdminQueues.ANY or outgoing.local_queue(self._state, name)[1]:
            return True
        if isinstance(name, DirectName):
            return is_ours(name) and self.knows_host(name.host)
        if self._policy is AllowedAdminQueues.PEER:
            return False
        if isinstance(name, PrivateName):
            return self._board.peers.find(name.computer) is not None
        places = {**self._state.known_places, **self._board.peers.places}
        return isinstance(name, PublicName) and name.queue in places

    def may_be_told(self, view: MessageView, address: str, remote: UUID) -> bool:
        """Whether a message's administration queue is where such queues may be.

        The host of a name by DIRECT=OS is looked up later, and what it turns out to be is asked of
        `knows_host` then.

        Args:
            view: The message.
            address: Where it came from.
            remote: Who had the session.
        """
        name = packet_names.name_of_admin_queue(view)
        if name is None or (isinstance(name, DirectName) and name.host == address):
            return True
        if self.knows(name):
            return True
        if isinstance(name, DirectName):
            if not is_ours(name):
                return False
            return not is_address(name.host) or plain_host(name.host) == address
        if isinstance(name, PrivateName):
            return name.computer in (remote, view.source_queue_manager)
        return False


def _remember(hosts: OrderedDict[str, None], host: str, most: int) -> None:
    hosts[host] = None
    hosts.move_to_end(host)
    while len(hosts) > most:
        hosts.popitem(last=False)
