"""The program that `test_embedded_torture` kills: a queue manager under a mixed load of threads.

It first tells what it found in its queues, then goes to work. Before it asks for anything it tells
what that would change, and when it has the answer it tells that too. A change is a list of facts
with a sign: `+plain/s0.4.17` means that message 17 of sender s0 in life 4 comes into the queue
`plain`. Acknowledgments and dead letters are facts as well. One write to the pipe is one line:

    opening                          the store is about to be opened
    have plain s0.4.17 s1.4.3 …      what is in a queue, in its order
    listed                           that was all; work begins
    try s0 +plain/s0.5.0             this is being asked for
    try r0 ?plain                    any one message of this queue is being asked for
    done s0                          it has happened
    done r0 -plain/s0.4.17           it has happened, and this is what it was
    none r0                          it did not happen: there was nothing
    died -9                          so did the process end

Run it with the folder. It reads lines from its standard input: `live 5 1000000000` makes a process
for life 5, which begins at that time, and `kill` kills it. Imports are done once, before the first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final
from zlib import crc32

import merq
from merq.client.embedded import Driver
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE
from merq.engine.limits import Limits
from merq.host import HostSettings
from merq.model.message_class import MessageClass
from merq.store.disk import FileDisk
from merq.store.log import LogSettings

NAME: Final = "torture"
SEGMENT_SIZE: Final = 64 << 10
SETTINGS: Final = HostSettings(
    log=LogSettings(segment_size=SEGMENT_SIZE, reserve_step=16 << 10), checkpoint_bytes=48 << 10
)
"""Small, so that segments begin, checkpoints are written and messages are copied all the time."""

ACCELERATION: Final = 20
"""Messages that live for a second of this clock are dead after a twentieth of one."""
LIFETIME_S: Final = 1

DEPTH_MAX: Final = 60
"""A sender that finds so many messages in its queue takes one out instead."""
PURGED_AT: Final = 8
"""So many messages are sent to a queue between two purges."""
LINE_MAX: Final = 4000
"""What a pipe takes in one piece is at least 4096 bytes."""

PLAIN: Final = "plain"
PROMPT: Final = "prompt"
SOURCE: Final = "source"
ONE: Final = "one"
TWO: Final = "two"
EXPRESS: Final = "express"
PURGED: Final = "purged"
BRIEF: Final = "brief"
ADMIN: Final = "admin"
DEAD: Final = "dead"
TRANSACTIONAL: Final = frozenset({SOURCE, ONE, TWO})
MADE: Final = (PLAIN, PROMPT, SOURCE, ONE, TWO, EXPRESS, PURGED, BRIEF, ADMIN)
QUEUES: Final = (*MADE, DEAD)

CLASSES: Final[dict[int, str]] = {
    MessageClass.MQMSG_CLASS_NORMAL: "",
    MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE: "reach/",
    MessageClass.MQMSG_CLASS_ACK_RECEIVE: "receive/",
    MessageClass.MQMSG_CLASS_NACK_Q_PURGED: "purge/",
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT: "timeout/",
}


def number_of(label: str) -> int:
    return int(label.rpartition(".")[2])


def priority_of(queue: str, label: str) -> int:
    if queue in TRANSACTIONAL:
        return 0
    return number_of(label) % 8 if queue == PLAIN else 3


def acknowledged(queue: str, label: str) -> bool:
    """Whether the sender wants to be told what becomes of the message."""
    return queue in {PURGED, BRIEF} or (queue == PLAIN and number_of(label) % 3 == 0)


def body_of(label: str) -> bytes:
    """Follows from the label, so that whoever has the message can tell whether it is whole."""
    chance = crc32(label.encode())
    size = chance % 600
    if chance % 23 == 0:
        size = chance % 20_000
    if chance % 499 == 0:
        size = SEGMENT_SIZE + chance % 20_000
    return (label.encode() * (size // len(label) + 1))[:size]


def coming(queue: str, label: str) -> list[str]:
    """What is so when a message was sent."""
    facts = [f"+{queue}/{label}"]
    if acknowledged(queue, label):
        facts.append(f"+{ADMIN}/reach/{label}")
    return facts


def taking(queue: str, label: str) -> list[str]:
    """What is so when a message was received."""
    facts = [f"-{queue}/{label}"]
    if queue not in {ADMIN, DEAD} and acknowledged(queue, label):
        facts.append(f"+{ADMIN}/receive/{label}")
    return facts


def purging(label: str) -> list[str]:
    """What is so when a message was purged."""
    return [f"-{PURGED}/{label}", f"+{ADMIN}/purge/{label}"]


def expiring(label: str) -> list[str]:
    """What is so when a message's time has run out."""
    return [f"-{BRIEF}/{label}", f"+{DEAD}/timeout/{label}", f"+{ADMIN}/timeout/{label}"]


