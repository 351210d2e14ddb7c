"""A chaos: two streams on a real cluster, of which everything is killed again and again.

Numbers are sent to two queues all the time. One is archived into Parquet by the flow `archive`, the
other is forwarded to a third queue, with speculation on. Drivers, executors, workers, the Python
processes of executors and the queue manager are killed at random. At the end every number must be
in the lake once and in the third queue once and in order, the flow `reconcile` must find that every
message was delivered once, and nothing may be left anywhere.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import pyarrow.parquet as pq

import merq
from acceptance.service_process import ServiceProcess, wait_until
from cluster import chaos_program, troubled_job
from cluster.chaos_program import (
    ARCHIVED,
    ATTEMPTS,
    BEGUN,
    FORWARDED,
    NEXT,
    NUMBERS,
    RECONCILED,
    SENT,
    STOP,
    TARGET,
    TOTAL,
    Orders,
    body_of,
)
from kit.clusters import LOG_END, Cluster
from kit.stations import end_cleanly

DRIVER, EXECUTOR, WORKER = "driver", "executor", "worker"
PYTHON, MANAGER = "python worker", "queue manager"
KINDS: Final = (DRIVER, EXECUTOR, WORKER, PYTHON, MANAGER)
"""What is killed."""

PROGRAM: Final = "cluster.chaos_program"
LOOK_S: Final = 0.1
SAY_S: Final = 10.0
WORKER_AWAY_S: Final = 3.0
"""A worker is started again after so long at most."""

STOP_S: Final = 120.0
DRAIN_S: Final = 600.0
DRAIN_ATTEMPTS: Final = 3
STALL_S: Final = 300.0
"""Something is wrong if nothing goes on for so long; starting takes a minute on a busy machine."""

SHOWN_MAX: Final = 10
"""Numbers that are named if something is wrong with them."""

_REASON: Final = re.compile(r"^[\w.]+(?:Failed|Error|Exception|Loss)\b.*", re.MULTILINE)

SPARK_SETTINGS: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    # A stage of one task is looked at as well.
    "spark.speculation.task.duration.threshold": "1s",
    # Each kill may fail the same task.
    "spark.task.maxFailures": "8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a chaos is like.

    Attributes:
        kills: How many there are in all.
        kinds: Of what.
        messages: The most numbers that are sent.
        rate: So many a second.
        batch: Up to so many in a transaction.
        batch_messages: Messages of a micro-batch.
        pause_s: The longest between two kills, if there is something to kill.
        impatience: So often it is not waited until both streams have gone on since the last kill.
        seconds: No more is killed after this time; what was sent must arrive all the same.
        seed: What decides.
        is_short: All is sent first, and killed is while one driver drains the queues: that is over
            much sooner, because drivers take long to start.
    """

    kills: int = 20
    kinds: tuple[str, ...] = KINDS
    messages: int = 200_000
    rate: int = 200
    batch: int = 100
    batch_messages: int = 2_000
    pause_s: float = 6.0
    impatience: float = 0.25
    seconds: float = 3600.0
    seed: int = 5
    is_short: bool = False


@dataclass(slots=True)
class Outcome:
    """What became of it."""

    sent: int = 0
    archived: int = 0
    forwarded: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    drivers: int = 0
    failed_drivers: int = 0
    attempts: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.sent / self.seconds if self.seconds else 0.0
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kills.items()))
        return (
            f"{self.sent:,} messages, each in the lake once and in the queue once and in order, "
            f"and reconciled, in {self.seconds:.0f} s ({rate:,.0f} a second); "
            f"{self.kills.total()} kills ({kinds}); "
            f"{self.drivers} drivers, of which {self.failed_drivers} ended by a failure; "
            f"{self.attempts} more attempts at tasks (tried again, or twice at once)"
        )


