"""What a process has open, looked at from outside."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def open_files(pid: int) -> set[str]:
    """What its descriptors lead to, sockets as `socket:[number]`; it may close some meanwhile."""
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(each.readlink()))
    return found
