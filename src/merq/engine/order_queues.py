"""Outgoing queues that other queue managers' messages had us make, for acknowledgments to them.

Whoever connects under ever new identifiers, or from ever new addresses, makes ever new ones. So a
network has only so many, and all together have; who comes new and is connected makes those give
way that nobody fetches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from merq.engine import outgoing, records
from merq.engine.changes import Change, DropStep
from merq.engine.positions import Place
from merq.engine.queue import Queue
from merq.engine.state import State
from merq.errors import StoreError
from merq.model.names import DirectName, PrivateName
from merq.model.network_table import NetworkTable
from merq.model.outgoing_names import OutgoingName, parse_outgoing_name
from merq.model.peer_networks import peer_network
from merq.model.queue import OutgoingState
from merq.wire.acks import ORDER_QUEUE_ID, ORDER_QUEUE_PATH

SENDERS_PER_NETWORK_MAX: Final = 64
"""Senders in one network that may leave acknowledgments waiting; for another one those of the
sender give way that was told nothing for longest and is not connected."""

ORDER_QUEUES_PER_NETWORK_MAX: Final = 256
"""Outgoing queues for acknowledgments to one network, empty ones included, which go after a while:
whoever connects under ever new identifiers would make ever new queues."""

ORDER_QUEUES_MAX: Final = outgoing.OUTGOING_MAX // 10
"""The same in all, and as many for administration acknowledgments: the rest is for applications."""

_FETCHED: Final = frozenset({OutgoingState.CONNECTED, OutgoingState.DISCONNECTING})


def may_wait(
    state: State,
    change: Change,
    name: OutgoingName,
    address: str,
    *,
    is_admin_queue: bool = False,
    makes_room: bool = True,
) -> bool:
    """Whether acknowledgments may wait in a queue, which is made with this change if there is none.

    For those whom the settings know there always is an order queue. Others give way for it if it
    `makes_room`.
    """
    if _is_known(state, name):
        return True
    table = state.admin_queues if is_admin_queue else state.order_queues
    text, network = str(name).lower(), peer_network(address)
    if _is_there(state, text):
        # One that was to give way, which could not be written, does not count while all are taken.
        if text in table or len(table) < ORDER_QUEUES_MAX:
            table.add(text, network)
        return True
    victims = _victims(state, table, network)
    if victims is not None and not (makes_room and _make_room(state, change, table, victims)):
        return False
    table.add(text, network)
    return True


def has_room(state: State, name: OutgoingName, address: str) -> bool:
    """Whether acknowledgments to a sender may wait; nobody gives way yet."""
    if _is_known(state, name):
        return True
    victims = _victims(state, state.order_queues, peer_network(address))
    return victims is None or _first_to_go(state, victims) is not None


def _is_known(state: State, name: OutgoingName) -> bool:
    """Whether a queue leads to the order queue of somebody whom the settings know."""
    place = name.destination
    if not isinstance(place, PrivateName) or place.number != ORDER_QUEUE_ID:
        return False
    return place.computer.bytes_le in state.known_managers


def _victims(state: State, table: NetworkTable[str], network: str) -> Iterable[str] | None:
    """Queues one of which has to give way for another one of a network; None if there is room.

    Who is connected takes its acknowledgments at once, and its queue is empty.
    """
    if table.count(network) >= min(SENDERS_PER_NETWORK_MAX, ORDER_QUEUES_PER_NETWORK_MAX):
        names = table.of(network)
        if len(names) >= ORDER_QUEUES_PER_NETWORK_MAX:
            return names
        waiting = [each for each in names if _has_waiting(state, each)]
        # If all of them are fetched just now, one more does not matter.
        is_much = len(waiting) >= SENDERS_PER_NETWORK_MAX
        if is_much and _first_to_go(state, waiting) is not None:
            return waiting
    return table.falling() if len(table) >= ORDER_QUEUES_MAX else None


def _is_there(state: State, name: str) -> bool:
    """Whether there is an outgoing queue that stays, or one is being made."""
    found = state.find_outgoing(name)
    return (found is not None and not found.closing) or state.coming(name) is not None


def _has_waiting(state: State, name: str) -> bool:
    queue = state.find_outgoing(name)
    return queue is not None and queue.positions.count > 0


def _make_room(
    state: State, change: Change, table: NetworkTable[str], names: Iterable[str]
) -> bool:
    """Plans that one of these queues goes, with what is in it; False if all have to stay."""
    name = _first_to_go(state, names)
    if name is None:
        return False
    table.discard(name)
    queue = state.find_outgoing(name)
    if queue is not None and not queue.closing:
        _drop(change, queue)
    return True


def _drop(change: Change, queue: Queue) -> None:
    """Plans that a queue goes, with what is in it."""
    queue.closing = True
    change.entries.append(records.drop_queue(queue.number))
    change.steps.append(DropStep(queue))


def _first_to_go(state: State, names: Iterable[str]) -> str | None:
    """The first of some queues that can go.

    While anything waits in them, those of who is connected cannot, of which there are no more than
    connections.
    """
    for name in names:
        queue = state.find_outgoing(name)
        if not _is_there(state, name):
            return name  # it has gone, or was never made
        if queue is None:
            continue
        if _is_idle(queue) or _is_left_behind(queue):
            return name
    return None


def _is_idle(queue: Queue) -> bool:
    """Whether nothing waits in a queue, nor is about to."""
    return not queue.positions.count and not _is_in_use(queue)


def _is_left_behind(queue: Queue) -> bool:
    """Whether nobody fetches what waits in a queue."""
    if queue.state in _FETCHED or queue.transfer is None or queue.transfer.is_under_way:
        return False
    return not _is_in_use(queue)


def _is_in_use(queue: Queue) -> bool:
    return bool(queue.closing or queue.staged_bytes or queue.waiting or queue.descriptors)


def idle_order_queues(state: State) -> list[Queue]:
    """Queues of acknowledgments in which nothing waits, nor is about to."""
    found = []
    for table in (state.order_queues, state.admin_queues):
        for name in list(table):
            queue = state.find_outgoing(name)
            if queue is not None and _is_idle(queue):
                found.append(queue)
            elif not _is_there(state, name):
                table.discard(name)
    return found


def forget_waiting(state: State, since: int) -> None:
    """Acknowledgments go that were made before then, for who has fetched none of them."""
    change = Change()
    for name in list(state.order_queues):
        queue = state.find_outgoing(name)
        if queue is None or not _is_left_behind(queue):
            continue
        last = queue.positions.last()
        if last is not None and _was_made(state, last) < since:
            _drop(change, queue)
    if change.steps:
        state.submit(change)


def _was_made(state: State, place: Place) -> int:
    try:
        return state.stored(place)[0]
    except StoreError:
        return 0  # the disk has lost it


def find_order_queues(state: State) -> None:
    """Which outgoing queues from before the start are for acknowledgments, and to which network."""
    for queue in state.queues.values():
        if not queue.is_outgoing:
            continue
        name = queue.properties.path_name.lower()
        place, asker = parse_outgoing_name(name)
        is_hop = isinstance(place, PrivateName) and place.number == ORDER_QUEUE_ID
        if asker is not None or is_hop:
            host = place.host if isinstance(place, DirectName) else ""
            is_order_queue = is_hop or ORDER_QUEUE_PATH in name
            table = state.order_queues if is_order_queue else state.admin_queues
            table.add(name, peer_network(host))
