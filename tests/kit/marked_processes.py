"""Processes that are known by a mark in their environment, which their children inherit.

Spark starts processes that start others, and whose parents die before them. With a mark all of them
are found and ended by their numbers, wherever they belong by then, and nobody else's is touched.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

VARIABLE: Final = "MERQTEST_MARK"
GONE_S: Final = 20.0
"""So long it may take until processes that were killed are gone."""

_LOOK_S: Final = 0.02
_ZOMBIE: Final = "Z"


@dataclass(frozen=True, slots=True)
class Marked:
    """A process with the mark.

    Attributes:
        pid: Its number.
        parent: Whose child it is; 1 or another if that is gone.
        command: Its words.
    """

    pid: int
    parent: int
    command: tuple[str, ...]

    def has(self, *words: str) -> bool:
        """Whether all of these are words of its command."""
        return all(word in self.command for word in words)


class Mark:
    """A mark that no other processes have."""

    def __init__(self) -> None:
        self._text = str(uuid4())

    @property
    def variables(self) -> dict[str, str]:
        """What a process has to find in its environment."""
        return {VARIABLE: self._text}

    def all(self) -> list[Marked]:
        """Those that live, in the order of their numbers."""
        wanted = f"{VARIABLE}={self._text}".encode()
        numbers = sorted(int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
        found = (self._looked_at(pid, wanted) for pid in numbers)
        return [each for each in found if each is not None]

    def _looked_at(self, pid: int, wanted: bytes) -> Marked | None:
        folder = Path(f"/proc/{pid}")
        # It may be somebody else's, or end while it is looked at.
        with suppress(OSError):
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                return None
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != _ZOMBIE:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return Marked(pid, int(parent), tuple(words[:-1]))
        return None

    def kill(self, found: Marked) -> bool:
        """Ends one as a power failure would; says whether it was still there."""
        if not any(each.pid == found.pid for each in self.all()):
            return False
        with suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGKILL)
            return True
        return False

    def kill_all(self) -> None:
        """None of them is left when this returns.

        Raises:
            AssertionError: One does not go.
        """
        until = time.monotonic() + GONE_S
        while found := self.all():
            assert time.monotonic() < until, f"these do not end: {found}"
            for each in found:
                with suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
            time.sleep(_LOOK_S)


def below(found: list[Marked], pid: int) -> list[Marked]:
    """Children of a process, and theirs."""
    near = {pid}
    for _ in found:
        near |= {each.pid for each in found if each.parent in near}
    return [each for each in found if each.pid in near and each.pid != pid]