class Chaos:
    """One chaos, from the first message to the last.

    Args:
        folder: Where everything lies; it is left there if something is wrong.
        plan: What it is like.
        cluster: Where it happens; it runs.
        say: Told now and then how far it is.
    """

    def __init__(
        self, folder: Path, plan: Plan, cluster: Cluster, say: Callable[[str], None] = print
    ) -> None:
        self._folder = folder
        self._plan = plan
        self._cluster = cluster
        self._tell = say
        self._chance = Random(plan.seed)  # noqa: S311 - repeatable on purpose
        self._outcome = Outcome()
        self._service = ServiceProcess(folder / "manager", "--name", "chaos")
        self._orders = folder / "orders.json"
        self._settings = cluster.settings() | SPARK_SETTINGS
        self._began = time.monotonic()
        self._said_at = self._moved_at = self._kill_at = 0.0
        self._before = (0, 0)
        self._is_patient = True
        self._kinds = self._planned()
        self._driver: subprocess.Popen[bytes] | None = None
        self._feeder: subprocess.Popen[bytes] | None = None

    def _planned(self) -> list[str]:
        """What is killed, the first last; each kind about as often."""
        kinds = list(self._plan.kinds)
        found: list[str] = []
        while len(found) < self._plan.kills:
            self._chance.shuffle(kinds)
            found += kinds
        return found[: self._plan.kills]

    def run(self) -> Outcome:
        """Runs it; gives what became of it.

        Raises:
            AssertionError: A message was lost or doubled, something was left, or nothing went on.
        """
        self._began = time.monotonic()
        with ExitStack() as stack:
            stack.callback(self._end_driver)
            stack.callback(self._service.end)
            self._service.start()
            manager = stack.enter_context(self._service.connect(reconnect_s=STALL_S))
            self._prepare(manager)
            self._feeder = self._start("feed")
            stack.callback(self._feeder.wait)
            stack.callback(self._feeder.kill)
            if not self._plan.is_short:
                self._drive()
                while self._kinds and time.monotonic() - self._began < self._plan.seconds:
                    self._look(manager)
                    self._revive()
                    self._kill_if_due()
                    time.sleep(LOOK_S)
            self._settle(manager)
            self._drain(manager)
            self._outcome.seconds = time.monotonic() - self._began
            self._check(manager)
            manager.close()
            end_cleanly((self._service,))
        return self._outcome

    # What happens is written down.

    def _say(self, text: str) -> None:
        line = f"{time.monotonic() - self._began:5.0f} s: {text}"
        with (self._folder / "chaos.log").open("a") as file:
            print(line, file=file)
        self._tell(line)

    # Who takes part.

    def _prepare(self, manager: merq.Manager) -> None:
        for name in (ARCHIVED, FORWARDED):
            manager.create_queue(name, transactional=True, journal=True)
        for name in (TARGET, NUMBERS):
            manager.create_queue(name, transactional=True)
        following = manager.create_queue(NEXT, transactional=True)
        with manager.transaction() as tx:
            following.send("0", tx=tx)
        plan = self._plan
        Orders(
            url=self._service.url,
            folder=str(self._folder),
            master=self._cluster.url,
            count=plan.messages,
            rate=plan.rate,
            batch=plan.batch,
            batch_messages=plan.batch_messages,
            is_short=plan.is_short,
            seed=plan.seed,
            settings=self._settings,
        ).write(self._orders)

    def _start(self, what: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", PROGRAM, what, str(self._orders)]
        return self._cluster.run(command, self._folder / f"{what}.log")

    def _submit(self, what: str) -> subprocess.Popen[bytes]:
        """The same program, as people start programs on a cluster."""
        conf = [f"--conf={name}={text}" for name, text in self._settings.items()]
        words = [str(chaos_program.__file__), what, str(self._orders)]
        command = [str(self._cluster.home / "bin" / "spark-submit"), "--master", self._cluster.url]
        return self._cluster.run([*command, *conf, *words], self._folder / f"{what}.log")

    def _drive(self) -> None:
        self._driver = self._start("drive")
        self._outcome.drivers += 1

    def _end_driver(self) -> None:
        if self._driver is not None and self._driver.poll() is None:
            self._driver.kill()
            self._driver.wait()

    def _look(self, manager: merq.Manager) -> None:
        """How far everybody is."""
        outcome, now = self._outcome, time.monotonic()
        assert self._feeder is not None
        assert not self._feeder.poll(), f"the feeder has failed: {self._end_of('feed.log')}"
        told = self._folder / SENT
        outcome.sent = max(outcome.sent, int((told.read_text() if told.exists() else "") or 0))
        before = (outcome.archived, outcome.forwarded)
        outcome.archived = max(outcome.archived, outcome.sent - len(manager.queue(ARCHIVED)))
        outcome.forwarded = max(outcome.forwarded, len(manager.queue(TARGET)))
        if (outcome.archived, outcome.forwarded) != before or not self._moved_at:
            self._moved_at = now
        assert now - self._moved_at < STALL_S, f"nothing goes on any more: {outcome}"
        if now > self._said_at + SAY_S:
            self._said_at = now
            self._say(
                f"{outcome.sent:,} sent, {outcome.archived:,} archived, {outcome.forwarded:,} "
                f"forwarded, {outcome.kills.total()} kills, {outcome.drivers} drivers"
            )

    def _revive(self) -> None:
        """A driver that has failed is started again."""
        if self._driver is not None and self._driver.poll() is not None:
            self._outcome.failed_drivers += 1
            self._say(f"the driver has failed: {self._reason('drive.log')}")
            self._drive()

    def _end_of(self, log: str) -> str:
        return (self._folder / log).read_text(errors="replace").strip()[-LOG_END:]

    def _reason(self, log: str) -> str:
        found = _REASON.findall(self._end_of(log))
        return str(found[-1]) if found else f"see {log}"

    # Killing.

    def _kill_if_due(self) -> None:
        now, outcome = time.monotonic(), self._outcome
        if now < self._kill_at:
            return
        if self._is_patient and not self._have_both_moved():
            return
        kind = self._kinds.pop()
        if not self._kill(kind):
            self._kinds.insert(0, kind)
            return
        outcome.kills[kind] += 1
        self._before = (outcome.archived, outcome.forwarded)
        self._kill_at = time.monotonic() + self._chance.uniform(0.2, self._plan.pause_s)
        self._is_patient = self._chance.random() > self._plan.impatience

    def _have_both_moved(self) -> bool:
        outcome = self._outcome
        return outcome.archived > self._before[0] and outcome.forwarded > self._before[1]

    def _kill(self, kind: str) -> bool:
        """Kills one of a kind; says whether there was one."""
        cluster = self._cluster
        match kind:
            case "driver":
                return self._kill_driver()
            case "queue manager":
                self._say(f"kills the queue manager, {self._service.pid}")
                self._service.kill()
                self._service.start()
                return True
            case "executor":
                found = cluster.executors()
            case "worker":
                found = cluster.workers()
            case _:
                found = cluster.python_workers()
        if not found:
            return False
        chosen = self._chance.choice(found)
        self._say(f"kills one of {len(found)}: {kind} {chosen.pid}")
        number = cluster.worker_number(chosen) if kind == WORKER else 0
        if not cluster.mark.kill(chosen):
            return False
        if kind == WORKER:
            time.sleep(self._chance.uniform(0.0, WORKER_AWAY_S))
            cluster.start_worker(number)
        return True

    def _kill_driver(self) -> bool:
        """The Python of the driver, its Java, or both; another is started at once."""
        assert self._driver is not None
        found = self._cluster.driver(self._driver.pid)
        if len(found) < 2 or self._driver.poll() is not None:
            return False
        which = self._chance.choice(([0], [1], [0, 1]))
        self._say(f"kills of the driver {' and '.join(('Python', 'Java')[each] for each in which)}")
        for each in which:
            self._cluster.mark.kill(found[each])
        self._driver = None
        if self._kinds:  # after the last kill the one that drains the queues takes its place
            self._drive()
        return True

    # The end.

    def _settle(self, manager: merq.Manager) -> None:
        """The driver stops, unless there is none, and the last messages are sent."""
        if self._driver is not None:
            self._before = (self._outcome.archived, self._outcome.forwarded)
            while not self._have_both_moved():
                self._look(manager)
                self._revive()
                time.sleep(LOOK_S)
            self._say("stops the driver")
            self._driver.send_signal(signal.SIGTERM)
            _wait_for(self._driver, STOP_S)
        while self._plan.is_short and self._outcome.sent + self._plan.batch <= self._plan.messages:
            self._look(manager)
            time.sleep(LOOK_S)
        (self._folder / STOP).touch()
        assert self._feeder is not None
        _wait_for(self._feeder, STOP_S)

    def _drain(self, manager: merq.Manager) -> None:
        self._say("drains both queues")
        for left in reversed(range(DRAIN_ATTEMPTS)):
            self._driver = self._submit("drain")
            self._outcome.drivers += 1
            until = time.monotonic() + DRAIN_S
            while self._driver.poll() is None and time.monotonic() < until:
                self._moved_at = time.monotonic()  # in the end it does other things
                self._look(manager)
                if self._plan.is_short and self._kinds:
                    self._kill_if_due()
                time.sleep(LOOK_S)
            if self._driver.poll() == 0:
                return
            # On a busy machine Spark gives up waiting for a process that it has started.
            self._outcome.failed_drivers += 1
            self._say(f"draining has failed: {self._reason('drain.log')}")
            self._end_driver()
            assert left, f"draining fails again and again: {self._end_of('drain.log')}"

    def _check(self, manager: merq.Manager) -> None:
        """Everything is there once, and nothing is left."""
        outcome = self._outcome
        outcome.sent = int((self._folder / TOTAL).read_text())
        expected = [body_of(number) for number in range(outcome.sent)]
        archived, ids = self._archived()
        forwarded = [str(each.body) for each in manager.queue(TARGET).peek_all()]
        wrong = [
            *_differing("the lake", expected, archived),
            *_differing("the queue", expected, forwarded),
        ]
        assert not wrong, "; ".join(wrong)
        assert forwarded == expected, "the queue has all of them, in another order"
        assert len(set(ids)) == len(ids), "the lake has a message id twice"
        for name in (ARCHIVED, FORWARDED):
            assert not len(manager.queue(name)), f"{name} has {len(manager.queue(name))} messages"
        claims = [each for each in manager.bulk.claims() if each.messages]
        assert not claims, f"reservations are left: {claims}"
        stages = manager.bulk.stages()
        assert not stages, f"stages are left: {stages}"
        staged = list((self._folder / "lake" / "_staging").rglob("*.parquet"))
        assert not staged, f"files of batches are left: {staged}"
        outcome.archived, outcome.forwarded = len(archived), len(forwarded)
        self._check_verdicts()
        self._check_job(manager)
        attempts = self._folder / ATTEMPTS
        outcome.attempts = len(attempts.read_text().splitlines()) if attempts.exists() else 0

    def _check_verdicts(self) -> None:
        """Journals of both queues, the third queue, and the feeder's own have them all, once."""
        outcome = self._outcome
        outcome.verdicts = json.loads((self._folder / RECONCILED).read_text())
        messages = 3 * outcome.sent + 1
        found = (outcome.verdicts["messages"], outcome.verdicts["delivered"])
        assert found == (messages, messages), f"not {messages}: {outcome.verdicts}"

    def _check_job(self, manager: merq.Manager) -> None:
        """Rows of tasks that failed, or ran twice at once, were sent once."""
        begun = {each.name for each in (self._folder / BEGUN).iterdir()}
        assert begun >= troubled_job.ATTEMPTS, f"only these attempts have begun: {begun}"
        found = [str(each.body) for each in manager.queue(NUMBERS).peek_all()]
        expected = [troubled_job.text_of(number) for number in range(troubled_job.ROWS)]
        assert not _differing("the queue of the job", expected, found)
        assert found == expected, "the job has sent all rows, in another order"

    def _archived(self) -> tuple[list[str], list[str]]:
        """Bodies and message ids, as any program finds them that reads Parquet in folders."""
        bodies: list[str] = []
        ids: list[str] = []
        for each in sorted((self._folder / "lake").glob("day=*/queue=*/*.parquet")):
            table = pq.ParquetFile(each).read(columns=["body_text", "message_id"])
            bodies += table["body_text"].to_pylist()
            ids += table["message_id"].to_pylist()
        return bodies, ids


def _wait_for(process: subprocess.Popen[bytes], within_s: float) -> None:
    wait_until(lambda: process.poll() is not None, "the process has ended", within_s)


def _differing(where: str, expected: list[str], found: list[str]) -> list[str]:
    """What is wrong with what was found."""
    counts = Counter(found)
    wrong = {
        "lacks": [each for each in expected if not counts[each]],
        "has more than once": [each for each, count in counts.items() if count > 1],
        "has, though nobody sent it": list(counts.keys() - set(expected)),
    }
    return [
        f"{where} {what} {len(some)}: {', '.join(sorted(some)[:SHOWN_MAX])}"
        for what, some in wrong.items()
        if some
    ]
