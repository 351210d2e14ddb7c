"""[MS-MQQB] 2.2.4, 2.2.5, 3.1.7.17: OrderAcks and FinalAcks to the senders of sequences.

They wait in outgoing queues of their own, of which strangers can have only so many made
(`order_queues`), and for so long.
"""

from __future__ import annotations

import struct
from functools import lru_cache, partial
from typing import Final
from uuid import UUID

from merq.engine import order_queues, outgoing
from merq.engine.aside import attempt, never_failing
from merq.engine.changes import Change
from merq.engine.incoming import FOLLOWED, Incoming
from merq.engine.packet_names import destination_of
from merq.engine.positions import AVAILABLE, PURGE_PENDING, Place
from merq.engine.queue import Queue
from merq.engine.queue_changes import put, take_all
from merq.engine.sequence_keys import Origin, SequenceKey
from merq.engine.state import State
from merq.engine.transfer import LANE_SHIFT, LANES
from merq.model.message_class import MessageClass
from merq.model.names import DirectName, FormatName, PrivateName, parse_direct_name
from merq.model.outgoing_names import OutgoingName
from merq.wire.build import Outline, build_packet
from merq.wire.headers import INFINITE
from merq.wire.view import MessageView

ORDER_QUEUE_NUMBER: Final = 4
"""[MS-MQQB] 2.2.4: the queue for OrderAcks and FinalAcks."""

ORDER_ACK_LABEL: Final = "QM Ordering Ack"

ORDER_ACK_LIFETIME_S: Final = 3600
"""How long an OrderAck waits to be sent: who sends again is told again."""

FOLLOWED_MAX: Final = 1_000
"""Acknowledgments that are looked at in one turn for those that follow a sender that has moved."""

ACKS_WAITING_MAX: Final = 1_000
"""With so many acknowledgments waiting for a peer it is told no more how far it is, and its session
is closed instead of rejecting another transactional message of its own: it comes again."""

FINAL_ACKS_WAITING_MAX: Final = 10 * ACKS_WAITING_MAX
"""With so many no message of its own is taken either that it wants to be told of in the end."""

_ORDER_ACK_CLASS: Final = MessageClass.MQMSG_CLASS_ORDER_ACK
_ORDER_ACK: Final = struct.Struct("<QII20x")
_FINAL_ACK: Final = struct.Struct("<QII16sI")


def wants_final_ack(view: MessageView) -> bool:
    """[MS-MQQB] 3.1.7.2.2: whether its sender waits for what becomes of a message in the end."""
    return view.positive_journaling or view.negative_journaling or view.final_ack_required


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
    if not is_rejected and not wants_final_ack(view):
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


def order_told(
    state: State, change: Change, incoming: Incoming, *, is_connected: bool = True
) -> None:
    """[MS-MQQB] 3.1.6.9: the sender learns how far its sequence has come.

    Who sends of an earlier one again, because its folder was restored, learns how far that came.
    Nothing gives way for who is not connected: when it comes back it sends again, and is told.
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
                partial(
                    _tell_sender,
                    state,
                    change,
                    incoming.key,
                    origin,
                    body,
                    _ORDER_ACK_CLASS,
                    makes_room=is_connected,
                ),
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
    state: State,
    change: Change,
    key: SequenceKey,
    origin: Origin,
    body: bytes,
    reason: int,
    *,
    makes_room: bool = True,
) -> bool:
    """[MS-MQQB] 3.1.7.17: an acknowledgment into the sender's order queue; whether it is there."""
    if key.source == state.source:
        return False  # somebody says that this queue manager was the sender
    destination, name = _order_queue_of(state, key, origin)
    if not order_queues.may_wait(state, change, name, origin.address, makes_room=makes_room):
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
            time_to_reach_queue=ORDER_ACK_LIFETIME_S if is_order_ack else INFINITE,
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


def can_be_told(state: State, key: SequenceKey, origin: Origin, *, is_rejected: bool) -> bool:
    """Whether there is room for an acknowledgment to who sent a message, now or later."""
    _, name = _order_queue_of(state, key, origin)
    found = state.find_outgoing(str(name))
    if found is None or found.closing:
        return order_queues.has_room(state, name, origin.address)
    most = ACKS_WAITING_MAX if is_rejected else FINAL_ACKS_WAITING_MAX
    return found.positions.count < most


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
    address = address or state.address_of(asker) or host
    if not order_queues.may_wait(state, change, way, address, is_admin_queue=True):
        return None
    found = state.find_outgoing(str(way))
    if found is not None and found.positions.count >= ACKS_WAITING_MAX:
        return None
    return outgoing.reach_if_possible(state, change, name, asker)


@lru_cache(maxsize=1024)
def order_queue_at(address: str) -> DirectName:
    """[MS-MQQB] 2.2.4: the order queue of who is at this address."""
    return parse_direct_name(f"TCP:{address}\\private$\\order_queue$")
