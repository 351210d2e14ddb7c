"""A connection's bytes, with TLS or without: one thread may read while another writes.

OpenSSL allows only one thread at a time, and writing may have to wait until the other side has read
what it is sent; so TLS works in memory here, under a lock that nobody keeps while he waits.
"""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from threading import Lock
from typing import Final

READ_BYTES: Final = 1 << 18


class Channel:
    """Bytes over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, data: bytes) -> None:
        """Writes all of it."""
        self._socket.sendall(data)

    def receive(self) -> bytes | None:
        """What there is to read; none at the end of the stream, None if it is not whole yet."""
        return self._socket.recv(READ_BYTES)

    def is_readable(self, wait: float | None) -> bool:
        """Whether something can be read, within so many seconds; None is for ever."""
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        return bool(poller.poll(None if wait is None else min(wait * 1000, 1e9)))

    def set_timeout(self, seconds: float | None) -> None:
        """How long reading and writing may take."""
        self._socket.settimeout(seconds)

    def shut(self) -> None:
        """Nothing more goes either way; whoever reads or waits is woken."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Gives the socket back."""
        self._socket.close()

    def leave(self) -> None:
        """Closes our copy of the socket, without a word to the other side."""
        self._socket.close()


class TlsChannel(Channel):
    """Bytes over TLS.

    Raises:
        ssl.SSLError: The handshake failed.
    """

    def __init__(
        self, connection: socket.socket, context: ssl.SSLContext, server_hostname: str
    ) -> None:
        super().__init__(connection)
        self._lock = Lock()
        self._sending = Lock()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=server_hostname
        )
        self._shake_hands()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                data = self._socket.recv(READ_BYTES)
                if not data:
                    raise ConnectionError(
                        "the connection was closed in the TLS handshake"
                    ) from None
                self._incoming.write(data)
            except ssl.SSLError:
                self._flush()  # tells the other side why
                raise
            else:
                self._flush()
                return

    def _flush(self) -> None:
        with self._sending:
            with self._lock:
                data = self._outgoing.read()
            if data:
                self._socket.sendall(data)

    def send(self, data: bytes) -> None:
        """Writes all of it."""
        with self._lock:
            self._tls.write(data)
        self._flush()

    def receive(self) -> bytes | None:
        """What there is to read; none at the end of the stream, None if it is not whole yet."""
        raw = self._socket.recv(READ_BYTES)
        parts: list[bytes] = []
        with self._lock:
            self._incoming.write(raw)
            if not raw:
                self._incoming.write_eof()
            is_whole = False
            with suppress(ssl.SSLWantReadError):  # the rest of a record is on its way
                while part := self._tls.read(READ_BYTES):
                    parts.append(part)
                is_whole = True
            has_more = self._outgoing.pending > 0
        if has_more:
            self._flush()
        data = b"".join(parts)
        return data if data or is_whole else None
