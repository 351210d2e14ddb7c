"""The life of the service: [MS-MQSO] 5.1.1.1, 6.6.2.

Stopped, initializing, running; a failure leads back to stopped. A start that fails is the end,
unless it was asked for to try again; a service that ran opens its store anew until that succeeds.
This is where everything is put together.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from secrets import token_bytes
from typing import Final
from uuid import uuid4

from merq import __version__
from merq.errors import CertificateError, ListenError, MerqError, StoreFailed
from merq.exchange import Exchange, Peers
from merq.host import SECRET_SIZE, Hall, Host
from merq.net.dialling import LinkingSettings
from merq.net.linking import Linking
from merq.protocol.application.server import ServerLimits
from merq.service.descriptors import DescriptorPlan, fit
from merq.service.doors import advised
from merq.service.keeping import Keeper
from merq.service.listening import Listeners, TokenPorter
from merq.service.logs import Log
from merq.service.peers_file import EXAMPLE
from merq.service.reception import Reception, ReceptionLimits
from merq.service.settings import ServiceSettings, TlsSettings
from merq.service.tls import server_context, warn_of_ending
from merq.service.tls_hosts import TlsHostsFile
from merq.service.tokens import Tokens
from merq.store.disk import FileDisk
from merq.store.recovery import Identity

DAY_S: Final = 86_400.0

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""What ends the service cleanly."""


class State(Enum):
    """[MS-MQSO] 5.1.1.1: the states of a queue manager."""

    STOPPED = "stopped"
    INITIALIZING = "initializing"
    RUNNING = "running"


