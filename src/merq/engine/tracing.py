"""[MS-MQQB] 3.1.5.8.9, 3.1.7.1.7: report messages about a message that is traced."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from merq.engine import order_acks, outgoing, packet_names, queue_changes
from merq.engine.aside import never_failing
from merq.engine.changes import Change
from merq.engine.state import State
from merq.model.message_class import MessageClass
from merq.model.names import PublicName
from merq.model.queue import QueueKind
from merq.model.variant import VariantType
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

REPORT_LIFETIME_S: Final = 3600
"""A report that does not arrive in this time is dropped."""

PLACES_MAX: Final = 10_000
"""Report queues of which it is remembered where they may be."""

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


@never_failing("reporting a message that is traced")
def report(state: State, change: Change, view: MessageView, next_hop: str = "") -> None:
    """Plans a report that a message has arrived here, or leaves for the next hop.

    [MS-MQMQ] 2.2.20.8, note 23: whether reports are sent at all is a setting.
    """
    queue = report_queue(view) if state.sends_reports else None
    if queue is None or view.message_class == MessageClass.MQMSG_CLASS_REPORT:
        return
    name = PublicName(queue=queue)
    found, ours = outgoing.local_queue(state, name)
    if not ours and queue not in state.known_places:
        # Without a directory: whoever wants reports has, most likely, the queue for them.
        source = view.source_queue_manager
        if source == state.guid or len(state.known_places) >= PLACES_MAX:
            return
        state.known_places[queue] = source
    target = found if ours else order_acks.reach_asker(state, change, name, view)
    if target is None or target.closing or target.properties.transactional:
        return
    if target.properties.kind not in {QueueKind.PRIVATE, QueueKind.OUTGOING}:
        return
    packet = build_packet(
        Outline(
            source_queue_manager=state.source,
            message_ordinal=state.numbers.ordinal(change),
            sent_time=state.now,
            destination=name,
            message_class=MessageClass.MQMSG_CLASS_REPORT,
            label=report_label(view, state.now),
            body=report_body(view, next_hop).encode("utf-16-le"),
            body_type=VariantType.VT_LPWSTR,
            correlation_id=view.message_id,
            time_to_reach_queue=REPORT_LIFETIME_S,
        )
    )
    if target.has_room(len(packet)) and state.has_room(len(packet)):
        queue_changes.put(state, change, target, MessageView(packet))


def report_queue(view: MessageView) -> UUID | None:
    """[MS-MQMQ] 2.2.20.8: the queue that reports go to."""
    header = view.decode().debug_header
    return None if header is None else header.queue_identifier


def report_label(view: MessageView, now: int) -> str:
    """What the document has as a report's label."""
    when = datetime.fromtimestamp(now, UTC)
    hour = f"{when.hour % 12 or 12:02}:{when:%M:%S} {'AM' if when.hour < 12 else 'PM'}"
    date = f"{_DAYS[when.weekday()]},{_MONTHS[when.month - 1]} {when.day:02} {when.year % 100:02}"
    source = str(view.source_queue_manager).upper()
    head = f"{source[:4]}:{view.message_ordinal:08X}:{view.hop_count:02X}"
    return f"{head} received by {source} at {hour} {date}"


def report_body(view: MessageView, next_hop: str) -> str:
    """What the document has as a report's body; the next hop is there if the message leaves."""
    name = packet_names.name_of_destination(view)
    lines = [
        f"<MESSAGE ID>{view.message_ordinal:08X}</MESSAGE ID>",
        f"<TARGET QUEUE>{'' if name is None else name}</TARGET QUEUE>",
    ]
    if next_hop:
        lines += [
            f"<NEXT HOP>{next_hop}</NEXT HOP>",
            f"<HOP COUNT>{view.hop_count:02X} </HOP COUNT>",
        ]
    return "".join(f"{line}\r\n" for line in lines)
