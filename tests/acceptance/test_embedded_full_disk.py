"""A disk that fills up under a queue manager with several threads, and comes back.

The disk is a small tmpfs in namespaces of its own, so that nobody else sees it and nothing is left
of it. The story is told in a child that lives there: what fails says so with its code and has
changed nothing, the rest goes on, and when there is room again everything does, without reopening.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from typing import Final

import pytest

import merq
from acceptance.torture_program import opened
from merq.engine.limits import Limits
from merq.host import HostSettings
from merq.hresult import HResult
from merq.store.log import LogSettings

DISK: Final = "size=9m"
BALLAST: Final = 3 << 20
SETTINGS: Final = HostSettings(
    log=LogSettings(segment_size=512 << 10, reserve_step=64 << 10), checkpoint_bytes=1 << 20
)
PREPARED: Final = 12
"""Messages that wait to be moved when the disk fills up."""
MORE: Final = 15
"""What each thread does when there is room again."""
RESERVE: Final = 1 << 20
THROUGH: Final = 1000
"""Messages that go through at the end, several times what the disk holds."""
"""Room that is kept back so that messages can be removed."""
BRIEF_S: Final = 10
INFINITE: Final = 0xFFFFFFFF
TIMEOUT_S: Final = 120.0

PLAIN: Final = "plain"
ONE: Final = "one"
TWO: Final = "two"
SOURCE: Final = "source"
MOVED: Final = "moved"
BRIEF: Final = "brief"
EXPRESS: Final = "express"
DEAD: Final = "dead"
TRANSACTIONAL: Final = frozenset({ONE, TWO, SOURCE, MOVED})
NAMES: Final = (PLAIN, ONE, TWO, SOURCE, MOVED, BRIEF, EXPRESS)

NAMESPACES: Final = ["unshare", "--user", "--map-root-user", "--mount"]
MOUNTED: Final = f'mount -t tmpfs -o {DISK} tmpfs "$0" && exec "$@"'

CHILD: Final = """
import sys
from pathlib import Path
from acceptance.test_embedded_full_disk import Story
story = Story(Path(sys.argv[1]), int(sys.argv[2]))
story.tell_of_a_reserve() if int(sys.argv[2]) else story.tell()
"""


class World:
    """A queue manager on the small disk, its queues, and what must be in them."""

    def __init__(self, folder: Path, reserve: int) -> None:
        self._folder = folder
        self._limits = Limits(disk_reserve_bytes=reserve)
        self._turn = Lock()
        self.now = 1_000_000_000
        self.there: dict[str, Counter[str]] = {name: Counter() for name in (*NAMES, DEAD)}
        self.open()

    def open(self) -> None:
        self.manager = opened(self._folder, lambda: self.now, SETTINGS, self._limits)
        known = {queue.path_name.lower() for queue in self.manager.queues()}
        self.queues = {DEAD: self.manager.queue(r".\system$;DEADLETTER")}
        for name in NAMES:
            path = rf".\private$\{name}"
            if path in known:
                self.queues[name] = self.manager.queue(path)
            else:
                transactional = name in TRANSACTIONAL
                self.queues[name] = self.manager.create_queue(path, transactional=transactional)

    def note(self, label: str, *, come: Sequence[str] = (), gone: Sequence[str] = ()) -> None:
        """Something was acknowledged; who receives may say so before who sent."""
        with self._turn:
            for name in come:
                self.there[name][label] += 1
            for name in gone:
                self.there[name][label] -= 1

    def labels(self, name: str) -> list[str]:
        """What is in a queue, in its order."""
        found = []
        for message in self.queues[name].peek_all():
            assert message.body == body_of(message.label), f"{message.label} has another body"
            found.append(message.label)
        return found

    def check(self) -> None:
        """Everything that was acknowledged is there once, and nothing else; senders in order."""
        for name, expected in self.there.items():
            found = self.labels(name)
            wrong = {label: number for label, number in expected.items() if number not in {0, 1}}
            assert not wrong, f"{name}: sent or received in no sense: {wrong}"
            awaited = sorted(label for label, number in expected.items() if number)
            assert sorted(found) == awaited, (
                f"{name}: {sorted(set(found) - set(awaited))} too much, "
                f"{sorted(set(awaited) - set(found))} missing, {len(found)} there"
            )
            for sender in {label.partition(".")[0] for label in found}:
                numbers = [number_of(each) for each in found if each.startswith(f"{sender}.")]
                assert numbers == sorted(numbers), f"{name}: {sender} sent in another order"


def number_of(label: str) -> int:
    return int(label.rpartition(".")[2])


def body_of(label: str) -> bytes:
    """Follows from the label; messages differ in size, those to be moved are large."""
    number = number_of(label)
    size = {"move": 20_000, "tiny": 0}.get(label.partition(".")[0], number * 7919 % 30_000)
    return bytes([number % 251]) * size


class Work:
    """What threads do in the world, one thing at a time; they note it when it is acknowledged."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._numbers: dict[str, Iterator[int]] = defaultdict(count)

    def send(self, who: str, name: str = PLAIN) -> None:
        label = f"{who}.{next(self._numbers[who])}"
        self.world.queues[name].send(
            body_of(label),
            label=label,
            recoverable=name != EXPRESS,
            time_to_be_received=BRIEF_S if name == BRIEF else INFINITE,
            dead_letter=name == BRIEF,
        )
        self.world.note(label, come=[name])

    def send_in_transaction(self, who: str, *names: str) -> None:
        label = f"{who}.{next(self._numbers[who])}"
        with self.world.manager.transaction() as tx:
            for name in names:
                self.world.queues[name].send(body_of(label), label=label, priority=0, tx=tx)
        self.world.note(label, come=names)

    def move(self) -> None:
        with self.world.manager.transaction() as tx:
            message = self.world.queues[SOURCE].receive(timeout=0, tx=tx)
            self.world.queues[MOVED].send(message.body, label=message.label, priority=0, tx=tx)
        self.world.note(message.label, come=[MOVED], gone=[SOURCE])

    def feed_and_move(self) -> None:
        self.send_in_transaction("move", SOURCE)
        self.move()

    def move_and_abort(self) -> None:
        with self.world.manager.transaction() as tx:
            message = self.world.queues[SOURCE].receive(timeout=0, tx=tx)
            self.world.queues[MOVED].send(message.body, label=message.label, priority=0, tx=tx)
            tx.abort()

    def receive(self, name: str = PLAIN, timeout: float = 0) -> None:
        label = self.world.queues[name].receive(timeout=timeout).label
        self.world.note(label, gone=[name])


