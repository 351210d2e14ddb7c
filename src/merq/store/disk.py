"""The only module of the writing side that touches files.

`Disk` and `LogFile` are what the store needs of a disk. `FileDisk` is a folder of the operating
system; `merq.testing` has another, which tears, forgets and fills up.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, Protocol, TypeVar

from merq.errors import StoreFailed, StoreFull, StoreInUse, StoreShort

Buffer = bytes | bytearray | memoryview
"""Bytes to be written; whoever gives them leaves them alone until they are."""

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
"""Messages are nobody's business but that of the user who runs the queue manager."""

SPARE_DESCRIPTORS: Final = 3
"""Descriptors that a locked folder keeps for the moment when the process gets no other: for the
next segment, for the draft of a checkpoint, and for a folder that is listed meanwhile."""

HELD_FOLDERS: Final = 5
"""Folders whose descriptors a locked folder keeps, so that syncing them needs none: the folder, its
parent, `log`, `checkpoints` and `aside`."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.ENOTDIR, errno.EEXIST}
_SHORT = {errno.EMFILE, errno.ENFILE}
_SAFE_OPEN = (
    os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
)  # nobody waits for the other end of a pipe, nor writes to where a link leads

_T = TypeVar("_T")


class LogFile(Protocol):
    """A file that is written at places of the writer's choice and made durable on demand."""

    def write(self, offset: int, data: Buffer) -> None:
        """Writes all of `data`, or raises StoreFull or StoreFailed."""

    def reserve(self, size: int) -> None:
        """Makes room, zeros to whoever reads them, so that writing up to `size` cannot fail."""

    def read(self, offset: int, size: int) -> bytes:
        """The bytes there; fewer at the end of the file."""

    def sync(self) -> None:
        """Returns when everything written would survive power loss."""

    def truncate(self, size: int) -> None:
        """Cuts the file off."""

    def size(self) -> int:
        """How long the file is."""

    def close(self) -> None:
        """Gives the file back."""


class Disk(Protocol):
    """A folder. Names have `/` between folder and file."""

    def lock(self) -> None:
        """Takes the folder for this process alone, or raises StoreInUse."""

    def unlock(self) -> None:
        """Gives the folder back."""

    def create(self, name: str) -> LogFile:
        """A new file; it must not exist."""

    def open(self, name: str) -> LogFile:
        """A file that exists."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; nothing if there is no such folder."""

    def rename(self, name: str, new_name: str) -> None:
        """Gives a file another name, in place of what has that name."""

    def remove(self, name: str) -> None:
        """Removes a file."""

    def sync_folder(self, folder: str) -> None:
        """Returns when the folder's names would survive power loss."""

    def free_bytes(self) -> int:
        """How many bytes can still be written, as far as the disk itself limits it."""

    def total_bytes(self) -> int:
        """How large the disk is, whatever is on it."""


class _SystemFile:
    """A file of the operating system."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def write(self, offset: int, data: Buffer) -> None:
        try:
            written = os.pwrite(self._descriptor, data, offset)
            while written < len(data):
                # A system writes no more than 2 GiB at once, and less when it is interrupted.
                offset += written
                data = memoryview(data)[written:]
                written = os.pwrite(self._descriptor, data, offset)
        except OSError as wrong:
            raise _failure(wrong, f"writing {self._name} at {offset}") from wrong

    def reserve(self, size: int) -> None:
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._descriptor, 0, size)
        except OSError as wrong:
            if wrong.errno in {errno.EOPNOTSUPP, errno.EINVAL}:
                return  # a file system without it: writing itself will say when it is full
            raise _failure(wrong, f"reserving {size} bytes for {self._name}") from wrong

    def read(self, offset: int, size: int) -> bytes:
        try:
            found = os.pread(self._descriptor, size, offset)
            if len(found) == size or not found:
                return found
            # The end of the file, or more than the system reads at once: 2 GiB.
            parts = [found]
            while found:
                size -= len(found)
                offset += len(found)
                found = os.pread(self._descriptor, size, offset)
                parts.append(found)
            return b"".join(parts)
        except OSError as wrong:
            raise _failure(wrong, f"reading {self._name} at {offset}") from wrong

    def sync(self) -> None:
        try:
            getattr(os, "fdatasync", os.fsync)(self._descriptor)
        except OSError as wrong:
            raise StoreFailed(f"making {self._name} durable: {wrong.strerror}") from wrong

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as wrong:
            raise _failure(wrong, f"cutting {self._name} at {size}") from wrong

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


class _SpareDescriptors:
    """Descriptors of one folder that are given up one by one when the system has no other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = Lock()
        self._spares: list[int] = []

    def fill(self) -> None:
        """Takes as many as there ought to be, if the system has them."""
        if len(self._spares) < SPARE_DESCRIPTORS:
            with self._turn, suppress(OSError):
                while len(self._spares) < SPARE_DESCRIPTORS:
                    self._spares.append(os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC))

    def attempt(self, act: Callable[[], _T]) -> _T:
        """Does something that needs a descriptor, with one of these if there is no other."""
        while True:
            try:
                return act()
            except OSError as wrong:
                if wrong.errno not in _SHORT or not self._give_up_one():
                    raise

    def _give_up_one(self) -> bool:
        with self._turn:
            if not self._spares:
                return False
            os.close(self._spares.pop())
            return True

    def close(self) -> None:
        """Gives all of them back."""
        while self._give_up_one():
            pass


