"""RabbitMQ: two nodes, and a shovel that moves messages from a queue of one to one of the other.

The shovel runs at the sender and takes a message off its queue when the receiver has confirmed it.
A confirmation that is lost makes it send the message again, so it is at least once; it is compared
with recoverable messages. Federation is not measured: a federated queue moves messages only when
somebody consumes, so it has no end at which a message is in the other's queue.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.brokers import amqp
from bench.brokers.rabbitmq import CLASSIC, QUORUM, node
from bench.brokers.running import NotReady
from bench.exchange.figures import (
    BATCH,
    BODY,
    LOOKING_S,
    SILENCE_S_MAX,
    WINDOW,
    Amount,
    Figures,
    Kind,
    Measure,
    Missing,
)
from bench.exchange.processes import cpu_s, stopped

KINDS = (CLASSIC, QUORUM)
PREFETCH = 1000
"""The shovel's own default."""

READY_S_MAX = 30.0
PLUGIN = "rabbitmq_shovel"
PURGE, PURGE_OK = (50, 30), (50, 31)
WARMING = 500
FIRST_SINGLES = 10

Address = Mapping[str, Mapping[str, int]]
"""The port and the process of each node."""


@contextmanager
def serving(folder: Path) -> Iterator[Address]:
    """Both nodes with a shovel for each kind of queue."""
    folder.mkdir()
    with node(folder / "receiver") as receiver:
        shovels = ",".join(_shovel(kind, receiver.port) for kind in KINDS)
        setting = f"{{{PLUGIN},[{{shovels,[{shovels}]}}]}}"
        with node(folder / "sender", PLUGIN, setting) as sender:
            _wait_for_shovels(sender.port, receiver.port)
            yield {
                name: {"port": each.port, "process": each.process}
                for name, each in (("sender", sender), ("receiver", receiver))
            }


def source(kind: str) -> str:
    """The queue that the shovel takes from."""
    return f"{kind}-source"


def target(kind: str) -> str:
    """The queue that it puts into."""
    return f"{kind}-target"


def _shovel(kind: str, port: int) -> str:
    """A shovel as Erlang's terms; an address without a host is the shovel's own node."""
    return f"""{{{kind},[
        {{source,[{{protocol,amqp091}},{{uris,["amqp://"]}},
            {{declarations,[{_declaration(source(kind), kind)}]}},
            {{queue,<<"{source(kind)}">>}},{{prefetch_count,{PREFETCH}}}]}},
        {{destination,[{{protocol,amqp091}},{{uris,["amqp://127.0.0.1:{port}"]}},
            {{declarations,[{_declaration(target(kind), kind)}]}},
            {{publish_properties,[{{delivery_mode,{amqp.PERSISTENT}}}]}},
            {{publish_fields,[{{exchange,<<>>}},{{routing_key,<<"{target(kind)}">>}}]}}]}},
        {{ack_mode,on_confirm}},{{reconnect_delay,1}}]}}"""


def _declaration(queue: str, kind: str) -> str:
    arguments = f'{{arguments,[{{<<"x-queue-type">>,longstr,<<"{kind}">>}}]}}'
    return f"{{'queue.declare',[{{queue,<<\"{queue}\">>}},durable,{arguments}]}}"


def _wait_for_shovels(sender: int, receiver: int) -> None:
    """A message of each kind has come through."""
    here, there = amqp.Channel(sender), amqp.Channel(receiver)
    try:
        for kind in KINDS:
            # Also the shovel declares them, when it gets to it.
            here.declare(source(kind), durable=True, kind=kind)
            there.declare(target(kind), durable=True, kind=kind)
            publish(here, source(kind), 1, 1)
            end = time.monotonic() + READY_S_MAX
            while not there.waiting(target(kind)):
                if time.monotonic() > end:
                    raise NotReady(f"no message came through the shovel in {READY_S_MAX:.0f} s")
                time.sleep(LOOKING_S)
            purge(there, target(kind))
    finally:
        here.close()
        there.close()


def publish(channel: amqp.Channel, queue: str, count: int, batch: int = BATCH) -> None:
    """Sends durable messages and waits until all are confirmed."""
    frames = amqp.published(queue, BODY, amqp.PERSISTENT) * batch
    sent = done = 0
    while done < count:
        while sent < count and sent - done + batch <= WINDOW:
            channel.socket.sendall(frames)
            sent += batch
        done += channel.confirms.count(channel.read())


