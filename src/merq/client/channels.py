"""A connection's bytes, with TLS or without: one thread may read while another writes.

Nobody waits in here until something is written, except before the welcome: a server that waits
until its answers are read would wait for ever for a client whose only reader waits to write.

OpenSSL allows only one thread at a time, so TLS works in memory here, under a lock that nobody
keeps while he waits.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections import deque
from contextlib import suppress
from threading import Lock
from typing import Final

READ_BYTES: Final = 1 << 18


class Channel:
    """Bytes over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._sending = Lock()
        self._unsent: deque[memoryview] = deque()

    @property
    def has_unsent(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._unsent)

    def send(self, data: bytes) -> None:
        """Writes all of it, however long that takes."""
        self._socket.sendall(data)

    def put(self, data: bytes) -> None:
        """Writes as much as goes at once; the rest is for `push`."""
        with self._sending:
            self._unsent.append(memoryview(data))
        self.push()

    def push(self) -> None:
        """Writes more of what is still to be written, as much as goes at once."""
        with self._sending, suppress(BlockingIOError):
            unsent = self._unsent
            while unsent:
                count = self._socket.send(unsent[0], socket.MSG_DONTWAIT)
                if count == len(unsent[0]):
                    unsent.popleft()
                else:
                    unsent[0] = unsent[0][count:]

    def receive(self) -> bytes | None:
        """What there is to read; none at the end of the stream, None if it is not whole yet."""
        return self._socket.recv(READ_BYTES)

    def is_readable(self, wait: float | None) -> bool:
        """Whether something can be read, within so many seconds; None is for ever.

        What is still to be written is written meanwhile.
        """
        poller = select.poll()
        while True:
            wanted = select.POLLIN | (select.POLLOUT if self.has_unsent else 0)
            poller.register(self._socket, wanted)
            found = poller.poll(None if wait is None else min(wait * 1000, 1e9))
            if not found:
                return False
            if found[0][1] & ~select.POLLOUT:
                return True
            self.push()

    def push_soon(self, wait: float) -> None:
        """Writes more of what is still to be written, once that goes, within so many seconds."""
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT)
        if poller.poll(wait * 1000):
            self.push()

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
                super().send(self._outgoing.read())
                data = self._socket.recv(READ_BYTES)
                if not data:
                    raise ConnectionError(
                        "the connection was closed in the TLS handshake"
                    ) from None
                self._incoming.write(data)
            except ssl.SSLError:
                super().send(self._outgoing.read())  # tells the other side why
                raise
            else:
                super().send(self._outgoing.read())
                return

    def send(self, data: bytes) -> None:
        """Writes all of it, however long that takes."""
        with self._lock:
            self._tls.write(data)
            sealed = self._outgoing.read()
        super().send(sealed)

    def put(self, data: bytes) -> None:
        """Writes as much as goes at once; the rest is for `push`."""
        with self._lock:
            self._tls.write(data)
        self._put_sealed()

    def _put_sealed(self) -> None:
        """What TLS has made is written in the order in which it was made."""
        with self._sending:
            with self._lock:
                sealed = self._outgoing.read()
            if sealed:
                self._unsent.append(memoryview(sealed))
        self.push()

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
            self._put_sealed()
        data = b"".join(parts)
        return data if data or is_whole else None
