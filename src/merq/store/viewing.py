"""The files of a store as they stand, for reading only, also while another process writes them."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from merq.errors import StoreError, StoreFailed

CHUNK: Final = 1 << 20
"""The most that is read at once, whatever a file claims; a multiple of a frame's alignment."""
ATTEMPTS_MAX: Final = 10
"""How often a store that changes while its files are opened is looked at anew."""
HELD_MAX: Final = 128
"""How many segments are held open, the oldest first: those are the ones that may go away."""

_NAME: Final = re.compile(r"([0-9a-f]{16})\.(segment|checkpoint)")


class ViewedFile:
    """A file that is only read."""

    def __init__(self, folder: Path, name: str, number: int = 0) -> None:
        self.name = name
        self.number = number
        self._path = folder / name
        self._descriptor: int | None = None

    def hold(self) -> int:
        """Opens the file; from then on it can be read even if its name goes away."""
        if self._descriptor is None:
            self._descriptor = _opened(self._path)
        return self._descriptor

    def size(self) -> int:
        """How long it is now."""
        if self._descriptor is None:
            return self._path.stat().st_size
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        """At most `CHUNK` bytes; fewer at the end of the file."""
        assert size <= CHUNK, "memory is bounded"
        descriptor = self.hold()
        try:
            return os.pread(descriptor, size, offset)
        except OSError as wrong:
            raise StoreFailed(f"reading {self.name} at {offset}: {wrong.strerror}") from wrong

    def close(self) -> None:
        """Gives the file back; reading opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class StoreView:
    """The files of a store that belong together: a checkpoint, and every segment it may need.

    A segment is dropped only under a checkpoint that no longer needs it. So if the newest
    checkpoint is still the newest after the segments were listed, none that it needs is missing.

    Raises:
        StoreError: The folder is not a store, or changes too quickly.
        FileNotFoundError: When a segment beyond `HELD_MAX` was dropped before it was read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.identity: ViewedFile | None = None
        self.checkpoints: list[ViewedFile] = []
        self.segments: list[ViewedFile] = []
        self.strays: list[str] = []

    def __enter__(self) -> Self:
        if not self.folder.is_dir():
            raise StoreError(f"{self.folder} is not a store: there is no such folder")
        for _ in range(ATTEMPTS_MAX):
            if self._look():
                return self
            self.close()
        raise changing_too_quickly(self.folder)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives all files back."""
        for file in (*self.checkpoints, *self.segments):
            file.close()
        if self.identity is not None:
            self.identity.close()

    def has_later_segment(self, number: int) -> bool:
        """Whether by now the log goes on in another segment."""
        segments, _ = self._listed("log", "segment")
        return any(file.number > number for file in segments)

    def _look(self) -> bool:
        """Opens what is there; False if it changed meanwhile."""
        self.checkpoints, strays = self._listed("checkpoints", "checkpoint")
        self.segments, more = self._listed("log", "segment")
        self.strays = strays + more
        if "identity" in names_in(self.folder):
            self.identity = ViewedFile(self.folder, "identity")
            self.identity.hold()
        elif not self.segments and not self.checkpoints:
            raise StoreError(f"{self.folder} is not a store: it has no file named identity")
        try:
            for file in (*self.checkpoints, *self.segments[:HELD_MAX]):
                file.hold()
        except FileNotFoundError:
            return False
        now, _ = self._listed("checkpoints", "checkpoint")
        return [file.number for file in now[-1:]] == [file.number for file in self.checkpoints[-1:]]

    def _listed(self, folder: str, kind: str) -> tuple[list[ViewedFile], list[str]]:
        """The files of one kind in the order of their numbers, and what else is there."""
        found: list[ViewedFile] = []
        strays: list[str] = []
        for name in names_in(self.folder / folder):
            match = _NAME.fullmatch(name)
            if match and match[2] == kind:
                found.append(ViewedFile(self.folder, f"{folder}/{name}", int(match[1], 16)))
            else:
                strays.append(f"{folder}/{name}")
        return found, strays


def names_in(folder: Path) -> list[str]:
    """What is there, sorted; nothing if there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir())


def _opened(path: Path) -> int:
    """Opens a file, and nothing else that has its name: a link, or a pipe that one would wait at.

    Raises:
        StoreError: It is something else.
    """
    wanted = "a file of the store has that name: move it away"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as wrong:
        if wrong.errno in {errno.ELOOP, errno.ENXIO}:
            raise StoreError(f"{path} is a link or a socket, and {wanted}") from wrong
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is a folder, a pipe or a device, and {wanted}")
    return descriptor


def changing_too_quickly(folder: Path) -> StoreError:
    """What is raised when a store drops its files faster than they can be opened."""
    return StoreError(f"{folder} changed {ATTEMPTS_MAX} times while it was read: try again later")
