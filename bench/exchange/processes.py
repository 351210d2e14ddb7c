"""What is done to processes that run: their CPU time is read, and they are made to stand still."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(process: int) -> float:
    """The CPU time that a process has had, in user and in system mode."""
    text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    # The second field is the program's name in brackets, and may have spaces.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """A process stands still meanwhile; its connections stay."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)
