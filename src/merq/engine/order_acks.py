"""[MS-MQQB] 2.2.4, 2.2.5, 3.1.7.17: OrderAcks and FinalAcks to the senders of sequences.

They wait in outgoing queues of their own, of which strangers can have only so many made.
"""

from __future__ import annotations

import struct
from functools import lru_cache, partial
from typing import Final
from uuid import UUID

from merq.engine import outgoing
from merq.engine.aside import attempt, never_failing
from merq.engine.changes import Change
from merq.engine.incoming import Incoming, Origin, SequenceKey
from merq.engine.packet_names import destination_of
from merq.engine.queue import Queue
from merq.engine.queue_changes import put
from merq.engine.state import State
from merq.model.message_class import MessageClass
from merq.model.names import DirectName, FormatName, PrivateName, parse_direct_name
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


def _tell_sender(
    state: State, change: Change, key: SequenceKey, origin: Origin, body: bytes, reason: int
) -> None:
    """[MS-MQQB] 3.1.7.17: an acknowledgment into the sender's order queue."""
    if key.source == state.source:
        return  # somebody says that this queue manager was the sender
    destination, name = _order_queue_of(state, key, origin)
    if not may_wait(state, name, origin.address):
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
    if found is None:
        return may_wait(state, name, origin.address)
    return found.positions.count < ACKS_WAITING_MAX


def may_wait(state: State, name: FormatName, address: str) -> bool:
    """Whether acknowledgments may wait in a queue, which is made if there is none.

    For those whom the settings know there always is one. In one network only so many may leave
    theirs waiting; who is connected takes them at once, and its queue is empty.
    """
    if isinstance(name, PrivateName) and name.computer.bytes_le in state.known_managers:
        return True
    network, text = peer_network(address), str(name).lower()
    known = state.order_queues.setdefault(network, set())
    if state.is_destination(text):
        return True
    known.difference_update([each for each in known if not state.is_destination(each)])
    waiting = [each for each in known if _has_waiting(state, each)]
    is_full = len(waiting) >= SENDERS_PER_NETWORK_MAX or len(known) >= ORDER_QUEUES_PER_NETWORK_MAX
    if is_full:
        return False
    if sum(map(len, state.order_queues.values())) >= ORDER_QUEUES_MAX:
        return False
    known.add(text)
    return True


def is_for_others(state: State, queue: Queue) -> bool:
    """Whether a queue was made for what others' messages caused, and not for an application."""
    name = queue.properties.path_name.lower()
    return any(name in known for known in state.order_queues.values())


def _has_waiting(state: State, name: str) -> bool:
    queue = state.find_outgoing(name)
    return queue is not None and queue.positions.count > 0


def idle_order_queues(state: State) -> list[Queue]:
    """Queues of acknowledgments in which nothing waits, nor is about to."""
    names = [name for known in state.order_queues.values() for name in known]
    found = [queue for name in names if (queue := state.find_outgoing(name)) is not None]
    return [
        queue
        for queue in found
        if not queue.positions.count and not queue.staged_bytes and not queue.waiting
    ]


def find_order_queues(state: State) -> None:
    """Which outgoing queues from before the start are for acknowledgments, and to which network."""
    for queue in state.queues.values():
        name = queue.properties.path_name.lower()
        host, found, _ = name.removeprefix("direct=tcp:").partition("\\private$\\order_queue$")
        if queue.is_outgoing and found:
            state.order_queues.setdefault(peer_network(host), set()).add(name)


@lru_cache(maxsize=1024)
def order_queue_at(address: str, remote: UUID | None = None) -> DirectName:
    """[MS-MQQB] 2.2.4: the order queue of who is at this address.

    Of a certain queue manager there it is called like a subqueue, in our own lists alone.
    """
    part = "" if remote is None else f";{remote.hex}"
    return parse_direct_name(f"TCP:{address}\\private$\\order_queue${part}")
