"""Queue managers that a process has to do with: one connection to each, and the queues on them."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from merq.client.connecting import connect
from merq.client.manager import Manager
from merq.client.queues import Queue
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.requests import Family
from merq.spark.options import BadOption, Options

RECONNECT_S: Final = 60.0
"""For how long a queue manager that does not answer is tried."""

_OUTGOING: Final = ("direct=", "private=", "public=")


@dataclass(frozen=True, slots=True)
class Access:
    """How a queue manager is reached."""

    url: str
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def manager(self) -> Manager:
        """The connection of this process.

        Raises:
            MessageQueueError: Nobody answers there, or does not let this client in.
        """
        # A worker of Spark's forks: a child has nothing of its parent's.
        place = (os.getpid(), self)
        found = _CONNECTIONS.get(place)
        if found is None:
            found = _CONNECTIONS[place] = connect(
                self.url or None,
                token=self.token,
                ca=self.ca,
                cert=self.cert,
                key=self.key,
                reconnect_s=RECONNECT_S,
            )
        return found


_CONNECTIONS: Final[dict[tuple[int, Access], Manager]] = {}


@dataclass(frozen=True, slots=True)
class Place:
    r"""A queue somewhere.

    Attributes:
        access: Where its queue manager is.
        name: As it is found there: a path name, or a format name of an outgoing queue.
        title: As people know it: `computer\private$\orders`.
    """

    access: Access
    name: str
    title: str

    def queue(self) -> Queue:
        """The queue, as the client has it.

        Raises:
            MessageQueueError: It is not there.
        """
        manager = self.access.manager()
        known = (os.getpid(), self)
        if known not in _QUEUES:
            _QUEUES[known] = self._find(manager)
        return _QUEUES[known]

    def _find(self, manager: Manager) -> Queue:
        if not self.name.lower().startswith(_OUTGOING):
            return manager.queue(self.name)
        for each in manager.outgoing_queues():
            if each.destination.lower() == self.name.lower():
                return each
        raise MessageQueueError(
            HResult.MQ_ERROR_QUEUE_NOT_FOUND,
            f"no messages wait on {manager.name} for {self.name}",
        )


_QUEUES: Final[dict[tuple[int, Place], Queue]] = {}


@contextmanager
def passing_connections() -> Iterator[None]:
    """Connections that are made within the block are closed at its end."""
    before = set(_CONNECTIONS)
    try:
        yield
    finally:
        for known in [each for each in _CONNECTIONS if each not in before]:
            _CONNECTIONS.pop(known).close()
        for pid, place in [each for each in _QUEUES if (each[0], each[1].access) not in before]:
            del _QUEUES[pid, place]


def accesses(options: Options) -> list[Access]:
    """The queue managers that are meant."""
    return [
        Access(url, options.token, options.ca, options.cert, options.key) for url in options.urls
    ]


def places(options: Options) -> list[Place]:
    """The queues that are meant, on all queue managers.

    Raises:
        BadOption: None is named, or a pattern matches none.
        MessageQueueError: One is not there, or its queue manager is not.
    """
    if not options.queues and not options.pattern:
        raise BadOption(
            r"no queue is named: set option queue to a path name such as .\private$\orders, or "
            "queues, or queuePattern"
        )
    found: list[Place] = []
    for access in accesses(options):
        manager = access.manager()
        names = [_path(each) for each in options.queues]
        if options.pattern:
            names += _matching(manager, options.pattern)
        for name in names:
            place = Place(access, name, title(manager.name, name))
            _QUEUES.pop((os.getpid(), place), None)  # it may have been made anew since
            place.queue()
            found.append(place)
    if not found:
        raise BadOption(f"option queuePattern: {options.pattern!r} matches no queue")
    titles = [each.title.lower() for each in found]
    for name in titles:
        if titles.count(name) > 1:
            raise BadOption(
                f"{name} is meant more than once: two queue managers have that name, or a queue is "
                "named twice"
            )
    return found


def _path(name: str) -> str:
    r"""A queue by less than its path name: `orders` is `.\private$\orders`."""
    if name.lower().startswith(_OUTGOING) or "\\" in name:
        return name
    return rf".\private$\{name}"


def title(computer: str, name: str) -> str:
    """A queue's name as people know it, with its computer."""
    return computer + name.removeprefix(".") if name.startswith(".\\") else name


def _matching(manager: Manager, pattern: str) -> list[str]:
    wanted = pattern.lower()
    found = []
    for report in manager.reports(Family.ALL):
        path = report.properties.path_name
        if fnmatch.fnmatchcase(path.lower().removeprefix(".\\"), wanted):
            found.append(path)
    return sorted(found)
