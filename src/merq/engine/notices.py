"""What the queue manager writes about messages: journals, dead-letter queues, acknowledgments.

[MS-MQDMPR] 3.1.1.12 says who asked for what, [MS-MQQB] 3.1.7.2, 3.1.7.15, 3.1.7.17 what
acknowledgments say.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final
from uuid import UUID

from merq.engine import outgoing, records
from merq.engine.aside import attempt, never_failing
from merq.engine.changes import NO_ENTRY, Change, PutStep, RemoveManyStep, RemoveStep
from merq.engine.holdings import MEMORY
from merq.engine.incoming import Incoming, Origin, SequenceKey
from merq.engine.ports import HEAD_SIZE
from merq.engine.positions import Place
from merq.engine.queue import KEEPING, NO_NOTE, Note, Queue
from merq.engine.state import State
from merq.errors import NameSyntaxError, WireError
from merq.model.message_class import MessageClass
from merq.model.names import (
    FORMAT_NAME_LENGTH_MAX,
    DirectName,
    FormatName,
    PrivateName,
    PublicName,
    parse_direct_name,
    parse_path_name,
)
from merq.model.peer_networks import peer_network
from merq.model.queue import QueueKind
from merq.wire.build import Destination, Outline, build_packet, without_time_to_reach
from merq.wire.queue_names import identified_queue
from merq.wire.queues import DIRECT
from merq.wire.view import MessageView

JOURNAL_NUMBER: Final = 0xFFFF0001
DEAD_LETTER_NUMBER: Final = 0xFFFF0002
DEAD_XACT_NUMBER: Final = 0xFFFF0003
"""The system queues' numbers, beyond those of private queues."""

NAME_BYTES_MAX: Final = 2 * FORMAT_NAME_LENGTH_MAX
"""What is longer is no name of a queue, and is not read to find that out."""

POSITIVE_ARRIVAL: Final = 1
POSITIVE_RECEIVE: Final = 2
NEGATIVE_ARRIVAL: Final = 4
NEGATIVE_RECEIVE: Final = 8
"""[MS-MQMQ] 2.2.19.3: the administration acknowledgments that a sender may ask for."""

TELLING: Final = 1 << 9 | 7 << 13
"""[MS-MQMQ] 2.2.19.2: positive journaling, or an administration queue, in UserHeader.Flags."""

ADMINISTRATION_CLASSES: Final = frozenset(MessageClass) - {
    MessageClass.MQMSG_CLASS_NORMAL,
    MessageClass.MQMSG_CLASS_REPORT,
    MessageClass.MQMSG_CLASS_ORDER_ACK,
}
"""[MS-MQMQ] 2.2.18.1.6: what an administration acknowledgment can say."""

_ABOUT_MESSAGES: Final = ADMINISTRATION_CLASSES | {MessageClass.MQMSG_CLASS_REPORT}
"""Classes of messages that another message caused, whose identifier they have as correlation."""

_ABOUT_RECEIVING: Final = 0x4000
"""[MS-MQMQ] 2.2.18.1.6: set in the classes of acknowledgments that are not about arrival."""


def put(state: State, change: Change, queue: Queue, view: MessageView) -> int:
    """Plans that a packet comes into a queue; gives its lookup identifier."""
    return put_packet(
        state, change, queue, view.packet, view.priority, recoverable=view.delivery_mode != 0
    )


def put_packet(
    state: State,
    change: Change,
    queue: Queue,
    packet: bytes,
    priority: int,
    *,
    recoverable: bool,
    note: Note | None = None,
) -> int:
    """The same for a packet of which all that matters is known."""
    lookup_id = state.numbers.lookup_id(priority, change)
    entry = NO_ENTRY
    if recoverable:
        entry = len(change.entries)
        form = records.put if note is None or not note.kept else records.keep
        change.entries.append(form(queue.properties.number, state.now, lookup_id, packet))
        if note is not None:
            change.entries.append(note_entry(queue, lookup_id, note))
    size = len(packet)
    queue.staged_bytes += size
    state.taken_bytes += size
    change.steps.append(PutStep(queue, lookup_id, state.now, packet, entry, note))
    return lookup_id


