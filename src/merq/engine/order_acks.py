"""[MS-MQQB] 2.2.4, 2.2.5, 3.1.7.17: OrderAcks and FinalAcks to the senders of sequences.

They wait in outgoing queues of their own, of which strangers can have only so many made.
"""

from __future__ import annotations

import struct
from functools import lru_cache, partial
from typing import Final, TypeGuard
from uuid import UUID

from merq.engine import outgoing
from merq.engine.aside import attempt, never_failing
from merq.engine.changes import Change
from merq.engine.incoming import FOLLOWED, Incoming, Origin, SequenceKey
from merq.engine.packet_names import destination_of
from merq.engine.positions import AVAILABLE, PURGE_PENDING, Place
from merq.engine.queue import Queue
from merq.engine.queue_changes import put, take_all
from merq.engine.state import State
from merq.engine.transfer import LANE_SHIFT, LANES
from merq.model.message_class import MessageClass
from merq.model.names import DirectName, FormatName, PrivateName, parse_direct_name
from merq.model.outgoing_names import OutgoingName, parse_outgoing_name
from merq.model.peer_networks import peer_network
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

ORDER_QUEUE_NUMBER: Final = 4
"""[MS-MQQB] 2.2.4: the queue for OrderAcks and FinalAcks."""

ORDER_ACK_LABEL: Final = "QM Ordering Ack"

SENDERS_PER_NETWORK_MAX: Final = 64
"""Senders in one network that may leave acknowledgments waiting; those of others are not kept until
there are fewer: what is not acknowledged is sent again."""

ORDER_QUEUES_PER_NETWORK_MAX: Final = 256
"""Outgoing queues for acknowledgments to one network, empty ones included, which go after a while:
whoever connects under ever new identifiers would make ever new queues."""

ORDER_QUEUES_MAX: Final = outgoing.OUTGOING_MAX // 10
"""The same in all: the rest is for applications."""

FOLLOWED_MAX: Final = 1_000
"""Acknowledgments that are looked at in one turn for those that follow a sender that has moved."""

ACKS_WAITING_MAX: Final = 1_000
"""With so many acknowledgments waiting for a peer it is told no more how far it is, and its session
is closed instead of rejecting another transactional message of its own: it comes again."""

_ORDER_ACK_CLASS: Final = MessageClass.MQMSG_CLASS_ORDER_ACK
_ORDER_ACK: Final = struct.Struct("<QII20x")
_FINAL_ACK: Final = struct.Struct("<QII16sI")


@never_failing("telling a sender what became of its message")
def finally_told(
    state: State,
    change: Change,
    view: MessageView,
    reason: int,
    *,
    is_rejected: bool = False,
    origin: Origin | None = None,
) -> None:
    """[MS-MQQB] 3.1.7.2.2: a transactional message's sender learns what became of it in the end.

    Who rejects it says so whatever was asked for; of a message that leaves its queue is told if its
    sender waits for that. Without an `origin` it goes to where its sequence came from.
    """
    if not view.transactional or view.packet[16:32] == state.source:
        return
    if not is_rejected and not (
        view.positive_journaling or view.negative_journaling or view.final_ack_required
    ):
        return
    kind, name, source = view.destination_type, view.destination, view.packet[16:32]
    key = state.sequences.key_of(source, kind, name)
    body = _FINAL_ACK.pack(
        view.tx_sequence_id,
        view.tx_sequence_number,
        view.previous_tx_sequence_number,
        source,
        view.message_ordinal,
    )
    if origin is None:
        origin = state.sequences.origin_of(key, view.tx_sequence_id)
    _tell_sender(state, change, key, origin, body, reason)


def order_told(state: State, change: Change, incoming: Incoming) -> None:
    """[MS-MQQB] 3.1.6.9: the sender learns how far its sequence has come.

    Who sends of an earlier one again, because its folder was restored, learns how far that came.
    """
    places = (incoming.stale, incoming.stale_origin), (incoming.settled, incoming.origin)
    for (sequence_id, number), origin in places:
        if number:
            body = _ORDER_ACK.pack(sequence_id, number, number - 1)
            attempt(
                state,
                change,
                b"",
                "telling a sender how far its sequence has come",
                partial(_tell_sender, state, change, incoming.key, origin, body, _ORDER_ACK_CLASS),
            )
    incoming.stale = (0, 0)


