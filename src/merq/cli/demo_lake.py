"""The archive beside `merq demo`: a process of Spark's that puts sample messages into a table.

It has a session of its own, so that Ctrl-C reaches the demo first, which ends it then. What it says
goes to a file beside the lake. If it outlives the demo, it ends when it finds nobody to read from.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from merq.errors import MerqError

QUEUE: Final = "orders;JOURNAL"
"""What was received from the sample queue stays in its journal, and goes into the table."""

FIRST_ROW_S: Final = 120.0
"""So long the first row may take; Spark starts meanwhile."""

STOP_S: Final = 30.0
"""So long Spark may take to end."""

LOOK_S: Final = 0.2


class DemoLake:
    """An archive that runs until it is stopped.

    Args:
        lake: The folder of the table.
        socket_path: Where the queue manager is.
    """

    def __init__(self, lake: Path, socket_path: Path) -> None:
        self._lake = lake
        self._socket_path = socket_path
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ending = threading.Event()

    @property
    def log_path(self) -> Path:
        """What Spark says."""
        return self._lake.with_name(f"{self._lake.name}.log")

    def start(self) -> str:
        """Starts it; says why it cannot be if so, and nothing else."""
        obstacle = _obstacle()
        if obstacle or self._is_ending.is_set():
            return obstacle
        self._lake.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - ourselves
                [
                    *(sys.executable, "-m", "merq", "pipeline", "run", "archive"),
                    *("--url", f"unix:{self._socket_path}", "--queue", QUEUE),
                    *("--lake", str(self._lake), "--mode", "continuous"),
                    *("--master", "local[1]", "--quick"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return ""

    def wait_for(self, message_id: str) -> list[str]:
        """What is to be told of a message's row, once it is there; nothing if it ends before."""
        from merq.spark.lake.reading import find_message  # noqa: PLC0415 - pyarrow takes long

        assert self._process is not None
        until = time.monotonic() + FIRST_ROW_S
        while not self._is_ending.wait(LOOK_S):
            found = find_message(str(self._lake), message_id)
            if found is not None:
                return _told(self._lake, found[1])
            if self._process.poll() is not None:
                return [f"it has ended by itself; {self.log_path} says why. All else goes on."]
            if time.monotonic() > until:
                return [f"nothing came within {FIRST_ROW_S:g} s; {self.log_path} may say why."]
        return []

    def abandon(self) -> None:
        """Who waits for a row need not any more."""
        self._is_ending.set()

    def stop(self) -> None:
        """Ends it, and returns when nothing of it runs."""
        self._is_ending.set()
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        # Its Java, if it was stopped while that was starting, would live for seconds.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _obstacle() -> str:
    """Why Spark cannot run here; empty if it can."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        return "pyspark is not installed: pip install merq[spark]"
    from merq.spark.java import find_java  # noqa: PLC0415 - only what pipelines need

    try:
        find_java()
    except MerqError as wrong:
        return str(wrong)
    return ""


def _told(lake: Path, row: dict[str, Any]) -> list[str]:
    arrived = row["arrived_time"].astimezone(UTC)
    return [
        f"{row['message_id']} “{row['label']}”: {row['body_text']!r}",
        f"is a row of {lake}, from {row['queue']}, arrived {arrived:%Y-%m-%d %H:%M:%S} UTC",
    ]
