r"""Our queue managers: who is where, how they are started, and who knows whom.

One sends; one receives; one receives with the window that Windows has; one passes on. The sender
reaches the receiver by its address, or, by the name that has its GUID, through the one that passes
on. Each has an address of its own, because all queue managers have the same port.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.brokers.packages import Unavailable
from bench.brokers.running import running
from bench.builds import environment
from bench.exchange.figures import WINDOWS_WINDOW

from merq import aio
from merq.protocol.binary.settings import STANDARD_PORT

SENDER, RECEIVER, NARROW, MIDDLE = "sender", "receiver", "narrow", "middle"
RELAY, BEHIND = "relay", "behind"
"""Where the relay is for the sender, and where the receiver takes the sender to be then."""

HOSTS = {SENDER: 2, RECEIVER: 3, NARROW: 4, MIDDLE: 5, RELAY: 6, BEHIND: 7}
"""The last number of each address."""

NETWORKS = 254
PLAIN, ORDERED, LOCAL = (rf".\private$\{name}" for name in ("plain", "ordered", "local"))
"""The receivers' queues, and the one that the sender has for itself."""

RETRY_S = 0.2
"""Whoever is not there yet is tried again soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A queue manager that runs, or a place of the relay.

    Attributes:
        host: Its address.
        url: Where its clients connect to.
        process: The number of its process.
        guid: Its identifier, as text.
    """

    host: str
    url: str = ""
    process: int = 0
    guid: str = ""


@contextmanager
def serving(folder: Path, build: Path) -> Iterator[dict[str, dict[str, object]]]:
    """All queue managers of one build, with their queues; gives the sites as plain data.

    Raises:
        Unavailable: No addresses can be had for them.
    """
    folder.mkdir()
    network = spare_network(HOSTS.values())
    hosts = {name: f"{network}.{number}" for name, number in HOSTS.items()}
    sites: dict[str, Site] = {name: Site(host=hosts[name]) for name in (RELAY, BEHIND)}
    with ExitStack() as stack:
        for name in (RECEIVER, NARROW, MIDDLE, SENDER):
            settings = _settings(name, hosts, folder)
            (folder / f"{name}.toml").write_text(_peers(name, sites), encoding="utf-8")
            sites[name] = stack.enter_context(
                _started(folder / name, hosts[name], {**environment(build), **settings})
            )
        yield {name: asdict(site) for name, site in sites.items()}


@contextmanager
def _started(folder: Path, host: str, variables: Mapping[str, str]) -> Iterator[Site]:
    folder.mkdir()
    listening = folder / "data" / "merq.sock"
    command = [sys.executable, "-m", "merq", "serve", "--data", str(folder / "data")]
    with running(command, folder, listening.is_socket, variables) as process:
        url = f"unix:{listening}"
        yield Site(host=host, url=url, process=process, guid=asyncio.run(_prepared(url)))


async def _prepared(url: str) -> str:
    """Makes the queues; gives the GUID."""
    async with await aio.connect(url) as manager:
        for name in (PLAIN, LOCAL):
            await manager.create_queue(name)
        await manager.create_queue(ORDERED, transactional=True)
        return str(manager.guid)


def _settings(name: str, hosts: Mapping[str, str], folder: Path) -> dict[str, str]:
    settings = {
        "NAME": name,
        "ADDRESS": hosts[name],
        "EXCHANGE_LISTEN": "true",
        "EXCHANGE_OFFLINE": "false",
        "EXCHANGE_FORWARDS": "true" if name == MIDDLE else "false",
        "EXCHANGE_PEERS": str(folder / f"{name}.toml"),
        "EXCHANGE_RETRY_S": str(RETRY_S),
    }
    if name == NARROW:
        settings["EXCHANGE_MERQ_WINDOW"] = str(WINDOWS_WINDOW)
    if name == RECEIVER:
        settings["EXCHANGE_ALIASES"] = hosts[RELAY]
    return {f"MERQ_{key}": value for key, value in settings.items()}


def _peers(name: str, sites: Mapping[str, Site]) -> str:
    """Whom a queue manager knows by GUID; those that started before it are in `sites`."""
    known = []
    if name in (MIDDLE, SENDER):
        way = ("via", MIDDLE) if name == SENDER else ("host", sites[RECEIVER].host)
        known.append((RECEIVER, way))
    if name == SENDER:
        known.append((MIDDLE, ("host", sites[MIDDLE].host)))
    return "\n".join(
        f'[[peer]]\nname = "{peer}"\nguid = "{sites[peer].guid}"\n{key} = "{value}"\n'
        for peer, (key, value) in known
    )


def spare_network(numbers: Collection[int]) -> str:
    """Three numbers of addresses; with any of these behind them, nobody has the port there.

    Raises:
        Unavailable: There are none.
    """
    for count in range(NETWORKS):
        network = f"127.0.{1 + (os.getpid() + count) % NETWORKS}"
        if all(_is_spare(f"{network}.{number}") for number in numbers):
            return network
    raise Unavailable(f"no loopback addresses have port {STANDARD_PORT} to spare")


def _is_spare(host: str) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, STANDARD_PORT))
        except OSError:
            return False
    return True
