"""`kill -9` of the service and of its clients, under load, again and again.

Clients note what they are told. In the end nothing that was acknowledged is lost, nothing came
twice, transactions happened whole or not at all, and those of the dead were aborted. What nobody
can know is counted apart: a client that was killed between being given a message and noting it, or
one whose service was killed before it answered. `MERQ_KILLS` kills more often, `MERQ_SEED` others.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Final

import merq
from acceptance.service_process import ServiceProcess, environment, wait_until
from acceptance.service_torture_program import MOVED, PLAIN, SOURCE

KILLS: Final = int(os.environ.get("MERQ_KILLS", "40"))
SEED: Final = int(os.environ.get("MERQ_SEED", "20263"))
PAUSE_S: Final = (0.02, 0.35)
"""Between two kills."""
SETTLED_S: Final = 1.0
"""At the end everybody works undisturbed for a while."""
SENDING: Final = ("send", "send_many")
RECEIVING: Final = ("receive", "receive_many")
WORK: Final = (*SENDING, *RECEIVING, "feed", "move")


class Troop:
    """The clients, one of each kind, and those before them that were killed."""

    def __init__(self, service: ServiceProcess, folder: Path) -> None:
        self._service = service
        self._folder = folder
        self._living: dict[str, subprocess.Popen[bytes]] = {}
        self._lives = 0
        self.killed = 0

    def start(self, what: str) -> None:
        self._lives += 1
        program = [sys.executable, "-W", "error", "-m", "acceptance.service_torture_program"]
        name = self._folder / f"{what}.{self._lives}"
        with name.with_suffix(f".{self._lives}.errors").open("wb") as errors:
            self._living[what] = subprocess.Popen(
                [*program, self._service.url, what, str(self._lives), str(name)],
                stdin=subprocess.DEVNULL,
                stderr=errors,
                env=environment(),
                start_new_session=True,
            )

    def kill(self, what: str) -> None:
        process = self._living.pop(what)
        assert process.poll() is None, f"{what} has ended by itself:\n{self.complaints()}"
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.killed += 1

    def end(self) -> None:
        for what in list(self._living):
            self.kill(what)

    def clear(self) -> None:
        """Nobody is left, whatever went wrong."""
        for process in self._living.values():
            process.kill()
            process.wait()

    def complaints(self) -> str:
        return "".join(each.read_text() for each in self._folder.glob("*.errors"))

    def lines(self, *work: str) -> Iterable[list[list[str]]]:
        """What each client of these kinds has noted; the last line may be in two."""
        for what in work:
            for path in self._folder.glob(f"{what}.*"):
                if path.suffix != ".errors":
                    text = path.read_text()
                    yield [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]

    def has_noted(self, what: str) -> bool:
        return any(lines for lines in self.lines(what))


class Sent:
    """What was to come into a queue: what was acknowledged, and what nobody knows."""

    def __init__(self, notes: Iterable[list[list[str]]]) -> None:
        self.acknowledged: set[str] = set()
        self.doubtful: set[str] = set()
        self.whole: list[list[str]] = []
        for lines in notes:
            asked: list[str] = []
            for word, *labels in lines:
                if word == "done":
                    self.acknowledged.update(labels)
                elif word == "doubt":
                    self.doubtful.update(labels)
                asked = labels if word == "try" else []
                if asked:
                    self.whole.append(asked)
            self.doubtful.update(asked)  # killed before it was told


class Received:
    """What came out of a queue, and what may have."""

    def __init__(self, notes: Iterable[list[list[str]]]) -> None:
        self.labels: list[str] = []
        self.doubtful: set[str] = set()
        self.unknown = 0
        for lines in notes:
            for word, *labels in lines:
                if word == "done":
                    self.labels += labels
                elif word == "doubt":
                    self.doubtful.update(labels)
            if lines and lines[-1][0] == "ask":
                self.unknown += int(lines[-1][1])


def killed_often(service: ServiceProcess, troop: Troop) -> int:
    """Half of the kills are the service's; gives how many."""
    chance = Random(SEED)  # noqa: S311 - repeatable on purpose
    for what in WORK:
        troop.start(what)
    wait_until(lambda: all(troop.has_noted(what) for what in WORK), "everybody works")
    for turn in range(KILLS):
        time.sleep(chance.uniform(*PAUSE_S))
        if turn % 2:
            service.kill()
            service.start(is_awaited=chance.random() < 0.5)
        else:
            victim = WORK[turn // 2 % len(WORK)]
            troop.kill(victim)
            troop.start(victim)
    service.wait_until_running()
    time.sleep(SETTLED_S)
    troop.end()
    return KILLS // 2


def labels_in(manager: merq.Manager, queue: str) -> list[str]:
    return [message.label for message in manager.queue(queue).peek_all()]


def locked(manager: merq.Manager) -> dict[str, int]:
    """How many messages somebody holds, by queue."""
    counts = {name: manager.queue(name).report.locked for name in (PLAIN, SOURCE, MOVED)}
    return {name: count for name, count in counts.items() if count}


def check_plain(troop: Troop, there: list[str]) -> None:
    sent, received = Sent(troop.lines(*SENDING)), Received(troop.lines(*RECEIVING))
    seen = Counter([*received.labels, *there])
    twice = [label for label, number in seen.items() if number > 1]
    assert not twice, f"there or received twice: {twice}"
    assert set(seen) <= sent.acknowledged | sent.doubtful, "something that nobody sent"
    missing = sent.acknowledged - set(seen) - received.doubtful
    print(
        f"plain: {len(sent.acknowledged)} acknowledged, {len(sent.doubtful)} sends in doubt; "
        f"{len(received.labels)} received, {len(received.doubtful)} receives in doubt, "
        f"{len(missing)} went with those who were killed ({received.unknown} may), "
        f"{len(there)} left"
    )
    assert len(missing) <= received.unknown, f"lost: {sorted(missing)}"
    assert sent.acknowledged
    assert received.labels


def check_transactions(troop: Troop, source: list[str], moved: list[str]) -> None:
    fed, moves = Sent(troop.lines("feed")), Sent(troop.lines("move"))
    there = Counter([*source, *moved])
    twice = [label for label, number in there.items() if number > 1]
    assert not twice, f"there twice: {twice}"
    assert fed.acknowledged <= set(there), f"lost: {sorted(fed.acknowledged - set(there))}"
    assert set(there) <= fed.acknowledged | fed.doubtful, "what was aborted is there"
    for labels in fed.whole:
        found = [label in there for label in labels]
        assert all(found) or not any(found), f"half a transaction: {labels}, {found}"
    assert moves.acknowledged <= set(moved), "a move that was acknowledged did not happen"
    assert set(moved) <= moves.acknowledged | moves.doubtful, "an aborted move has happened"
    check_order(source)
    check_order(moved)
    print(
        f"transactions: {len(fed.acknowledged)} acknowledged, {len(fed.doubtful)} in doubt; "
        f"{len(moves.acknowledged)} moved, {len(moves.doubtful)} in doubt, {len(source)} left"
    )
    assert moves.acknowledged


def check_order(labels: list[str]) -> None:
    """What a sender has sent is in its order."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for label in labels:
        sender, _, number = label.rpartition(".")
        numbers[sender].append(int(number))
    for sender, found in numbers.items():
        assert found == sorted(found), f"what {sender} has sent is in another order"


def test_kills_of_service_and_clients_lose_double_and_halve_nothing(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    small = {
        "store.segment_bytes": "1MiB",
        "store.reserve_bytes": "256KiB",
        "store.checkpoint_bytes": "1MiB",
    }
    with ServiceProcess(tmp_path / "data", settings=small) as service:
        with service.connect() as manager:
            manager.create_queue(PLAIN)
            manager.create_queue(SOURCE, transactional=True)
            manager.create_queue(MOVED, transactional=True)
        troop = Troop(service, notes)
        try:
            kills = killed_often(service, troop)
        finally:
            troop.clear()
        assert not troop.complaints()
        with service.connect() as manager:
            wait_until(lambda: manager.status().connections == 1, "the dead are gone")
            status = manager.status()
            assert (status.transactions, status.readers) == (0, 0)
            # The last commit of the dead may be on its way to the disk: it has no transaction any
            # more, and its messages are let go when it is written.
            wait_until(lambda: not locked(manager), "nothing is locked by a dead client")
            found = {name: labels_in(manager, name) for name in (PLAIN, SOURCE, MOVED)}
        print(f"{kills} kills of the service, {troop.killed} of clients")
        check_plain(troop, found[PLAIN])
        check_transactions(troop, found[SOURCE], found[MOVED])
        service.kill()
        service.start()
        with service.connect() as manager:
            again = {name: labels_in(manager, name) for name in (PLAIN, SOURCE, MOVED)}
        assert again == found
        assert service.stop() == 0
        service.check_log()