class Story:
    """What happens on the small disk."""

    def __init__(self, place: Path, reserve: int) -> None:
        self._place = place
        self._code = (
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
            if reserve
            else HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
        )
        self._ballast = place / "ballast"
        self._ballast.write_bytes(bytes(BALLAST))
        self._world = World(place / "store", reserve)
        self._work = Work(self._world)

    def tell(self) -> None:
        self._prepare()
        self._fill()
        # What is still free is less than a message of theirs.
        self._until_refused(self._work.send, "s0")
        self._until_refused(self._work.send, "tiny")
        self._world.check()
        self._nothing_fits()
        self._what_needs_no_room_goes_on()
        self._open_anew()
        self._time_passes()
        self._ballast.unlink()
        self._everything_goes_on()
        self._open_anew()
        self._drain()
        self._send_through()
        self._world.manager.close()

    def tell_of_a_reserve(self) -> None:
        """Some room is kept back: no message comes in, and what is there can be received."""
        work = self._work
        self._prepare()
        while shutil.disk_usage(self._place).free >= RESERVE:
            work.send("s0")
            work.send_in_transaction("pair", ONE, TWO)
        self._wait_until(throttled=True)
        assert not self._attempt(work.send, "s0")
        assert not self._attempt(work.send_in_transaction, "pair", ONE, TWO)
        assert not self._attempt(work.move)
        self._world.check()
        for name in (PLAIN, ONE):
            for _ in self._world.labels(name):
                work.receive(name)
        self._world.check()
        self._ballast.unlink()
        self._wait_until(throttled=False)
        for _ in range(MORE):
            work.send("s0")
            work.send_in_transaction("pair", ONE, TWO)
            work.receive()
        self._world.check()
        self._open_anew()
        self._drain()
        self._world.manager.close()

    def _wait_until(self, *, throttled: bool) -> None:
        deadline = time.monotonic() + TIMEOUT_S / 4
        while self._world.manager.throttled is not throttled:
            assert time.monotonic() < deadline, f"throttled is not {throttled}"
            time.sleep(0.01)

    def _prepare(self) -> None:
        for _ in range(PREPARED):
            self._work.send_in_transaction("move", SOURCE)
            self._work.send("brief", BRIEF)

    def _fill(self) -> None:
        """Threads go on until they are refused; one receives as long as the others send."""
        work = self._work
        sending = [
            Thread(target=self._until_refused, args=each)
            for each in (
                (work.send, "s0"),
                (work.send, "s1"),
                (work.send_in_transaction, "pair", ONE, TWO),
                (work.feed_and_move,),
            )
        ]
        for thread in sending:
            thread.start()
        while any(thread.is_alive() for thread in sending):
            with suppress(merq.ReceiveTimeout):  # it may be faster than they are
                self._attempt(work.receive)
        for thread in sending:
            thread.join()

    def _until_refused(self, act: Callable[..., None], *arguments: str) -> None:
        while self._attempt(act, *arguments):
            pass

    def _attempt(self, act: Callable[..., None], *arguments: str) -> bool:
        """Whether something was done; if not, the disk was full and it said so properly."""
        try:
            act(*arguments)
        except merq.MessageQueueError as refused:
            if refused.code != self._code:
                raise
            return False
        return True

    def _nothing_fits(self) -> None:
        work = self._work
        # Tidying up may have found some more room meanwhile: that is used up too.
        self._until_refused(work.send, "s1")
        self._until_refused(work.send_in_transaction, "pair", ONE, TWO)
        first = self._world.labels(SOURCE)[0]
        if not self._attempt(work.move):
            assert self._world.labels(SOURCE)[0] == first, "it went back to its place"
        self._world.check()
        # To remove a message takes a little room as well: it may be there, or not.
        for _ in range(5):
            self._attempt(work.receive)
            self._world.check()

    def _what_needs_no_room_goes_on(self) -> None:
        work = self._work
        for _ in range(10):
            work.send("express", EXPRESS)
        for _ in range(5):
            work.receive(EXPRESS)
        work.move_and_abort()
        self._world.check()

    def _open_anew(self) -> None:
        self._world.manager.close()
        self._world.there[EXPRESS].clear()
        self._world.open()
        self._world.check()

    def _time_passes(self) -> None:
        """The time of messages runs out, and there is no room to say so: none is doubled."""
        self._world.now += BRIEF_S + 2
        found = Counter([*self._world.labels(BRIEF), *self._world.labels(DEAD)])
        assert max(found.values(), default=0) <= 1, found
        for number in range(PREPARED):
            self._world.note(f"brief.{number}", come=[DEAD], gone=[BRIEF])

    def _send_through(self) -> None:
        """More than the disk holds goes through it: what is dead makes room, in time."""
        for _ in range(THROUGH):
            deadline = time.monotonic() + TIMEOUT_S / 4
            while not self._attempt(self._work.send, "through"):
                assert time.monotonic() < deadline, "all is dead, and nothing is given up"
                time.sleep(0.01)
            self._work.receive()
        self._world.check()

    def _everything_goes_on(self) -> None:
        """There is room again, and nothing more is refused to anybody."""
        self._world.now += 1
        work = self._work
        failures: list[BaseException] = []

        def go_on(act: Callable[..., None], *arguments: str | float) -> None:
            try:
                for _ in range(MORE):
                    act(*arguments)
            except BaseException as wrong:
                failures.append(wrong)
                raise

        threads = [
            Thread(target=go_on, args=each)
            for each in (
                (work.send, "s0"),
                (work.send, "s1"),
                (work.send_in_transaction, "pair", ONE, TWO),
                # As many are being sent; whoever receives may be quicker.
                (work.receive, PLAIN, TIMEOUT_S / 4),
                (work.receive, ONE, TIMEOUT_S / 4),
            )
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
        while self._world.labels(SOURCE):
            work.move()
        self._world.check()

    def _drain(self) -> None:
        """Each message is received once, in the order in which it was shown."""
        for name in self._world.queues:
            for label in self._world.labels(name):
                assert self._world.queues[name].receive(timeout=0).label == label
                self._world.note(label, gone=[name])
        self._world.check()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a small disk can be mounted, if the system lets us."""
    try:
        done = subprocess.run(
            [*NAMESPACES, "sh", "-c", MOUNTED, str(tmp_path), "true"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as missing:
        pytest.skip(f"a small disk cannot be mounted: {missing}")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.strip()}")
    return tmp_path


def told(place: Path, reserve: int) -> None:
    tests = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
    story = [sys.executable, "-c", CHILD, str(place), str(reserve)]
    done = subprocess.run(
        [*NAMESPACES, "sh", "-c", MOUNTED, str(place), *story],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env=os.environ | {"PYTHONPATH": path},
    )
    # A thread that died of something has told so, even if the others went on.
    assert not done.stderr, done.stderr
    assert done.returncode == 0


def test_a_full_disk_refuses_what_does_not_fit_and_everything_goes_on_when_there_is_room(
    place: Path,
) -> None:
    told(place, reserve=0)


def test_what_is_there_can_be_received_while_a_disk_that_runs_low_takes_no_messages(
    place: Path,
) -> None:
    told(place, reserve=RESERVE)
