"""RabbitMQ: quorum queues, classic queues, and classic queues with transient messages.

Before it confirms, a quorum queue syncs its log for all who wait. Acknowledgments are never
confirmed in AMQP 0-9-1: a receive ends when the queue has said, after them, that nothing waits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.brokers import amqp
from bench.brokers.contender import BODY, READ_BYTES, Contender, Load, keep_under_way
from bench.brokers.packages import RABBITMQ, unpacked
from bench.brokers.running import listening, running, spare_port

QUORUM, CLASSIC = "quorum", "classic"
PREFETCH = 2_000
PLUGINS, ADVANCED = "plugins", "advanced.config"
NODE_OPTIONS = "-noinput -kernel inet_dist_use_interface {127,0,0,1}"
ERL = """#!/bin/sh
# The packaged one looks for Erlang where the package would have been installed.
ROOTDIR="$(cd "$(dirname "$0")/../usr/lib/erlang" && pwd)"
BINDIR="$(echo "$ROOTDIR"/erts-*/bin)"
EMU=beam
PROGNAME=erl
export ROOTDIR BINDIR EMU PROGNAME
exec "$BINDIR/erlexec" "$@"
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A node that runs: where it listens, and the number of its process."""

    port: int
    process: int


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """A node as it comes; gives its port."""
    with node(folder) as started:
        yield started.port


@contextmanager
def node(folder: Path, plugins: str = "", advanced: str = "") -> Iterator[Node]:
    """A node of its own with the port mapper that it needs, all on loopback.

    Args:
        folder: For everything that it writes; must not exist.
        plugins: Those to be enabled, as Erlang lists them.
        advanced: What else is set, as Erlang's terms inside of a list.
    """
    place = unpacked(RABBITMQ)
    wrapper = place / "bin" / "erl"
    wrapper.parent.mkdir(exist_ok=True)
    wrapper.write_text(ERL, encoding="utf-8")
    wrapper.chmod(0o755)
    folder.mkdir()
    port, mapper_port, distribution_port = spare_port(), spare_port(), spare_port()
    environment = _environment(place, folder, port, mapper_port, distribution_port)
    (folder / PLUGINS).write_text(f"[{plugins}].\n", encoding="utf-8")
    (folder / ADVANCED).write_text(f"[{advanced}].\n", encoding="utf-8")
    # Otherwise the node would start one itself, which stays when the node ends.
    (mapper,) = place.glob("usr/lib/erlang/erts-*/bin/epmd")
    (server,) = place.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
    (folder / "mapper").mkdir()
    with (
        running([str(mapper)], folder / "mapper", listening(mapper_port), environment),
        running([str(server)], folder, listening(port), environment) as process,
    ):
        yield Node(port, process)


def _environment(
    place: Path, folder: Path, port: int, mapper_port: int, distribution_port: int
) -> dict[str, str]:
    config = folder / "rabbitmq.conf"
    config.write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\nlog.file.level = warning\n", encoding="utf-8"
    )
    return {
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ERL_EPMD_PORT": str(mapper_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": "bench@localhost",
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_CONFIG_FILE": str(config),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / ADVANCED),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / PLUGINS),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        # With this the script becomes the node instead of waiting for it.
        "RABBITMQ_ALLOW_INPUT": "1",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": NODE_OPTIONS,
    }


class _Queue:
    """Queues of one kind, by one channel."""

    def __init__(self, port: int, kind: str) -> None:
        self._channel = amqp.Channel(port)
        self._names = {"small": True, "large": True, "transient": False}
        for name, durable in self._names.items():
            if durable or kind == CLASSIC:
                self._channel.declare(self._named(kind, name), durable=durable, kind=kind)
        self._kind = kind
        self._single = amqp.published(self._named(kind, "small"), BODY, amqp.PERSISTENT)

    @staticmethod
    def _named(kind: str, name: str) -> str:
        return f"{kind}-{name}"

    def send(self) -> None:
        self._channel.socket.sendall(self._single)
        count = 0
        while not count:
            count = self._channel.confirms.count(self._channel.socket.recv(READ_BYTES))

    def pipelined(self, load: Load) -> int:
        name = "small" if load.body is BODY else "large"
        return self._send(self._named(self._kind, name), amqp.PERSISTENT, load)

    def memory(self, load: Load) -> int:
        return self._send(self._named(self._kind, "transient"), amqp.TRANSIENT, load)

    def _send(self, queue: str, mode: int, load: Load) -> int:
        frames = amqp.published(queue, load.body, mode) * load.batch
        connection = self._channel.socket
        return keep_under_way(connection, connection, load, frames, self._channel.confirms.count)

    def receive(self, count: int) -> None:
        channel = self._channel
        channel.consume(self._named(self._kind, "small"), PREFETCH)
        took = 0
        while took < count:
            more, tag = channel.delivered()
            took += more
            if more:
                channel.acknowledge(tag)
        channel.cancel()
        waiting = channel.waiting(self._named(self._kind, "small"))
        assert (took, waiting) == (count, 0), f"{took} of {count} came, {waiting} wait"

    def close(self) -> None:
        for name, durable in self._names.items():
            if durable or self._kind == CLASSIC:
                self._channel.delete(self._named(self._kind, name))
        self._channel.close()


def quorum(port: int) -> Contender:
    """Quorum queues of one member: always durable."""
    queue = _Queue(port, QUORUM)
    return Contender(
        send=queue.send,
        pipelined=queue.pipelined,
        receive=queue.receive,
        large=queue.pipelined,
        close=queue.close,
    )


def classic(port: int) -> Contender:
    """Durable classic queues with persistent messages, and one that is neither."""
    queue = _Queue(port, CLASSIC)
    return Contender(
        send=queue.send,
        pipelined=queue.pipelined,
        receive=queue.receive,
        memory=queue.memory,
        large=queue.pipelined,
        close=queue.close,
    )