def note_entry(queue: Queue, lookup_id: int, note: Note) -> records.Entry:
    """What is known of a message beside its packet, as the log keeps it."""
    return records.note(
        records.NoteData(
            queue.number,
            note.aborts,
            lookup_id,
            note.purged,
            note.dead_letter,
            note.kept,
            note.moves,
        )
    )


def write_note(change: Change, queue: Queue, place: Place, note: Note) -> None:
    """Plans that something is known of a message; only of what survives it is written."""
    if not place.location & MEMORY:
        change.entries.append(note_entry(queue, place.lookup_id, note))


def take(change: Change, queue: Queue, place: Place) -> None:
    """[MS-MQDMPR] 3.1.7.2.1: plans that a message leaves a queue."""
    if not place.location & MEMORY:
        change.entries.append(records.remove(queue.properties.number, place.lookup_id))
    change.steps.append(RemoveStep(queue, place.lookup_id))


def take_all(change: Change, queue: Queue, places: list[Place]) -> None:
    """The same for several."""
    if not places:
        return
    stored = [place.lookup_id for place in places if not place.location & MEMORY]
    if stored:
        change.entries.append(records.remove_many(queue.properties.number, stored))
    change.steps.append(RemoveManyStep(queue, [place.lookup_id for place in places]))


def arrived(state: State, change: Change, view: MessageView) -> None:
    """[MS-MQQB] 3.1.5.8.10: a message has reached its queue."""
    if view.packet[16:32] == state.source:
        delivered(state, change, view)
    if view.acknowledgments & POSITIVE_ARRIVAL:
        acknowledge(state, change, view, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)


def is_acknowledgment(view: MessageView) -> bool:
    """Whether a message tells what became of another one, and so goes to an administration queue.

    [MS-MQQB] 1.3.4, 3.1.5.8.10, notes 2 and 62: no copy of it is kept, and it is not acknowledged.
    """
    kind = MessageClass.of(view.message_class)
    return kind is not None and kind.is_acknowledgment


@never_failing("keeping a copy of a message that was delivered")
def delivered(state: State, change: Change, view: MessageView) -> None:
    """[MS-MQQB] 3.1.5.5.4: one of our own messages is where it was sent to."""
    if is_acknowledgment(view):
        return
    if view.positive_journaling and state.has_room(len(view.packet)):
        _keep(state, change, state.queues[JOURNAL_NUMBER], view)


def is_quiet(queue: Queue, lookup_id: int, packet: bytes, source: bytes) -> bool:
    """Whether nobody wants to know that a message was received: no journal, no acknowledgment."""
    if queue.notes and queue.notes.get(lookup_id, NO_NOTE).kept:
        return True
    properties = queue.properties
    return not (properties.journaling or properties.owner or is_telling(packet, source))


def is_telling(packet: bytes, source: bytes) -> bool:
    """Whether its sender may want to know: it named a queue for that, or waits for a FinalAck."""
    # UserHeader.Flags: bits 13 to 15 are the type of the administration queue, 20 is TH.
    return packet[61] & 0xE0 != 0 or (packet[62] & 0x10 != 0 and packet[16:32] != source)


def is_lost_quietly(packet: bytes, source: bytes) -> bool:
    """Whether surely nobody wants to know that a message left its queue unreceived.

    Of the packet at least the first bytes are there, or fewer if the disk has lost some.
    """
    flags = packet[60:HEAD_SIZE]
    if are_quiet_flags(flags):
        return True
    # What is transactional and ours is told of only if one of the other flags is set.
    return len(flags) == 4 and not flags[1] & 0xE1 and packet[16:32] == source


def are_quiet_flags(flags: bytes) -> bool:
    """Whether UserHeader.Flags alone, all four bytes of them, say so."""
    # Bit 8 is negative journaling, the others are those of `is_telling`.
    return len(flags) == 4 and not flags[1] & 0xE1 and not flags[2] & 0x10


def received(state: State, change: Change, queue: Queue, packet: bytes) -> None:
    """[MS-MQQB] 3.1.7.2.1: a message was taken by a receiver: journal and acknowledgment."""
    if queue.properties.kind in KEEPING or queue.is_outgoing:
        return  # what is kept of a message is not the message: its fate was told before
    telling = "telling that a message was received"
    attempt(state, change, packet, telling, lambda: _received(state, change, queue, packet))


