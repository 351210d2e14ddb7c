"""What a check of a store's folder finds; `inspection` makes it, people and programs read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final
from uuid import UUID

CORRUPTIONS_MAX: Final = 1000
"""How many corruptions are listed; whoever has more needs no longer list."""

_PACKED_KIND_SIZE: Final = 4

UNKNOWN_MAX: Final = 10
"""How many places are named that have something of a kind that is not known."""

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes there are."""


class Verdict(Enum):
    """What a check comes to."""

    SOUND = "sound"
    TORN = "torn"
    CORRUPT = "corrupt"


class End(Enum):
    """How a segment ends."""

    CLEAN = "clean"
    GROWING = "growing"
    TORN = "torn"
    BEGUN = "begun without header"
    CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKinds:
    """Kinds of records and sections that whoever opens the store can read.

    Attributes:
        packing: The kind of section that begins with the kind of what is packed in it, u32; 0 if
            there is none.
    """

    records: frozenset[int]
    sections: frozenset[int]
    packing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """Something that is not what was written.

    Opening reads the log only from the checkpoint's place on: what is wrong before that place would
    be met later, when a message is read.
    """

    file: str
    offset: int
    reason: str
    read_at_opening: bool

    def __str__(self) -> str:
        return f"{self.file} at offset {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentReport:
    """One file of the log; its frames end at `used`, and `kinds` counts records by kind."""

    number: int
    file: str
    size: int
    used: int
    frames: int
    records: int
    kinds: tuple[tuple[int, int], ...]
    first_sequence: int | None
    last_sequence: int | None
    end: End


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointReport:
    """One snapshot; the log up to `position` is contained. `sections` are kinds and sizes."""

    number: int
    file: str
    size: int
    position: int | None
    next_sequence: int | None
    sections: tuple[tuple[int, int], ...]
    whole: bool
    oldest_segment: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Bytes that an earlier opening cut off, or a message that could not be handled."""

    file: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found in a store's folder."""

    folder: Path
    store_id: UUID | None
    created: int | None
    segments: tuple[SegmentReport, ...]
    checkpoints: tuple[CheckpointReport, ...]
    aside: tuple[Aside, ...]
    notes: tuple[str, ...]
    corruptions: tuple[Corruption, ...]

    @property
    def verdict(self) -> Verdict:
        """Sound, torn at the end, or corrupt."""
        if self.corruptions:
            return Verdict.CORRUPT
        torn = any(segment.end is End.TORN for segment in self.segments)
        return Verdict.TORN if torn else Verdict.SOUND

    @property
    def last_sequence(self) -> int | None:
        """The newest frame that is still in a segment; None if there is none."""
        found = [each.last_sequence for each in self.segments if each.last_sequence is not None]
        return found[-1] if found else None


@dataclass(slots=True, kw_only=True)
class Findings:
    """What the parts of a check add to, and how far it is."""

    progress: Progress | None
    total: int
    known: KnownKinds | None = None
    unknown: list[str] = field(default_factory=list)
    done: int = 0
    corruptions: list[Corruption] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def corrupt(self, file: str, offset: int, reason: str, *, read_at_opening: bool) -> None:
        """Adds a corruption, or after too many a note."""
        if len(self.corruptions) < CORRUPTIONS_MAX:
            found = Corruption(
                file=file, offset=offset, reason=reason, read_at_opening=read_at_opening
            )
            self.corruptions.append(found)
            return
        note = f"more than {CORRUPTIONS_MAX} corruptions: the others are not listed"
        if note not in self.notes:
            self.notes.append(note)

    def judge_record(self, file: str, offset: int, kind: int) -> None:
        """Notes a record that opening reads and would not understand."""
        if self.known is not None and kind not in self.known.records:
            self._note_unknown(f"{file} at offset {offset}: a record of kind {kind}")

    def judge_section(self, file: str, offset: int, kind: int, data: bytes) -> None:
        """The same for a section of the checkpoint that opening reads, by its first bytes."""
        if self.known is None:
            return
        if kind == self.known.packing and len(data) >= _PACKED_KIND_SIZE:
            kind = int.from_bytes(data[:_PACKED_KIND_SIZE], "little")
        if kind not in self.known.sections:
            self._note_unknown(f"{file} at offset {offset}: a section of kind {kind}")

    def _note_unknown(self, what: str) -> None:
        if len(self.unknown) < UNKNOWN_MAX:
            self.unknown.append(what)

    def advance(self, size: int) -> None:
        """Counts bytes as checked."""
        self.done += size
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)