class FileDisk:
    """A folder of the operating system, made if it is not there."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock: int | None = None
        self._spares = _SpareDescriptors(root)
        self._folders: dict[Path, int] = {}

    def lock(self) -> None:
        """Takes the folder, made if it is not there."""
        import fcntl  # noqa: PLC0415 - where it is missing, so is this kind of lock

        path = self._root / "lock"
        try:
            self._root.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        except OSError as wrong:
            raise _failure(wrong, f"opening {path}") from wrong
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreInUse(
                f"{self._root} is open in another process"
                + (f" ({holder})" if holder else "")
                + ": a store has one process at a time; end that one, or name another folder"
            ) from None
        self._lock = descriptor
        # Who holds it is a courtesy to people: a full disk must not keep the store from opening.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        self._spares.fill()
        for folder in ("log", "checkpoints", "aside"):
            if (self._root / folder).is_dir():
                self._hold(folder)

    def unlock(self) -> None:
        """Gives the folder back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self._spares.close()
        while self._folders:
            os.close(self._folders.popitem()[1])

    def create(self, name: str) -> LogFile:
        """A new file, in a folder made if it is not there."""
        self._make_folder_of(name)
        return self._opened(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open(self, name: str) -> LogFile:
        """A file that exists."""
        return self._opened(name, os.O_RDWR)

    def _make_folder_of(self, name: str) -> None:
        try:
            (self._root / name).parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as wrong:
            raise _failure(wrong, f"making the folder of {name}") from wrong
        # Before a file is in it: once that is there, the folder must be synced.
        self._hold(name.rpartition("/")[0] or ".")

    def _opened(self, name: str, flags: int) -> LogFile:
        self._refill()
        path = self._root / name
        try:
            descriptor = self._spares.attempt(lambda: open_regular(path, flags))
        except OSError as wrong:
            raise _failure(wrong, f"opening {name}") from wrong
        return _SystemFile(descriptor, name)

    def _hold(self, folder: str) -> None:
        """Keeps descriptors of a folder and its parent, if the folder is locked."""
        path = self._root / folder
        for place in (path, path.parent):
            if self._lock is not None and place not in self._folders:
                try:
                    opening = partial(os.open, place, os.O_RDONLY | os.O_CLOEXEC)
                    self._folders[place] = self._spares.attempt(opening)
                except OSError as wrong:
                    raise _failure(wrong, f"opening the folder {place}") from wrong

    def _refill(self) -> None:
        if self._lock is not None:
            self._spares.fill()

    def open_to_others(self) -> list[str]:
        """Folders of the store that other users of this computer may look into, or write.

        They are left as they are: whoever made them may have meant it.
        """
        folders = (self._root, *(self._root / each for each in ("log", "checkpoints", "aside")))
        found = [each for each in folders if each.is_dir()]
        return [str(each) for each in found if each.stat().st_mode & 0o077]

    def exists(self, name: str) -> bool:
        """Whether there is such a file.

        Raises:
            StoreFailed: Something else has its name.
        """
        path = self._root / name
        try:
            found = path.lstat()
        except FileNotFoundError:
            return False
        except OSError as wrong:
            raise _failure(wrong, f"looking for {name}") from wrong
        if not stat.S_ISREG(found.st_mode):
            raise StoreFailed(_odd(path, found.st_mode))
        return True

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; what is no file there is refused when it is opened."""
        path = self._root / folder
        try:
            return sorted(self._spares.attempt(lambda: [each.name for each in path.iterdir()]))
        except FileNotFoundError:
            return []
        except OSError as wrong:
            raise _failure(wrong, f"listing the folder {path}") from wrong

    def rename(self, name: str, new_name: str) -> None:
        """Gives a file another name."""
        self._make_folder_of(new_name)
        try:
            (self._root / name).replace(self._root / new_name)
        except OSError as wrong:
            raise _failure(wrong, f"renaming {name} to {new_name}") from wrong

    def remove(self, name: str) -> None:
        """Removes a file."""
        try:
            (self._root / name).unlink()
        except OSError as wrong:
            raise _failure(wrong, f"removing {name}") from wrong

    def sync_folder(self, folder: str) -> None:
        """Makes the folder's names durable."""
        # A new folder's own name must be durable too, so its parent is synced with it.
        path = self._root / folder
        self._hold(folder)
        for place in (path, path.parent):
            try:
                held = self._folders.get(place)
                if held is not None:
                    os.fsync(held)
                    continue
                descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as wrong:
                raise StoreFailed(f"making {place} durable: {wrong.strerror}") from wrong

    def free_bytes(self) -> int:
        """How many bytes are free for this user."""
        self._refill()
        try:
            if not hasattr(os, "statvfs"):
                return shutil.disk_usage(self._root).free
            found = os.statvfs(self._root)
        except OSError as wrong:
            raise _failure(wrong, f"asking for the room at {self._root}") from wrong
        return found.f_bavail * found.f_frsize

    def total_bytes(self) -> int:
        """How large the file system is, also before the folder is made."""
        there = next(each for each in (self._root, *self._root.absolute().parents) if each.exists())
        try:
            return shutil.disk_usage(there).total
        except OSError as wrong:
            raise _failure(wrong, f"asking for the size of {self._root}") from wrong


def open_regular(path: Path, flags: int) -> int:
    """Opens a file of ours, and nothing else that has its name: nobody waits, nothing is followed.

    Raises:
        OSError: It cannot be opened, or is no file: the text says what it is.
    """
    try:
        descriptor = os.open(path, flags | _SAFE_OPEN, FILE_MODE)
    except FileNotFoundError:
        raise
    except OSError as wrong:
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode):
                raise OSError(wrong.errno, _odd(path, mode)) from wrong
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, _odd(path, mode))
    return descriptor