def _received(state: State, change: Change, queue: Queue, packet: bytes) -> None:
    owner = state.queues[queue.properties.owner] if queue.properties.owner else queue
    view = MessageView(packet)
    journal = owner.journal
    if journal is not None and owner.properties.journaling and journal.has_room(len(packet)):
        put(state, change, journal, view)
    if view.acknowledgments & POSITIVE_RECEIVE:
        acknowledge(state, change, view, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
    finally_told(state, change, view, MessageClass.MQMSG_CLASS_ACK_RECEIVE)


def received_at(state: State, change: Change, queue: Queue, place: Place) -> None:
    """The same for a message in its queue; of one that cannot be read nothing is told."""
    packet = state.readable(place)
    if packet is not None and not is_quiet(queue, place.lookup_id, packet, state.source):
        received(state, change, queue, packet)


def lost_at(state: State, change: Change, queue: Queue, place: Place, reason: int) -> None:
    """A message in its queue leaves it unreceived; of one that cannot be read nothing is told."""
    packet = state.readable(place)
    if packet is not None:
        note = queue.notes.get(place.lookup_id, NO_NOTE)
        lost(state, change, queue, packet, reason, note)


def lost(
    state: State,
    change: Change,
    queue: Queue,
    packet: bytes,
    reason: int,
    note: Note = NO_NOTE,
) -> None:
    """[MS-MQDMPR] 3.1.1.12: a message left its queue unreceived, for this reason."""
    telling = "telling that a message was lost"
    attempt(
        state,
        change,
        packet,
        telling,
        lambda: _lost(state, change, queue, MessageView(packet), reason, note),
    )


def _lost(
    state: State, change: Change, queue: Queue, view: MessageView, reason: int, note: Note
) -> None:
    if queue.properties.kind in KEEPING or note.kept:
        return
    if view.transactional and view.packet[16:32] != state.source:
        # Its sender may have kept it until it hears of this; what is only passing it surely has.
        finally_told(state, change, view, reason, is_rejected=queue.is_outgoing)
    else:
        bury(state, change, view, reason, note)
    if view.acknowledgments & _negative_bits(view, reason):
        acknowledge(state, change, view, reason)


def _negative_bits(view: MessageView, reason: int) -> int:
    """[MS-MQMQ] 2.2.19.3: which of the acknowledgments NA and NR a loss is told by.

    TimeToBeReceived that runs out on the way is both: the message was neither delivered nor
    retrieved.
    """
    if reason & _ABOUT_RECEIVING:
        return NEGATIVE_RECEIVE
    if (
        reason == MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
        and view.time_to_be_received <= view.time_to_reach_queue
    ):
        return NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE
    return NEGATIVE_ARRIVAL


@never_failing("keeping a copy of a message that is dead")
def bury(state: State, change: Change, view: MessageView, reason: int, note: Note) -> None:
    """[MS-MQQB] 3.1.5.7: a copy of a message that is dead, if its sender wanted one."""
    if view.negative_journaling and not is_acknowledgment(view):
        # The copy says why it is there: applications read the reason from its class, as with MSMQ.
        copy = MessageView(view.with_class(reason))
        _keep(state, change, _dead_letter_queue(state, view, note), copy)


def _dead_letter_queue(state: State, view: MessageView, note: Note) -> Queue:
    """[MS-MQDMPR] 3.1.1.12: the application's own one if it can take the message, the system's."""
    if note.dead_letter:
        own = state.find(parse_path_name(note.dead_letter))
        if (
            own is not None
            and not own.closing
            and own.properties.transactional == view.transactional
            and own.properties.kind is QueueKind.PRIVATE
        ):
            return own
    return state.queues[DEAD_XACT_NUMBER if view.transactional else DEAD_LETTER_NUMBER]


def _keep(state: State, change: Change, queue: Queue, view: MessageView) -> None:
    """A copy; where the queue's quota is used up the copy is dropped, not the message."""
    if not queue.has_room(len(view.packet)):
        return
    # In a system queue every message is such a copy; in an application's own it has to be said.
    note = Note(kept=True) if queue.properties.kind is QueueKind.PRIVATE else None
    put_packet(
        state,
        change,
        queue,
        view.packet,
        view.priority,
        recoverable=view.delivery_mode != 0,
        note=note,
    )


INSECURE: Final = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
        MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE,
        MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
        MessageClass.MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    }
)
"""[MS-MQQB] 3.1.7.15, 5.1: what tells strangers too much, and is told only if that was chosen."""

