"""[MS-MQQB] 3.1.5.2.1, 3.1.7.4, 3.1.7.5: by which address a name is reached.

A direct name says its computer. Others say a queue manager's or a queue's identifier; until there
is a directory, the settings say where those are, and open sessions say who is at the other end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final
from uuid import UUID

from merq.exchange.settings import TlsMode
from merq.model.names import DirectName, DirectProtocol, FormatName, PrivateName, PublicName
from merq.model.network_table import NetworkTable
from merq.model.peer_networks import peer_network
from merq.wire.acks import ORDER_QUEUE_ID, ORDER_QUEUE_PATH

NULL_GUID: Final = UUID(int=0)
VIA_MAX: Final = 8
"""So many next hops are followed in the settings before they are taken for a circle."""


LEARNED_MAX: Final = 100_000
"""Queue managers whose address is remembered from a session that they made; the network that has
the most loses the one that it has longest."""

DIALLED_MAX: Final = 100_000
"""The same for those that this side has connected to for applications; the first is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A queue manager that the settings know.

    Attributes:
        name: What it is called there.
        guid: Its identifier; null if only its name or address is known.
        host: Its host name or address; empty if it is reached through another.
        via: The name of the one through which it is reached.
        public_queues: Identifiers of its public queues.
        base_priorities: [MS-MQMQ] 2.3.1.6: what its public queues add to their messages' priorities
            on the way to it, if not 0.
        tls: Whether it is spoken to inside of TLS; None if nothing is said about that.
        trust_inbound: A connection that comes in and says this identifier is trusted to be this
            peer, so that messages for it go through it: nobody can connect to it, because it is
            behind NAT or a firewall, say.
    """

    name: str
    guid: UUID
    host: str = ""
    via: str = ""
    public_queues: tuple[UUID, ...] = ()
    base_priorities: Mapping[UUID, int] = field(default_factory=dict)
    tls: TlsMode | None = None
    trust_inbound: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """Where to connect.

    Attributes:
        host: A host name or an address.
        guid: Who must be there; null if anybody may.
        destination: The queue manager that the message is for; null if the name does not say.
    """

    host: str
    guid: UUID = NULL_GUID
    destination: UUID = NULL_GUID


class Peers:
    """The queue managers that are known.

    Attributes:
        base_priorities: Those of public queues that have one.
    """

    def __init__(self, peers: Iterable[Peer] = ()) -> None:
        self._tls_modes: dict[str, TlsMode] = {}
        self._by_guid: dict[UUID, Peer] = {}
        self._by_name: dict[str, Peer] = {}
        self._places: dict[UUID, UUID] = {}
        self._learned: dict[UUID, str] = {}
        self._heard: NetworkTable[UUID] = NetworkTable()
        self._dialled: dict[UUID, None] = {}
        self._owners: dict[str, UUID] = {}
        self.base_priorities: dict[UUID, int] = {}
        for peer in peers:
            if peer.guid != NULL_GUID:
                self._by_guid[peer.guid] = peer
            self._by_name[peer.name.lower()] = peer
            for host in {peer.name.lower(), plain_host(peer.host)} - {""}:
                self._owners[host] = peer.guid
            if peer.tls is not None:
                for host in {plain_host(peer.host), plain_host(peer.name)} - {""}:
                    self._tls_modes[host] = peer.tls
            for queue in peer.public_queues:
                self._places[queue] = peer.guid
            self.base_priorities.update(peer.base_priorities)

    @property
    def is_empty(self) -> bool:
        """Whether the settings name nobody."""
        return not self._by_name

    @property
    def places(self) -> dict[UUID, UUID]:
        """Which queue manager has which public queue."""
        return dict(self._places)

    @property
    def known(self) -> frozenset[bytes]:
        """The queue managers that the settings name, as packets do."""
        return frozenset(each.bytes_le for each in self._by_guid)

    def find(self, guid: UUID) -> Route | None:
        """[MS-MQQB] 3.1.7.5: the next hop towards a queue manager, or None if it is not known."""
        peer = self._by_guid.get(guid)
        for _ in range(VIA_MAX):
            if peer is None or not peer.via:
                break
            peer = self._by_name.get(peer.via.lower())
        if peer is not None and peer.host:
            return Route(peer.host, peer.guid, guid)
        address = self._learned.get(guid)
        if address is None:
            return None
        return Route(address, guid, guid)

    def has_host(self, host: str) -> bool:
        """Whether the settings have a queue manager of this name or at this address."""
        return plain_host(host) in self._owners

    def trusts_inbound(self, guid: UUID, address: str) -> bool:
        """Whether the settings let messages for who says this go through its own connections."""
        peer = self._by_guid.get(guid)
        if peer is None or not peer.trust_inbound:
            return False
        return not is_address(peer.host) or plain_host(peer.host) == address

    def owner_of(self, host: str) -> UUID | None:
        """The queue manager that the settings have under a name, or at a host."""
        return self._owners.get(plain_host(host))

    def is_at(self, guid: UUID, host: str) -> bool:
        """Whether the settings say that a queue manager is at a host."""
        peer = self._by_guid.get(guid)
        return peer is not None and peer.host != "" and plain_host(peer.host) == plain_host(host)

    def learned(self, guid: UUID) -> str | None:
        """Where a queue manager is, as far as a session told."""
        return self._learned.get(guid)

    def learn(self, guid: UUID, address: str, *, is_dialled: bool = False) -> None:
        """A queue manager has a session with us at this address; the settings know better.

        Strangers who connect do not make those forgotten whom the settings name, or whom this side
        has connected to of its own accord.
        """
        if guid in self._by_guid:
            pass
        elif is_dialled or guid in self._dialled:
            self._heard.discard(guid)
            if guid not in self._dialled and len(self._dialled) >= DIALLED_MAX:
                self._forget(next(iter(self._dialled)))
            self._dialled[guid] = None
        else:
            if guid not in self._heard and len(self._heard) >= LEARNED_MAX:
                self._forget(self._heard.first_to_go())
            self._heard.add(guid, peer_network(address))
        self._learned[guid] = address

    def tls_mode(self, host: str) -> TlsMode | None:
        """Whether a host or an address is spoken to inside of TLS, if the settings say so."""
        return self._tls_modes.get(plain_host(host))

    def _forget(self, guid: UUID) -> None:
        del self._learned[guid]
        self._heard.discard(guid)
        self._dialled.pop(guid, None)


def is_order_queue(name: FormatName) -> bool:
    """[MS-MQQB] 2.2.4: whether a name is that of a queue manager's order queue."""
    if isinstance(name, PrivateName):
        return name.number == ORDER_QUEUE_ID
    if not isinstance(name, DirectName):
        return False
    path = name.without_prefix().casefold().partition(";")[0]
    return path.endswith(ORDER_QUEUE_PATH)


def is_ours(name: FormatName) -> bool:
    """Whether messages to a name travel by this protocol."""
    if isinstance(name, DirectName):
        return name.protocol in (DirectProtocol.OS, DirectProtocol.TCP)
    return isinstance(name, PrivateName | PublicName)


def route(name: FormatName, peers: Peers, places: dict[UUID, UUID]) -> Route | None:
    """[MS-MQQB] 3.1.7.4: where to connect for a name, or None if that is not known."""
    if isinstance(name, DirectName):
        return Route(name.host)
    if isinstance(name, PrivateName):
        return peers.find(name.computer)
    if isinstance(name, PublicName):
        place = places.get(name.queue)
        return None if place is None else peers.find(place)
    return None


def plain_host(host: str) -> str:
    """A host in the one spelling by which it is compared: small letters, addresses as sockets say.

    An IPv6 address that stands for one of IPv4 is that, and no interface is named.
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host.lower()
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def is_address(host: str) -> bool:
    """Whether no name service has to be asked."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