def purge(channel: amqp.Channel, queue: str) -> None:
    """Empties a queue."""
    channel.ask(PURGE, bytes(2) + amqp.short(queue) + bytes(1), PURGE_OK)


class _Line:
    """Queues of one kind, by a channel at each node."""

    def __init__(self, address: Address, kind: str) -> None:
        self._sender = amqp.Channel(address["sender"]["port"])
        self._receiver = amqp.Channel(address["receiver"]["port"])
        self._ports = [address[name]["port"] for name in ("sender", "receiver")]
        self._processes = [address[name]["process"] for name in ("sender", "receiver")]
        self._source, self._target, self._local = source(kind), target(kind), f"{kind}-local"
        self._sender.declare(self._local, durable=True, kind=kind)

    def measure(self, amount: Amount) -> Figures:
        """All figures, once."""
        found = Figures()
        kind = Kind.RECOVERABLE
        publish(self._sender, self._local, WARMING)
        start = time.perf_counter()
        publish(self._sender, self._local, amount.messages)
        found.put(kind, Measure.LOCAL, amount.messages / (time.perf_counter() - start))
        purge(self._sender, self._local)
        self._arrive(WARMING)
        before = [cpu_s(process) for process in self._processes]
        start = time.perf_counter()
        self._arrive(amount.messages)
        found.put(kind, Measure.RATE, amount.messages / (time.perf_counter() - start))
        measures = (Measure.SENDER_CPU, Measure.RECEIVER_CPU)
        for measure, process, was in zip(measures, self._processes, before, strict=True):
            found.put(kind, measure, 1e6 * (cpu_s(process) - was) / amount.messages)
        found.put(kind, Measure.TRANSFER, self._transfer(amount.messages))
        self._latencies(found, amount.singles)
        return found

    def _arrive(self, count: int) -> None:
        publish(self._sender, self._source, count)
        self._wait(count)

    def _transfer(self, count: int) -> float:
        """Messages a second that waited at the sender while the receiver stood still."""
        with stopped(self._processes[1]):
            publish(self._sender, self._source, count)
        start = time.perf_counter()
        self._wait(count)
        return count / (time.perf_counter() - start)

    def _wait(self, count: int) -> None:
        """Until so many are in the target, which then is emptied."""
        end = time.perf_counter() + SILENCE_S_MAX
        while (found := self._receiver.waiting(self._target)) < count:
            if time.perf_counter() > end:
                raise Missing(f"{count - found} messages are not there: {self._target}")
            time.sleep(LOOKING_S)
        purge(self._receiver, self._target)

    def _latencies(self, found: Figures, count: int) -> None:
        """From a send until somebody who waits elsewhere has the message; one by each in turn."""
        ends = []
        for to, port, queue in (
            (self._local, self._ports[0], self._local),
            (self._source, self._ports[1], self._target),
        ):
            waiting = amqp.Channel(port)
            waiting.consume(queue, PREFETCH)
            ends.append((amqp.published(to, BODY, amqp.PERSISTENT), waiting))
        took: list[list[float]] = [[] for _ in ends]
        for _ in range(count + FIRST_SINGLES):
            for series, (frames, waiting) in zip(took, ends, strict=True):
                series.append(self._single(frames, waiting))
        for _, waiting in ends:
            waiting.cancel()
            waiting.close()
        local, far = (series[FIRST_SINGLES:] for series in took)
        found.put_latency(Kind.RECOVERABLE, Measure.LOCAL_P50, Measure.LOCAL_P99, local)
        found.put_latency(Kind.RECOVERABLE, Measure.HOP_P50, Measure.HOP_P99, far)

    def _single(self, frames: bytes, waiting: amqp.Channel) -> float:
        """How long one message took; afterwards it is acknowledged and its send confirmed."""
        start = time.perf_counter()
        self._sender.socket.sendall(frames)
        whole = tag = 0
        while not whole:
            whole, tag = waiting.delivered()
        took = time.perf_counter() - start
        waiting.acknowledge(tag)
        while not self._sender.confirms.count(self._sender.read()):
            pass
        return took

    def close(self) -> None:
        """Leaves; what the shovels need stays."""
        self._sender.delete(self._local)
        self._sender.close()
        self._receiver.close()


def measured(address: Address, amount: Amount, *, kind: str) -> Figures:
    """All figures of queues of one kind, once."""
    line = _Line(address, kind)
    try:
        return line.measure(amount)
    finally:
        line.close()
