"""A strict peer with sockets and a file: for tests of real processes, on loopback addresses.

`StrictPeerProcess` keeps what survives in an SQLite file, and lets nothing out before it is there,
so the process may be killed at any moment. An application runs inside of it, in the same change.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final, cast
from uuid import UUID, uuid4

from merq.testing.strict_peer.peer import StrictPeer
from merq.testing.strict_peer.readings import Readings
from merq.testing.strict_peer.session import Session
from merq.testing.strict_peer.stable_storage import Key, StableStorage

PORT: Final = 1801
"""[MS-MQQB] 1.9."""

IDENTITY: Final = ("identity",)


class StableFile:
    """What a strict peer keeps, in an SQLite file."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB)")

    def read(self) -> dict[Key, bytes]:
        """Everything that is kept."""
        found = self._file.execute("SELECT key, value FROM kept")
        return {tuple(json.loads(key)): value for key, value in found}

    def write(self, changes: dict[Key, bytes | None]) -> None:
        """Makes changes durable, all or none."""
        put = [(json.dumps(key), value) for key, value in changes.items() if value is not None]
        dropped = [(json.dumps(key),) for key, value in changes.items() if value is None]
        self._file.execute("BEGIN")
        self._file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", put)
        self._file.executemany("DELETE FROM kept WHERE key = ?", dropped)
        self._file.execute("COMMIT")

    def identity(self, known: dict[Key, bytes]) -> UUID:
        """The identifier of the queue manager, which is made once."""
        if IDENTITY not in known:
            self.write({IDENTITY: uuid4().bytes_le})
            return UUID(bytes_le=self.read()[IDENTITY])
        return UUID(bytes_le=known[IDENTITY])


class _Connection(asyncio.Protocol):
    """One connection and its session."""

    def __init__(self, process: StrictPeerProcess, session: Session | None = None) -> None:
        self._process = process
        self.session = session
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._process.made(self, transport.get_extra_info("peername")[0])

    def data_received(self, data: bytes) -> None:
        self._process.came(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._process.lost(self)


def _idle(peer: StrictPeer, now: float) -> None:
    """An application that leaves everything where it is."""
    del peer, now


class StrictPeerProcess:
    """Drives a strict peer with an event loop.

    Args:
        folder: Where its file is.
        address: The loopback address that it listens on and dials from.
        application: Called whenever something has happened, with the peer and the time; what it
            does, and puts into stable storage with keys of the kind "application", is kept together
            with that.
        on_durable: Called when that is durable.

    Attributes:
        kept: What the application has put into stable storage.
    """

    def __init__(
        self,
        folder: Path,
        address: str,
        *,
        readings: Readings | None = None,
        application: Callable[[StrictPeer, float], None] = _idle,
        on_durable: Callable[[], None] = lambda: None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = StableFile(folder / "strict-peer.db")
        kept = self._file.read()
        self.guid = self._file.identity(kept)
        stable = StableStorage(kept)
        self.kept = {record.key: record.fields for record in stable.load("application")}
        self.peer = StrictPeer(
            self.guid.bytes_le,
            addresses=(address,),
            chance=Random(),  # noqa: S311 - fills what is uninitialized
            wall=int(time.time()),
            readings=readings,
            stable=stable,
        )
        self._address = address
        self._application = application
        self._on_durable = on_durable
        self._failed: asyncio.Future[None] | None = None
        self._connections: dict[Session, _Connection] = {}
        self._dials: set[asyncio.Task[None]] = set()
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Serves until it is cancelled, or something goes wrong."""
        loop = asyncio.get_running_loop()
        self._failed = loop.create_future()
        server = await loop.create_server(lambda: _Connection(self), self._address, PORT)
        async with server:
            self._schedule()
            await self._failed

    # What happens.

    def made(self, connection: _Connection, address: str) -> None:
        """A connection stands, dialled or accepted."""
        if connection.session is None:
            connection.session = self.peer.accepted(address, time.monotonic())
        else:
            connection.session.connected(time.monotonic())
        self._connections[connection.session] = connection
        self._schedule()

    def came(self, connection: _Connection, data: bytes) -> None:
        """Bytes have come."""
        assert connection.session is not None
        self.peer.wall = int(time.time())
        self.peer.received(connection.session, data, time.monotonic())
        self._schedule()

    def lost(self, connection: _Connection) -> None:
        """A connection is gone."""
        assert connection.session is not None
        self._connections.pop(connection.session, None)
        self.peer.lost(connection.session, time.monotonic())
        self._schedule()

    async def _dial(self, session: Session) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: _Connection(self, session),
                session.address,
                PORT,
                local_addr=(self._address, 0),
            )
        except OSError:
            self.peer.lost(session, time.monotonic())
            self._schedule()

    # One turn for all that happened.

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._guarded_turn)

    def _guarded_turn(self) -> None:
        assert self._failed is not None, "it runs"
        if self._failed.done():
            return
        try:
            self._turn()
        except Exception as wrong:  # noqa: BLE001 - it ends the process
            self._failed.set_exception(wrong)

    def _turn(self) -> None:
        self._is_due = False
        loop, peer, now = asyncio.get_running_loop(), self.peer, time.monotonic()
        peer.wall = int(time.time())
        peer.tick(now)
        self._application(peer, now)
        peer.take_events()
        changes = peer.stable.take_changes()
        if changes:
            self._file.write(changes)
            self._on_durable()
        for session in peer.connections.take_dials():
            task = loop.create_task(self._dial(session))
            self._dials.add(task)
            task.add_done_callback(self._dials.discard)
        for session, connection in list(self._connections.items()):
            transport = connection.transport
            assert transport is not None
            output = session.take_output()
            if output and not transport.is_closing():
                transport.write(b"".join(output))
            if session.closing:
                transport.close()
        if self._timer is not None:
            self._timer.cancel()
        due = peer.next_deadline()
        wait = 1.0 if due is None else min(max(due - time.monotonic(), 0.001), 1.0)
        self._timer = loop.call_later(wait, self._schedule)
