"""[MS-MQMQ] 2.2.19.2: the queues that a packet names, as format names.

A packet has eight forms for them. Those that leave out the computer, because the packet says
elsewhere which one it is, get it back here, as [MS-MQQB] 3.1.7.15 does for acknowledgments. Direct
names are given as they stand, whether or not they make sense.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never
from uuid import UUID

from merq.model.names import DistributionListName, PrivateName, PublicName
from merq.wire.multiqueue import (
    MQFDirectQueueFormatName,
    MQFDistributionQueueFormatName,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from merq.wire.queues import (
    DIRECT,
    PRIVATE_ELSEWHERE,
    PRIVATE_ON_ADMIN_HOST,
    PRIVATE_ON_DESTINATION,
    PRIVATE_ON_SOURCE,
    PUBLIC,
    SAME_AS_ADMIN,
    PrivateQueueFormatName,
    PublicQueueFormatName,
)
from merq.wire.view import MessageView

_MULTI_QUEUE: Final = 1 << 23


def destination_name(view: MessageView) -> str:
    """The destination; empty if there is none."""
    return _name(view, view.destination_type, view.destination)


def admin_queue_name(view: MessageView) -> str:
    """The administration queue; empty if there is none.

    If the UserHeader has none and the MultiQueueFormatHeader has, all of those.
    """
    name = _name(view, view.admin_queue_type, view.admin_queue)
    if name or not view.user_flags & _MULTI_QUEUE:
        return name
    return ",".join(element_names(_multi_queue(view).administration.format_name_list))


def response_queue_name(view: MessageView) -> str:
    """The response queue; empty if there is none, or if nothing tells which computer has it.

    If the UserHeader has none and the MultiQueueFormatHeader has, all of those.
    """
    if view.response_queue_type == SAME_AS_ADMIN:
        return admin_queue_name(view)
    name = _name(view, view.response_queue_type, view.response_queue)
    if name or not view.user_flags & _MULTI_QUEUE:
        return name
    return ",".join(element_names(_multi_queue(view).response.format_name_list))


def destination_names(view: MessageView) -> tuple[str, ...]:
    """[MS-MQMQ] 2.2.20.1: all queues that got a copy; none if it was sent to one alone."""
    if not view.user_flags & _MULTI_QUEUE:
        return ()
    return tuple(element_names(_multi_queue(view).destination.format_name_list))


def identified_queue(view: MessageView, kind: int, data: bytes) -> PrivateName | PublicName | None:
    """[MS-MQQB] 3.1.7.15: the queue that a packet names by identifiers.

    None for the other forms, and where the computer is that of an administration queue which does
    not say it as an identifier.
    """
    if kind == PUBLIC:
        return PublicName(queue=UUID(bytes_le=data))
    if kind == PRIVATE_ELSEWHERE:
        computer = UUID(bytes_le=data[:16])
        return PrivateName(computer=computer, number=int.from_bytes(data[16:], "little"))
    number = int.from_bytes(data, "little")
    if kind == PRIVATE_ON_SOURCE:
        return PrivateName(computer=view.source_queue_manager, number=number)
    if kind == PRIVATE_ON_DESTINATION:
        return PrivateName(computer=view.queue_manager_address, number=number)
    if kind == PRIVATE_ON_ADMIN_HOST:
        admin = identified_queue(view, view.admin_queue_type, view.admin_queue)
        if isinstance(admin, PrivateName):
            return PrivateName(computer=admin.computer, number=number)
    return None


def element_names(elements: Iterable[MQFFormatNameElement]) -> list[str]:
    """[MS-MQMQ] 2.2.18.1.4: the names of a list."""
    return [_element_name(each) for each in elements]


def _element_name(element: MQFFormatNameElement) -> str:
    name = element.format_name
    match name:
        case MQFDirectQueueFormatName():
            return f"DIRECT={name.direct_format_name}"
        case PublicQueueFormatName():
            return str(PublicName(queue=name.public_queue_identifier))
        case PrivateQueueFormatName():
            computer, number = name.source_queue_manager, name.private_queue_identifier
            return str(PrivateName(computer=computer, number=number))
        case MQFDistributionQueueFormatName():
            return str(DistributionListName(identifier=name.distribution_list_identifier))
        case _:
            assert_never(name)


def _name(view: MessageView, kind: int, data: bytes) -> str:
    if kind == DIRECT:
        return f"DIRECT={data.decode('utf-16-le', 'surrogatepass')}"
    name = identified_queue(view, kind, data)
    return "" if name is None else str(name)


def _multi_queue(view: MessageView) -> MultiQueueFormatHeader:
    header = view.decode().multi_queue_format_header
    assert header is not None, "MQ is set"
    return header
