"""Forked children: limited in time and memory, and never left behind with what they started."""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

MEMORY_MAX = 6 << 30
NOTE_MAX = 4096

Note = Callable[[str], None]


@dataclass(frozen=True)
class End:
    """How a child ended: its last note, and the signal that ended it, or 0."""

    note: str
    signal: int


def run(work: Callable[[Note], None]) -> End:
    """Does the work in a child, waits for its end, and ends whatever the child started.

    The work may leave notes, of which the last is kept even if a signal ends the child.
    """
    scratch = tempfile.mkdtemp(prefix="mutant")
    status = 0
    with mmap.mmap(-1, NOTE_MAX) as board:
        child = start(lambda: work(lambda text: _pin(board, text)), scratch)
        try:
            _, status = os.waitpid(child, 0)
        finally:
            end(child)
            shutil.rmtree(scratch, ignore_errors=True)
        note = board[:].partition(b"\0")[0].decode("utf-8", "replace")
    return End(note, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)


def start(work: Callable[[], None], scratch: str) -> int:
    """Starts a child in a group of its own; temporary files go into the scratch folder."""
    sys.stdout.flush()
    sys.stderr.flush()
    return os.fork() or _live(work, scratch)


def limit(processor_s: float, wall_s: float) -> None:
    """Gives this process so much time from now on; a signal ends it where it is."""
    signal.setitimer(signal.ITIMER_PROF, processor_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


def end(child: int) -> None:
    """Ends a child and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _pin(board: mmap.mmap, text: str) -> None:
    data = text.encode()[: NOTE_MAX - 1] + b"\0"
    board[: len(data)] = data


def _live(work: Callable[[], None], scratch: str) -> NoReturn:
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # pytest's folders of temporary files, and everybody else's.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = scratch
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - a child must never go on in its parent's code
        traceback.print_exc()
    finally:
        os._exit(code)
