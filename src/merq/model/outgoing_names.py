"""What outgoing queues are called: their destination, and who asked for what waits in them.

Applications' messages to a destination wait in one queue. Acknowledgments and reports are about
messages of other queue managers, and whoever sent those may be out of reach: they wait apart, for
each asker, so that nobody waits behind what is for somebody else.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from uuid import UUID

from merq.model.names import FormatName, MultipleElementName, parse_format_name

_ASKER: Final = re.compile(r"(.*);([0-9a-f]{32})", re.IGNORECASE | re.DOTALL)
"""An asker stands where a subqueue would: to subqueues nothing is sent."""


class OutgoingName(NamedTuple):
    """The name of an outgoing queue; printed, that by which it is found.

    Attributes:
        destination: The queue that its messages are for.
        asker: The queue manager whose messages they are about; None if they are applications'.
    """

    destination: FormatName
    asker: UUID | None = None

    def __str__(self) -> str:
        return (
            f"{self.destination}" if self.asker is None else f"{self.destination};{self.asker.hex}"
        )


def parse_outgoing_name(text: str) -> OutgoingName:
    """Reads the name of an outgoing queue.

    Raises:
        NameSyntaxError: The text is no such name.
    """
    found = _ASKER.fullmatch(text)
    name = parse_format_name(text if found is None else found[1])
    assert not isinstance(name, MultipleElementName), "each destination has a queue of its own"
    return OutgoingName(name, None if found is None else UUID(hex=found[2]))
