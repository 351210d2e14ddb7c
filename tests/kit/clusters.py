"""A standalone cluster of Spark from the pip package: a master and workers, each a process.

Everything listens on the loopback interface, on ports that are free; each worker has an address of
its own there, one core, and room for one executor. All processes, those of drivers too, have a mark
by which they are found; at the end none is left. What they say is in files beside each other.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

import merq
from acceptance.service_process import environment, wait_until
from kit.marked_processes import Mark, Marked, below
from merq.spark.home import linked_home

LOOPBACK: Final = "127.0.0.1"
WORKERS: Final = 2
EXECUTOR_MEMORY: Final = "640m"
"""Spark does not start one with less than 450 MB."""

WORKER_MEMORY: Final = "700m"
START_S: Final = 60.0
"""So long a master or a worker may take until it is there; on a quiet machine it is two seconds."""

QUICK_JAVA: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -XX:-UsePerfData "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Java starts sooner with these, and works slower."""

LOG_END: Final = 6_000
"""Characters of each log that are shown when something is wrong."""

_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
_PYTHON_WORKERS: Final = "pyspark.daemon"


def free_port() -> int:
    """A port that nobody has, at this moment."""
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        return int(found.getsockname()[1])


def host_of(number: int) -> str:
    """The address of a worker: Spark does not run two attempts at a task on one host."""
    return f"127.0.0.{number + 1}"


class Cluster:
    """A master and its workers.

    Args:
        folder: Where all of their files and logs are.

    Attributes:
        url: What drivers are told.
        mark: What all processes have.
        folder: Where logs are.
        home: Spark's home, without the zip from which Python starts slowly.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = Mark()
        self._port = free_port()
        self.url = f"spark://{LOOPBACK}:{self._port}"
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._started: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)
        self.home = linked_home(Path(pyspark.__file__).parent, folder)

    # Life.

    def start(self) -> None:
        """Returns when all workers are known to the master."""
        log = self.folder / "master.log"
        words = ["--host", LOOPBACK, "--port", str(self._port), "--webui-port", "0"]
        master = self._start([self._class, _MASTER, *words], log)
        self._wait(master, log, "I have been elected leader!")
        for number in range(WORKERS):
            self.start_worker(number, is_awaited=False)
        for number in range(WORKERS):
            self.wait_for_worker(number)

    def start_worker(self, number: int, *, is_awaited: bool = True) -> None:
        """Starts a worker, also again."""
        place, host = self.folder / f"worker-{number}", host_of(number)
        words = ["--host", host, "--webui-port", "0", "--cores", "1"]
        words += ["--memory", WORKER_MEMORY, "--work-dir", str(place), self.url]
        command = [self._class, _WORKER, *words]
        log = self._log_of(number)
        log.unlink(missing_ok=True)
        self._workers[number] = self._start(command, log, host)
        if is_awaited:
            self.wait_for_worker(number)

    def wait_for_worker(self, number: int) -> None:
        """Returns when the master knows it."""
        said = "Successfully registered with master"
        self._wait(self._workers[number], self._log_of(number), said)

    @property
    def _class(self) -> str:
        return str(self.home / "bin" / "spark-class")

    def _log_of(self, number: int) -> Path:
        return self.folder / f"worker-{number}.log"

    def _start(
        self, command: Sequence[str], log: Path, host: str = LOOPBACK
    ) -> subprocess.Popen[bytes]:
        with log.open("ab") as told:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                env=self.environment() | {"SPARK_LOCAL_IP": host},
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def _wait(self, process: subprocess.Popen[bytes], log: Path, text: str) -> None:
        def has_said() -> bool:
            said = log.read_text(errors="replace")
            assert process.poll() is None, f"{log.name} ended:\n{said[-LOG_END:]}"
            return text in said

        wait_until(has_said, f"{log.name} says {text!r}", START_S)

    def end(self) -> None:
        """Nothing of it is left, nor of its drivers."""
        self.mark.kill_all()
        for each in self._started:
            each.wait(START_S)

    # Drivers.

    def environment(self) -> dict[str, str]:
        """What processes of the cluster and drivers find."""
        temporary = self.folder / "temporary"
        temporary.mkdir(exist_ok=True)
        java = f"{QUICK_JAVA} -Djava.io.tmpdir={temporary}"
        rest = {
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_DIRS": str(temporary),
            "SPARK_DAEMON_MEMORY": "256m",
            # An application that loses many executors on purpose is not to be given up.
            "SPARK_DAEMON_JAVA_OPTS": f"{java} -Dspark.deploy.maxExecutorRetries=-1 "
            "-Dspark.master.rest.enabled=false",
            "PYSPARK_PYTHON": sys.executable,
        }
        known = environment(**self.mark.variables, **rest)
        path = [str(Path(merq.__file__).parents[1]), known["PYTHONPATH"]]
        return known | {"PYTHONPATH": os.pathsep.join(path)}

    def settings(self, **more: str) -> dict[str, str]:
        """What a driver has to say to Spark; dots in names are written as two underscores."""
        known = {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.executor.memory": EXECUTOR_MEMORY,
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }
        return known | {name.replace("__", "."): text for name, text in more.items()}

    def run(self, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Starts a driver; what it says goes to a file, behind what others said there."""
        return self._start(command, log)

    # Who is there.

    def workers(self) -> list[Marked]:
        """The workers that live."""
        return [each for each in self.mark.all() if each.has(_WORKER)]

    def worker_number(self, found: Marked) -> int:
        """Which of the workers one is."""
        return next(number for number, each in self._workers.items() if each.pid == found.pid)

    def executors(self) -> list[Marked]:
        """The executors that live."""
        return [each for each in self.mark.all() if each.has(_EXECUTOR)]

    def python_workers(self) -> list[Marked]:
        """The Python processes of executors that do tasks, without those that only start them."""
        found = self.mark.all()
        executors = [each.pid for each in found if each.has(_EXECUTOR)]
        daemons = {
            each.pid for pid in executors for each in below(found, pid) if each.parent == pid
        }
        return [each for each in found if each.has(_PYTHON_WORKERS) and each.parent in daemons]

    def driver(self, pid: int) -> list[Marked]:
        """The Python of a driver, and its Java if that runs by now."""
        found = self.mark.all()
        own = [each for each in found if each.pid == pid]
        java = [each for each in below(found, pid) if each.has(_SUBMIT)]
        return own + java[:1]

    def told(self) -> str:
        """The ends of all logs, for when something is wrong."""
        logs = [*self.folder.glob("*.log"), *self.folder.glob("worker-*/*/*/std*")]
        return "\n".join(
            f"--- {log.relative_to(self.folder)}\n{log.read_text(errors='replace')[-LOG_END:]}"
            for log in sorted(logs)
        )


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster until the end of the block."""
    found = Cluster(folder)
    try:
        found.start()
        yield found
    finally:
        found.end()
