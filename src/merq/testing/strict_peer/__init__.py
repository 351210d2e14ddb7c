"""A queue manager written from [MS-MQQB] alone, for tests of whoever talks to one.

It shares no code with Merq: it has its own packets, sessions, sequences and timers, and does what
the documents and their product notes say Windows does, without any courtesy of ours. What the other
side does wrong is in `StrictPeer.complaints`.
"""

from merq.testing.strict_peer.packets import Name, UserMessage, direct
from merq.testing.strict_peer.peer import Event, StrictPeer
from merq.testing.strict_peer.readings import Readings
from merq.testing.strict_peer.session import Session
from merq.testing.strict_peer.stable_storage import StableStorage

__all__ = [
    "Event",
    "Name",
    "Readings",
    "Session",
    "StableStorage",
    "StrictPeer",
    "UserMessage",
    "direct",
]
