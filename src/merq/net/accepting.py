"""Lets connections in: some a turn, so that whoever knocks in crowds keeps nobody else waiting.

Without descriptors it rests for a while and says so once. It makes its own loop over `accept`
because the event loops that there are take all who knock at once.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from merq.errors import ListenError

BACKLOG: Final = 1024
"""Connections that wait to be accepted."""

ACCEPTS_A_TURN: Final = 4
"""Connections that are accepted before others have their turn."""

REST_S: Final = 1
"""How long nobody is accepted when the system has no more descriptors or memory for it."""

_REASONS: Final = {
    errno.EADDRINUSE: "another process has it",
    errno.EADDRNOTAVAIL: "this computer has no such address",
    errno.EACCES: "this user may not; ports below 1024 are root's",
}
"""What the system's errors mean where somebody wants to listen."""

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Teller(Protocol):
    """Where it is told what happens."""

    def warning(self, event: str, **fields: str | int) -> None:
        """Something that somebody should look at."""


class Acceptor:
    """One listening socket, which it closes at the end.

    Args:
        listener: Bound, and not listening yet.
        factory: Makes the protocol of a connection.
        log: Told when nobody can be accepted.
    """

    def __init__(
        self, listener: socket.socket, factory: Callable[[], asyncio.Protocol], log: Teller
    ) -> None:
        self._listener = listener
        self._factory = factory
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = None
        self._is_exhausted = False
        self.address = listener.getsockname()
        listener.setblocking(False)  # noqa: FBT003 - its name
        listener.listen(BACKLOG)
        self._loop.add_reader(listener, self._accept)

    @classmethod
    def on(
        cls, host: str, port: int, factory: Callable[[], asyncio.Protocol], log: Teller
    ) -> Acceptor:
        """Listens on an address.

        Raises:
            ListenError: It cannot be listened on.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listener = socket.create_server((host, port), family=family)
        except OSError as wrong:
            raise cannot_listen("TCP", host, port, wrong) from wrong
        return cls(listener, factory, log)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                connected, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as wrong:
                if wrong.errno not in _EXHAUSTED:
                    raise
                self._rest(wrong)
                return
            self._is_exhausted = False
            task = self._loop.create_task(self._connect(connected))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, connected: socket.socket) -> None:
        # Whoever is gone again already has nothing to be told.
        try:
            await self._loop.connect_accepted_socket(self._factory, connected)
        except OSError:
            connected.close()

    def _rest(self, wrong: OSError) -> None:
        self._loop.remove_reader(self._listener)
        self._resting = self._loop.call_later(REST_S, self._resume)
        if not self._is_exhausted:
            self._is_exhausted = True
            self._log.warning(
                "nobody can connect for now",
                listener=str(self.address),
                reason=str(wrong),
                retry_s=REST_S,
            )

    def _resume(self) -> None:
        self._resting = None
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Accepts nobody any more."""
        if self._listener.fileno() < 0:
            return
        self._loop.remove_reader(self._listener)
        if self._resting is not None:
            self._resting.cancel()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Returns when nobody is on the way in any more."""
        for task in list(self._tasks):
            with suppress(asyncio.CancelledError):
                await task


def cannot_listen(protocol: str, host: str, port: int, wrong: OSError) -> ListenError:
    """What it means that the system does not let us listen on a port."""
    reason = _REASONS.get(wrong.errno or 0) or wrong.strerror or str(wrong)
    return ListenError(port_of(protocol, host, port), reason)


def port_of(protocol: str, host: str, port: int) -> str:
    """What a port is called in failures."""
    return f"{protocol} port {port} of {host}"
