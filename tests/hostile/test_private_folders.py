"""Folders and files of a store are for nobody but the user who runs the queue manager."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import merq
from merq.store.backup import back_up, restore
from merq.store.disk import FileDisk


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """A umask with which everything would be everybody's."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    found = [folder, *folder.rglob("*")]
    return {str(each.relative_to(folder)): stat.S_IMODE(each.stat().st_mode) for each in found}


def is_private(folder: Path) -> bool:
    return not any(mode & 0o077 for mode in modes(folder).values())


def test_a_store_its_backup_and_what_is_restored_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    with merq.open(folder) as manager:
        manager.create_queue(r".\private$\orders").send(b"secret", recoverable=True)
        assert is_private(folder), modes(folder)
    back_up(folder, tmp_path / "copy")
    assert is_private(tmp_path / "copy"), modes(tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "again")
    assert is_private(tmp_path / "again"), modes(tmp_path / "again")
    assert FileDisk(folder).open_to_others() == []


def test_a_folder_that_others_may_look_into_is_left_so_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir(0o755)
    with merq.open(folder):
        pass
    assert FileDisk(folder).open_to_others() == [str(folder)]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