ORDER_QUEUE_NUMBER: Final = 4
"""[MS-MQQB] 2.2.4: the queue for OrderAcks and FinalAcks."""

ORDER_ACK_LABEL: Final = "QM Ordering Ack"

SENDERS_PER_NETWORK_MAX: Final = 8
"""Senders in one network whose acknowledgments wait apart; whoever connects under ever new
identifiers would make ever new queues."""

ORDER_QUEUES_PER_NETWORK_MAX: Final = 256
"""Outgoing queues for acknowledgments to one network, those that its addresses share included;
beyond it none are kept for it: what is not acknowledged is sent again."""

ORDER_QUEUES_MAX: Final = outgoing.OUTGOING_MAX // 10
"""The same in all: the rest is for applications."""

ACKS_WAITING_MAX: Final = 5_000
"""With so many acknowledgments waiting for a peer it is told no more how far it is, and its session
is closed instead of rejecting another transactional message of its own: it comes again."""

NAME_KEPT_MAX: Final = 512
"""Names of more bytes are read anew each time: strangers choose how long they are."""

_NOBODY: Final = bytes(16)
_ORDER_ACK_CLASS: Final = MessageClass.MQMSG_CLASS_ORDER_ACK
_ORDER_ACK: Final = struct.Struct("<QII20x")
_FINAL_ACK: Final = struct.Struct("<QII16sI")


@never_failing("acknowledging")
def acknowledge(state: State, change: Change, view: MessageView, reason: int) -> None:
    """[MS-MQQB] 3.1.7.15: an administration acknowledgment as a message of its own."""
    if is_acknowledgment(view):
        return
    name = name_of_admin_queue(view)
    if name is None or (reason in INSECURE and not state.sends_insecure_nacks):
        return
    if _is_passing(state, view) and not state.may_call(name):
        return  # of others it was asked when they came, and their packet says so
    target = outgoing.reach_if_possible(state, change, name)
    if target is None or target.closing or target.properties.transactional:
        return
    if target.properties.kind not in {QueueKind.PRIVATE, QueueKind.OUTGOING}:
        return  # nobody may send to the others
    negative = reason not in (
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    )
    brings_body = negative and not view.is_encrypted
    packet = _fitting(
        Outline(
            source_queue_manager=state.source,
            message_ordinal=state.numbers.ordinal(change),
            sent_time=state.now,
            destination=_destination(name),
            response_queue=_response(view),
            message_class=reason,
            correlation_id=view.message_id,
            recoverable=view.delivery_mode == 1,
            time_to_reach_queue=state.acknowledgment_lifetime_s,
            label=view.label,
            body=view.body if brings_body else b"",
            body_type=view.body_type if brings_body else 0,
        )
    )
    if target.has_room(len(packet)) and state.has_room(len(packet)):
        put(state, change, target, MessageView(packet))


def for_asker(packet: bytes, source: bytes, lifetime: bytes) -> bytes:
    """A packet as it is transmitted: [MS-MQQB] 3.1.7.15, TimeToReachQueue of acknowledgments.

    How long one waits here does not concern the other side, whose clock may show anything.

    Args:
        packet: Any message that leaves.
        source: This queue manager.
        lifetime: What acknowledgments that wait have as their time, as the packet has it.
    """
    if packet[12:16] != lifetime or asked_by(packet, source) is None:
        return packet
    return without_time_to_reach(packet)


def _fitting(outline: Outline) -> bytes:
    """An acknowledgment that says as much as fits into a packet.

    The message may be as large as a packet can be, and the queue that it was for has a longer name
    here. What tells that the message is lost matters more than its body, and the message's
    identifier more than its label.
    """
    bare = replace(outline, body=b"", body_type=0)
    for each in (outline, bare):
        try:
            return build_packet(each)
        except WireError:
            continue
    return build_packet(replace(bare, label="", response_queue=""))


def asked_by(packet: bytes, source: bytes) -> UUID | None:
    """The queue manager whose message one of our acknowledgments or reports is about.

    None if the packet is something else.
    """
    view = MessageView(packet)
    is_ours = packet[16:32] == source and not view.transactional
    if not is_ours or view.message_class not in _ABOUT_MESSAGES:
        return None
    return UUID(bytes_le=view.correlation_id[:16])


