"""[MS-MQQB] 3.1.7.15: names of queues as they stand in packets, read and written."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from merq.errors import NameSyntaxError
from merq.model.names import (
    FORMAT_NAME_LENGTH_MAX,
    DirectName,
    FormatName,
    PrivateName,
    PublicName,
    parse_direct_name,
)
from merq.wire.build import Destination
from merq.wire.queue_names import identified_queue
from merq.wire.queues import DIRECT
from merq.wire.view import MessageView

NAME_BYTES_MAX: Final = 2 * FORMAT_NAME_LENGTH_MAX
"""What is longer is no name of a queue, and is not read to find that out."""

NAME_KEPT_MAX: Final = 512
"""Names of more bytes are read anew each time: strangers choose how long they are."""


def destination_of(name: FormatName) -> Destination:
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
