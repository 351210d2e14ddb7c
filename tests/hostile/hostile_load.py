"""Honest applications go on while strangers attack: what holds, and what does not.

Two real services on loopback addresses. Numbers travel from one to the other, in transactions and
as recoverable messages, and an application sends to itself and takes the time. First all is quiet;
then every attack of `attacks` runs in a process of its own, and the services are killed; then the
strangers go, and everything is counted. Not in here: the attacks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from acceptance.exchange_soak_program import LIMIT, NEXT, ORDERS, STOP, tell
from acceptance.exchange_soak_program import TOTAL as ORDERS_TOTAL
from acceptance.service_process import environment, wait_until
from hostile import honest_program as honest
from hostile.attacks import ADDRESSES, ATTACKS
from kit.stations import ORDER_QUEUES, Station, new_address
from merq.engine.order_queues import SENDERS_PER_NETWORK_MAX
from merq.protocol.application.requests import Family

SOAK_PROGRAM: Final = "acceptance.exchange_soak_program"
HONEST_PROGRAM: Final = "hostile.honest_program"
ATTACKER_PROGRAM: Final = "hostile.attacker_program"
BATCH: Final = 20
"""Messages of one transaction: many small ones, so that there is always one under way."""

SENT_MAX: Final = 100_000_000
BEGIN_S: Final = 60.0
LOOK_S: Final = 0.1
SAY_S: Final = 10.0
KILL_SHADOW_S: Final = 1.0
"""A send that began so shortly after a kill measures the start, and not the strangers."""

SETTINGS: Final = {
    "log.repeats_max": 10,
    "exchange.retry_s": 1,
    "exchange.retry_max_s": 60,
    "store.cache_bytes": "4MiB",
}
"""As people have them, except that a killed service is called again soon, and that the cache of
messages is small: it keeps what was written last, by strangers too, and would hide lost memory."""

QUEUES_LEFT_MAX: Final = 16
"""A local application may make queues, and one that attacks does."""

OUTGOING_LEFT_MAX: Final = (SENDERS_PER_NETWORK_MAX + 4) * ADDRESSES
"""Acknowledgments wait for strangers who have gone: FinalAcks by whom they are for."""

MESSAGES_LEFT_MAX: Final = 1000 * ADDRESSES
"""But for FinalAcks: each message in order that a stranger sent and somebody received has one, and
who is away for long is told when it comes back. They count against the share of its network."""

SESSIONS_LEFT_MAX: Final = 4
DESCRIPTORS_LEFT_MAX: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run is like.

    Attributes:
        seconds: From the first honest message until the strangers go.
        kills: Kills of the services, in turn, while strangers attack.
        attacks: Which; all of them by default.
        pause_s: Between two rounds of an attack.
        settle_s: How long all that is honest may take to arrive when the strangers have gone.
        ratio: How much longer the 99th of 100 local sends may take than when all is quiet.
        growth_bytes: How much more memory a service may have at the end than before the attack.
        peak_bytes: How much more it may have meanwhile.
    """

    seconds: float = 600.0
    kills: int = 0
    attacks: tuple[str, ...] = tuple(ATTACKS)
    pause_s: float = 0.05
    settle_s: float = 120.0
    ratio: float = 5.0
    growth_bytes: int = 64 << 20
    peak_bytes: int = 1 << 30
    seed: int = 5

    @property
    def quiet_s(self) -> float:
        """How long nobody attacks at first."""
        return min(self.seconds * 0.2, 60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What a service takes, at one moment.

    Attributes:
        messages: But for those that are owed.
        owed: FinalAcks and OrderAcks that wait for who they are for.
    """

    rss_bytes: int
    descriptors: int
    queues: int
    outgoing_queues: int
    messages: int
    owed: int
    sessions: int

    def __str__(self) -> str:
        return (
            f"{self.rss_bytes / (1 << 20):5.0f} MiB, {self.descriptors} descriptors, {self.queues} "
            f"queues, {self.outgoing_queues} outgoing, {self.messages} messages, {self.owed} "
            f"acknowledgments end to end, {self.sessions} sessions"
        )


@dataclass(slots=True)
class Outcome:
    """What became of it.

    Attributes:
        reasons: What did not hold; nothing if all is well.
    """

    orders_sent: int = 0
    orders_received: int = 0
    inbox_sent: int = 0
    inbox_received: int = 0
    kills: int = 0
    quiet_ms: float = 0.0
    attacked_ms: float = 0.0
    worst_ms: float = 0.0
    before: dict[str, Sizes] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)
    after: dict[str, Sizes] = field(default_factory=dict)
    rounds: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        quiet, attacked = f"{self.quiet_ms:.1f} ms quiet", f"{self.attacked_ms:.1f} ms attacked"
        lines = [
            f"transactional: {self.orders_received:,} of {self.orders_sent:,} received",
            f"recoverable:   {self.inbox_received:,} of {self.inbox_sent:,} received",
            f"kills:         {self.kills}",
            f"local send:    p99 {quiet}, {attacked}, {self.worst_ms:.0f} ms at worst",
        ]
        for name, before in self.before.items():
            lines.append(f"{name:8} before: {before}")
            lines.append(f"{name:8} peak:   {self.peak_bytes.get(name, 0) / (1 << 20):5.0f} MiB")
            if name in self.after:
                lines.append(f"{name:8} after:  {self.after[name]}")
        lines += [f"attack {name}: {told}" for name, told in self.rounds.items()]
        verdict = "everything held" if not self.reasons else "DID NOT HOLD:"
        return "\n".join([*lines, verdict, *[f"  - {each}" for each in self.reasons]])


class HostileLoad:
    """One run, from the first honest message to the verdict.

    Args:
        folder: Where everything lies.
        say: Told now and then how far it is.
    """

    def __init__(self, folder: Path, plan: Plan, say: Callable[[str], None] = print) -> None:
        self._folder = folder
        self._plan = plan
        self._say = say
        self._chance = Random(plan.seed)  # noqa: S311 - repeatable on purpose
        self._sender = Station(folder / "laptop", SETTINGS, new_address())
        self._receiver = Station(folder / "office", SETTINGS, new_address())
        self._outcome = Outcome()
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._strangers: dict[str, subprocess.Popen[bytes]] = {}
        self._shadows: list[tuple[float, float]] = []
        self._attacked = (0.0, 0.0)
        self._began = self._said_at = 0.0

    def run(self) -> Outcome:
        """Runs it; what did not hold is in the outcome, nothing is raised for it."""
        with ExitStack() as stack:
            for station in self._stations:
                stack.callback(station.end)
                station.start()
                self._prepare(station)
            stack.callback(self._end_programs)
            self._begin_honest_work()
            wait_until(self._has_begun, "the honest applications are at work", BEGIN_S)
            self._began = time.monotonic()
            self._watch(self._plan.quiet_s, [])
            self._outcome.before = self._sizes()
            self._begin_attacks()
            attack_s = self._plan.seconds - self._plan.quiet_s
            began = time.monotonic()
            self._watch(attack_s, self._times_of_kills(attack_s))
            self._attacked = began, time.monotonic()
            self._end_attacks()
            self._settle()
            self._count()
            self._judge()
            self._stop()
        return self._outcome

    @property
    def _stations(self) -> tuple[Station, Station]:
        return self._sender, self._receiver

    # Who takes part.

    def _prepare(self, station: Station) -> None:
        tell(self._folder, LIMIT, SENT_MAX)
        with station.connect() as manager:
            manager.create_queue(ORDERS, transactional=True)
            manager.create_queue(honest.INBOX)
            manager.create_queue(honest.LOCAL)
            following = manager.create_queue(NEXT, transactional=True)
            with manager.transaction() as tx:
                following.send("0", tx=tx)

    def _begin_honest_work(self) -> None:
        orders, inbox = (self._receiver.direct(name) for name in ("orders", "inbox"))
        sender, receiver = self._sender, self._receiver
        numbers = (str(SENT_MAX), str(BATCH), "")
        self._begin("orders sender", SOAK_PROGRAM, "send", sender, orders, *numbers)
        self._begin("orders receiver", HONEST_PROGRAM, "orders", receiver)
        self._begin("inbox sender", HONEST_PROGRAM, "send", sender, inbox)
        self._begin("inbox receiver", HONEST_PROGRAM, "receive", receiver)
        self._begin("local application", HONEST_PROGRAM, "local", receiver)

    def _begin(self, name: str, program: str, role: str, station: Station, *rest: str) -> None:
        command = ["-m", program, role, station.url, str(self._folder), *rest]
        with (self._folder / f"{name}.log").open("wb") as told:
            self._programs[name] = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                env=environment(),
            )

    def _begin_attacks(self) -> None:
        sender, receiver = self._stations
        targets = [
            {
                "address": one.address,
                "guid": one.guid,
                "friend": other.address,
                "friend_guid": other.guid,
                "socket": str(one.socket_path),
                "started": int(time.time() - self._plan.quiet_s),
            }
            for one, other in ((receiver, sender), (sender, receiver))
        ]
        path = self._folder / "targets.json"
        path.write_text(json.dumps(targets))
        seconds = self._plan.seconds + self._plan.settle_s
        for name in self._plan.attacks:
            more = (str(self._plan.seed), str(seconds), str(self._plan.pause_s))
            with path.open() as given, (self._folder / f"{name}.log").open("wb") as told:
                self._strangers[name] = subprocess.Popen(
                    [sys.executable, "-m", ATTACKER_PROGRAM, name, *more],
                    stdin=given,
                    stdout=told,
                    stderr=told,
                    env=environment(),
                )

    def _end_attacks(self) -> None:
        for name, process in self._strangers.items():
            status, log = process.poll(), self._folder / f"{name}.log"
            told = (log.read_text().splitlines() or ["no round was over in time"])[-1]
            if status is not None:
                self._outcome.reasons.append(f"the attack {name} itself failed: {told}")
            self._outcome.rounds[name] = told
            process.kill()
            process.wait()

    def _end_programs(self) -> None:
        for process in (*self._programs.values(), *self._strangers.values()):
            if process.poll() is None:
                process.kill()
            process.wait()

    # What happens.

    def _has_begun(self) -> bool:
        """Whether numbers of each kind travel, and the local application takes the time."""
        diaries = (honest.TIMES, honest.RECEIVED)
        sizes = [path.stat().st_size for name in diaries if (path := self._folder / name).exists()]
        return len(sizes) == len(diaries) and all(sizes) and self._told("received") > 0

    def _times_of_kills(self, seconds: float) -> list[float]:
        """When somebody is killed, the earliest last: not in the last tenth, to see the end."""
        now, count = time.monotonic(), self._plan.kills
        share = seconds * 0.9 / max(count, 1)
        return [now + share * (at + self._chance.random()) for at in reversed(range(count))]

    def _watch(self, seconds: float, kills: list[float]) -> None:
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            while kills and now >= kills[-1]:
                kills.pop()
                self._kill(self._stations[len(kills) % 2])
            self._look()
            time.sleep(LOOK_S)

    def _kill(self, station: Station) -> None:
        began = time.monotonic()
        if station.is_alive:
            station.kill()
        station.start()
        self._outcome.kills += 1
        if station is self._receiver:
            self._shadows.append((began, time.monotonic() + KILL_SHADOW_S))

    def _look(self) -> None:
        """Notes the largest sizes; a service that has ended by itself is started again."""
        for station in self._stations:
            if not station.is_alive:
                self._outcome.reasons.append(f"{station.name} has ended by itself")
                self._kill(station)
        self._note_peaks()
        now = time.monotonic()
        if now > self._said_at + SAY_S:
            self._said_at = now
            self._count()
            it = self._outcome
            self._say(
                f"{now - self._began:4.0f} s: {it.orders_received:,} of {it.orders_sent:,} "
                f"transactional, {it.inbox_received:,} of {it.inbox_sent:,} recoverable, "
                f"{it.kills} kills"
            )

    def _note_peaks(self) -> None:
        for station in self._stations:
            peak = self._outcome.peak_bytes.get(station.name, 0)
            self._outcome.peak_bytes[station.name] = max(peak, station.rss_bytes)

    def _settle(self) -> None:
        """What is honest arrives, and what strangers left behind goes."""
        (self._folder / STOP).touch()
        end = time.monotonic() + self._plan.settle_s
        while any(each.poll() is None for each in self._programs.values()):
            if time.monotonic() > end:
                break
            time.sleep(LOOK_S)
        self._throw_away()
        end = time.monotonic() + self._plan.settle_s / 2
        while not self._outcome.after or (list(self._leftovers()) and time.monotonic() < end):
            time.sleep(LOOK_S)
            self._outcome.after = self._sizes()
            self._note_peaks()

    def _throw_away(self) -> None:
        """What strangers put into queues that exist is theirs to send, and ours to purge."""
        if any(each.poll() is None for each in self._programs.values()):
            return
        for station in self._stations:
            with station.connect() as manager:
                for name in (ORDERS, honest.INBOX):
                    manager.queue(name).purge()

    def _sizes(self) -> dict[str, Sizes]:
        found = {}
        for station in self._stations:
            with station.connect() as manager:
                status = manager.status()
                owed = sum(
                    each.messages
                    for each in manager.reports(Family.OUTGOING)
                    if ORDER_QUEUES[0] in each.properties.path_name
                )
            found[station.name] = Sizes(
                rss_bytes=station.rss_bytes,
                descriptors=station.descriptors,
                queues=status.queues,
                outgoing_queues=status.outgoing_queues,
                messages=status.messages - owed,
                owed=owed,
                sessions=status.sessions,
            )
        return found

    def _stop(self) -> None:
        for station in self._stations:
            if station.is_alive and station.stop() != 0:
                self._outcome.reasons.append(f"{station.name} did not stop cleanly")
            traces = [each for each in station.log() if "trace" in each]
            if traces:
                last = str(traces[-1]["trace"]).strip().splitlines()[-1]
                what = f"{station.name} told {len(traces)} times of an exception, last {last}"
                self._outcome.reasons.append(what)

    # What came of it.

    def _count(self) -> None:
        it = self._outcome
        it.orders_sent = max(self._told("sent"), self._told(ORDERS_TOTAL))
        it.orders_received = self._told("received")
        it.inbox_sent = len(set(self._diary(honest.SENT)))
        it.inbox_received = len({*self._diary(honest.RECEIVED), *self._diary(honest.MAYBE)})

    def _told(self, name: str) -> int:
        path = self._folder / name
        return int(path.read_text() or "0") if path.exists() else 0

    def _diary(self, name: str) -> list[int]:
        path = self._folder / name
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [int(each) for each in lines if each.endswith("\n")]

    def _judge(self) -> None:
        reasons = self._outcome.reasons
        for name, process in self._programs.items():
            status, log = process.poll(), self._folder / f"{name}.log"
            last = (log.read_text().strip().splitlines() or ["it said nothing"])[-1]
            if status is None:
                reasons.append(f"the {name} was not done in time; last: {last}")
            elif status:
                reasons.append(f"the {name} failed: {last}")
        it = self._outcome
        if it.orders_received != it.orders_sent:
            lost = it.orders_sent - it.orders_received
            reasons.append(f"{lost:,} transactional messages did not arrive")
        reasons += self._judged_inbox()
        reasons += self._judged_times()
        reasons += self._leftovers()
        for name, before in it.before.items():
            grown = it.peak_bytes.get(name, 0) - before.rss_bytes
            if grown > self._plan.peak_bytes:
                reasons.append(f"{name} had {grown >> 20} MiB more memory at its peak")

    def _judged_inbox(self) -> Iterable[str]:
        received = Counter(self._diary(honest.RECEIVED))
        maybe = set(self._diary(honest.MAYBE))
        lost = set(self._diary(honest.SENT)) - received.keys() - maybe
        if lost:
            yield f"{len(lost):,} recoverable messages did not arrive, the first is {min(lost)}"
        excused = maybe | set(self._diary(honest.AGAIN))
        doubled = [number for number, count in received.items() if count > 1]
        doubled = [number for number in doubled if number not in excused]
        if doubled:
            yield f"{len(doubled):,} recoverable messages came twice, the first is {min(doubled)}"

    def _judged_times(self) -> Iterable[str]:
        quiet, attacked = [], []
        first, last = self._attacked
        path = self._folder / honest.TIMES
        for line in path.read_text().splitlines(keepends=True) if path.exists() else []:
            if not line.endswith("\n"):
                continue
            began, taken, _ = (float(part) for part in line.split())
            if began < first:
                quiet.append(taken)
            elif began < last and not any(
                begin <= began + taken and began <= end for begin, end in self._shadows
            ):
                attacked.append(taken)
        it = self._outcome
        if not quiet or not attacked:
            yield f"{len(quiet)} local sends when quiet, {len(attacked)} under attack: too few"
            return
        it.quiet_ms, it.attacked_ms = 1000 * _p99(quiet), 1000 * _p99(attacked)
        it.worst_ms = 1000 * max(attacked)
        if it.attacked_ms > self._plan.ratio * it.quiet_ms:
            yield (
                f"p99 of a local send is {it.attacked_ms / it.quiet_ms:.1f} times that of quiet; "
                f"{self._plan.ratio:g} times is allowed"
            )

    def _leftovers(self) -> Iterable[str]:
        """What strangers left behind in memory, tables and descriptors."""
        for name, after in self._outcome.after.items():
            before = self._outcome.before[name]
            for what, more, allowed in (
                ("MiB of memory", _mib(after.rss_bytes - before.rss_bytes), _mib(self._growth)),
                ("descriptors", after.descriptors - before.descriptors, DESCRIPTORS_LEFT_MAX),
                ("queues", after.queues - before.queues, QUEUES_LEFT_MAX),
                (
                    "outgoing queues",
                    after.outgoing_queues - before.outgoing_queues,
                    OUTGOING_LEFT_MAX,
                ),
                ("messages", after.messages - before.messages, MESSAGES_LEFT_MAX),
                ("sessions", after.sessions - before.sessions, SESSIONS_LEFT_MAX),
            ):
                if more > allowed:
                    yield f"{name} has {more} {what} more than before; {allowed} are allowed"

    @property
    def _growth(self) -> int:
        return self._plan.growth_bytes


def _mib(count: int) -> int:
    return count >> 20


def _p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) * 99 // 100, len(values) - 1)]
