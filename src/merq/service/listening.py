"""Sockets on which applications are served, and what goes over each connection.

Thin: everything that decides is in the reception. Here are reading, writing, waiting for who reads
slowly, and the end of connections that say nothing.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

from merq.errors import ListenError
from merq.model.peer_networks import peer_network
from merq.net.accepting import Acceptor
from merq.net.securing import Handshakes, Securing
from merq.protocol.application.greeting import Hello
from merq.service.keeping import Keeper
from merq.service.logs import Log
from merq.service.reception import Connection, Reception
from merq.service.settings import LimitSettings, ServiceSettings
from merq.service.tokens import Refusal, TokenHolder, Tokens

CLOSING_SHARE: Final = 0.4
"""This share of the time that a stop may take is the clients', to read what they were told."""

GOODBYE_S: Final = 1.0
"""How long a client has to read what it was told when its connection ends."""

PROBE_S: Final = 10
"""Seconds between looks at a TCP connection over which nothing goes."""

SILENCE_LOOKS: Final = 4
SILENCE_LOOK_MAX_S: Final = 1.0
"""So often it is looked whether clients are silent between being asked and being cut off, and at
least as often as that."""

TOKEN_CHECK_S: Final = 5.0
"""How often it is looked whether tokens of those who are connected still hold."""

_CREDENTIALS: Final = struct.Struct("3i")


