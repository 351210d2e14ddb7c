"""What the queue manager writes about messages: journals, dead-letter queues, acknowledgments.

[MS-MQDMPR] 3.1.1.12 says who asked for what, [MS-MQQB] 3.1.7.2, 3.1.7.15 what acknowledgments say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import UUID

from merq.engine.aside import attempt, never_failing
from merq.engine.changes import Change
from merq.engine.order_acks import (
    ORDER_ACK_LIFETIME_S,
    finally_told,
    reach_asker,
)
from merq.engine.packet_names import destination_of, name_of_admin_queue, name_of_destination
from merq.engine.ports import HEAD_SIZE
from merq.engine.positions import Place
from merq.engine.queue import KEEPING, NO_NOTE, Note, Queue
from merq.engine.queue_changes import put, put_packet
from merq.engine.state import State
from merq.errors import WireError
from merq.model.message_class import MessageClass
from merq.model.names import parse_path_name
from merq.model.queue import QueueKind
from merq.wire.build import Destination, Outline, build_packet, without_time_to_reach
from merq.wire.queues import DIRECT
from merq.wire.view import MessageView

JOURNAL_NUMBER: Final = 0xFFFF0001
DEAD_LETTER_NUMBER: Final = 0xFFFF0002
DEAD_XACT_NUMBER: Final = 0xFFFF0003
"""The system queues' numbers, beyond those of private queues."""

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

FOREIGN_DEAD_LETTER_BYTES_MAX: Final = 64 << 20
"""In a dead-letter queue that has grown to this no more copies of other queue managers' messages
are kept: those are for their senders, and whoever sends here may ask for as many as it likes.
Copies of this queue manager's own messages are kept beyond that."""

_ABOUT_RECEIVING: Final = 0x4000
"""[MS-MQMQ] 2.2.18.1.6: set in the classes of acknowledgments that are not about arrival."""


def arrived(state: State, change: Change, view: MessageView, address: str = "") -> None:
    """[MS-MQQB] 3.1.5.8.10: a message has reached its queue, from an address if not from here."""
    if view.packet[16:32] == state.source:
        delivered(state, change, view)
    if view.acknowledgments & POSITIVE_ARRIVAL:
        acknowledge(state, change, view, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE, address)


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
        queue = _dead_letter_queue(state, view, note)
        if view.packet[16:32] != state.source:
            taken = queue.positions.total_bytes + queue.staged_bytes
            if taken + len(view.packet) > FOREIGN_DEAD_LETTER_BYTES_MAX:
                return
        # The copy says why it is there: applications read the reason from its class, as with MSMQ.
        _keep(state, change, queue, MessageView(view.with_class(reason)))


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

ACK_BYTES_WAITING_MAX: Final = 256 << 10
"""With so many bytes waiting in an outgoing queue, negative acknowledgments go there without the
bodies of the messages that they are about: whoever sends here chooses how large those are."""

_NOBODY: Final = bytes(16)


@never_failing("acknowledging")
def acknowledge(
    state: State, change: Change, view: MessageView, reason: int, address: str = ""
) -> None:
    """[MS-MQQB] 3.1.7.15: an administration acknowledgment as a message of its own.

    If the message has just come, the `address` is where from.
    """
    if is_acknowledgment(view):
        return
    name = name_of_admin_queue(view)
    if name is None or (reason in INSECURE and not state.sends_insecure_nacks):
        return
    if _is_passing(state, view) and not state.may_call(name):
        return  # of others it was asked when they came, and their packet says so
    target = reach_asker(state, change, name, view, address)
    if target is None or target.closing or target.properties.transactional:
        return
    if target.properties.kind not in {QueueKind.PRIVATE, QueueKind.OUTGOING}:
        return  # nobody may send to the others
    negative = reason not in (
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    )
    waiting_bytes = target.positions.total_bytes + target.staged_bytes
    is_foreign = view.packet[16:32] != state.source
    is_much = is_foreign and target.is_outgoing and waiting_bytes > ACK_BYTES_WAITING_MAX
    brings_body = negative and not view.is_encrypted and not is_much
    packet = _fitting(
        Outline(
            source_queue_manager=state.source,
            message_ordinal=state.numbers.ordinal(change),
            sent_time=state.now,
            destination=destination_of(name),
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


def lifetimes_in_packets(*seconds: int) -> frozenset[bytes]:
    """Times to reach a queue as packets have them."""
    return frozenset(each.to_bytes(4, "little") for each in seconds)


ORDER_LIFETIMES: Final = lifetimes_in_packets(ORDER_ACK_LIFETIME_S)
"""What OrderAcks and FinalAcks that wait have as their time; reports may have the same."""


def for_asker(packet: bytes, source: bytes, lifetimes: frozenset[bytes]) -> bytes:
    """A packet as it is transmitted: [MS-MQQB] 3.1.7.15, TimeToReachQueue of acknowledgments.

    How long one waits here does not concern the other side, whose clock may show anything.

    Args:
        packet: Any message that leaves.
        source: This queue manager.
        lifetimes: What acknowledgments that wait have as their time, as the packet has it.
    """
    if packet[12:16] not in lifetimes or not _is_ours_about_others(packet, source):
        return packet
    return without_time_to_reach(packet)


def _is_ours_about_others(packet: bytes, source: bytes) -> bool:
    """Whether a packet is an acknowledgment of any kind that this queue manager has made."""
    if asked_by(packet, source) is not None:
        return True
    is_order_ack = MessageView(packet).message_class == MessageClass.MQMSG_CLASS_ORDER_ACK
    return is_order_ack and packet[16:32] == source


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
    return "" if name is None else destination_of(name)


def _is_passing(state: State, view: MessageView) -> bool:
    """Whether a message is neither of this queue manager nor for it."""
    packet = view.packet
    return packet[16:32] != state.source and packet[32:48] not in (state.source, _NOBODY)
