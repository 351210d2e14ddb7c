"""A checkpoint rots: the log is read instead where that is enough, or it is said what to do."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from merq.engine.limits import Limits
from merq.errors import StoreCorrupt
from merq.host.host import Host, HostSettings
from merq.model.queue import QueueSettings
from merq.store.disk import FileDisk
from merq.store.findings import Verdict
from merq.store.inspection import inspect
from merq.store.log import LogSettings, segment_name
from merq.store.recovery import Identity
from merq.wire.build import Outline, build_packet

SMALL = HostSettings(
    log=LogSettings(segment_size=64 << 10, reserve_step=16 << 10), ballast_bytes=1 << 10
)
OUTLINE = Outline(destination=r"OS:.\private$\orders", recoverable=True, body=bytes(4_000))
IN_HEADER, IN_SECTION = 20, 100


def opened(folder: Path) -> Host:
    disk = FileDisk(folder)
    host = Host(disk, Identity(store_id=UUID(int=7), created=1), "here", Limits(), SMALL)
    host.start(1_000_000, UUID(int=1))
    return host


def checkpoint(host: Host) -> None:
    writing, _ = host.begin_checkpoint()
    assert writing is not None
    writing.run()
    host.end_checkpoint(writing)


def send(host: Host, count: int) -> None:
    orders = host.engine.find_queue(r".\private$\orders").number
    for request in range(count):
        host.engine.send(request + 10, orders, [build_packet(OUTLINE)])
        host.settle()


def made(folder: Path, *, purged: bool = False) -> Path:
    """A store with a checkpoint, and 20 messages behind it; before it 20, or what was purged."""
    host = opened(folder)
    host.engine.create_queue(1, r".\private$\orders", QueueSettings(), UUID(int=2))
    host.settle()
    send(host, 40 if purged else 20)
    if purged:
        host.engine.purge(2, host.engine.find_queue(r".\private$\orders").number)
        host.settle()
    checkpoint(host)
    send(host, 20)
    host.close()
    return folder


def rot(folder: Path, offset: int) -> Path:
    (path,) = (folder / "checkpoints").iterdir()
    data = bytearray(path.read_bytes())
    data[offset] ^= 4
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("offset", [IN_HEADER, IN_SECTION])
def test_the_log_is_read_instead_and_nothing_is_lost(tmp_path: Path, offset: int) -> None:
    folder = made(tmp_path / "store")
    path = rot(folder, offset)
    found = inspect(folder, settle_s=0)
    assert found.verdict is Verdict.CORRUPT
    assert any("opening does without" in each for each in found.notes)
    host = opened(folder)
    assert host.engine.find_queue(r".\private$\orders").positions.count == 40
    (news,) = host.news.take()
    assert news.is_trouble
    assert path.name in str(news.facts["problem"])
    kept = folder / str(news.facts["kept_as"])
    assert kept.exists()
    assert not path.exists()
    checkpoint(host)
    host.close()
    host = opened(folder)
    assert host.news.take() == []
    assert host.engine.find_queue(r".\private$\orders").positions.count == 40
    host.close()
    assert inspect(folder, settle_s=0).verdict is Verdict.SOUND


def test_an_older_checkpoint_that_is_still_there_is_taken(tmp_path: Path) -> None:
    folder = made(tmp_path / "store", purged=True)
    (older,) = (folder / "checkpoints").iterdir()
    assert not (folder / segment_name(1)).exists()
    data = older.read_bytes()
    host = opened(folder)
    writing, _ = host.begin_checkpoint()
    assert writing is not None
    writing.run()
    host.close()
    older.write_bytes(data)  # the process was killed before it was removed
    newer = max((folder / "checkpoints").iterdir())
    rotten = bytearray(newer.read_bytes())
    rotten[IN_SECTION] ^= 4
    newer.write_bytes(rotten)
    host = opened(folder)
    assert host.engine.find_queue(r".\private$\orders").positions.count == 20
    host.close()


@pytest.mark.parametrize("offset", [IN_HEADER, IN_SECTION])
def test_where_the_log_is_not_enough_it_is_said_what_to_do_and_nothing_is_changed(
    tmp_path: Path, offset: int
) -> None:
    folder = made(tmp_path / "store", purged=True)
    path = rot(folder, offset)
    before = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    with pytest.raises(StoreCorrupt, match="merq store restore") as wrong:
        opened(folder)
    assert path.name in str(wrong.value)
    assert before == {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    assert any(each.read_at_opening for each in inspect(folder, settle_s=0).corruptions)


def test_a_log_that_ends_before_a_damaged_checkpoint_is_not_taken_for_whole(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "store"
    host = opened(folder)
    host.engine.create_queue(1, r".\private$\orders", QueueSettings(), UUID(int=2))
    host.settle()
    send(host, 5)
    checkpoint(host)
    host.close()
    rot(folder, IN_SECTION)
    path = folder / segment_name(1)
    data = path.read_bytes()
    last = data.rindex(b"FRAM")
    path.write_bytes(data[:last])
    with pytest.raises(StoreCorrupt, match="a checkpoint contained the log up to"):
        opened(folder)
    assert path.read_bytes() == data[:last]
    found = inspect(folder, settle_s=0)
    assert any(each.read_at_opening for each in found.corruptions)
