"""[MS-MQQB] 2.1, 2.1.1: TCP connections with other queue managers.

Thin: everything that decides is in the exchange. Here are listening, connecting, reading, writing,
looking up names, and waiting for who reads slowly.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Protocol, cast

from merq.allocating import give_back_freed_memory
from merq.exchange import Exchange, Link
from merq.exchange.events import TROUBLES
from merq.exchange.fair_ring import FairRing
from merq.exchange.lookups import LOOKUPS_MAX, OTHERS_LOOKUPS_MAX
from merq.exchange.switchboard import Fact
from merq.model.properties import ConnectionStatus
from merq.net.accepting import Acceptor
from merq.net.dialling import DialFailure, LinkingSettings, dial, tls_refusal
from merq.net.pinging import Pinger
from merq.net.securing import Handshakes, Securing

TICK_S: Final = 0.1
"""How often it is looked whether a timer is due, while there is anything to wait for."""

IDLE_TICK_S: Final = 1.0
"""The same, while there is nothing."""

SLICE_BYTES: Final = 16 << 10
"""What is taken from a connection at once if one network sends; the more send, the less it is: then
it is the turn of another."""

SLICE_BYTES_MIN: Final = 2 << 10
"""The same, however many networks send."""

TURN_S: Final = 0.001
"""So long the connections together have their turns if one network sends; then it is the turn of
applications."""

TURN_MIN_S: Final = 0.0003
"""The same, however many networks send."""

GIVE_BACK_BYTES: Final = 64 << 20
"""If connections held more than this, and hold a quarter of it now, memory goes to the system."""

GIVE_BACK_S: Final = 1.0
"""How long after that: others may just be hanging up, too."""


class Teller(Protocol):
    """Where it is told what happens."""

    def info(self, event: str, **fields: Fact) -> None:
        """Something of interest."""

    def warning(self, event: str, **fields: Fact) -> None:
        """Something that somebody should look at."""


class LinkProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, linking: Linking, link: Link | None, *, is_secure: bool) -> None:
        self._linking = linking
        self._is_secure = is_secure
        self._is_paused = False
        self._unread = memoryview(b"")
        self._ended = ""
        self.link = link
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = cast("asyncio.Transport", transport)
        local_address = _plain(transport.get_extra_info("sockname")[0])
        if self.link is None:
            address = _plain(transport.get_extra_info("peername")[0])
            self.link = self._linking.admit(self, address, is_secure=self._is_secure)
            if self.link is None:
                self.transport.abort()
                return
            self.link.local_address = local_address
        else:
            self.link.local_address = local_address
            self._linking.made(self, self.link)
        high = self._linking.exchange.settings.outbox_high_bytes
        self.transport.set_write_buffer_limits(high=high, low=high // 2)

    def data_received(self, data: bytes) -> None:
        """Bytes came: they are taken when it is this connection's turn."""
        link = self.link
        if link is None:
            return
        if self._unread:  # what TLS had in hand when reading was paused
            self._unread = memoryview(bytes(self._unread) + data)
        else:
            self._unread = memoryview(data)
            self._linking.await_turn(self, link)
        link.unread_bytes = len(self._unread)
        self._linking.exchange.counted(link, self._linking.now)
        self.restrain()

    def take_slice(self, most: int) -> None:
        """It is this connection's turn: so many bytes of what came are taken."""
        link = self.link
        if link is None:
            return
        data, self._unread = self._unread[:most], self._unread[most:]
        link.unread_bytes = len(self._unread)
        self._linking.exchange.received(link, bytes(data), self._linking.now)
        if self._unread:
            self._linking.await_turn(self, link)
        elif self.transport is None:
            self._end(self._ended)
        self.restrain()

    def flush(self) -> None:
        """Writes what there is to be written, and ends the connection if it is to be."""
        link, transport = self.link, self.transport
        if link is None:
            return
        if link.is_cut:
            self._cut_off()
            return
        if transport is None:
            if link.closing:
                self._end("")
            return
        outbox = link.take_outbox()
        if outbox and not transport.is_closing():
            transport.write(outbox[0] if len(outbox) == 1 else b"".join(outbox))
        link.unwritten_bytes = transport.get_write_buffer_size()
        self._linking.exchange.counted(link, self._linking.now)
        if link.closing and not transport.is_closing():
            transport.close()
            # Who reads nothing would keep it open for ever.
            asyncio.get_running_loop().call_later(1.0, transport.abort)

    def restrain(self) -> None:
        """Nothing is read while what came cannot be taken care of."""
        link, transport = self.link, self.transport
        if link is None or transport is None or transport.is_closing():
            return
        is_paused = bool(self._unread) or self._linking.exchange.is_paused(link)
        if is_paused and not self._is_paused:
            transport.pause_reading()
            self._linking.paused[self] = None
        elif not is_paused and self._is_paused:
            transport.resume_reading()
            del self._linking.paused[self]
        self._is_paused = is_paused

    def resume_writing(self) -> None:
        """The other side has read what it was sent."""
        link, transport = self.link, self.transport
        if link is not None and transport is not None:
            link.unwritten_bytes = transport.get_write_buffer_size()
            self._linking.go_on(link)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; what it said before has its turns yet."""
        self.transport = None
        self._linking.paused.pop(self, None)
        self._ended = "the other side closed the connection" if exc is None else str(exc)
        if not self._unread or self._linking.is_over:
            self._end(self._ended)

    def _cut_off(self) -> None:
        self._unread = memoryview(b"")
        if self.transport is None:
            self._end("")
        else:
            self.transport.abort()

    def _end(self, reason: str) -> None:
        self._unread = memoryview(b"")
        link, self.link = self.link, None
        if link is not None:
            self._linking.dismiss(link, reason)

    def give_up(self) -> None:
        """Ends the connection at once."""
        if self.transport is None:
            self._end(self._ended)
        else:
            self.transport.abort()


class Linking:
    """All connections with other queue managers.

    Attributes:
        paused: Those from which nothing is read for now.

    Args:
        feed: Lets something happen in the queue manager, now, if it can be trusted; what comes of
            it is performed soon after, and `flush` is called.
        keep_tls_hosts: Keeps on disk who was reached inside of TLS.
    """

    def __init__(
        self,
        exchange: Exchange,
        settings: LinkingSettings,
        feed: Callable[[Callable[[], None]], None],
        log: Teller,
        keep_tls_hosts: Callable[[tuple[str, ...]], None] = lambda _: None,
    ) -> None:
        self.exchange = exchange
        self._keep_tls_hosts = keep_tls_hosts
        self.settings = settings
        self._feed = feed
        self._log = log
        self._loop = asyncio.get_running_loop()
        exchange.inbound.clock = time.monotonic  # finer than that of some loops
        self._protocols: dict[Link, LinkProtocol] = {}
        self._unread: FairRing[str, LinkProtocol] = FairRing()
        self.paused: dict[LinkProtocol, None] = {}
        self._is_turn_due = False
        self._held_most = 0
        self._acceptors: list[Acceptor] = []
        self._handshakes = Handshakes()
        self._tasks: set[asyncio.Task[None]] = set()
        self._dialling: dict[Link, asyncio.Task[None]] = {}
        # A lookup cannot be ended before the name service answers: each kind has its own threads.
        self._resolvers = {
            False: ThreadPoolExecutor(LOOKUPS_MAX, "merq-lookup"),
            True: ThreadPoolExecutor(OTHERS_LOOKUPS_MAX, "merq-lookup-others"),
        }
        self._pinger = Pinger(exchange)
        self._ticking: asyncio.TimerHandle | None = self._loop.call_later(TICK_S, self._tick)
        self.is_over = False
        self._last_one: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._protocols)

    async def listen(self) -> None:
        """Begins to accept connections, and to answer pings.

        Raises:
            ListenError: An address cannot be listened on.
        """
        settings = self.settings
        # TLS first: who finds the port in clear and not this one would go on in clear.
        if settings.tls_port is not None and settings.server_context is not None:
            context = settings.server_context
            self._accept(
                settings.tls_port,
                lambda: Securing(
                    LinkProtocol(self, None, is_secure=True),
                    context,
                    settings.connect_s,
                    self._refuse_tls,
                    self._handshakes,
                ),
            )
        if settings.listens:
            self._accept(settings.port, lambda: LinkProtocol(self, None, is_secure=False))
            if settings.answers_ping:
                await self._pinger.listen(settings.host, settings.ping_port)

    def _accept(self, port: int, factory: Callable[[], asyncio.Protocol]) -> None:
        self._acceptors.append(Acceptor.on(self.settings.host, port, factory, self._log))

    def _refuse_tls(self, transport: asyncio.BaseTransport, reason: str) -> None:
        peer = transport.get_extra_info("peername")
        self._log.warning("TLS session refused", peer=str(peer), reason=reason)

    # Connections.

    def admit(self, protocol: LinkProtocol, address: str, *, is_secure: bool) -> Link | None:
        """Somebody has connected; None if that is not to be."""
        link = self.exchange.accepted(address, self._loop.time(), is_secure=is_secure)
        if link is not None:
            self._protocols[link] = protocol
        self._tell()
        return link

    def made(self, protocol: LinkProtocol, link: Link) -> None:
        """A connection that was asked for is there."""
        self._protocols[link] = protocol
        pinged = self.exchange.settings.ping
        self._feed(lambda: self.exchange.connected(link, self._loop.time(), pinged=pinged))

    @property
    def now(self) -> float:
        """Seconds on a clock that only goes forward."""
        return self._loop.time()

    def receive(self, link: Link, data: bytes) -> None:
        """Takes bytes at once."""
        self._feed(lambda: self.exchange.received(link, data, self._loop.time()))

    def await_turn(self, protocol: LinkProtocol, link: Link) -> None:
        """A connection has bytes to be taken."""
        self._unread.add(link.network, protocol)
        self._call_turn()

    def _call_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._take_turns)

    def _take_turns(self) -> None:
        self._is_turn_due = False
        self._feed(self._take_slices)

    def _take_slices(self) -> None:
        """Some bytes of each connection, network by network, until the time is over."""
        crowd = max(self._unread.group_count, 1)
        most = max(SLICE_BYTES // crowd, SLICE_BYTES_MIN)
        end = time.monotonic() + max(TURN_S / crowd, TURN_MIN_S)
        while self._unread:
            self._unread.pop().take_slice(most)
            if time.monotonic() >= end:
                break
        if self._unread:
            self._call_turn()

    def go_on(self, link: Link) -> None:
        """More may be written."""
        self._feed(lambda: self.exchange.written(link, self._loop.time()))

    def dismiss(self, link: Link, reason: str) -> None:
        """A connection is gone."""
        self._protocols.pop(link, None)
        if not self._protocols and self._last_one is not None and not self._last_one.done():
            self._last_one.set_result(None)
        if link.is_outgoing and link.is_secure and not (link.was_open or link.closing):
            # TLS 1.3: that the other side refuses our certificate comes after the handshake.
            reason = tls_refusal(self.settings.tls_port, reason)
            self._warn_of_tls(link, reason)
        self._feed(lambda: self.exchange.lost(link, reason, self._loop.time()))

    def _warn_of_tls(self, link: Link, reason: str) -> None:
        if not self.is_over:
            self._log.warning(
                "no session inside of TLS", host=link.host, peer=link.address, reason=reason
            )

    # What the exchange wants.

    def flush(self) -> None:
        """Writes, connects and looks up what is to be."""
        exchange = self.exchange
        dirty = exchange.dirty
        while dirty:
            link, _ = dirty.popitem()
            protocol = self._protocols.get(link)
            if protocol is not None:
                protocol.flush()
                protocol.restrain()
            elif link.closing and not link.is_lost:
                if link in self._dialling:
                    self._dialling[link].cancel()
                self._loop.call_soon(self.dismiss, link, link.closing)
        for link in exchange.take_dialing():
            self._dialling[link] = self._start(self._dial(link))
        for host in exchange.take_lookups():
            self._start(self._look_up(host))
        if (hosts := exchange.tls.take_changed()) is not None:
            self._keep_tls_hosts(hosts)
        self._tell()

    def _tell(self) -> None:
        for text, fields in self.exchange.take_told():
            tell = self._log.warning if text in TROUBLES else self._log.info
            tell(text, **fields)

    def _start(self, doing: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _tick(self) -> None:
        if self.is_over:
            return
        # Only what is awake needs it often.
        delay = TICK_S if len(self.exchange) or self.exchange.is_waiting else IDLE_TICK_S
        self._ticking = self._loop.call_later(delay, self._tick)
        self._feed(lambda: self.exchange.tick(self._loop.time()))
        for protocol in list(self.paused):
            protocol.restrain()
        self._give_back()

    def _give_back(self) -> None:
        held = self.exchange.held_bytes
        self._held_most = max(self._held_most, held)
        if self._held_most > GIVE_BACK_BYTES and held < self._held_most // 4:
            self._held_most = held
            self._start(_give_back_later())

    async def _dial(self, link: Link) -> None:
        try:
            await self._connect(link)
        finally:
            self._dialling.pop(link, None)

    async def _connect(self, link: Link) -> None:
        settings, exchange = self.settings, self.exchange
        if exchange.settings.ping and not await self._pinger.ask(link.address, settings.ping_port):
            text = "no answer to a ping, or a refusal"
            self._failed(link, DialFailure(ConnectionStatus.PING_FAILURE, text))
            return
        failure = await dial(
            link, settings, lambda: LinkProtocol(self, link, is_secure=link.is_secure)
        )
        if failure is not None:
            self._failed(link, failure)

    def _failed(self, link: Link, failure: DialFailure) -> None:
        self._protocols.pop(link, None)
        exchange, text = self.exchange, failure.text
        if failure.is_tls_absent:
            is_certain = failure.is_certain
            self._feed(
                lambda: exchange.tls_absent(link, text, self._loop.time(), is_certain=is_certain)
            )
            return
        if link.is_secure:
            self._warn_of_tls(link, text)
        self._feed(lambda: exchange.dial_failed(link, text, self._loop.time(), failure.status))

    async def _look_up(self, host: str) -> None:
        addresses: list[str] = []
        text = ""
        threads = self._resolvers[self.exchange.outbound.lookups.is_for_others(host)]
        try:
            async with asyncio.timeout(self.settings.lookup_s):
                addresses = await self._loop.run_in_executor(threads, _addresses_of, host)
        except TimeoutError:
            text = f"the name service has not answered within {self.settings.lookup_s:g} s"
        except (OSError, UnicodeError) as wrong:
            text = str(wrong)
        self._feed(lambda: self.exchange.looked_up(host, addresses, self._loop.time(), text))

    # The end.

    def stop_accepting(self) -> None:
        """No further connections."""
        for acceptor in reversed(self._acceptors):  # TLS last, for the same reason
            acceptor.close()
        self._pinger.close()

    async def close(self) -> None:
        """[MS-MQQB] 3.1.4.2: ends every connection."""
        self.is_over = True
        if self._ticking is not None:
            self._ticking.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for threads in self._resolvers.values():
            threads.shutdown(wait=False, cancel_futures=True)
        for protocol in list(self._protocols.values()):
            protocol.flush()
            if protocol.transport is not None:
                protocol.transport.close()
        if self._protocols:
            self._last_one = self._loop.create_future()
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._last_one), 1.0)
        for protocol in list(self._protocols.values()):
            protocol.give_up()
        if self._protocols and self._last_one is not None:
            await self._last_one
        for acceptor in self._acceptors:
            await acceptor.wait_closed()


def _addresses_of(host: str) -> list[str]:
    """What the name service says; waits for it."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def _give_back_later() -> None:
    await asyncio.sleep(GIVE_BACK_S)
    await asyncio.to_thread(give_back_freed_memory)


def _plain(address: str) -> str:
    """An address as others write it: IPv4 within IPv6 as IPv4, without a zone."""
    address = address.partition("%")[0]
    return address.removeprefix("::ffff:") if "." in address else address