class Service:
    """A queue manager that serves applications, until it is told to stop.

    Attributes:
        state: Where it is in its life.
        tcp_port: The TCP port that it listens on, if it does.
    """

    def __init__(self, settings: ServiceSettings, log: Log | None = None) -> None:
        self._settings = settings
        self._log = log or Log()
        self._stopping = asyncio.Event()
        self._failed = asyncio.Event()
        self._running = asyncio.Event()
        self.state = State.STOPPED
        self.tcp_port: int | None = None
        self._disk: FileDisk | None = None
        self._host: Host | None = None
        self._keeper: Keeper | None = None
        self._listeners: Listeners | None = None
        self._linking: Linking | None = None
        self._tls_hosts: TlsHostsFile | None = None

    def stop(self) -> None:
        """Ends the service, cleanly."""
        self._stopping.set()

    async def wait_until_running(self) -> None:
        """Returns when applications are served."""
        await self._running.wait()

    async def run(self) -> None:
        """Serves until it is stopped.

        Raises:
            MerqError: It could not start, and was not asked to try again (`retry.at_start`).
            OSError: The same, for want of something that has no name here.
        """
        loop = asyncio.get_running_loop()
        for each in SIGNALS:
            loop.add_signal_handler(each, self.stop)
        delay = self._settings.retry.first_s
        retries = self._settings.retry.at_start
        try:
            while not self._stopping.is_set():
                self._enter(State.INITIALIZING)
                try:
                    await self._initialize()
                except (MerqError, OSError) as wrong:
                    await self._shut()
                    self._enter(State.STOPPED)
                    if not retries:
                        raise
                    self._log.error("initialisation failed", error=wrong, retry_s=delay)
                    told = str(wrong).replace("\n", "; ")
                    _notify(f"STATUS=tried again in {delay:g} s: {told}")
                    await self._pause(delay)
                    delay = self._settings.retry.later_s
                    continue
                delay, retries = self._settings.retry.first_s, True
                self._enter(State.RUNNING)
                await self._serve()
                self._enter(State.STOPPED)
        finally:
            for each in SIGNALS:
                loop.remove_signal_handler(each)

    def _enter(self, state: State) -> None:
        self.state = state
        if state is State.RUNNING:
            self._running.set()
            _notify("READY=1\nSTATUS=running")
        else:
            self._running.clear()

    async def _pause(self, seconds: float) -> None:
        """[MS-MQSO] 6.4.4.1: the initialization retry timer."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    # Initialisation.

    async def _initialize(self) -> None:
        """[MS-MQDMPR] 3.1.4.1, [MS-MQSO] 6.6.2: reads what was written, then listens."""
        settings, began = self._settings, time.monotonic()
        self._failed.clear()
        log = self._log
        log.info("starting", version=__version__, data=settings.data, pid=os.getpid())
        for warning in settings.warnings:
            log.warning("settings", text=warning)
        # Files that can be wrong are read before anything is made or changed.
        sockets = settings.exchange.linking_settings(settings.address)
        peers = self._known_peers()
        self._look_at_certificates()
        context = None
        if settings.tls.cert is not None:
            context = server_context(settings.tls, now=datetime.now(UTC), log=log)
        self._disk = FileDisk(settings.data)
        self._disk.lock()
        # Reading the log takes seconds if there is much: signals are served meanwhile.
        host = await asyncio.to_thread(self._open)
        self._host = host
        if host.torn is not None:
            log.warning("the log had a torn tail, which was cut off and kept", what=str(host.torn))
        for folder in self._disk.open_to_others():
            log.warning("other users may look into the folder: chmod 700 it", folder=folder)
        hall = Hall(__version__, int(time.time()))
        porter = TokenPorter(Tokens(settings.data, log))
        wanted = DescriptorPlan(
            links_max=settings.exchange.links_max,
            dialled_links_max=settings.exchange.dialled_links_max,
            connections_max=settings.limits.connections_max,
        )
        fitting = fit(log, wanted)
        reception = Reception(host, hall, porter, uuid4, _limits(settings, fitting))
        self._listeners = listeners = Listeners(settings, reception, porter, log)
        self._keeper = Keeper(host, reception, listeners.flush, self._fail, log)
        listeners.keeper = self._keeper
        reception.exchange = exchange = self._exchange(host, peers, fitting)
        self._linking = self._link(exchange, sockets, listeners)
        try:
            # Applications come last: nobody is served by a service that cannot start.
            await self._linking.listen()
            await listeners.listen(context)
        except ListenError as wrong:
            raise advised(wrong, settings) from wrong
        self.tcp_port = listeners.tcp_port
        state = host.engine.state
        log.info(
            "running",
            name=state.name,
            queue_manager=state.guid,
            socket=settings.socket_path,
            tcp=None if self.tcp_port is None else f"{settings.tcp_host}:{self.tcp_port}",
            tls=context is not None,
            exchange=f"{sockets.host}:{sockets.port}" if sockets.listens else None,
            exchange_tls=sockets.tls_port,
            messages=sum(each.positions.count for each in state.queues.values()),
            seconds=round(time.monotonic() - began, 3),
        )

    def _known_peers(self) -> Peers:
        section = self._settings.exchange
        peers = section.known_peers()
        if section.peers is not None and peers.is_empty:
            # Its GUIDs may be known only after all of them were started once.
            text = f"exchange.peers: {section.peers} names no peer yet: {EXAMPLE}"
            self._log.warning("settings", text=text)
        return peers

    def _exchange(self, host: Host, peers: Peers, fitting: DescriptorPlan) -> Exchange:
        """[MS-MQQB] 3.1.4.1: messages may come from other queue managers, and go to them."""
        section = self._settings.exchange
        if section.offline:
            host.engine.take_offline()
        how = replace(
            section.exchange_settings(),
            links_max=fitting.links_max,
            # Nobody may have them all, however few there are.
            links_per_peer_max=min(section.links_per_peer_max, max(1, fitting.links_max // 2)),
            dialled_links_max=fitting.dialled_links_max,
        )
        return Exchange(host, how, peers, random.random)

    def _link(self, exchange: Exchange, sockets: LinkingSettings, listeners: Listeners) -> Linking:
        self._tls_hosts = remembered = TlsHostsFile(self._settings.data, self._log)
        exchange.tls.remember(remembered.load())
        linking = Linking(exchange, sockets, listeners.feed, self._log, remembered.keep)
        listeners.flushes.append(linking.flush)
        return linking

    def _open(self) -> Host:
        """The store is opened, or made: the queue manager's identifier is made with it."""
        assert self._disk is not None
        settings = self._settings
        fresh = Identity(store_id=uuid4(), created=int(time.time()))
        host = Host(
            self._disk,
            fresh,
            settings.computer_name,
            settings.bulk.added_to(settings.engine.limits()),
            settings.store.host_settings(),
        )
        section = settings.exchange
        own = _own_names(section.host or settings.address)
        # Before the start: what expired meanwhile is told, be it to this computer itself.
        host.engine.state.answer_to([*section.names, *own])
        try:
            host.start(int(time.time()), uuid4(), token_bytes(SECRET_SIZE))
        except BaseException:
            host.close()
            raise
        return host

    # Running.

    def _fail(self, wrong: Exception) -> None:
        """Nothing more is promised before the store is opened anew."""
        if isinstance(wrong, StoreFailed):
            self._log.error("the disk failed", error=wrong)
        else:
            self._log.failure("the queue manager stumbled and starts anew", wrong)
        self._failed.set()

    async def _serve(self) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        failing = asyncio.create_task(self._failed.wait())
        watching = asyncio.create_task(self._watch())
        await asyncio.wait((stopping, failing), return_when=asyncio.FIRST_COMPLETED)
        for task in (stopping, failing, watching):
            task.cancel()
        if self._stopping.is_set():
            _notify("STOPPING=1")
            self._log.info("stopping")
        began = time.monotonic()
        await self._shut()
        self._log.info("stopped", seconds=round(time.monotonic() - began, 3))

    async def _watch(self) -> None:
        """Once a day it is looked at how long the certificates hold."""
        while True:
            await asyncio.sleep(DAY_S)
            try:
                warn_of_ending(self._settings.tls, now=datetime.now(UTC), log=self._log)
            except CertificateError as wrong:
                self._log.error("the certificate cannot be used any more", error=wrong)
            self._look_at_certificates()

    def _look_at_certificates(self) -> None:
        """Tells if other queue managers will not take this one's certificate, or soon not."""
        cert = self._settings.exchange.tls_cert
        try:
            warn_of_ending(TlsSettings(cert=cert), now=datetime.now(UTC), log=self._log)
        except CertificateError as wrong:
            self._log.error("other queue managers refuse the certificate", error=wrong)

    async def _shut(self) -> None:
        """[MS-MQDMPR] 3.1.4.2: ends everything that there is.

        What was promised is durable before anybody is cut off.
        """
        listeners, self._listeners = self._listeners, None
        linking, self._linking = self._linking, None
        tls_hosts, self._tls_hosts = self._tls_hosts, None
        keeper, self._keeper = self._keeper, None
        host, self._host = self._host, None
        disk, self._disk = self._disk, None
        try:
            if listeners is not None:
                listeners.stop_accepting()
            if linking is not None:
                linking.stop_accepting()
                await linking.close()
            if tls_hosts is not None:
                await tls_hosts.close()
            if keeper is not None:
                try:
                    await keeper.close()
                except StoreFailed as wrong:
                    self._log.error("the disk failed", error=wrong)
            if listeners is not None:
                await listeners.close()
        finally:
            if host is not None:
                host.close()
            if disk is not None:
                disk.unlock()


def _limits(settings: ServiceSettings, fitting: DescriptorPlan) -> ReceptionLimits:
    limits = settings.limits
    return ReceptionLimits(
        client=ServerLimits(
            frame_bytes_max=limits.frame_bytes_max,
            window_bytes=limits.window_bytes,
            requests_max=limits.requests_max,
            pong_ms=int((limits.idle_s - limits.keepalive_s) * 1000),
        ),
        connections_max=fitting.connections_max,
        outbox_high_bytes=limits.answer_bytes_max,
        outbox_bytes_max=max(8 * limits.answer_bytes_max, limits.frame_bytes_max),
        ping_s=limits.keepalive_s,
        silence_s=limits.idle_s,
    )


def _own_names(host: str) -> list[str]:
    """What this computer is called, besides its name: what others may write in a direct name."""
    return [host, socket.gethostname(), socket.getfqdn()]


def _notify(message: str) -> None:
    """Tells systemd, if that is who started us."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told, suppress(OSError):
        told.sendto(message.encode(), address)
