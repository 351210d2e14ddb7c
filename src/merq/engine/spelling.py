r"""Names that mean this computer, in messages that leave it.

An application writes `.\private$\told` for a queue of its own computer. Elsewhere that would mean
another computer, so it is said there whose queue it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from merq.engine.queue import Queue
from merq.engine.state import State
from merq.errors import NameSyntaxError
from merq.model.names import DirectName, parse_direct_name
from merq.model.queue import QueueKind
from merq.wire.queues import (
    DIRECT,
    PRIVATE_ON_SOURCE,
    DirectQueueFormatName,
    PrivateQueueFormatNameId,
)
from merq.wire.view import MessageView

_OTHER_NAMES: Final = 7 << 13 | 7 << 16
"""[MS-MQMQ] 2.2.19.2: the types of administration and response queue, in UserHeader.Flags."""

_HERE: Final = "os:.\\".encode("utf-16-le")


def for_others(state: State, view: MessageView) -> MessageView:
    """The message as others understand it.

    Its administration queue is named by its number on the sender, [MS-MQMQ] 2.2.19.2, which needs
    no name service; its response queue, which applications read, by this computer's name.
    """
    if not view.user_flags & _OTHER_NAMES:
        return view
    admin = _is_here(view.admin_queue_type, view.admin_queue)
    response = _is_here(view.response_queue_type, view.response_queue)
    if not admin and not response:
        return view
    message = view.decode()
    header = message.user_header
    flags = header.fields.flags
    if admin:
        queue = _local(state, view.admin_queue)
        if queue is not None:
            name = PrivateQueueFormatNameId(private_queue_identifier=queue.number)
            flags = replace(flags, admin_queue_type=PRIVATE_ON_SOURCE)
            header = replace(header, admin_queue=name)
    if response:
        text = view.response_queue.decode("utf-16-le", "surrogatepass")
        own = f"OS:{state.name}{text[4:]}"
        header = replace(header, response_queue=DirectQueueFormatName(direct_format_name=own))
    header = replace(header, fields=replace(header.fields, flags=flags))
    return MessageView(replace(message, user_header=header).measured().pack())


def _is_here(kind: int, name: bytes) -> bool:
    return kind == DIRECT and name[: len(_HERE)].lower() == _HERE


def _local(state: State, name: bytes) -> Queue | None:
    try:
        found: DirectName = parse_direct_name(name.decode("utf-16-le", "surrogatepass"))
    except NameSyntaxError:
        return None
    queue = state.find(found.path_name())
    is_private = queue is not None and queue.properties.kind is QueueKind.PRIVATE
    return queue if is_private else None
