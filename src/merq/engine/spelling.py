r"""Names that mean this computer, in messages that leave it.

An application writes `.\private$\told` for a queue of its own computer. Elsewhere that would mean
another computer. A message keeps the name as it was written until it is transmitted; then it is
said whose queue it is, in a form that the other side can follow without a directory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from merq.engine.queue import Queue
from merq.engine.state import State
from merq.errors import MessageQueueError, NameSyntaxError, WireError
from merq.hresult import HResult
from merq.model.names import DirectName, parse_direct_name
from merq.model.queue import QueueKind
from merq.wire.build import QueueReference, direct_reference, source_reference, with_references
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.multiqueue import MQFAddressHeader, MQFDirectQueueFormatName, MQFFormatNameElement
from merq.wire.queues import DIRECT
from merq.wire.view import MessageView

_OTHER_NAMES: Final = 7 << 13 | 7 << 16
"""[MS-MQMQ] 2.2.19.2: the types of administration and response queue, in UserHeader.Flags."""

_MULTI_QUEUE: Final = 1 << 23

_EVERYBODYS_OWN: Final = frozenset({"127.0.0.1", "::1"})
"""Addresses that every queue manager takes for its own."""

_HERE: Final = frozenset(
    {"os:.", "os:localhost", *(f"{by}:{each}" for by in ("os", "tcp") for each in _EVERYBODYS_OWN)}
)
"""Computers that mean the one where the name is read."""

GROWTH_MAX: Final = 4096
"""What the longer spelling of all names together takes at most, in bytes."""


def check_room(view: MessageView) -> None:
    """Refuses a message that would become too large when the names in it are spelled for others.

    Raises:
        MessageQueueError: The text says how large it may be.
    """
    most = PACKET_SIZE_MAX - GROWTH_MAX
    if len(view.packet) > most and (_own_names(view) != ("", "") or _is_to_many(view)):
        raise MessageQueueError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"the packet has {len(view.packet)} bytes; one that names a queue of this computer, or "
            f"has several destinations, may have {most}: the names become longer on the way",
        )


def for_others(state: State, packet: bytes, host: str) -> bytes:
    """The packet as the queue manager understands it that it is transmitted to.

    [MS-MQMQ] 2.2.19.2: whoever is addressed by a direct name is told direct names, with the host by
    which it reaches this computer; whoever is addressed by identifiers is told numbers on the
    source, for it can follow identifiers, and hosts may lie behind its hops.

    What would not fit any more goes as it is: that the message arrives matters more than the names
    in it. `check_room` refuses such messages; a host's name may have become longer since.

    Args:
        state: Whose messages these are; those of others stay as they are.
        packet: A message.
        host: The name or address by which the other side reaches this computer; empty if nothing
            is known, or only an address that the other side would take for its own.
    """
    if packet[16:32] != state.source:
        return packet
    view = MessageView(packet)
    admin, response = _own_names(view)
    if not (admin or response or _is_to_many(view)):
        return packet
    is_direct = view.destination_type == DIRECT
    place = _place(host) if is_direct else ""
    try:
        packet = with_references(
            view,
            _reference(state, admin, place, is_numbered=True),
            _reference(state, response, place, is_numbered=not is_direct),
        )
        if view.user_flags & _MULTI_QUEUE:
            return _spelled_lists(packet, _place(host) or f"OS:{state.name}")
    except WireError:
        return packet
    return packet


def reachable_host(advertised: str, local_address: str) -> str:
    """What to tell others of where this computer is: what the settings say, or the session's."""
    if advertised:
        return advertised
    return "" if local_address in _EVERYBODYS_OWN else local_address


@lru_cache(maxsize=64)
def _place(host: str) -> str:
    """A host as it stands in a direct name."""
    if not host:
        return ""
    try:
        return f"TCP:{ip_address(host)}"
    except ValueError:
        return f"OS:{host}"


def _is_to_many(view: MessageView) -> bool:
    return view.user_flags & _MULTI_QUEUE != 0


def _own_names(view: MessageView) -> tuple[str, str]:
    """What stands behind the computer in administration and response queue, if it is this one."""
    if not view.user_flags & _OTHER_NAMES:
        return "", ""
    return (
        _behind_here(view.admin_queue_type, view.admin_queue),
        _behind_here(view.response_queue_type, view.response_queue),
    )


def _behind_here(kind: int, name: bytes) -> str:
    return _queue_here(name.decode("utf-16-le", "surrogatepass")) if kind == DIRECT else ""


def _queue_here(name: str) -> str:
    computer, backslash, queue = name.partition("\\")
    return backslash + queue if computer.lower() in _HERE else ""


def _reference(state: State, queue: str, place: str, *, is_numbered: bool) -> QueueReference | None:
    if not queue:
        return None
    if place:
        return direct_reference(place + queue)
    found = _local(state, queue) if is_numbered else None
    if found is not None:
        return source_reference(found.number)
    return direct_reference(f"OS:{state.name}{queue}")


def _local(state: State, queue: str) -> Queue | None:
    try:
        name: DirectName = parse_direct_name(f"OS:.{queue}")
    except NameSyntaxError:
        return None
    found = state.find(name.path_name())
    is_private = found is not None and found.properties.kind is QueueKind.PRIVATE
    return found if is_private else None


def _spelled_lists(packet: bytes, place: str) -> bytes:
    """[MS-MQMQ] 2.2.20.1: the same in the lists of a message with several destinations."""
    message = MessageView(packet).decode()
    header = message.multi_queue_format_header
    assert header is not None, "MQ is set"
    header = replace(
        header,
        destination=_spelled_list(header.destination, place),
        administration=_spelled_list(header.administration, place),
        response=_spelled_list(header.response, place),
    )
    return replace(message, multi_queue_format_header=header).measured().pack()


def _spelled_list(names: MQFAddressHeader, place: str) -> MQFAddressHeader:
    elements = tuple(_spelled_element(each, place) for each in names.format_name_list)
    if elements == names.format_name_list:
        return names
    return MQFAddressHeader(header_id=names.header_id, format_name_list=elements)


def _spelled_element(element: MQFFormatNameElement, place: str) -> MQFFormatNameElement:
    name = element.format_name
    queue = ""
    if isinstance(name, MQFDirectQueueFormatName):
        queue = _queue_here(name.direct_format_name)
    if not queue:
        return element
    return MQFFormatNameElement(
        format_name=MQFDirectQueueFormatName(direct_format_name=place + queue)
    )
