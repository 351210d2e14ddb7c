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
from merq.engine.incoming import SEQUENCE_IDLE_S, Incoming, Origin, SequenceKey
from merq.engine.packet_names import destination_of
from merq.engine.queue_changes import put
from merq.engine.state import State
from merq.model.message_class import MessageClass
from merq.model.names import DirectName, FormatName, PrivateName, parse_direct_name
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

ORDER_QUEUE_NUMBER: Final = 4
"""[MS-MQQB] 2.2.4: the queue for OrderAcks and FinalAcks."""

ORDER_ACK_LABEL: Final = "QM Ordering Ack"

ORDER_ACK_LIFETIME_S: Final = 3600
"""How long an OrderAck waits to be sent: who sends again is told again."""

FINAL_ACK_LIFETIME_S: Final = SEQUENCE_IDLE_S
"""How long a FinalAck waits to be sent, which is told once: as long as its sequence is known."""

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


def _tell_sender(
    state: State,
    change: Change,
    key: SequenceKey,
    origin: Origin,
    body: bytes,
    reason: int,
    *,
    makes_room: bool = True,
) -> None:
    """[MS-MQQB] 3.1.7.17: an acknowledgment into the sender's order queue."""
    if key.source == state.source:
        return  # somebody says that this queue manager was the sender
    destination, name = _order_queue_of(state, key, origin)
    if not order_queues.may_wait(state, change, name, origin.address, makes_room=makes_room):
        return
    target = outgoing.reach_if_possible(state, change, name)
    if target is None or target.transfer is None:
        return
    is_order_ack = reason == _ORDER_ACK_CLASS
    if is_order_ack and target.positions.count >= ACKS_WAITING_MAX:
        return  # who sends again is told again
    packet = build_packet(
        Outline(
            source_queue_manager=state.source,
            message_ordinal=state.numbers.ordinal(change),
            sent_time=state.now,
            destination=destination_of(destination),
            priority=0,
            message_class=reason,
            recoverable=not is_order_ack,
            time_to_reach_queue=ORDER_ACK_LIFETIME_S if is_order_ack else FINAL_ACK_LIFETIME_S,
            label=ORDER_ACK_LABEL,
            body=body,
        )
    )
    put(state, change, target, MessageView(packet))


def _order_queue_of(
    state: State, key: SequenceKey, origin: Origin
) -> tuple[FormatName, FormatName]:
    """[MS-MQQB] 3.1.7.17: the order queue of a sender, and the outgoing queue that leads there.

    Acknowledgments go back through the session that the messages came through. With a direct name
    that is the sender's own, and they wait by its address and the session's identifier, for several
    may be behind one address, and anybody may claim an identifier. With others it may be a router:
    only who is known, or has the session, has an outgoing queue of its own.
    """
    address, remote = origin
    hop = PrivateName(computer=UUID(bytes_le=remote), number=ORDER_QUEUE_NUMBER)
    # Who is on this computer, or where nobody knows, is found by its session.
    has_address = address and address not in state.aliases
    if key.is_direct:
        if has_address:
            return order_queue_at(address), order_queue_at(address, hop.computer)
        return hop, hop
    sender = PrivateName(computer=UUID(bytes_le=key.source), number=ORDER_QUEUE_NUMBER)
    if key.source == remote or key.source in state.known_managers:
        return sender, sender
    return sender, order_queue_at(address, hop.computer) if has_address else hop


def can_be_told(state: State, key: SequenceKey, origin: Origin) -> bool:
    """Whether there is room for an acknowledgment to who sent a message that is rejected."""
    _, name = _order_queue_of(state, key, origin)
    found = state.find_outgoing(str(name))
    if found is None or found.closing:
        return order_queues.has_room(state, name, origin.address)
    return found.positions.count < ACKS_WAITING_MAX


@lru_cache(maxsize=1024)
def order_queue_at(address: str, remote: UUID | None = None) -> DirectName:
    """[MS-MQQB] 2.2.4: the order queue of who is at this address.

    Of a certain queue manager there it is called like a subqueue, in our own lists alone.
    """
    part = "" if remote is None else f";{remote.hex}"
    return parse_direct_name(f"TCP:{address}\\private$\\order_queue${part}")