class Clock:
    """Stands still until it is started, so that nothing expires while queues are listed."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._started: float | None = None

    def start(self) -> None:
        self._started = time.monotonic()

    def __call__(self) -> float:
        if self._started is None:
            return self._began
        return self._began + ACCELERATION * (time.monotonic() - self._started)


def opened(
    folder: Path,
    clock: Callable[[], float],
    settings: HostSettings = SETTINGS,
    limits: Limits | None = None,
) -> merq.Manager:
    """A queue manager with a clock of our own, and files that are small."""
    driver = Driver(FileDisk(folder), NAME, limits or Limits(), settings, clock)
    return merq.Manager(driver)


def path_of(queue: str) -> str:
    return r".\system$;DEADLETTER" if queue == DEAD else rf".\private$\{queue}"


def queue_of(manager: merq.Manager, name: str) -> merq.Queue:
    """A queue by its short name; it is made if no earlier life got so far."""
    known = {queue.path_name.lower() for queue in manager.queues()}
    if name in MADE and path_of(name).lower() not in known:
        return manager.create_queue(path_of(name), transactional=name in TRANSACTIONAL)
    return manager.queue(path_of(name))


def read(name: str, message: merq.ReceivedMessage) -> str:
    """What a message is about, after a look at whether it is as it was sent."""
    label = message.label
    about = CLASSES[message.message_class]
    if not about:
        origin = BRIEF if name == DEAD else name
        assert message.priority == priority_of(origin, label), (name, label, message.priority)
        assert message.body == body_of(label), f"{label} in {name} has another body"
        assert message.recoverable is (name != EXPRESS), (name, label)
    return about + label


def contents(name: str, queue: merq.Queue, now: float) -> list[str]:
    """What is in a queue, in its order."""
    found = []
    for message in queue.peek_all():
        if name == BRIEF:
            assert message.sent_at.timestamp() + LIFETIME_S >= int(now), "its time was over"
        found.append(read(name, message))
    return found


class Load:
    """What the threads do; each has a name and goes on for ever."""

    def __init__(self, manager: merq.Manager, life: int) -> None:
        self._manager = manager
        self._life = life
        self._queues = {name: queue_of(manager, name) for name in QUEUES}
        self._found: dict[str, list[str]] = {}
        self._room: dict[str, threading.Semaphore] = {}

    def list_queues(self, now: float) -> None:
        for name, queue in self._queues.items():
            self._found[name] = contents(name, queue, now)
            for line in lines_of(self._found[name]):
                tell("have", name, *line)
        for name in (SOURCE, ONE):
            self._room[name] = threading.Semaphore(max(0, DEPTH_MAX - len(self._found[name])))
        tell("listed")

    def start(self) -> None:
        for name, target in (
            ("s0", self._send),
            ("s1", self._send),
            ("r0", self._receive),
            ("w0", self._wait),
            ("f0", self._feed),
            ("m0", self._move),
            ("c0", self._collect),
            ("e0", self._send_express),
            ("p0", self._purge),
            ("b0", self._send_brief),
            ("k0", self._clear_up),
        ):
            threading.Thread(target=target, args=(name,), daemon=True).start()

    def _labels(self, who: str) -> Iterator[str]:
        return (f"{who}.{self._life}.{number}" for number in count())

    def _send_one(self, who: str, name: str, label: str) -> None:
        tell("try", who, *coming(name, label))
        self._queues[name].send(
            body_of(label),
            label=label,
            priority=priority_of(name, label),
            recoverable=name != EXPRESS,
            acknowledge=ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE
            if acknowledged(name, label)
            else 0,
            admin_queue=path_of(ADMIN) if acknowledged(name, label) else "",
            time_to_be_received=LIFETIME_S if name == BRIEF else 0xFFFFFFFF,
            dead_letter=name == BRIEF,
        )
        tell("done", who)

    def _receive_one(self, who: str, name: str, timeout: float | None = 0) -> None:
        tell("try", who, f"?{name}")
        try:
            message = self._queues[name].receive(timeout=timeout)
        except merq.ReceiveTimeout:
            tell("none", who)
            return
        tell("done", who, *taking(name, read(name, message)))

    def _make_room(self, who: str, *names: str) -> None:
        for name in names:
            while len(self._queues[name]) > DEPTH_MAX:
                self._receive_one(who, name)

    def _send(self, who: str) -> None:
        for label in self._labels(who):
            self._make_room(who, PLAIN, ADMIN)
            self._send_one(who, PLAIN, label)

    def _receive(self, who: str) -> None:
        while True:
            self._receive_one(who, PLAIN, timeout=None)

    def _wait(self, who: str) -> None:
        """At a queue that is empty most of the time: what comes is taken as it arrives."""
        while True:
            self._receive_one(who, PROMPT, timeout=None)

    def _feed(self, who: str) -> None:
        """One to three messages in a transaction; every fifth is aborted and never heard of."""
        labels = self._labels(who)
        for turn in count():
            chosen = [next(labels) for _ in range(turn % 3 + 1)]
            with self._manager.transaction() as tx:
                for label in chosen:
                    self._queues[SOURCE].send(body_of(label), label=label, priority=0, tx=tx)
                if turn % 5 == 4:
                    tx.abort()
                    continue
                for _ in chosen:
                    self._room[SOURCE].acquire()
                tell("try", who, *(fact for label in chosen for fact in coming(SOURCE, label)))
            tell("done", who)

    def _move(self, who: str) -> None:
        """Out of one queue and into two others, together; every fourth is aborted."""
        for turn in count():
            with self._manager.transaction() as tx:
                message = self._queues[SOURCE].receive(tx=tx)
                label = read(SOURCE, message)
                for name in (ONE, TWO):
                    self._queues[name].send(message.body, label=label, priority=0, tx=tx)
                if turn % 4 == 3:
                    tx.abort()
                    continue
                self._room[ONE].acquire()
                tell("try", who, *taking(SOURCE, label), *coming(ONE, label), *coming(TWO, label))
            tell("done", who)
            self._room[SOURCE].release()

    def _collect(self, who: str) -> None:
        """Takes from both queues at once: whatever is the first here is the first there."""
        for turn in count():
            with self._manager.transaction() as tx:
                labels = [read(name, self._queues[name].receive(tx=tx)) for name in (ONE, TWO)]
                assert labels[0] == labels[1], labels
                if turn % 4 == 3:
                    tx.abort()
                    continue
                tell("try", who, *taking(ONE, labels[0]), *taking(TWO, labels[1]))
            tell("done", who)
            self._room[ONE].release()

    def _send_express(self, who: str) -> None:
        for label in self._labels(who):
            self._send_one(who, EXPRESS, label)
            if number_of(label) % 16:
                self._receive_one(who, EXPRESS)
            if number_of(label) % 4 == 0:
                # Express messages wait for nothing: without this they would be all that happens.
                self._send_one(who, PROMPT, label)

    def _purge(self, who: str) -> None:
        """The only thread at its queue, so that it knows what it purges."""
        there = self._found[PURGED]
        for label in self._labels(who):
            self._make_room(who, ADMIN)
            self._send_one(who, PURGED, label)
            there.append(label)
            if len(there) < PURGED_AT:
                continue
            tell("try", who, *(fact for each in there for fact in purging(each)))
            purged = self._queues[PURGED].purge()
            assert purged == len(there), (purged, there)
            tell("done", who)
            there.clear()

    def _send_brief(self, who: str) -> None:
        for label in self._labels(who):
            self._make_room(who, BRIEF, ADMIN)
            self._send_one(who, BRIEF, label)
            if number_of(label) % 4 == 0:
                self._receive_one(who, BRIEF)

    def _clear_up(self, who: str) -> None:
        while True:
            self._make_room(who, DEAD)
            self._receive_one(who, DEAD)
            self._receive_one(who, ADMIN, timeout=0.01)


def lines_of(words: Sequence[str]) -> Iterator[list[str]]:
    """Words in lines that are not too long."""
    line: list[str] = []
    for word in words:
        if sum(map(len, line)) + len(line) + len(word) > LINE_MAX - 100:
            yield line
            line = []
        line.append(word)
    if line:
        yield line


def tell(*words: str) -> None:
    line = (" ".join(words) + "\n").encode()
    assert len(line) <= LINE_MAX
    written = os.write(sys.stdout.fileno(), line)
    assert written == len(line)


def live(folder: Path, life: int, began: float) -> None:
    """Opens the store and works until the end, which comes from outside."""
    tell("opening")
    clock = Clock(began)
    load = Load(opened(folder, clock), life)
    load.list_queues(clock())
    clock.start()
    load.start()
    threading.Event().wait()


def end(process: int) -> str:
    """Kills a process; gives how it ended. Nobody has its number before it was waited for."""
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return str(os.waitstatus_to_exitcode(status))


def main(folder: str) -> None:
    process = 0
    for line in sys.stdin:
        word, *numbers = line.split()
        if word == "live":
            process = os.fork()
            if not process:
                live(Path(folder), *map(int, numbers))
                return
        else:
            tell("died", end(process))
            process = 0
    if process:
        end(process)


if __name__ == "__main__":
    main(*sys.argv[1:])
