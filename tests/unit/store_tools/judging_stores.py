"""A check of a store, and that opening agrees with it."""

from __future__ import annotations

from pathlib import Path

from merq.store import inspection
from merq.store.findings import Report
from unit.store_tools.building_stores import contents, is_refused


def inspect(folder: Path) -> Report:
    return inspection.inspect(folder, settle_s=0)


def judged(folder: Path) -> Report:
    """A report with which opening agrees, of files that the check left alone."""
    before = contents(folder)
    found = inspect(folder)
    assert contents(folder) == before
    expected = any(each.read_at_opening for each in found.corruptions)
    assert is_refused(folder) is expected, found.corruptions
    return found


def frame_offsets(data: bytes) -> list[int]:
    offsets = []
    at = 64
    while data[at : at + 4] == b"FRAM":
        offsets.append(at)
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 40 + size + -size % 8
    return offsets
