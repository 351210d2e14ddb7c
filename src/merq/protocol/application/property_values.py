"""[MS-MQMQ] 2.3.1, 2.3.12: the properties of a queue by their identifiers, from what is reported.

Management protocols ask for properties by number: [MS-MQMP] 3.1.1.12 says which attribute of a
queue each of 2.3.1 is, [MS-MQMR] 3.1.4.1 how each of 2.3.12 is found. Both tables stand here, each
property once. A property that has no value for a queue is None, which travels as VT_NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import Final, TypeAlias
from uuid import UUID

from merq.model.names import (
    DirectName,
    FormatName,
    MulticastName,
    PrivateName,
    PublicName,
    parse_path_name,
)
from merq.model.outgoing_names import parse_outgoing_name
from merq.model.properties import (
    ConnectionStatus,
    Property,
    QueueFact,
    QueueLocation,
    QueueState,
    QueueType,
)
from merq.model.queue import OutgoingState, QueueKind
from merq.protocol.application.reports import (
    QueueReport,
    SequencePlace,
    SequenceReport,
    TransferReport,
)
from merq.wire.sequence_info import SequenceInfo

PropertyValue: TypeAlias = int | str | bytes | UUID | tuple["PropertyValue", ...]
"""A value of the property's variant type; an array is a tuple."""

LOCKED: Final = "LOCKED"
"""[MS-MQMR] 3.1.4.1: a state that [MS-MQMQ] 2.3.12.11 does not list (erratum E99)."""

_UI4_MAX: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """What properties are taken from.

    Attributes:
        queue_manager: Who reports.
        computer: What its computer is called.
        report: The queue.
        journal: Its journal, if it has one.
        subqueues: The names of its subqueues.
        transfer: How far an outgoing queue is; None for others.
        sequences: Transactional messages that come to the queue from elsewhere.
    """

    queue_manager: UUID
    computer: str
    report: QueueReport
    journal: QueueReport | None = None
    subqueues: tuple[str, ...] = ()
    transfer: TransferReport | None = None
    sequences: tuple[SequenceReport, ...] = ()

    @property
    def is_outgoing(self) -> bool:
        """Whether the queue's messages are for elsewhere."""
        return self.report.properties.kind is QueueKind.OUTGOING


_Rule: TypeAlias = Callable[[QueueFacts], PropertyValue | None]


def queue_property(facts: QueueFacts, which: Property) -> PropertyValue | None:
    """A property of a queue; None if it has none, as those that only a directory knows."""
    rule = _RULES.get(which)
    return None if rule is None else rule(facts)


def known_properties(facts: QueueFacts) -> dict[Property, PropertyValue]:
    """All properties of a queue that have a value, in the document's order."""
    found = {which: queue_property(facts, which) for which in Property if which in _RULES}
    return {which: value for which, value in found.items() if value is not None}


# [MS-MQMQ] 2.3.1: a queue that is here.


def _attribute(name: str, facts: QueueFacts) -> PropertyValue | None:
    """An attribute of the queue; flags and choices as their numbers."""
    if facts.is_outgoing:
        return None
    value = getattr(facts.report.properties, name)
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int | str | UUID) else int(value.value)


def _q_path_name(facts: QueueFacts) -> PropertyValue | None:
    return None if facts.is_outgoing else _path_name(facts)


def _q_queue_manager(facts: QueueFacts) -> PropertyValue | None:
    return None if facts.is_outgoing else facts.queue_manager


def _q_path_name_dns(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQMQ] 2.3.1.22: only if the computer's name is a full one."""
    return _q_path_name(facts) if "." in facts.computer else None


def _q_multicast(facts: QueueFacts) -> PropertyValue | None:
    return _attribute("multicast_address", facts) or None


# [MS-MQMQ] 2.3.12: any queue.


def _destination(facts: QueueFacts) -> FormatName:
    return parse_outgoing_name(facts.report.properties.path_name).destination


