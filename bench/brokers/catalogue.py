"""Who is measured: the servers, the contenders at each, and what each does before it confirms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.brokers import libraries, nats_server, ours, rabbitmq, redis_streams
from bench.brokers.contender import Contender
from bench.builds import ROOT, found_builds

SYNCS = "syncs"
NO_SYNC = "does not sync"
NOTHING = "keeps nothing"


@dataclass(frozen=True, slots=True)
class Server:
    """A broker with its settings; running, it gives an address."""

    name: str
    serving: Callable[[Path], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One contender.

    Attributes:
        name: What it is called in tables.
        server: The server that it is a client of.
        opened: Connects it; takes the server's address.
        before: What the broker does with a message before it confirms it.
        module: What it needs from the packages that `make bench` installs.
        by_library: Whether that is a Python client, and not the bare socket.
        build: Which of our builds the client belongs to.
        ours: Whether it is ours.
    """

    name: str
    server: str
    opened: Callable[[Any], Contender]
    before: str
    module: str = ""
    by_library: bool = False
    build: Path = ROOT / "src"
    ours: bool = False


RABBITMQ = "RabbitMQ"
RABBITMQ_PACKAGE = "rabbitmq-server"
NATS_ALWAYS = "NATS JetStream, sync_interval: always"
NATS = "NATS JetStream, as it comes"
REDIS_ALWAYS = "Redis Streams, appendfsync always"
REDIS_EVERYSEC = "Redis Streams, appendfsync everysec"
QUORUM = "RabbitMQ, quorum queue"
CLASSIC = "RabbitMQ, classic queue"
CORE = "core NATS, published to delivered"

SERVERS = (
    Server(RABBITMQ, rabbitmq.serving),
    Server(NATS_ALWAYS, partial(nats_server.serving, setting=nats_server.ALWAYS)),
    Server(NATS, partial(nats_server.serving, setting=nats_server.AS_IT_COMES)),
    Server(REDIS_ALWAYS, partial(redis_streams.serving, appendfsync=redis_streams.ALWAYS)),
    Server(REDIS_EVERYSEC, partial(redis_streams.serving, appendfsync=redis_streams.EVERYSEC)),
)

PEERS = (
    Measured(name=QUORUM, server=RABBITMQ, opened=rabbitmq.quorum, before=SYNCS),
    Measured(name=CLASSIC, server=RABBITMQ, opened=rabbitmq.classic, before=SYNCS),
    Measured(name=NATS_ALWAYS, server=NATS_ALWAYS, opened=nats_server.contender, before=SYNCS),
    Measured(
        name=REDIS_ALWAYS,
        server=REDIS_ALWAYS,
        opened=redis_streams.contender,
        before=SYNCS,
        module="hiredis",
    ),
    Measured(name=NATS, server=NATS, opened=nats_server.contender, before=NO_SYNC),
    Measured(
        name=REDIS_EVERYSEC,
        server=REDIS_EVERYSEC,
        opened=redis_streams.unsynced_contender,
        before=NO_SYNC,
        module="hiredis",
    ),
    Measured(name=CORE, server=NATS, opened=nats_server.core_contender, before=NOTHING),
    Measured(
        name="RabbitMQ, quorum queue, by pika",
        server=RABBITMQ,
        opened=libraries.pika,
        before=SYNCS,
        module="pika",
        by_library=True,
    ),
    Measured(
        name="Redis Streams, appendfsync always, by redis-py",
        server=REDIS_ALWAYS,
        opened=libraries.redis_py,
        before=SYNCS,
        module="redis",
        by_library=True,
    ),
    Measured(
        name="NATS JetStream, as it comes, by nats-py",
        server=NATS,
        opened=libraries.nats_py,
        before=NO_SYNC,
        module="nats",
        by_library=True,
    ),
)


def before(measured: Measured, versions: Mapping[str, str]) -> str:
    """What its broker does before it confirms: RabbitMQ's classic queues sync until 4.0."""
    if measured.name == CLASSIC and not versions[RABBITMQ_PACKAGE].startswith("3."):
        return NO_SYNC
    return measured.before


def our_servers() -> list[Server]:
    """The service of each of our builds."""
    return [
        Server(f"merq, {name}", partial(ours.serving, build=build))
        for name, build in found_builds().items()
    ]


def our_contenders() -> list[Measured]:
    """Our clients at our services; each has the build of its service."""
    return [
        Measured(
            name=f"merq, {name}{way}",
            server=f"merq, {name}",
            opened=opened,
            before=SYNCS,
            build=build,
            ours=True,
        )
        for name, build in found_builds().items()
        for way, opened in ours.ways().items()
    ]
