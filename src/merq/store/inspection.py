"""Checks a store's folder, whether it is in use or not. Nothing is written, nothing is locked.

Written from the package's docstring alone: with `findings`, `viewing`, `scanning` and `reading`
it shares no code with what writes and opens a store, so that a mistake there does not hide itself
here. Memory is bounded, whatever the files claim.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID
from zlib import crc32

from merq.errors import StoreError
from merq.store.findings import (
    CORRUPTIONS_MAX,
    Aside,
    CheckpointReport,
    Findings,
    KnownKinds,
    Progress,
    Report,
    SegmentReport,
)
from merq.store.reading import mismatch
from merq.store.scanning import (
    HEADER_SIZE,
    VERSION,
    Owner,
    SegmentScan,
    Start,
    header_problem,
)
from merq.store.viewing import (
    ATTEMPTS_MAX,
    CHUNK,
    HELD_MAX,
    StoreView,
    ViewedFile,
    changing_too_quickly,
    names_in,
)

SETTLE_S: Final = 0.1
"""How long the end of the log is watched before it is called torn and not growing."""

_IDENTITY: Final = struct.Struct("<8sII16sQ16sII")
_CHECKPOINT: Final = struct.Struct("<8sII16sQQQ4xI")
_SECTION: Final = struct.Struct("<QII")
_CHECKED: Final = struct.Struct("<QI")
_KIND_BYTES: Final = 4
_LOG_BEGINS: Final = Start(file="", position=1 << 32 | HEADER_SIZE, sequence=1, oldest=1)


def inspect(
    folder: Path,
    progress: Progress | None = None,
    *,
    settle_s: float = SETTLE_S,
    known: KnownKinds | None = None,
) -> Report:
    """Checks everything in the folder.

    Args:
        folder: The store's.
        progress: Told the bytes done.
        settle_s: How long the end of the log is watched.
        known: The kinds that can be read; all, if it is not given.

    Raises:
        StoreError: The folder is not a store, or one of another version or with kinds that are not
            known, or changes too quickly.
        StoreFailed: The disk failed.
    """
    for _ in range(ATTEMPTS_MAX):
        try:
            with StoreView(folder) as view:
                return examine(view, progress, settle_s=settle_s, known=known)
        except FileNotFoundError:
            continue  # a segment was dropped before it was opened
    raise changing_too_quickly(folder)


def examine(
    view: StoreView,
    progress: Progress | None = None,
    *,
    settle_s: float = SETTLE_S,
    known: KnownKinds | None = None,
) -> Report:
    """Checks what a view holds open."""
    total = sum(file.size() for file in (*view.checkpoints, *view.segments))
    findings = Findings(progress=progress, total=total, known=known)
    owner = _examine_identity(view, findings)
    if owner is None:
        findings.notes.append("without the identity the headers of frames are not all checked")
    store_id = None if owner is None else owner.store_id
    looked_at = [_examine_checkpoint(file, store_id, findings) for file in view.checkpoints]
    checkpoints = [report for report, _ in looked_at]
    start = _start(looked_at, has_first=any(each.number == 1 for each in view.segments))
    _judge_checkpoints(looked_at, start, findings)
    for file, report in zip(view.checkpoints, checkpoints, strict=True):
        if start is not None and report.file == start.file:
            _judge_kinds(file, report, findings)
    segments = _examine_log(view, owner, start, findings, settle_s)
    _compare_end(checkpoints, start, segments, findings)
    if findings.unknown:
        raise StoreError(
            "; ".join(findings.unknown) + ". This release does not know what that is: use the "
            "release that wrote it"
        )
    aside = tuple(
        Aside(file=f"aside/{name}", size=(view.folder / "aside" / name).lstat().st_size)
        for name in names_in(view.folder / "aside")
    )
    findings.notes.extend(_explained(stray) for stray in view.strays)
    return Report(
        folder=view.folder,
        store_id=store_id,
        created=None if owner is None else owner.created,
        segments=tuple(segments),
        checkpoints=tuple(checkpoints),
        aside=aside,
        notes=tuple(findings.notes),
        corruptions=tuple(findings.corruptions),
    )


def _explained(stray: str) -> str:
    if stray == "checkpoints/draft":
        return f"{stray} is a checkpoint that is being written, or was when the store ended"
    return f"{stray} is no part of a store"


def _examine_identity(view: StoreView, findings: Findings) -> Owner | None:
    if view.identity is None:
        problem = 0, "the file is missing beside a log"
    else:
        data = view.identity.read(0, min(view.identity.size(), CHUNK))
        found = _identity_problem(data)
        if found is None:
            _, _, _, owner, created, secret, _, _ = _IDENTITY.unpack(data)
            return Owner(store_id=UUID(bytes=owner), created=created, key=crc32(owner + secret))
        problem = found
    findings.corrupt("identity", *problem, read_at_opening=True)
    return None


def _identity_problem(data: bytes) -> tuple[int, str] | None:
    """What is wrong with the identity and where, or None.

    Raises:
        StoreError: It is whole, but of another version: nothing else here can be judged.
    """
    if data[:8] != b"MERQSTOR":
        return 0, f"{data[:8]!r} is here, an identity begins with b'MERQSTOR'"
    body, found = data[:-4], int.from_bytes(data[-4:], "little")
    version = int.from_bytes(data[8:12], "little")
    if found == crc32(body) and version != VERSION:
        raise StoreError(
            f"the store has version {version} of the format, this program checks only {VERSION}"
        )
    if len(data) != _IDENTITY.size:
        return 0, f"{len(data)} bytes are here, an identity has {_IDENTITY.size}"
    if found != crc32(body):
        return len(body), mismatch(found, crc32(body))
    return None


class _Problem(NamedTuple):
    """What is wrong with a checkpoint; what only has wrong checksums can be done without."""

    offset: int
    reason: str
    is_rotten: bool


def _examine_checkpoint(
    file: ViewedFile, store_id: UUID | None, findings: Findings
) -> tuple[CheckpointReport, _Problem | None]:
    position: int | None = None
    sequence: int | None = None
    oldest = 0
    sections: list[tuple[int, int]] = []
    problem: _Problem | None = None
    size = file.size()
    head = file.read(0, HEADER_SIZE)
    wrong = header_problem(head, b"MERQCKPT", store_id, owner_at=16)
    if wrong is None:
        _, _, count, _, position, sequence, oldest, _ = _CHECKPOINT.unpack(head)
        found = _examine_sections(file, count, sections)
        if found is not None:
            problem = _Problem(*found, is_rotten=True)
        contained = HEADER_SIZE + sum(_SECTION.size + each for _, each in sections)
        if problem is None and contained < size:
            findings.notes.append(f"{file.name} has {size - contained} bytes after its sections")
    else:
        problem = _Problem(wrong.offset, wrong.reason, is_rotten=wrong.lacking)
    findings.advance(size)
    report = CheckpointReport(
        number=file.number,
        file=file.name,
        size=size,
        position=position,
        next_sequence=sequence,
        oldest_segment=oldest,
        sections=tuple(sections),
        whole=problem is None,
    )
    return report, problem


_Examined: TypeAlias = tuple[CheckpointReport, _Problem | None]


def _start(looked_at: list[_Examined], *, has_first: bool) -> Start | None:
    """From where on opening reads: the newest checkpoint that is whole, or all of the log.

    None if opening refuses the store for its checkpoints.
    """
    for report, problem in reversed(looked_at):
        if problem is None:
            assert report.position is not None, "its header was read"
            assert report.next_sequence is not None, "its header was read"
            return Start(
                file=report.file,
                position=report.position,
                sequence=report.next_sequence,
                oldest=report.oldest_segment,
            )
        if not problem.is_rotten:
            return None
    return _LOG_BEGINS if has_first or not looked_at else None


def _judge_checkpoints(looked_at: list[_Examined], start: Start | None, findings: Findings) -> None:
    for report, problem in looked_at:
        if problem is None:
            continue
        is_newest = report is looked_at[-1][0]
        findings.corrupt(
            report.file, problem.offset, problem.reason, read_at_opening=is_newest and start is None
        )
        if is_newest and start is not None:
            instead = start.file or "all of the log"
            findings.notes.append(f"opening does without {report.file}, and reads {instead}")


def _judge_kinds(file: ViewedFile, report: CheckpointReport, findings: Findings) -> None:
    """Looks at the kinds of the sections that opening reads."""
    at = HEADER_SIZE
    for kind, size in report.sections:
        data = file.read(at + _SECTION.size, min(size, _KIND_BYTES))
        findings.judge_section(report.file, at, kind, data)
        at += _SECTION.size + size


def _compare_end(
    checkpoints: list[CheckpointReport],
    start: Start | None,
    segments: list[SegmentReport],
    findings: Findings,
) -> None:
    """A checkpoint that opening does without says that the log was durable up to some place."""
    needed = max((each.position or 0 for each in checkpoints if not each.whole), default=0)
    if start is None or not segments:
        return
    last = segments[-1]
    if last.number << 32 | last.used < needed:
        reason = f"the log ends here, but a checkpoint contained it up to {needed:#x}"
        findings.corrupt(last.file, last.used, reason, read_at_opening=True)


def _examine_sections(
    file: ViewedFile, count: int, sections: list[tuple[int, int]]
) -> tuple[int, str] | None:
    """Adds kinds and sizes to `sections`; gives what is wrong and where, or None."""
    size = file.size()
    at = HEADER_SIZE
    for number in range(1, count + 1):
        head = file.read(at, _SECTION.size)
        if len(head) < _SECTION.size:
            return at, f"the file ends here, section {number} of {count} is missing"
        length, checksum, kind = _SECTION.unpack(head)
        at += _SECTION.size
        end = at + length
        if end > size:
            reason = f"section {number} of {count} has {length} bytes, {size - at} are left"
            return at - _SECTION.size, reason
        found = crc32(_CHECKED.pack(length, kind))
        for place in range(at, end, CHUNK):
            found = crc32(file.read(place, min(CHUNK, end - place)), found)
        if found != checksum:
            return at - _SECTION.size, f"section {number} of {count}: {mismatch(checksum, found)}"
        sections.append((kind, length))
        at = end
    return None


def _examine_log(
    view: StoreView,
    owner: Owner | None,
    start: Start | None,
    findings: Findings,
    settle_s: float,
) -> list[SegmentReport]:
    _find_missing([file.number for file in view.segments], start, findings)
    reports: list[SegmentReport] = []
    before: int | None = None
    expected: int | None = None
    for file in view.segments:
        if before != file.number - 1:
            expected = 1 if start is _LOG_BEGINS and file.number == 1 else None
        scan = SegmentScan(view, file, owner, start, findings, settle_s)
        reports.append(scan.run(expected))
        expected = scan.following
        before = file.number
        if file not in view.segments[:HELD_MAX]:
            file.close()
    return reports


def _find_missing(numbers: list[int], start: Start | None, findings: Findings) -> None:
    """The log has no holes, and begins no later than opening needs it."""
    missing: list[int] = []
    if start is not None and start.number not in numbers:
        missing.append(start.number)
    for number, following in pairwise(numbers):
        missing.extend(range(number + 1, min(following, number + 2 + CORRUPTIONS_MAX)))
    if start is not None and start.oldest and numbers and start.oldest < numbers[0]:
        missing.extend(range(start.oldest, min(numbers[0], start.oldest + 1 + CORRUPTIONS_MAX)))
    for number in sorted(set(missing)):
        reason = "the segment is missing"
        if start is not None and start.oldest <= number < start.number:
            reason += ", but messages may lie in it"
        if start is not None and start.number == number and start.file:
            reason += f"; {start.file} needs the log from offset {start.offset} of it on"
        findings.corrupt(f"log/{number:016x}.segment", 0, reason, read_at_opening=True)