def _path_name(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQDMPR] 3.1.7.1.26: of an outgoing queue only a direct name says the path."""
    if facts.is_outgoing:
        name = _destination(facts)
        return str(name.path_name()) if isinstance(name, DirectName) else None
    return str(parse_path_name(facts.report.properties.path_name).on(facts.computer))


def _format_name(facts: QueueFacts) -> PropertyValue | None:
    if facts.is_outgoing:
        return facts.report.properties.path_name
    path = parse_path_name(facts.report.properties.path_name)
    return str(DirectName.of_path(path.on(facts.computer)))


def _type(facts: QueueFacts) -> PropertyValue | None:
    if facts.is_outgoing:
        return _type_of_destination(_destination(facts))
    is_system = parse_path_name(facts.report.properties.path_name).is_system
    return QueueType.MGMT_QUEUE_TYPE_MACHINE if is_system else QueueType.MGMT_QUEUE_TYPE_PRIVATE


def _type_of_destination(name: FormatName) -> QueueType | None:
    match name:
        case MulticastName():
            return QueueType.MGMT_QUEUE_TYPE_MULTICAST
        case PrivateName():
            return QueueType.MGMT_QUEUE_TYPE_PRIVATE
        case PublicName():
            return QueueType.MGMT_QUEUE_TYPE_PUBLIC
        case DirectName() if name.is_system:
            return QueueType.MGMT_QUEUE_TYPE_MACHINE
        case DirectName() if name.is_private:
            return QueueType.MGMT_QUEUE_TYPE_PRIVATE
        case DirectName():
            return QueueType.MGMT_QUEUE_TYPE_PUBLIC
        case _:
            return None


def _location(facts: QueueFacts) -> PropertyValue | None:
    if facts.is_outgoing:
        return QueueLocation.MGMT_QUEUE_REMOTE_LOCATION
    return QueueLocation.MGMT_QUEUE_LOCAL_LOCATION


def _is_transactional(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQMQ] 2.3.12.5: of a queue elsewhere it is not known (erratum E99)."""
    if facts.is_outgoing:
        return QueueFact.UNKNOWN
    return QueueFact.YES if facts.report.properties.transactional else QueueFact.NO


def _is_foreign(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQMR] 3.1.4.1: without a directory it is known of private queues alone."""
    is_private = _type(facts) == QueueType.MGMT_QUEUE_TYPE_PRIVATE
    return QueueFact.NO if is_private else QueueFact.UNKNOWN


def _journal_count(facts: QueueFacts) -> PropertyValue | None:
    return None if facts.journal is None else _ui4(facts.journal.messages)


def _journal_bytes(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQMR] 3.1.4.1: 0 while the queue keeps no journal."""
    if facts.journal is None or not facts.report.properties.journaling:
        return 0
    return _ui4(facts.journal.size)


_STATES: Final[dict[OutgoingState, str]] = {
    OutgoingState.CONNECTED: QueueState.MGMT_QUEUE_STATE_CONNECTED,
    OutgoingState.DISCONNECTED: QueueState.MGMT_QUEUE_STATE_DISCONNECTED,
    OutgoingState.DISCONNECTING: QueueState.MGMT_QUEUE_STATE_DISCONNECTING,
    OutgoingState.INACTIVE: QueueState.MGMT_QUEUE_STATE_NONACTIVE,
    OutgoingState.LOCKED: LOCKED,
    OutgoingState.NEED_VALIDATION: QueueState.MGMT_QUEUE_STATE_NEED_VALIDATE,
    OutgoingState.WAITING: QueueState.MGMT_QUEUE_STATE_WAITING,
    OutgoingState.ON_HOLD: QueueState.MGMT_QUEUE_STATE_ONHOLD,
}


def _state(facts: QueueFacts) -> PropertyValue | None:
    if not facts.is_outgoing:
        return QueueState.MGMT_QUEUE_STATE_LOCAL
    return _STATES[facts.report.state]


def _next_hops(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQMQ] 2.3.12.12: addresses, each with the word that says its kind."""
    known = {OutgoingState.CONNECTED, OutgoingState.WAITING}
    if facts.transfer is None or facts.report.state not in known:
        return None
    return tuple(_hop(each) for each in facts.transfer.next_hops)


def _hop(address: str) -> str:
    return f"IPv6={address}" if isinstance(ip_address(address), IPv6Address) else f"IP={address}"


def _of_transfer(name: str, facts: QueueFacts) -> PropertyValue | None:
    """A number or a place of how far an outgoing queue is."""
    if facts.transfer is None:
        return None
    value = getattr(facts.transfer, name)
    return _blob(value) if isinstance(value, SequencePlace) else _ui4(value)


def _last_acknowledged(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQMR] 3.1.4.1: only while something waits for an order acknowledgment."""
    if facts.transfer is None or not facts.transfer.unacknowledged:
        return None
    return _blob(facts.transfer.last_acknowledged)


def _blob(place: SequencePlace) -> bytes:
    return SequenceInfo(
        sequence_id=place.sequence_id, sequence_number=place.number, previous=place.previous
    ).pack()


