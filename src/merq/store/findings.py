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
    """Bytes that an earlier opening cut off."""

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

    def advance(self, size: int) -> None:
        """Counts bytes as checked."""
        self.done += size
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)
