"""Answers a service's pings while an application is busy and reads nothing.

A service asks clients that hold messages, transactions or queues whether they are still there
(docs/reference/application-protocol.md). Of those who wait for answers one reads for all, and
answers. When nobody waits, a thread of this module looks now and then; it is started when there is
first something to hold, and ends with the connection's owner.
"""

from __future__ import annotations

import time
import weakref
from threading import Thread
from typing import Final, Protocol

LOOKS: Final = 4
"""So often it looks within the time that a service gives for an answer."""

LOOK_MIN_S: Final = 0.02
LOOK_MAX_S: Final = 5.0
"""It looks no more often, and no more rarely."""


class Watched(Protocol):
    """Whose connection is looked at."""

    def look(self) -> float | None:
        """Reads what came if nobody else does; gives how soon to look again, None for never."""


def watch(watched: Watched) -> Thread:
    """Starts to look."""
    thread = Thread(target=_watch, args=(weakref.ref(watched),), name="merq-watch", daemon=True)
    thread.start()
    return thread


def pause_for(pong_ms: int) -> float:
    """How long to wait between two looks if an answer may take so long."""
    return min(LOOK_MAX_S, max(LOOK_MIN_S, pong_ms / 1000 / LOOKS))


def _watch(place: weakref.ref[Watched]) -> None:
    pause: float | None = 0.0
    while pause is not None:
        time.sleep(pause)
        watched = place()
        if watched is None:
            return
        pause = watched.look()
        del watched  # it may go while this sleeps