def _sources(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQMQ] 2.3.12.24: six arrays with an entry for each sequence."""
    if facts.is_outgoing:
        return None
    found = facts.sequences
    return (
        tuple(each.format_name for each in found),
        tuple(each.sender for each in found),
        tuple(each.sequence_id for each in found),
        tuple(each.number for each in found),
        tuple(each.last_access for each in found),
        tuple(each.rejects for each in found),
    )


_STATUSES: Final = {each.document_name: int(each) for each in ConnectionStatus}


def _history(facts: QueueFacts) -> PropertyValue | None:
    """[MS-MQMQ] 2.3.12.25: four arrays with an entry for each attempt; errors are signed there."""
    if facts.transfer is None:
        return None
    found = facts.transfer.history
    return (
        tuple(_STATUSES[each.status] for each in found),
        tuple(each.time for each in found),
        tuple(_signed(each.error) for each in found),
        tuple(tuple(each.addresses) for each in found),
    )


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def _ui4(number: int) -> int:
    """A count that is too large for its type is the largest that there is."""
    return min(number, _UI4_MAX)


_RULES: Final[dict[Property, _Rule]] = {
    Property.PROPID_Q_INSTANCE: partial(_attribute, "identifier"),
    Property.PROPID_Q_TYPE: partial(_attribute, "type_id"),
    Property.PROPID_Q_PATHNAME: _q_path_name,
    Property.PROPID_Q_JOURNAL: partial(_attribute, "journaling"),
    Property.PROPID_Q_QUOTA: partial(_attribute, "quota"),
    Property.PROPID_Q_BASEPRIORITY: partial(_attribute, "base_priority"),
    Property.PROPID_Q_JOURNAL_QUOTA: partial(_attribute, "journal_quota"),
    Property.PROPID_Q_LABEL: partial(_attribute, "label"),
    Property.PROPID_Q_CREATE_TIME: partial(_attribute, "created"),
    Property.PROPID_Q_MODIFY_TIME: partial(_attribute, "modified"),
    Property.PROPID_Q_AUTHENTICATE: partial(_attribute, "authenticate"),
    Property.PROPID_Q_PRIV_LEVEL: partial(_attribute, "privacy_level"),
    Property.PROPID_Q_TRANSACTION: partial(_attribute, "transactional"),
    Property.PROPID_Q_QMID: _q_queue_manager,
    Property.PROPID_Q_PATHNAME_DNS: _q_path_name_dns,
    Property.PROPID_Q_MULTICAST_ADDRESS: _q_multicast,
    Property.PROPID_MGMT_QUEUE_PATHNAME: _path_name,
    Property.PROPID_MGMT_QUEUE_FORMATNAME: _format_name,
    Property.PROPID_MGMT_QUEUE_TYPE: _type,
    Property.PROPID_MGMT_QUEUE_LOCATION: _location,
    Property.PROPID_MGMT_QUEUE_XACT: _is_transactional,
    Property.PROPID_MGMT_QUEUE_FOREIGN: _is_foreign,
    Property.PROPID_MGMT_QUEUE_MESSAGE_COUNT: lambda facts: _ui4(facts.report.messages),
    Property.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE: lambda facts: _ui4(facts.report.size),
    Property.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT: _journal_count,
    Property.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL: _journal_bytes,
    Property.PROPID_MGMT_QUEUE_STATE: _state,
    Property.PROPID_MGMT_QUEUE_NEXTHOPS: _next_hops,
    Property.PROPID_MGMT_QUEUE_EOD_LAST_ACK: _last_acknowledged,
    Property.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: partial(_of_transfer, "acknowledged_at"),
    Property.PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT: partial(_of_transfer, "acknowledgments"),
    Property.PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK: partial(_of_transfer, "first_unacknowledged"),
    Property.PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK: partial(_of_transfer, "last_unacknowledged"),
    Property.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ: partial(_of_transfer, "next_place"),
    Property.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT: partial(_of_transfer, "unread"),
    Property.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT: partial(_of_transfer, "unacknowledged"),
    Property.PROPID_MGMT_QUEUE_EOD_RESEND_TIME: partial(_of_transfer, "resend_at"),
    Property.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL: partial(_of_transfer, "resend_interval_s"),
    Property.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT: partial(_of_transfer, "resends"),
    Property.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO: _sources,
    Property.PROPID_MGMT_QUEUE_CONNECTION_HISTORY: _history,
    Property.PROPID_MGMT_QUEUE_SUBQUEUE_COUNT: lambda facts: len(facts.subqueues),
    Property.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES: lambda facts: facts.subqueues,
}