def follow(state: State, change: Change, incoming: Incoming, most: int) -> int:
    """FinalAcks that wait for a sender where it was go to where it is now.

    It proved by the identifier of its sequence that it moved; what it is not known to own stays.
    Gives how many were looked at, at most so many; the rest comes with the next turn.
    """
    looked = 0
    now = _order_queue_of(state, incoming.key, incoming.origin)[1]
    for origin, done in incoming.left.items():
        if done == FOLLOWED or looked >= most:
            continue
        before = _order_queue_of(state, incoming.key, origin)[1]
        queue = None if before == now else state.find_outgoing(str(before))
        start = max(done, (LANES - 1 << LANE_SHIFT) - 1)  # they have the lowest priority
        rows = [] if queue is None else queue.positions.lane_behind(start, most - looked)
        if queue is None or not rows:
            incoming.left[origin] = FOLLOWED
            continue
        looked += len(rows)
        gone = [place for place in rows if _follows(state, change, incoming, place)]
        for place in gone:
            queue.positions.set_state(place.lookup_id, PURGE_PENDING)
        take_all(change, queue, gone)
        # What is to leave may stay, if the disk fails: then it is looked at again.
        if not gone and all(place.state == AVAILABLE for place in rows):
            incoming.left[origin] = rows[-1].lookup_id
    return looked


def _follows(state: State, change: Change, incoming: Incoming, place: Place) -> bool:
    """Sends a FinalAck to where its sender is now; False if it is not one of that sender's."""
    packet = state.readable(place) if place.state == AVAILABLE else None
    view = None if packet is None else MessageView(packet)
    if view is None or view.body_size != _FINAL_ACK.size or view.message_class == _ORDER_ACK_CLASS:
        return False
    sequence_id = _FINAL_ACK.unpack(view.body)[0]
    origin = incoming.origin
    if state.sequences.origin_of(incoming.key, sequence_id) != origin:
        return False
    return _tell_sender(state, change, incoming.key, origin, view.body, view.message_class)


def _tell_sender(
    state: State, change: Change, key: SequenceKey, origin: Origin, body: bytes, reason: int
) -> bool:
    """[MS-MQQB] 3.1.7.17: an acknowledgment into the sender's order queue; whether it is there."""
    if key.source == state.source:
        return False  # somebody says that this queue manager was the sender
    destination, name = _order_queue_of(state, key, origin)
    if not may_wait(state, name, origin.address):
        return False
    target = outgoing.reach_if_possible(state, change, *name)
    if target is None or target.transfer is None:
        return False
    is_order_ack = reason == _ORDER_ACK_CLASS
    if is_order_ack and target.positions.count >= ACKS_WAITING_MAX:
        return False  # who sends again is told again
    packet = build_packet(
        Outline(
            source_queue_manager=state.source,
            message_ordinal=state.numbers.ordinal(change),
            sent_time=state.now,
            destination=destination_of(destination),
            priority=0,
            message_class=reason,
            recoverable=not is_order_ack,
            label=ORDER_ACK_LABEL,
            body=body,
        )
    )
    put(state, change, target, MessageView(packet))
    return True


def _order_queue_of(
    state: State, key: SequenceKey, origin: Origin
) -> tuple[FormatName, OutgoingName]:
    """[MS-MQQB] 3.1.7.17: the order queue of a sender, and the outgoing queue that leads there.

    Acknowledgments go back through the session that the messages came through. With a direct name
    that is the sender's own, and they wait by its address and the session's identifier, for several
    may be behind one address, and anybody may claim an identifier. With others it may be a router:
    only who is known, or has the session, has an outgoing queue of its own.
    """
    address, remote = origin
    hop = PrivateName(computer=UUID(bytes_le=remote), number=ORDER_QUEUE_NUMBER)
    # Who is on this computer, or where nobody knows, is found by its session.
    way = OutgoingName(hop)
    if address and address not in state.aliases:
        way = OutgoingName(order_queue_at(address), hop.computer)
    if key.is_direct:
        return way.destination, way
    sender = PrivateName(computer=UUID(bytes_le=key.source), number=ORDER_QUEUE_NUMBER)
    if key.source == remote or key.source in state.known_managers:
        return sender, OutgoingName(sender)
    return sender, way


