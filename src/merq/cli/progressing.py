"""Progress of what takes its time, and stopping it where it can be told how far it is."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

PATIENCE_S: Final = 1.0
"""What takes longer shows on a terminal how far it is."""

Told: TypeAlias = Callable[[int], None]


@contextmanager
def progress(doing: str, total: int | None) -> Iterator[Told]:
    """Takes how many are done; a bar on standard error, if that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    bar = Progress(
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(doing, total=total)
    began = time.monotonic()

    def show(done: int) -> None:
        if time.monotonic() - began > PATIENCE_S:
            bar.start()
        bar.update(task, completed=done)

    try:
        yield show
    finally:
        bar.stop()


class Stopping:
    """Ctrl-C between steps instead of within one; a second Ctrl-C does not wait for the step.

    What a step does and counts is then done and counted, or neither.
    """

    def __init__(self) -> None:
        self._wanted = False
        self._in_step = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """A step that is done whole.

        Raises:
            KeyboardInterrupt: At its end, if Ctrl-C was pressed meanwhile.
        """
        self._in_step = True
        try:
            yield
        finally:
            self._in_step = False
        if self._wanted:
            raise KeyboardInterrupt

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-C was pressed."""
        if self._wanted or not self._in_step:
            raise KeyboardInterrupt
        self._wanted = True

    @classmethod
    @contextmanager
    def between_steps(cls) -> Iterator[Stopping]:
        """Within the block Ctrl-C waits for the end of a step; after it, it is what it was."""
        stopping = cls()
        if threading.current_thread() is not threading.main_thread():
            yield stopping  # only the main thread hears of it
            return
        before = signal.signal(signal.SIGINT, stopping.hear)
        try:
            yield stopping
        finally:
            signal.signal(signal.SIGINT, before)
