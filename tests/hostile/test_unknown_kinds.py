"""What a later release wrote and this one does not know: opening, the check and a backup say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from merq.engine.limits import Limits
from merq.engine.snapshot import PACKED
from merq.errors import StoreError
from merq.host.host import Host
from merq.host.known_kinds import KNOWN_KINDS
from merq.store.backup import back_up, restore
from merq.store.checkpoints import Checkpoint, Section, write_checkpoint
from merq.store.disk import FileDisk
from merq.store.findings import Verdict
from merq.store.inspection import inspect
from merq.store.recovery import Identity

GUID = UUID(int=7)
UNKNOWN = 200


def opened(folder: Path) -> Host:
    host = Host(FileDisk(folder), Identity(store_id=GUID, created=1), "here", Limits())
    host.start(1_000_000, UUID(int=1))
    return host


def with_record(folder: Path) -> None:
    host = opened(folder)
    host.log.append([(UNKNOWN, b"from the future")])
    host.log.sync()
    host.close()


def _with_section(folder: Path, section: Section) -> None:
    host = opened(folder)
    host.settle()
    writing, _ = host.begin_checkpoint()
    assert writing is not None
    known = writing.checkpoint
    later = Checkpoint(
        number=known.number,
        position=known.position,
        next_sequence=known.next_sequence,
        sections=(*known.sections, section),
    )
    write_checkpoint(FileDisk(folder), GUID, later)
    host.close()


def with_section(folder: Path) -> None:
    _with_section(folder, Section(UNKNOWN, b"from the future"))


def with_packed_section(folder: Path) -> None:
    _with_section(folder, Section(PACKED, UNKNOWN.to_bytes(4, "little") + bytes(4)))


@pytest.mark.parametrize("make", [with_record, with_section, with_packed_section])
def test_opening_the_check_and_copies_say_so(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = tmp_path / "store"
    make(folder)
    attempts: list[Callable[[], object]] = [
        lambda: opened(folder),
        lambda: inspect(folder, settle_s=0, known=KNOWN_KINDS),
        lambda: back_up(folder, tmp_path / "copy", known=KNOWN_KINDS),
        lambda: restore(folder, tmp_path / "copy", known=KNOWN_KINDS),
    ]
    for attempt in attempts:
        with pytest.raises(StoreError, match=f"of kind {UNKNOWN}(.|\n)*release that wrote it"):
            attempt()
    assert not (tmp_path / "copy").exists()


def test_what_opening_does_not_read_does_not_matter(tmp_path: Path) -> None:
    """A record that the checkpoint contains is as good as gone."""
    folder = tmp_path / "store"
    host = opened(folder)
    host.log.append([(UNKNOWN, b"from the future")])
    host.settle()
    writing, _ = host.begin_checkpoint()
    assert writing is not None
    writing.run()
    host.close()
    opened(folder).close()
    assert inspect(folder, settle_s=0, known=KNOWN_KINDS).verdict is Verdict.SOUND