_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def _odd(path: Path, mode: int) -> str:
    """What is to be said of something that has the name of one of our files."""
    what = next((name for is_it, name in _KINDS if is_it(mode)), "a device")
    return f"{path} is {what}, and a file of the store has that name: move it away"


def _failure(wrong: OSError, doing: str) -> StoreFull | StoreFailed:
    if wrong.errno in _SHORT:
        return StoreShort(
            f"{doing}: {wrong.strerror}; nothing of it happened. Let the process have more open "
            "files, by LimitNOFILE of systemd or ulimit -n, or lower exchange.links_max, "
            "exchange.dialled_links_max and limits.connections_max"
        )
    if wrong.errno in _FULL:
        return StoreFull(f"{doing}: {wrong.strerror}; nothing of it was kept")
    return StoreFailed(f"{doing}: {wrong.strerror}{_advice(wrong)}")


def _advice(wrong: OSError) -> str:
    """What to do about a folder that cannot be used, as the end of a sentence."""
    if wrong.errno in _FORBIDDEN:
        return (
            f"; this process is user {os.geteuid()}: the store and all that is in it has to be "
            "that user's (`chown -R`), on a disk that can be written, or name another folder"
        )
    if wrong.errno in _IN_THE_WAY:
        return "; a file is where a folder belongs: name another folder"
    return ""
