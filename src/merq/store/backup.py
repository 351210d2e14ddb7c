"""Copies of a store: made while it is in use or not, and put back.

A copy holds the identity, the newest checkpoint and every segment, each up to the end of its whole
frames. So opening it gives a prefix of the log that includes everything that was durable when the
backup began. It is written beside its place under another name, checked and renamed last.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from uuid import UUID

from merq.errors import StoreCorrupt, StoreError, StoreFailed, StoreFull
from merq.store.findings import End, KnownKinds, Progress, Report, Verdict
from merq.store.inspection import examine, inspect
from merq.store.viewing import (
    ATTEMPTS_MAX,
    CHUNK,
    StoreView,
    ViewedFile,
    changing_too_quickly,
)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """What was copied, after the copy was checked. `last_sequence` is the newest frame in it.

    `aside` is how many files in the folder of that name were not copied.
    """

    target: Path
    store_id: UUID
    segments: int
    frames: int
    last_sequence: int | None
    checkpoint: int | None
    size: int
    aside: int = 0


def back_up(
    source: Path,
    target: Path,
    progress: Progress | None = None,
    *,
    known: KnownKinds | None = None,
) -> BackupReport:
    """Copies a store, also one in use by another process, to a folder that is new or empty.

    Args:
        source: The store's folder.
        target: Where the copy will be. Its parent must exist.
        progress: Told the bytes done, of three times the store: read, copied, checked.
        known: The kinds of records and sections that can be read; all, if it is not given.

    Raises:
        StoreCorrupt: The store is; nothing was copied.
        StoreFull: There is no room for the copy.
        StoreError: The source is not a store or has kinds that are not known, or the target is not
            empty.
    """
    return _copy(source, target, progress, known)


def restore(
    backup: Path,
    folder: Path,
    progress: Progress | None = None,
    *,
    known: KnownKinds | None = None,
) -> BackupReport:
    """Copies a backup to a folder that is new or empty, where it will be run.

    The store keeps its identity: only one copy of it may ever run.

    Raises:
        StoreCorrupt: The backup is not what was written; nothing was changed.
        StoreFull: There is no room for the copy.
        StoreError: The backup is not a store, or the folder is not empty.
    """
    found = inspect(backup, known=known)
    _refuse_corrupt(found)
    for segment in found.segments:
        # Backups end with a whole frame: what is not whole here was so when it was made.
        if segment.end in {End.TORN, End.BEGUN}:
            reason = "the segment goes on, but not with a whole frame as when the backup was made"
            raise StoreCorrupt(segment.file, segment.used, reason)
    return _copy(backup, folder, progress, known)


def _copy(
    source: Path, target: Path, progress: Progress | None, known: KnownKinds | None
) -> BackupReport:
    target = target.resolve()
    _check_target(source.resolve(), target)
    for _ in range(ATTEMPTS_MAX):
        try:
            with StoreView(source) as view:
                return _copy_view(view, target, _Steps(progress), known)
        except FileNotFoundError:
            continue  # a segment was dropped before it was opened
    raise changing_too_quickly(source)


def _check_target(source: Path, target: Path) -> None:
    if target == source or source in target.parents:
        raise StoreError(f"{target} is in the store itself: name a folder elsewhere")
    if not target.parent.is_dir():
        raise StoreError(f"{target.parent} does not exist: make it first")
    if target.exists() and not target.is_dir():
        raise StoreError(f"{target} is a file: name a folder that is new or empty")
    if target.is_mount():
        raise StoreError(f"{target} is where a file system is mounted: name a new folder in it")
    if target.is_dir() and any(target.iterdir()):
        raise StoreError(
            f"{target} is not empty: name a folder that is new or empty, or move that one away; "
            "nothing is ever overwritten"
        )


def _copy_view(
    view: StoreView, target: Path, steps: _Steps, known: KnownKinds | None
) -> BackupReport:
    found = examine(view, steps.step(0), known=known)
    _refuse_corrupt(found)
    with _unfinished(target) as folder:
        _copy_files(view, found, folder, steps)
        copied = inspect(folder, steps.step(2), settle_s=0)
        _compare(found, copied)
        # An empty folder is replaced; one that has got files meanwhile is not.
        folder.rename(target)
    _sync_folder(target.parent)
    assert copied.store_id is not None, "a corrupt identity was refused"
    return BackupReport(
        target=target,
        store_id=copied.store_id,
        segments=len(copied.segments),
        frames=sum(segment.frames for segment in copied.segments),
        last_sequence=copied.last_sequence,
        checkpoint=copied.checkpoints[-1].number if copied.checkpoints else None,
        size=sum(each.size for each in copied.segments)
        + sum(each.size for each in copied.checkpoints),
        aside=len(found.aside),
    )


def _refuse_corrupt(found: Report) -> None:
    if found.corruptions:
        first = found.corruptions[0]
        raise StoreCorrupt(first.file, first.offset, first.reason)


def _compare(found: Report, copied: Report) -> None:
    """A copy is declared good only if the check says of it what it said of the store."""
    frames = [each.frames for each in found.segments if each.end is not End.BEGUN]
    if (
        copied.verdict is not Verdict.SOUND
        or copied.store_id != found.store_id
        or copied.last_sequence != found.last_sequence
        or [each.frames for each in copied.segments] != frames
    ):
        what = str(copied.corruptions[0]) if copied.corruptions else "frames are missing"
        raise StoreFailed(f"the copy of {found.folder} is not what was copied: {what}")


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """A folder beside the target; it is gone afterwards unless it was renamed."""
    try:
        folder = Path(mkdtemp(prefix=f".{target.name}.unfinished-", dir=target.parent))
    except OSError as wrong:
        raise _failure(wrong, target) from wrong
    try:
        yield folder
    except FileNotFoundError:
        raise
    except OSError as wrong:
        raise _failure(wrong, target) from wrong
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _failure(wrong: OSError, target: Path) -> StoreFull | StoreFailed:
    kind = StoreFull if wrong.errno in _FULL else StoreFailed
    return kind(f"copying to {target}: {wrong.strerror}; nothing was left there")


def _copy_files(view: StoreView, found: Report, folder: Path, steps: _Steps) -> None:
    sizes = {each.file: each.used for each in found.segments if each.end is not End.BEGUN}
    sizes |= {each.file: each.size for each in found.checkpoints[-1:]}
    total = sum(sizes.values())
    done = 0
    progress = steps.step(1)
    for file in (*view.segments, *view.checkpoints):
        if file.name not in sizes:
            continue
        _copy_file(file, sizes[file.name], folder)
        file.close()
        done += sizes[file.name]
        progress(done, total)
    # Without its identity a folder is no store, so it comes last.
    assert view.identity is not None, "a missing identity was refused"
    _copy_file(view.identity, view.identity.size(), folder)
    for path in (folder / "log", folder / "checkpoints", folder):
        if path.is_dir():
            _sync_folder(path)


def _copy_file(file: ViewedFile, size: int, folder: Path) -> None:
    path = folder / file.name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with open(path, "xb", opener=_private) as copy:
        pieces = range(0, size, CHUNK)
        copy.writelines(file.read(place, min(CHUNK, size - place)) for place in pieces)
        copy.flush()
        os.fsync(copy.fileno())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Steps:
    """One progress of three passes."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    def step(self, number: int) -> Progress:
        """The progress of one pass."""

        def report(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(number * total + done, 3 * total)

        return report