class TokenPorter:
    """Lets in who comes through the socket's file, and who shows a token."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self.holders: dict[str, TokenHolder] = {}

    def refusal(self, hello: Hello, peer: str, *, is_local: bool) -> str:
        """Why a client is not let in, for the log; empty if it is."""
        if is_local:
            return ""
        if not hello.token:
            return "it shows no token"
        found = self._tokens.check(hello.token, datetime.now(UTC))
        if isinstance(found, Refusal):
            return found.reason
        self.holders[peer] = found
        return ""

    def refusal_now(self, peer: str) -> str:
        """Why a client that was let in is not any more; empty if it still is."""
        holder = self.holders.get(peer)
        if holder is None:
            return ""
        found = self._tokens.check_again(holder, datetime.now(UTC))
        return found.reason if isinstance(found, Refusal) else ""


@dataclass(frozen=True, slots=True)
class _Peer:
    """Who is at the other end.

    Attributes:
        text: For the log.
        group: Whose connections are counted together: a network, or a user of this machine.
    """

    text: str
    group: str
    is_local: bool


class ApplicationProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        self._peer: _Peer | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_paused = False
        self.transport: asyncio.Transport | None = None
        self.connection: Connection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected."""
        self.transport = cast("asyncio.Transport", transport)
        self._peer = peer = _peer_of(transport)
        self.connection = self._listeners.admit(self, peer.text, peer.group, peer.is_local)
        if self.connection is None:
            self.transport.abort()
            return
        if not peer.is_local:
            _keep_alive(transport.get_extra_info("socket"), self._listeners.settings.limits)
        high = self._listeners.settings.limits.answer_bytes_max
        self.transport.set_write_buffer_limits(high=high, low=high // 2)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._listeners.settings.limits.handshake_s, self._hurry)

    def _hurry(self) -> None:
        """Whoever has not been let in by now is cut off."""
        connection, transport = self.connection, self.transport
        if connection is None or transport is None or connection.session.is_welcome:
            return
        self._listeners.log.warning(
            "connection cut off", peer=connection.peer, reason="it did not say who it is in time"
        )
        transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        connection = self.connection
        if connection is not None:
            self._listeners.receive(connection, data)
            self._restrain()

    def flush(self) -> None:
        """Writes what the reception has for this client, and ends the connection if it says so."""
        connection, transport = self.connection, self.transport
        if connection is None or transport is None:
            return
        if connection.outbox:
            outbox, connection.outbox = connection.outbox, []
            connection.outbox_bytes = 0
            if not transport.is_closing():
                transport.write(outbox[0] if len(outbox) == 1 else b"".join(outbox))
        self._listeners.count_unread(connection, transport.get_write_buffer_size())
        if connection.closing:
            self._end(connection, transport)
            return
        self._restrain()
        if not self._is_paused and connection.session.waiting_bytes:
            # Nobody else will say so: what was written went so fast that there was no waiting.
            self._listeners.reception.unfinished[connection] = None

    def _end(self, connection: Connection, transport: asyncio.Transport) -> None:
        if transport.is_closing():
            return
        self._listeners.log.warning(
            "connection ended", peer=connection.peer, reason=connection.closing
        )
        transport.close()
        # Who reads nothing would keep us waiting for ever, and keep what it has locked.
        asyncio.get_running_loop().call_later(GOODBYE_S, transport.abort)

    def cut_off(self) -> None:
        """Ends the connection at once, whatever is still to be written."""
        connection, transport = self.connection, self.transport
        if connection is not None and transport is not None:
            self._listeners.log.warning(
                "connection cut off", peer=connection.peer, reason=connection.closing
            )
            transport.abort()

    def _restrain(self) -> None:
        """A client that leaves its answers unread is not listened to."""
        connection, transport = self.connection, self.transport
        if connection is None or transport is None or transport.is_closing():
            return
        congested = self._listeners.reception.is_congested(connection)
        if congested and not self._is_paused:
            self._is_paused = True
            transport.pause_reading()
        elif not congested and self._is_paused:
            self._is_paused = False
            transport.resume_reading()

    def resume_writing(self) -> None:
        """The client has read what it was told."""
        connection, transport = self.connection, self.transport
        if connection is None or transport is None:
            return
        self._listeners.count_unread(connection, transport.get_write_buffer_size())
        self._listeners.go_on(connection)
        self._restrain()

    def eof_received(self) -> bool:
        """The client says nothing more: it is gone."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        del exc
        if self._deadline is not None:
            self._deadline.cancel()
        connection, peer = self.connection, self._peer
        self.connection = self.transport = None
        if connection is not None and peer is not None:
            self._listeners.dismiss(connection, peer.group)


class Listeners:
    """Every socket on which applications are served, and every connection.

    Attributes:
        flushes: Called when it was written what there is to be written, for others who write.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        reception: Reception,
        porter: TokenPorter,
        log: Log,
    ) -> None:
        self.settings = settings
        self.reception = reception
        reception.clock = time.monotonic
        self.log = log
        self.keeper: Keeper | None = None
        self._porter = porter
        self._loop = asyncio.get_running_loop()
        self._protocols: dict[Connection, ApplicationProtocol] = {}
        self._groups: Counter[str] = Counter()
        self._acceptors: list[Acceptor] = []
        self._handshakes = Handshakes()
        self._own_socket: Path | None = None
        self._checking = self._loop.call_later(TOKEN_CHECK_S, self._check_tokens)
        limits = settings.limits
        answer_s = limits.idle_s - limits.keepalive_s
        self._look_s = min(SILENCE_LOOK_MAX_S, answer_s / SILENCE_LOOKS)
        self._looking = self._loop.call_later(self._look_s, self._look_for_silent)
        self._held_bytes = 0
        self._last_one: asyncio.Future[None] | None = None
        self.flushes: list[Callable[[], None]] = []
        self.tcp_port: int | None = None

    # Listening.

    async def listen(self, context: ssl.SSLContext | None) -> None:
        """Begins to accept connections.

        Raises:
            ListenError: An address cannot be listened on.
        """
        path = self.settings.socket_path
        listener = _local_listener(path, self.settings.socket.mode)
        self._own_socket = path
        self._acceptors.append(Acceptor(listener, lambda: ApplicationProtocol(self), self.log))
        if self.settings.tcp.port is None:
            return

        def opened() -> asyncio.Protocol:
            inner = ApplicationProtocol(self)
            if context is None:
                return inner
            limit_s = self.settings.limits.handshake_s
            return Securing(inner, context, limit_s, self._refuse_tls, self._handshakes)

        acceptor = Acceptor.on(self.settings.tcp_host, self.settings.tcp.port, opened, self.log)
        self._acceptors.append(acceptor)
        self.tcp_port = acceptor.address[1]

    def _refuse_tls(self, transport: asyncio.BaseTransport, reason: str) -> None:
        self.log.warning("TLS connection refused", peer=_peer_of(transport).text, reason=reason)

    # Connections.

    def admit(
        self,
        protocol: ApplicationProtocol,
        peer: str,
        group: str,
        is_local: bool,  # noqa: FBT001
    ) -> Connection | None:
        """Somebody has connected; None if there are too many."""
        connection = None
        reason = "there are too many connections"
        if self._groups[group] >= self.settings.limits.connections_per_peer_max:
            reason = f"there are too many connections from {group}"
        else:
            connection = self.reception.connected(peer, is_local=is_local)
        if connection is None:
            self.log.warning("connection refused", peer=peer, reason=reason)
            return None
        self._groups[group] += 1
        self._protocols[connection] = protocol
        return connection

    def dismiss(self, connection: Connection, group: str) -> None:
        """A connection is gone."""
        self._groups[group] -= 1
        if not self._groups[group]:
            del self._groups[group]
        del self._protocols[connection]
        self.count_held(connection, 0)
        if not self._protocols and self._last_one is not None and not self._last_one.done():
            self._last_one.set_result(None)
        self._porter.holders.pop(connection.peer, None)
        self.feed(lambda: self.reception.lost(connection, self._loop.time()))

    def receive(self, connection: Connection, data: bytes) -> None:
        """Bytes came from a client."""

        def received() -> None:
            self.reception.received(connection, data, self._loop.time())
            self.count_unread(connection, connection.unread_bytes)

        self.feed(received)

    def go_on(self, connection: Connection) -> None:
        """A client that was not listened to is again."""
        if not connection.is_lost:
            self.feed(lambda: self.reception.go_on(connection))

    def feed(self, doing: Callable[[], None]) -> None:
        """Lets the reception do something, now, while what is behind it is to be trusted."""
        keeper = self.keeper
        if keeper is None or not keeper.is_working:
            return
        try:
            keeper.tick()
            doing()
        except Exception as wrong:  # noqa: BLE001 - whatever it is, it is told and acted on
            keeper.stumble(wrong)
            return
        keeper.wake()

    def count_unread(self, connection: Connection, unread_bytes: int) -> None:
        """So much of what was written to a client is still here."""
        connection.unread_bytes = unread_bytes
        self.count_held(connection, unread_bytes + connection.session.waiting_bytes)

    def count_held(self, connection: Connection, held_bytes: int) -> None:
        """A client's connection holds so much memory, both ways."""
        self._held_bytes += held_bytes - connection.held_bytes
        connection.held_bytes = held_bytes

    def flush(self) -> None:
        """Writes what there is to be written."""
        dirty = self.reception.dirty
        while dirty:
            connection, _ = dirty.popitem()
            protocol = self._protocols.get(connection)
            if protocol is not None:
                protocol.flush()
        unfinished = self.reception.unfinished
        while unfinished:
            connection, _ = unfinished.popitem()
            self._loop.call_soon(self.go_on, connection)
        self._spare_memory()
        for flush in self.flushes:
            flush()

    def _spare_memory(self) -> None:
        """If clients together hold too much memory, the one that holds most goes.

        That is what they leave unread, and what they have said only half of.
        """
        most = self.settings.limits.memory_bytes
        while self._held_bytes > most:
            worst = max(self._protocols, key=lambda each: each.held_bytes, default=None)
            if worst is None or not worst.held_bytes:
                return
            worst.closing = "memory runs out, and it holds the most of it"
            worst.session.forget_input()
            self._protocols[worst].cut_off()
            self.count_held(worst, 0)

    def _check_tokens(self) -> None:
        self._checking = self._loop.call_later(TOKEN_CHECK_S, self._check_tokens)
        for connection, protocol in list(self._protocols.items()):
            reason = self._porter.refusal_now(connection.peer)
            if reason:
                connection.closing = reason
                protocol.flush()

    def _look_for_silent(self) -> None:
        self._looking = self._loop.call_later(self._look_s, self._look_for_silent)
        for connection, protocol in self._protocols.items():
            transport = protocol.transport
            # Who reads what it was told is there, though nothing is read from it meanwhile.
            if transport is not None and connection.unread_bytes:
                unread_bytes = transport.get_write_buffer_size()
                if unread_bytes < connection.unread_bytes:
                    connection.silent_s = 0.0
                    self.count_unread(connection, unread_bytes)
        self.feed(lambda: self.reception.look_for_silent(self._look_s))

    # The end.

    def stop_accepting(self) -> None:
        """No further connections; the socket's file goes."""
        for acceptor in self._acceptors:
            acceptor.close()
        if self._own_socket is not None:  # what somebody else has put there stays
            self._own_socket.unlink(missing_ok=True)

    async def _all_gone(self) -> None:
        if self._protocols:
            self._last_one = self._loop.create_future()
            await self._last_one

    async def close(self) -> None:
        """Ends every connection once what it was told is written, or soon after."""
        self._checking.cancel()
        self._looking.cancel()
        for protocol in list(self._protocols.values()):
            if protocol.transport is not None:
                protocol.transport.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_gone(), self.settings.stop_s * CLOSING_SHARE)
        for protocol in list(self._protocols.values()):
            if protocol.transport is not None:
                protocol.transport.abort()
        await self._all_gone()
        for acceptor in self._acceptors:
            await acceptor.wait_closed()