def can_be_told(state: State, key: SequenceKey, origin: Origin) -> bool:
    """Whether there is room for an acknowledgment to who sent a message that is rejected."""
    _, name = _order_queue_of(state, key, origin)
    found = state.find_outgoing(str(name))
    if found is None:
        return may_wait(state, name, origin.address)
    return found.positions.count < ACKS_WAITING_MAX


def may_wait(state: State, name: OutgoingName, address: str) -> bool:
    """Whether acknowledgments may wait in a queue, which is made if there is none.

    For OrderAcks to those whom the settings know there always is one. In one network only so many
    may leave theirs waiting; who is connected takes them at once, and its queue is empty.
    """
    place = name.destination
    if _is_hop(place) and place.computer.bytes_le in state.known_managers:
        return True
    text = str(name).lower()
    if state.is_destination(text):
        return True
    network, known = peer_network(address), state.answer_queues
    for each in known.of(network):
        if not state.is_destination(each):
            known.remove(each)
    others = known.of(network)
    waiting = [each for each in others if _has_waiting(state, each)]
    if len(waiting) >= SENDERS_PER_NETWORK_MAX or len(others) >= ORDER_QUEUES_PER_NETWORK_MAX:
        return False
    if len(known) >= ORDER_QUEUES_MAX:
        return False
    known.add(text, network)
    return True


def _is_hop(name: FormatName) -> TypeGuard[PrivateName]:
    """Whether a name is that of an order queue by its queue manager's identifier."""
    return isinstance(name, PrivateName) and name.number == ORDER_QUEUE_NUMBER


def reach_asker(
    state: State, change: Change, name: FormatName, view: MessageView, address: str = ""
) -> Queue | None:
    """Where something about a message waits that is for another queue; None if it cannot.

    Of messages of others it waits by who sent them, apart from what applications send there.
    Whoever sends here chooses the name, so only so much is kept.

    Args:
        state: The queue manager.
        change: What is being planned.
        name: The queue that is told.
        view: The message.
        address: Where it came from; empty if that was long ago.
    """
    source = view.packet[16:32]
    if source == state.source or outgoing.local_queue(state, name)[1]:
        return outgoing.reach_if_possible(state, change, name)
    asker = UUID(bytes_le=source)
    host = name.host if isinstance(name, DirectName) else ""
    way = OutgoingName(name, asker)
    if not may_wait(state, way, address or state.address_of(asker) or host):
        return None
    found = state.find_outgoing(str(way))
    if found is not None and found.positions.count >= ACKS_WAITING_MAX:
        return None
    return outgoing.reach_if_possible(state, change, name, asker)


def _has_waiting(state: State, name: str) -> bool:
    queue = state.find_outgoing(name)
    return queue is not None and queue.positions.count > 0


def idle_order_queues(state: State) -> list[Queue]:
    """Queues of acknowledgments in which nothing waits, nor is about to."""
    names = state.answer_queues.names()
    for name in names:
        if not state.is_destination(name):
            state.answer_queues.remove(name)
    found = [queue for name in names if (queue := state.find_outgoing(name)) is not None]
    return [
        queue
        for queue in found
        if not queue.positions.count and not queue.staged_bytes and not queue.waiting
    ]


def find_order_queues(state: State) -> None:
    """Which outgoing queues from before the start are for acknowledgments, and to which network."""
    for queue in state.queues.values():
        if queue.is_outgoing:
            name = parse_outgoing_name(queue.properties.path_name)
            place = name.destination
            if name.asker is not None or _is_hop(place):
                host = place.host if isinstance(place, DirectName) else ""
                state.answer_queues.add(queue.properties.path_name.lower(), peer_network(host))


@lru_cache(maxsize=1024)
def order_queue_at(address: str) -> DirectName:
    """[MS-MQQB] 2.2.4: the order queue of who is at this address."""
    return parse_direct_name(f"TCP:{address}\\private$\\order_queue$")
