"""What is asked about sequences that come from other queue managers, beside `ListSequences`."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from merq.model.queue import NULL_GUID


@dataclass(frozen=True, slots=True)
class ForgetSenders:
    """Forgets how far sequences are that come to a queue; answers how many they were.

    Whoever sends next may begin with any sequence. What came before is taken again if it is sent
    again after a restart.

    Attributes:
        sender: The queue manager whose sequences they are; null for all.
    """

    queue: int
    sender: UUID = NULL_GUID
