from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from merq.errors import StoreFailed, StoreInUse
from merq.store.disk import FileDisk

HOLDER = """
import sys
from pathlib import Path
from merq.store.disk import FileDisk
disk = FileDisk(Path(sys.argv[1]))
disk.lock()
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_kept_out_until_the_first_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        disk = FileDisk(tmp_path)
        with pytest.raises(StoreInUse, match=rf"another process \({holder.pid}\)"):
            disk.lock()
        holder.kill()
    disk.lock()
    disk.unlock()


def test_two_in_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    first, second = FileDisk(tmp_path), FileDisk(tmp_path)
    first.lock()
    with pytest.raises(StoreInUse):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()


def test_a_file_is_written_and_read_at_any_place(tmp_path: Path) -> None:
    disk = FileDisk(tmp_path)
    file = disk.create("log/one")
    file.write(10, b"abc")
    file.reserve(100)
    assert (file.size(), file.read(8, 6), file.read(99, 5)) == (100, b"\0\0abc\0", b"\0")
    file.truncate(12)
    file.sync()
    disk.sync_folder("log")
    file.close()
    assert (tmp_path / "log" / "one").read_bytes() == bytes(10) + b"ab"
    assert disk.names("log") == ["one"]
    disk.rename("log/one", "other/two")
    disk.remove("other/two")
    assert disk.names("other") == disk.names("nowhere") == []


def test_what_the_system_refuses_has_a_name(tmp_path: Path) -> None:
    disk = FileDisk(tmp_path)
    (tmp_path / "plain").write_bytes(b"")
    disk.create("there").close()
    for refused in (
        lambda: disk.create("there"),
        lambda: disk.create("plain/inside"),
        lambda: disk.open("missing"),
        lambda: disk.remove("missing"),
        lambda: disk.rename("missing", "new"),
        lambda: disk.sync_folder("missing"),
        FileDisk(tmp_path / "plain").lock,
        FileDisk(tmp_path / "nowhere").free_bytes,
    ):
        with pytest.raises(StoreFailed):
            refused()


def test_free_bytes_are_what_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def statvfs(path: Path) -> os.statvfs_result:
        asked.append(path)
        # Block size 4096 and fragments of 512; 100 free, of which this user gets 60.
        return os.statvfs_result((4096, 512, 1000, 100, 60, 0, 0, 0, 0, 255))

    monkeypatch.setattr(os, "statvfs", statvfs)
    assert FileDisk(tmp_path).free_bytes() == 60 * 512
    assert asked == [tmp_path]


def test_free_bytes_are_known_where_there_is_no_statvfs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "statvfs")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(300, 200, 100))
    assert FileDisk(tmp_path).free_bytes() == 100


def test_a_system_that_reads_and_writes_less_at_once_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pread, os.pwrite
    monkeypatch.setattr(os, "pread", lambda file, size, at: read(file, min(size, 7), at))
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:5], at))
    file = FileDisk(tmp_path).create("one")
    for data in (b"0123456789abcdefghij", bytearray(b"klmno"), memoryview(b"pqrstuvwxyz")):
        file.write(file.size(), data)
    assert file.read(0, 36) == file.read(0, 100) == b"0123456789abcdefghijklmnopqrstuvwxyz"
    assert file.read(36, 1) == b""
    file.close()
