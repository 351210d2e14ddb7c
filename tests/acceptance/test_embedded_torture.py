"""A queue manager under a mixed load is killed again and again, and never closed in between.

`torture_program` tells what it asks for, what was answered, and at each start what it found. What
it found must be what the start before found, with everything that was answered since, and with any
of the things that were asked for and not answered: each of these whole, or not at all. Messages of
one sender and priority stay in their order.

`MERQ_KILLS=1000` kills more often, `MERQ_SEED` at other moments.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from threading import Thread
from typing import Any, Final, Self

import pytest

from acceptance.torture_program import (
    ACCELERATION,
    ADMIN,
    BRIEF,
    DEAD,
    EXPRESS,
    QUEUES,
    contents,
    expiring,
    opened,
    priority_of,
    queue_of,
    taking,
)

KILLS: Final = int(os.environ.get("MERQ_KILLS", "100"))
SEED: Final = int(os.environ.get("MERQ_SEED", "20260"))
EARLY: Final = 0.25
"""The part of the kills that come while the store is being opened."""
EARLY_S: Final = 0.02
LATE_S: Final = 0.4
PATIENCE_S: Final = 30.0
"""How long a child may take until it has listed its queues."""
BEGINNING: Final = 1_000_000_000
UNORDERED: Final = ("receive/", "timeout/")
"""Acknowledgments that come when others receive, not in the order of sending."""

Change = dict[str, int]


def change_of(facts: Iterable[str]) -> Change:
    """Facts with their signs as numbers: what becomes more, and what less."""
    change: Counter[str] = Counter()
    for fact in facts:
        change[fact[1:]] += 1 if fact[0] == "+" else -1
    return {fact: number for fact, number in change.items() if number}


def added(*changes: Change) -> Change:
    total: Counter[str] = Counter()
    for change in changes:
        total.update(change)
    return {fact: number for fact, number in total.items() if number}


def explanation(wanted: Change, asks: Sequence[str]) -> list[str] | None:
    """Those of the asks that together change just what is wanted, each whole; or None."""
    if not wanted:
        return []
    fact = min(wanted)
    for place, ask in enumerate(asks):
        change = possible(ask, fact)
        if change.get(fact, 0) * wanted[fact] > 0 and ask not in asks[:place]:
            left = added(wanted, negative(change))
            found = explanation(left, [*asks[:place], *asks[place + 1 :]])
            if found is not None:
                return [ask, *found]
    return None


def possible(ask: str, fact: str) -> Change:
    """What an ask may have changed, if this fact was a part of it."""
    if not ask.startswith("?"):
        return change_of(ask.split())
    queue, received = ask[1:], f"{ADMIN}/receive/"
    if fact.startswith(received) and queue != ADMIN:
        return change_of(taking(queue, fact.removeprefix(received)))
    return change_of(taking(queue, fact.partition("/")[2]))


def negative(change: Change) -> Change:
    return {fact: -number for fact, number in change.items()}


class Ledger:
    """What must be in the queues, from what all children have told."""

    def __init__(self) -> None:
        self._there: Change = {}
        self._answered: list[Change] = []
        self._unanswered: list[str] = []
        self._taken: dict[tuple[str, ...], tuple[int, int]] = {}
        self.answers = 0
        self.listings = 0
        self.happened = 0
        self.unhappened = 0

    def hear(self, lines: Iterable[str]) -> None:
        """Takes what one child told, up to the moment of its death."""
        found: dict[str, list[str]] = {name: [] for name in QUEUES}
        asked: dict[str, str] = {}
        for line in lines:
            word, _, rest = line.partition(" ")
            who, _, facts = rest.partition(" ")
            if word == "have":
                found[who] += facts.split()
            elif word == "listed":
                self.compare(found)
            elif word == "try":
                assert who not in asked, f"{who} asks before it is answered"
                asked[who] = facts
            elif word == "done":
                self._answer(who, asked.pop(who), facts)
            elif word == "none":
                del asked[who]
        self._unanswered += asked.values()

    def _answer(self, who: str, asked: str, facts: str) -> None:
        self.answers += 1
        change = change_of((facts if asked.startswith("?") else asked).split())
        self._answered.append(change)
        for fact, number in change.items():
            if number < 0:
                self._take(who, fact)

    def _take(self, who: str, fact: str) -> None:
        """What is taken out of a queue by one thread comes in its order."""
        place = order_of(fact)
        if place is not None:
            line, number = (who, *place[0]), place[1]
            last = self._taken.get(line)
            assert last is None or last < number, f"{who} got {fact} after {last}"
            self._taken[line] = number

    def compare(self, found: dict[str, list[str]]) -> None:
        """What a child found is what had to be there."""
        self.listings += 1
        now = change_of(f"+{name}/{each}" for name, labels in found.items() for each in labels)
        doubled = [fact for fact, number in now.items() if number > 1]
        assert not doubled, f"there twice: {doubled}"
        self._check_order(found)
        expected = added(self._there, *self._answered)
        for fact in [each for each in expected if each.startswith(f"{EXPRESS}/")]:
            if expected[fact] == 1 and fact not in now:
                del expected[fact]  # express messages may go with their process
        wanted = added(now, negative(expected))
        expiries = self._expiries(now)
        explained = explanation(wanted, [*self._unanswered, *expiries])
        assert explained is not None, self._complaint(wanted, expiries)
        happened = len([ask for ask in explained if ask not in expiries])
        self.happened += happened
        self.unhappened += len(self._unanswered) - happened
        self._there = now
        self._answered.clear()
        self._unanswered.clear()

    def _expiries(self, now: Change) -> list[str]:
        """What nobody asked for: the time of messages may have run out."""
        asked = [change_of(ask.split()) for ask in self._unanswered if ask.startswith("+")]
        told = (fact for change in (self._there, *self._answered, *asked) for fact in change)
        brief = f"{BRIEF}/"
        gone = {fact for fact in told if fact.startswith(brief) and fact not in now}
        return [" ".join(expiring(fact.removeprefix(brief))) for fact in sorted(gone)]

    def _check_order(self, found: dict[str, list[str]]) -> None:
        taken: dict[tuple[str, ...], tuple[int, int]] = {}
        for (_, *of_all), number in self._taken.items():
            line = tuple(of_all)
            taken[line] = max(taken.get(line, number), number)
        for name, labels in found.items():
            priorities = [priority_of(name, each) for each in labels if "/" not in each]
            assert priorities == sorted(priorities, reverse=True), f"{name}: {priorities}"
            last = taken.copy()
            for label in labels:
                place = order_of(f"{name}/{label}")
                if place is not None:
                    line, number = place
                    before = last.get(line)
                    assert before is None or before < number, f"{name}: {label} after {before}"
                    last[line] = number

    def _complaint(self, wanted: Change, expiries: list[str]) -> str:
        for change in map(change_of, (expiry.split() for expiry in expiries)):
            if all(wanted.get(fact) == number for fact, number in change.items()):
                wanted = added(wanted, negative(change))
        unexpected = sorted(fact for fact, number in wanted.items() if number > 0)
        missing = sorted(fact for fact, number in wanted.items() if number < 0)
        return (
            f"nothing explains what is there beyond what was expected, {unexpected}, and what is "
            f"missing, {missing}; not answered were {self._unanswered}"
        )


def order_of(fact: str) -> tuple[tuple[str, ...], tuple[int, int]] | None:
    """In which line a message stands, and its place there."""
    queue, _, label = fact.partition("/")
    if label.startswith(UNORDERED) or queue == DEAD:
        return None
    about, _, origin = label.rpartition("/")
    sender, life, number = origin.split(".")
    line = (queue, about, sender, str(priority_of(queue, origin)))
    return line, (int(life), int(number))


class Lives:
    """A program of which one process after another works in the folder and is killed."""

    def __init__(self, folder: Path, complaints: Path) -> None:
        tests = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
        self._complaints = complaints
        self._told: SimpleQueue[str] = SimpleQueue()
        with complaints.open("wb") as errors:
            self._program = subprocess.Popen(
                [sys.executable, "-m", "acceptance.torture_program", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | {"PYTHONPATH": path},
            )
        self._listener = Thread(target=self._listen)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._program.stdin is not None
        self._program.stdin.close()
        try:
            self._program.wait(PATIENCE_S)
        finally:
            self._program.kill()
            self._listener.join()
            assert self._program.stdout is not None
            self._program.stdout.close()

    def _listen(self) -> None:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            self._told.put(line.rstrip("\n"))
        self._told.put("over")

    def _say(self, line: str) -> None:
        assert self._program.stdin is not None
        self._program.stdin.write(f"{line}\n")
        self._program.stdin.flush()

    def _hear(self, last: str) -> list[str]:
        """What is told up to a line that begins with this."""
        lines = [""]
        while not lines[-1].startswith(last):
            try:
                lines.append(self._told.get(timeout=PATIENCE_S))
            except Empty:
                pytest.fail(f"nothing was heard of {last}: {self._complaints.read_text()}")
            assert lines[-1] != "over", self._complaints.read_text()
        return lines

    def live(self, life: int, now: int, stage: str, seconds: float) -> list[str]:
        """A process works and is killed so long after a stage; gives what it told until then."""
        self._say(f"live {life} {now}")
        lines = self._hear(stage)
        time.sleep(seconds)
        self._say("kill")
        lines += self._hear("died")
        complaints = self._complaints.read_text()
        assert not complaints, complaints
        assert lines[-1] == f"died {-signal.SIGKILL}", "it ended by itself"
        return lines


def checked(folder: Path) -> dict[str, Any]:
    """What `merq store check` says."""
    done = subprocess.run(
        [sys.executable, "-m", "merq", "store", "check", "--json", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def look_at_the_end(folder: Path, ledger: Ledger, now: int) -> None:
    with opened(folder, lambda: now) as manager:
        ledger.compare({name: contents(name, queue_of(manager, name), now) for name in QUEUES})


def kill_again_and_again(folder: Path, complaints: Path, ledger: Ledger) -> int:
    """Process after process works in the folder and is killed; gives the time after the last."""
    chance = Random(SEED)  # noqa: S311 - moments, not secrets
    now = BEGINNING
    with Lives(folder, complaints) as lives:
        for life in range(KILLS):
            started = time.monotonic()
            early = chance.random() < EARLY
            moment = chance.uniform(0, EARLY_S if early else LATE_S)
            try:
                ledger.hear(lives.live(life, now, "opening" if early else "listed", moment))
            except BaseException as wrong:
                wrong.add_note(f"in life {life} of MERQ_SEED={SEED}; the folder is {folder}")
                raise
            now += math.ceil(ACCELERATION * (time.monotonic() - started)) + 1
    return now


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed with SIGKILL")
def test_a_queue_manager_killed_at_any_moment_has_lost_doubled_and_halved_nothing(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "store"
    ledger = Ledger()
    now = kill_again_and_again(folder, tmp_path / "complaints", ledger)
    assert checked(folder)["verdict"] in {"sound", "torn"}
    look_at_the_end(folder, ledger, now)
    found = checked(folder)
    assert found["verdict"] == "sound"
    assert found["corruptions"] == []
    check_that_enough_happened(ledger, found)


def check_that_enough_happened(ledger: Ledger, found: dict[str, Any]) -> None:
    """A test in which nothing goes on would be passed by anything."""
    assert ledger.answers > 20 * KILLS
    assert ledger.listings > KILLS // 2
    assert ledger.happened > KILLS // 4, "kills came between the deed and the answer"
    assert ledger.unhappened > KILLS // 4, "kills came before the deed"
    assert found["segments"][0]["number"] > KILLS // 4, "segments were filled and given up"
    assert found["checkpoints"][-1]["number"] > KILLS // 4
