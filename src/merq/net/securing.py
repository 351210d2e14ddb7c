"""TLS on the service's side of a TCP connection.

It works in memory, between the socket's protocol and the application's: so a handshake that fails
is told to the log with its reason and its peer, whichever event loop there is.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

from merq.model.peer_networks import peer_network

READ_BYTES: Final = 1 << 18

HANDSHAKE_BYTES_MAX: Final = 64 << 10
"""What may come before a handshake is done: a chain of certificates, and room to spare."""

HANDSHAKES_MAX: Final = 256
"""Handshakes under way at a time; with another the oldest of all gives way."""

HANDSHAKES_PER_PEER_MAX: Final = 64
"""Handshakes under way of one network; with another its oldest gives way."""


class Handshakes:
    """TLS handshakes that are not done yet, by network.

    Where there are too many the oldest gives way: one that is meant is done soon.
    """

    def __init__(self) -> None:
        self._under_way: dict[Securing, str] = {}
        self._networks: Counter[str] = Counter()

    def begin(self, securing: Securing, network: str) -> None:
        """Another one has begun."""
        if self._networks[network] >= HANDSHAKES_PER_PEER_MAX:
            oldest = next(each for each, own in self._under_way.items() if own == network)
            self._give_way(oldest, f"{HANDSHAKES_PER_PEER_MAX} others from {network} are under way")
        elif len(self._under_way) >= HANDSHAKES_MAX:
            oldest = next(iter(self._under_way))
            self._give_way(oldest, f"{HANDSHAKES_MAX} others are under way")
        self._under_way[securing] = network
        self._networks[network] += 1

    def _give_way(self, oldest: Securing, reason: str) -> None:
        self.end(oldest)
        oldest.give_up(f"the TLS handshake took too long while {reason}")

    def end(self, securing: Securing) -> None:
        """One is done, or will not be."""
        network = self._under_way.pop(securing, None)
        if network is not None:
            self._networks[network] -= 1
            if not self._networks[network]:
                del self._networks[network]


class SecuredTransport(asyncio.Transport):
    """What a protocol writes to once TLS is there."""

    def __init__(self, securing: Securing, raw: asyncio.Transport) -> None:
        super().__init__()
        self._securing = securing
        self._raw = raw

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Seals and writes."""
        self._securing.write(data)

    def close(self) -> None:
        """Says goodbye, and closes when everything is written."""
        self._securing.say_goodbye()
        self._raw.close()

    def abort(self) -> None:
        """Closes at once."""
        self._raw.abort()

    def is_closing(self) -> bool:
        """Whether it is closed, or will be."""
        return self._raw.is_closing()

    def pause_reading(self) -> None:
        """No data comes until it is resumed."""
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        """Data may come again."""
        self._raw.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """How much may wait to be written."""
        self._raw.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """How much waits to be written."""
        return self._raw.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the connection below."""
        return self._raw.get_extra_info(name, default)


class Securing(asyncio.Protocol):
    """One TCP connection that speaks TLS.

    Args:
        inner: The protocol of what is sealed; it sees a connection once TLS is there.
        context: The service's certificate, and whom it trusts.
        handshake_s: How long the handshake may take.
        refuse: Told why, if the handshake fails.
        handshakes: Those that are under way; this one is among them until it is done.
    """

    def __init__(
        self,
        inner: asyncio.Protocol,
        context: ssl.SSLContext,
        handshake_s: float,
        refuse: Callable[[asyncio.BaseTransport, str], None],
        handshakes: Handshakes,
    ) -> None:
        self._handshakes = handshakes
        self._handshake_bytes = 0
        self._inner = inner
        self._handshake_s = handshake_s
        self._refuse = refuse
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._raw: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_secure = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected; the handshake is to come."""
        self._raw = cast("asyncio.Transport", transport)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._handshake_s, self._hurry)
        self._handshakes.begin(self, peer_network(transport.get_extra_info("peername")[0]))

    def give_up(self, reason: str) -> None:
        """The handshake is not gone on with."""
        self._fail(reason)

    def _hurry(self) -> None:
        if not self._is_secure:
            self._fail("the TLS handshake was not done in time")

    def _fail(self, reason: str) -> None:
        raw = self._raw
        if raw is not None and not raw.is_closing():
            self._refuse(raw, reason)
            self._flush()  # tells the other side why
            raw.close()

    def data_received(self, data: bytes) -> None:
        """Sealed bytes came."""
        self._incoming.write(data)
        try:
            if not self._is_secure and not self._shake_hands():
                self._handshake_bytes += len(data)
                if self._handshake_bytes > HANDSHAKE_BYTES_MAX:
                    self._fail(f"{self._handshake_bytes} bytes came, and the handshake is not done")
                return
            opened = self._open()
        except ssl.SSLError as wrong:
            self._fail(str(wrong))
            return
        self._flush()
        if opened:
            self._inner.data_received(opened)

    def _shake_hands(self) -> bool:
        """Goes on with the handshake; whether it is done."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        self._flush()
        self._is_secure = True
        self._handshakes.end(self)
        assert self._raw is not None
        self._inner.connection_made(SecuredTransport(self, self._raw))
        return True

    def _open(self) -> bytes:
        """What the bytes that came mean."""
        parts: list[bytes] = []
        with suppress(ssl.SSLWantReadError):  # the rest of a record is on its way
            while part := self._tls.read(READ_BYTES):
                parts.append(part)
            assert self._raw is not None
            self._raw.close()  # the other side has said goodbye
        return b"".join(parts)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Seals and writes."""
        self._tls.write(data)
        self._flush()

    def say_goodbye(self) -> None:
        """Tells the other side that nothing more comes."""
        # It is not waited for an answer, and nobody minds if the other side is gone already.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        self._flush()

    def _flush(self) -> None:
        sealed = self._outgoing.read()
        if sealed and self._raw is not None and not self._raw.is_closing():
            self._raw.write(sealed)

    def pause_writing(self) -> None:
        """The other side reads slowly."""
        if self._is_secure:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The other side has read."""
        if self._is_secure:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._handshakes.end(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._is_secure:
            self._inner.connection_lost(exc)
