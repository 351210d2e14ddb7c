"""Whose a sequence of messages is: who sends it, to which name, and where it came from."""

from __future__ import annotations

from typing import NamedTuple

from merq.wire.queues import DIRECT


class Origin(NamedTuple):
    """The other end of the session through which the messages of a sequence came.

    Attributes:
        address: Where it is; empty if an older log does not say.
        remote: Its GUID.
    """

    address: str
    remote: bytes


class SequenceKey(NamedTuple):
    """Who sends, and the name that it sends to, in one spelling."""

    source: bytes
    name: str

    @property
    def is_direct(self) -> bool:
        """Whether the name is a direct one, so that the sender is at the other end itself."""
        return self.name.startswith(f"{DIRECT}:")
