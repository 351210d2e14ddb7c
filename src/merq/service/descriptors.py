"""How many files and sockets the process may have open, and what of it is whose.

The system's limit is raised as far as it goes. Where it stays below what the settings allow, other
queue managers and applications get less than those: never so much that the disk has no descriptor
left, and never so much to strangers that no application of this computer can connect. Where it is
too low even for the least of each, the service does not start.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from merq.errors import SettingsError
from merq.exchange.switchboard import REFUSED_MAX
from merq.net.accepting import ACCEPTS_A_TURN
from merq.net.securing import HANDSHAKES_MAX
from merq.service.logs import Log
from merq.store.disk import HELD_FOLDERS

DISK_RESERVE: Final = 256
"""Descriptors kept for the log's files, listeners, lookups of names, and whoever is being refused,
beside those that are open at the start."""

RESERVE: Final = DISK_RESERVE + 2 * HANDSHAKES_MAX
"""The same, with TLS handshakes that are under way at both ports."""

APPLICATIONS_SHARE: Final = 4
"""Where there are too few, applications get one of so many, if they may have as much."""

CONNECTIONS_MIN: Final = 4
"""However few there are, so many connections of each kind are allowed."""

LISTENERS: Final = 5
"""Sockets that are listened on: two for applications, two for other queue managers, and that for
pings."""

BEING_REFUSED: Final = REFUSED_MAX + 2 * ACCEPTS_A_TURN * (LISTENERS - 1)
"""Connections that are being refused: other queue managers that wait for the answer that says so,
and at each listener as many as are accepted in a turn of the event loop, while those of the turn
before are being closed."""

NEW_SEGMENTS: Final = 8
"""Segments of the log that come before an older one can go."""

DESCRIPTORS_MIN: Final = (
    LISTENERS + BEING_REFUSED + NEW_SEGMENTS + HELD_FOLDERS + 3 * CONNECTIONS_MIN
)
"""Beside those that are open when the store is, spare ones for the disk included, the service
needs so many, or it does not start. TLS handshakes may use up the rest: then nobody is let in for a
second, and the disk has its own."""

NO_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorPlan:
    """Connections that fit into the system's limit.

    Attributes:
        links_max: That other queue managers have made.
        dialled_links_max: That this side has made to other queue managers.
        connections_max: Of applications.
    """

    links_max: int
    dialled_links_max: int
    connections_max: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.links_max + self.dialled_links_max + self.connections_max


def plan(limit: int, opened: int, wanted: DescriptorPlan) -> DescriptorPlan:
    """Shares `limit` descriptors, of which some are open already, out to whom the settings name.

    Raises:
        SettingsError: There are too few for the least of each.
    """
    if limit - opened < DESCRIPTORS_MIN:
        fault = (
            f"the system lets this process have {limit} open files; {opened} are open with the "
            f"store, and at least {DESCRIPTORS_MIN} more are needed: let it be "
            f"{opened + DESCRIPTORS_MIN} or more, by LimitNOFILE of systemd or ulimit -n"
        )
        raise SettingsError((fault,))
    kept = max(min(RESERVE, limit // 3), DESCRIPTORS_MIN - 3 * CONNECTIONS_MIN)
    left = max(limit - opened - kept, 3 * CONNECTIONS_MIN)
    if wanted.total <= left:
        return wanted
    links = wanted.links_max + wanted.dialled_links_max
    share = max(CONNECTIONS_MIN, left // APPLICATIONS_SHARE, left - links)
    applications = min(wanted.connections_max, share)
    left = min(links, left - applications)
    dialled = min(
        left - CONNECTIONS_MIN, max(CONNECTIONS_MIN, left * wanted.dialled_links_max // links)
    )
    return DescriptorPlan(
        links_max=min(left - dialled, wanted.links_max),
        dialled_links_max=min(dialled, wanted.dialled_links_max),
        connections_max=applications,
    )


def fit(log: Log, wanted: DescriptorPlan) -> DescriptorPlan:
    """Raises the system's limit, and says what fits into it; the log is told if that is less.

    Raises:
        SettingsError: There are too few for the service to run.
    """
    needed = wanted.total + RESERVE + _opened()
    limit = _raised(needed)
    found = plan(limit, _opened(), wanted)
    if found != wanted:
        log.warning(
            "fewer connections are allowed than the settings say",
            reason="the system's limit of open files is too low",
            limit=limit,
            wanted=needed,
            links_max=found.links_max,
            dialled_links_max=found.dialled_links_max,
            connections_max=found.connections_max,
            advice=f"let it be {needed}, by LimitNOFILE of systemd or ulimit -n, or lower "
            "exchange.links_max, exchange.dialled_links_max and limits.connections_max",
        )
    return found


def _raised(wanted: int) -> int:
    """The limit, raised to what is wanted as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return NO_LIMIT
    if soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):  # some systems have a lower limit than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            return raised
    return soft


def _opened() -> int:
    """Descriptors that are open by now."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0