def _local_listener(path: Path, mode: int) -> socket.socket:
    """The socket's file, open to whom its mode says.

    A socket that is there already was left by somebody who was killed, unless somebody answers:
    the folder's lock says nothing about a socket that is outside of it.

    Raises:
        ListenError: Something else is there, somebody serves there, or no file can be made there.
    """
    try:
        if path.is_socket():
            _check_deserted(path)
            path.unlink()
        elif path.exists():
            raise _no_socket(path, "something is there that is no socket, and was left alone")
        return _bound(path, mode)
    except OSError as wrong:
        raise _no_socket(path, f"{wrong.strerror} (user {os.geteuid()})") from wrong


def _no_socket(path: Path, reason: str) -> ListenError:
    return ListenError(
        f"the Unix socket {path}",
        reason,
        "set socket.path (--socket-path) to a new file in a folder that this user may write to",
    )


def _bound(path: Path, mode: int) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Nobody else can connect before its mode says who may.
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        path.chmod(mode)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def _check_deserted(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
        visitor.setblocking(False)  # noqa: FBT003 - its name
        refused = visitor.connect_ex(str(path))
        # EAGAIN: so many wait to be let in that there is a queue.
        if refused not in {0, errno.EAGAIN, errno.EINPROGRESS}:
            return
    raise _no_socket(path, "another process serves there")


def _peer_of(transport: asyncio.BaseTransport) -> _Peer:
    connected: socket.socket = transport.get_extra_info("socket")
    if connected.family == socket.AF_UNIX:
        pid, uid, _ = _credentials(connected)
        return _Peer(f"user {uid}, process {pid}", f"user {uid}", is_local=True)
    host, port = transport.get_extra_info("peername")[:2]
    return _Peer(f"{host}:{port}", peer_network(host), is_local=False)


def _keep_alive(connected: socket.socket, limits: LimitSettings) -> None:
    """A client that is gone without a word is noticed, and so is one that takes nothing."""
    probes = max(1, int((limits.idle_s - limits.keepalive_s) // PROBE_S))
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", max(1, int(limits.keepalive_s))),
        ("TCP_KEEPINTVL", PROBE_S),
        ("TCP_KEEPCNT", min(probes, 127)),
        ("TCP_USER_TIMEOUT", int(limits.idle_s * 1000)),
    ):
        option = getattr(socket, name, None)  # not every system has them
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def _credentials(connected: socket.socket) -> tuple[int, int, int]:
    """Process, user and group at the other end of a local socket, where the system tells."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0, 0, 0
    found = connected.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(found)
    return pid, uid, gid
