"""A soak: numbers travel in transactions from one queue manager to another, through anything.

Connections are cut at random, and each queue manager is killed as a power failure would. At the end
every number must have been received once, in order, and nothing may be left anywhere.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import merq
from acceptance.exchange_soak_program import COPIES, LIMIT, NEXT, ORDERS, STOP, TOTAL, tell
from acceptance.service_process import environment
from acceptance.strict_receiver_program import COMPLAINTS
from kit.stations import Station, end_cleanly, wait_until_sent, wire_between
from kit.strict_stations import StrictStation

PROGRAM: Final = "acceptance.exchange_soak_program"
DEAD_LETTERS: Final = r".\system$;DEADXACT"
LOOK_S: Final = 0.05
SAY_S: Final = 5.0
SETTLE_S: Final = 60.0
"""How long the last acknowledgments may take."""

STALL_S: Final = 120.0
"""Something is wrong if nothing goes on for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a soak is like.

    Attributes:
        count: Messages.
        batch: Messages of one sending transaction.
        kills: How often each queue manager is killed.
        cut_s: The longest between two cuts of the connections.
        copies: The sender wants dead letters, so that each message waits for its FinalAck.
        seconds: No more is sent after this time; what was sent must arrive all the same.
        strict: The receiving side is a strict peer, and not Merq.
    """

    count: int
    batch: int = 500
    kills: int = 10
    cut_s: float = 2.0
    copies: bool = False
    seconds: float = 3600.0
    seed: int = 5
    strict: bool = False


@dataclass(slots=True)
class Outcome:
    """What became of it."""

    sent: int = 0
    received: int = 0
    sender_kills: int = 0
    receiver_kills: int = 0
    cuts: int = 0
    connections: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.received / self.seconds if self.seconds else 0.0
        return (
            f"{self.received:,} of {self.sent:,} messages received, each once and in order, in "
            f"{self.seconds:.0f} s ({rate:,.0f} a second); the sending side was killed "
            f"{self.sender_kills} times, the receiving one {self.receiver_kills} times; "
            f"{self.cuts} cuts, {self.connections} connections"
        )


class Soak:
    """One soak, from the first message to the last.

    Args:
        folder: Where everything lies; it is left there if something is wrong.
        say: Told now and then how far it is.
    """

    def __init__(self, folder: Path, plan: Plan, say: Callable[[str], None] = print) -> None:
        self._folder = folder
        self._plan = plan
        self._say = say
        self._chance = Random(plan.seed)  # noqa: S311 - repeatable on purpose
        self._outcome = Outcome()
        self._sender = Station(folder / "laptop")
        self._receiver: Station | StrictStation = (
            StrictStation(folder / "office") if plan.strict else Station(folder / "office")
        )
        self._share = plan.count // (plan.kills + 1)
        self._kills = self._plan_kills()
        self._allow()
        self._moved_at = 0.0
        self._said_at = 0.0

    def _plan_kills(self) -> list[tuple[int, Station | StrictStation]]:
        """Who is killed when so many were received; the earliest last."""
        share = self._share
        kills = [
            (number * share + self._chance.randrange(max(share // 2, 1)), station)
            for number in range(self._plan.kills)
            for station in (self._sender, self._receiver)
        ]
        return sorted(kills, key=lambda each: -each[0])

    def _allow(self) -> None:
        """The sender may go ahead, but not to the end as long as somebody is to be killed."""
        limit = self._plan.count
        if self._kills:
            limit = min(self._kills[-1][0] + max(self._share, 1), limit - 1)
        tell(self._folder, LIMIT, limit)

    def run(self) -> Outcome:
        """Runs it; gives what became of it.

        Raises:
            AssertionError: A message was lost, doubled or overtaken, or something went wrong inside
                of a queue manager.
        """
        with ExitStack() as stack:
            for station in (self._sender, self._receiver):
                stack.callback(station.end)
                station.start()
                if isinstance(station, Station):
                    self._prepare(station)
            wire, seen, _ = stack.enter_context(wire_between(self._sender, self._receiver))
            began = time.monotonic()
            name = self._receiver.direct("orders", seen)
            copies = COPIES if self._plan.copies else ""
            plan = (name, str(self._plan.count), str(self._plan.batch), copies)
            programs = [self._start(stack, "send", self._sender, *plan)]
            if isinstance(self._receiver, Station):
                programs.append(self._start(stack, "receive", self._receiver))
            cut_at = began
            while any(each.poll() is None for each in programs) or not self._has_all():
                self._look(programs, began)
                if time.monotonic() > cut_at:
                    wire.cut()
                    self._outcome.cuts += 1
                    cut_at = time.monotonic() + self._chance.uniform(0.05, self._plan.cut_s)
                self._kill_who_is_due()
                time.sleep(LOOK_S)
            self._look(programs, began)
            self._outcome.seconds = time.monotonic() - began
            self._outcome.connections = wire.connections
            self._check_rest()
            end_cleanly([each for each in self._stations() if isinstance(each, Station)])
        return self._outcome

    def _stations(self) -> tuple[Station | StrictStation, ...]:
        return self._sender, self._receiver

    def _has_all(self) -> bool:
        """Whether a strict peer, which has no program of its own to end, has received all."""
        return not self._plan.strict or 0 < self._number(TOTAL) <= self._number("received")

    def _prepare(self, station: Station) -> None:
        with station.connect() as manager:
            manager.create_queue(ORDERS, transactional=True)
            following = manager.create_queue(NEXT, transactional=True)
            with manager.transaction() as tx:
                following.send("0", tx=tx)

    def _start(
        self, stack: ExitStack, what: str, station: Station, *rest: str
    ) -> subprocess.Popen[bytes]:
        told = stack.enter_context((self._folder / f"{what}.log").open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, what, station.url, str(self._folder), *rest],
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            env=environment(),
            start_new_session=True,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def _number(self, who: str) -> int:
        path = self._folder / who
        return int(path.read_text() or "0") if path.exists() else 0

    def _look(self, programs: list[subprocess.Popen[bytes]], began: float) -> None:
        """How far everybody is, and whether all is well."""
        outcome, now = self._outcome, time.monotonic()
        if isinstance(self._receiver, StrictStation):
            self._receiver.check()
        for what, process in zip(("send", "receive"), programs, strict=not self._plan.strict):
            status = process.poll()
            log = self._folder / f"{what}.log"
            assert not status, f"who had to {what} has ended with {status}:\n{log.read_text()}"
        before = (outcome.sent, outcome.received)
        outcome.sent = max(outcome.sent, self._number("sent"))
        outcome.received = max(outcome.received, self._number("received"))
        if (outcome.sent, outcome.received) != before or now - began < 1:
            self._moved_at = now
        assert now - self._moved_at < STALL_S, f"nothing goes on any more: {outcome}"
        if now - began > self._plan.seconds:
            (self._folder / STOP).touch()
        if now > self._said_at + SAY_S:
            self._said_at = now
            self._say(
                f"{now - began:4.0f} s: {outcome.sent:,} sent, {outcome.received:,} received, "
                f"{outcome.sender_kills + outcome.receiver_kills} kills, {outcome.cuts} cuts"
            )

    def _kill_who_is_due(self) -> None:
        while self._kills and self._outcome.received >= self._kills[-1][0]:
            _, station = self._kills.pop()
            station.kill()
            station.start()
            if station is self._sender:
                self._outcome.sender_kills += 1
            else:
                self._outcome.receiver_kills += 1
            self._allow()

    def _check_rest(self) -> None:
        """All were received, and nothing is left anywhere."""
        total = self._number(TOTAL)
        assert self._outcome.received == total, self._outcome
        if isinstance(self._receiver, Station):
            with self._receiver.connect() as manager:
                assert not len(manager.queue(ORDERS))
        with self._sender.connect() as manager:
            wait_until_sent(manager, within_s=SETTLE_S)
            assert not len(manager.queue(DEAD_LETTERS))
            assert manager.status().outgoing_queues <= 1
        if isinstance(self._receiver, StrictStation):
            complaints = self._folder / COMPLAINTS
            assert not complaints.exists(), complaints.read_text()
            return
        with merq.connect(self._receiver.url) as manager:
            assert not len(manager.queue(DEAD_LETTERS))
