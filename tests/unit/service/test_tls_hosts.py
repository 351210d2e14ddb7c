"""The file that remembers who was reached inside of TLS: damaged, full, and on a full disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hostile.lowering import lowered
from merq.service.logs import Log
from merq.service.tls_hosts import HOST_CHARACTERS_MAX, TLS_HOSTS_FILE, TlsHostsFile

HOSTS = ("10.0.0.8", "fd00::8", "büro.example")
LOG = Log("merq.service.tests")
MODULE = "merq.service.tls_hosts"


def loaded(folder: Path) -> tuple[str, ...]:
    """What a service finds at its start."""

    async def scene() -> tuple[str, ...]:
        file = TlsHostsFile(folder, LOG)
        found = file.load()
        await file.close()
        return found

    return asyncio.run(scene())


def keep(folder: Path, *hosts: tuple[str, ...]) -> None:
    """What a service does while it runs, until its end."""

    async def scene() -> None:
        file = TlsHostsFile(folder, LOG)
        for each in hosts:
            file.keep(each)
        await file.close()

    asyncio.run(scene())


def test_what_is_kept_is_there_after_a_restart_in_the_same_order(tmp_path: Path) -> None:
    assert loaded(tmp_path) == ()
    keep(tmp_path, HOSTS[:1], HOSTS)
    assert loaded(tmp_path) == HOSTS
    assert [each.name for each in tmp_path.iterdir()] == [TLS_HOSTS_FILE]
    assert (tmp_path / TLS_HOSTS_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("fd00::8\n", "", ("10.0.0.8", "büro.example")),
        ("fd00::8", "fd00 ::8", ("10.0.0.8", "büro.example")),
        ("fd00::8", "fd00::9", ("10.0.0.8", "fd00::9", "büro.example")),
        ("fd00::8", "\x00\x00\x00", ("10.0.0.8", "büro.example")),
        ("# sha256", "# sh", HOSTS),
    ],
    ids=["a line is gone", "no host", "another host", "zeros", "no sum"],
)
def test_what_can_be_read_of_a_damaged_file_holds_and_the_rest_is_told(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    old: str,
    new: str,
    left: tuple[str, ...],
) -> None:
    keep(tmp_path, HOSTS)
    path = tmp_path / TLS_HOSTS_FILE
    damaged = path.read_text().replace(old, new)
    path.write_text(damaged)
    assert loaded(tmp_path) == left
    assert [each.levelname for each in caplog.records] == ["ERROR"]
    assert "damaged" in caplog.text
    assert (tmp_path / f"{TLS_HOSTS_FILE}.damaged").read_text() == damaged
    caplog.clear()
    assert loaded(tmp_path) == left
    assert caplog.text == "", "what is left was written anew"


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", bytes(range(256)) * 16])
def test_a_file_of_rubbish_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    (tmp_path / TLS_HOSTS_FILE).write_bytes(data)
    loaded(tmp_path)
    assert "damaged" in caplog.text


def test_a_file_that_cannot_be_read_is_set_aside_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / TLS_HOSTS_FILE).mkdir()
    assert loaded(tmp_path) == ()
    assert "damaged" in caplog.text
    keep(tmp_path, HOSTS)
    assert loaded(tmp_path) == HOSTS


@pytest.mark.limit("merq.service.tls_hosts.HOST_CHARACTERS_MAX")
def test_what_is_too_long_for_a_host_is_not_kept(tmp_path: Path) -> None:
    long, longest = "a" * (HOST_CHARACTERS_MAX + 1), "a" * HOST_CHARACTERS_MAX
    keep(tmp_path, (long, longest))
    assert loaded(tmp_path) == (longest,)


@pytest.mark.limit("merq.service.tls_hosts.FILE_BYTES_MAX")
def test_of_a_file_that_is_too_long_the_first_part_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keep(tmp_path, HOSTS)
    with lowered({(MODULE, "FILE_BYTES_MAX"): 95}):
        found = loaded(tmp_path)
    assert (HOSTS[0] in found, HOSTS[-1] in found) == (True, False)
    assert "damaged" in caplog.text


def test_what_cannot_be_written_is_told_and_written_when_it_can_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merq.service.tls_hosts.RETRY_S", 0.01)
    folder = tmp_path / "data"

    async def scene() -> None:
        file = TlsHostsFile(folder, LOG)
        file.keep(HOSTS)
        await asyncio.sleep(0.1)
        folder.mkdir()
        await asyncio.sleep(0.2)
        assert (folder / TLS_HOSTS_FILE).exists()
        await file.close()

    asyncio.run(asyncio.wait_for(scene(), 10))
    assert "cannot be kept" in caplog.text
    assert loaded(folder) == HOSTS


def test_a_stop_does_not_wait_for_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    keep(tmp_path / "nowhere", HOSTS)
