"""A key pressed on the terminal, without Enter, while something else goes on."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

try:
    import termios
    import tty
except ImportError:  # Windows has neither: there Ctrl-C has to do
    HAS_TERMIOS = False
else:
    HAS_TERMIOS = True


@contextmanager
def listening() -> Iterator[Callable[[float], str]]:
    """Gives a function that waits so many seconds for a key; it gives none if none was pressed."""
    if not HAS_TERMIOS or sys.stdin is None or not sys.stdin.isatty():
        yield _waited
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)  # what was typed already counts
        yield _pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _waited(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _pressed(seconds: float) -> str:
    readable, _, _ = select.select([sys.stdin], [], [], seconds)
    # Not through Python's buffer: `select` does not see what is in that.
    return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace") if readable else ""