def _response(view: MessageView) -> Destination:
    """[MS-MQQB] 3.1.7.15: the queue that an acknowledgment is about, as the message named it."""
    if view.destination_type == DIRECT:
        return view.destination.decode("utf-16-le", "surrogatepass")
    name = name_of_destination(view)
    return "" if name is None else _destination(name)


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
    if not _may_wait(state, name, origin.address):
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
            destination=_destination(destination),
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
            return order_queue_at(address), _own_order_queue(state, address, hop.computer)
        return hop, hop
    sender = PrivateName(computer=UUID(bytes_le=key.source), number=ORDER_QUEUE_NUMBER)
    if key.source == remote or key.source in state.known_managers:
        return sender, sender
    return sender, _own_order_queue(state, address, hop.computer) if has_address else hop


def can_be_told(state: State, key: SequenceKey, origin: Origin) -> bool:
    """Whether there is room for an acknowledgment to who sent a message that is rejected."""
    _, name = _order_queue_of(state, key, origin)
    found = state.find_outgoing(str(name))
    return found is None or found.positions.count < ACKS_WAITING_MAX


def _own_order_queue(state: State, address: str, remote: UUID) -> DirectName:
    """The queue for one sender at an address; beyond a number of them, all share one."""
    name = order_queue_at(address, remote)
    shared = order_queue_at(address)
    known = _order_queues(state, address)
    if str(name).lower() in known:
        return name
    owned = sum(";" in each for each in known)
    return name if owned < SENDERS_PER_NETWORK_MAX else shared


def _may_wait(state: State, name: FormatName, address: str) -> bool:
    """Whether acknowledgments may wait in a queue, which is made if there is none.

    For those whom the settings know there always is one; of one network there are only so many.
    """
    if isinstance(name, PrivateName) and name.computer.bytes_le in state.known_managers:
        return True
    known, text = _order_queues(state, address), str(name).lower()
    if text in known:
        return True
    if address and len(known) >= ORDER_QUEUES_PER_NETWORK_MAX:
        return False
    if sum(map(len, state.order_queues.values())) >= ORDER_QUEUES_MAX:
        return False
    state.order_queues.setdefault(peer_network(address), set()).add(text)
    return True


def _order_queues(state: State, address: str) -> set[str]:
    """The outgoing queues in which acknowledgments to a network wait, by their names."""
    known = state.order_queues.get(peer_network(address))
    if known is None:
        return set()
    if len(known) >= SENDERS_PER_NETWORK_MAX:
        known.difference_update([each for each in known if not state.is_destination(each)])
    return known


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


def _destination(name: FormatName) -> Destination:
    """A name as a packet's outline has it."""
    if isinstance(name, DirectName):
        return name.without_prefix()
    assert isinstance(name, PrivateName | PublicName), "no other name is in a packet"
    return name


def name_of_destination(view: MessageView) -> FormatName | None:
    """The name that a message is sent to; None if there is none that can be read."""
    return _name_of(view, view.destination_type, view.destination)


def name_of_admin_queue(view: MessageView) -> FormatName | None:
    """The queue that a message wants to be told of its fate; None if none that can be read."""
    return _name_of(view, view.admin_queue_type, view.admin_queue)


def _is_passing(state: State, view: MessageView) -> bool:
    """Whether a message is neither of this queue manager nor for it."""
    packet = view.packet
    return packet[16:32] != state.source and packet[32:48] not in (state.source, _NOBODY)


def _read_direct_name(data: bytes) -> DirectName | None:
    try:
        return parse_direct_name(data.decode("utf-16-le", "surrogatepass"))
    except NameSyntaxError:
        return None


# Names come again and again, and take long to read.
_direct_name = lru_cache(maxsize=1024)(_read_direct_name)


def _name_of(view: MessageView, kind: int, data: bytes) -> FormatName | None:
    """[MS-MQQB] 3.1.7.15: the name that stands in a packet in one of these forms."""
    return read_direct_name(data) if kind == DIRECT else identified_queue(view, kind, data)


def read_direct_name(data: bytes) -> DirectName | None:
    """A direct name as it lies in a packet; None if it is none."""
    if len(data) > NAME_BYTES_MAX:
        return None
    return _direct_name(data) if len(data) <= NAME_KEPT_MAX else _read_direct_name(data)
