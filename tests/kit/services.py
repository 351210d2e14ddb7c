"""A queue manager in a process of its own, and the command line that speaks to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from merq import Manager, MessageQueueError, connect

NAME: Final = "alpha"
"""The computer name of the queue managers."""

PATIENCE_S: Final = 30
"""No command and no start takes longer."""

_MERQ: Final = (sys.executable, "-m", "merq")


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service that runs, by its data folder."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"unix:{self.folder / 'merq.sock'}"

    def connect(self) -> Manager:
        """A connection to it."""
        return connect(self.url)

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which commands find it."""
        own = {"PYTHONUTF8": "1", "MERQ_DATA": str(self.folder)}
        kept = {name: value for name, value in os.environ.items() if name != "MERQ_URL"}
        return {**kept, **own}

    def merq(
        self, *arguments: str | Path, given: str | bytes = b"", status: int | None = 0
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command; its exit status must be this one, whatever it is if None."""
        data = given.encode() if isinstance(given, str) else given
        done = subprocess.run(
            [*_MERQ, *map(str, arguments)],
            input=data,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
            env=self.environment,
        )
        told = subprocess.CompletedProcess(
            arguments,
            done.returncode,
            done.stdout.decode("utf-8", "backslashreplace"),
            done.stderr.decode("utf-8", "backslashreplace"),
        )
        assert "Traceback" not in told.stderr + told.stdout, told.stderr
        assert status is None or told.returncode == status, (told.returncode, told.stderr)
        return told

    def lines(self, *arguments: str | Path) -> list[dict[str, Any]]:
        """Runs a command with --json and reads what it prints."""
        return [json.loads(line) for line in self.merq(*arguments, "--json").stdout.splitlines()]

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Starts a command that goes on; whoever starts it ends it."""
        return subprocess.Popen(
            [*_MERQ, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
        )


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[RunningService]:
    """A service whose data is in the folder, from when it answers to the end of the block.

    Args:
        folder: It is made if it is not there.
        options: More options of `merq serve`.
    """
    # Beside the folder, for the folder is made by the service.
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*_MERQ, "serve", "--data", str(folder), "--name", NAME, *options],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    service = RunningService(folder, process)
    try:
        _wait_until_it_answers(service, log)
        yield service
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_answers(service: RunningService, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with service.connect() as manager:
                manager.status()
        except MessageQueueError as not_yet:
            if service.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text()) from not_yet
            time.sleep(0.02)
        else:
            return
