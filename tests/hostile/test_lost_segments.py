"""Files of a store that are gone or cut off: opening, the check and a backup say which, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID
from zlib import crc32

import pytest

from merq.engine.limits import Limits
from merq.errors import StoreCorrupt
from merq.host.host import Host, HostSettings
from merq.model.queue import QueueSettings
from merq.store.backup import back_up
from merq.store.disk import FileDisk
from merq.store.findings import Verdict
from merq.store.inspection import inspect
from merq.store.log import SEGMENT_HEADER_SIZE, LogSettings, segment_name
from merq.store.recovery import Identity
from merq.wire.build import Outline, build_packet

GUID = UUID(int=7)
SMALL = HostSettings(
    log=LogSettings(segment_size=64 << 10, reserve_step=16 << 10), ballast_bytes=1 << 10
)
BODY_BYTES = 4_000


def opened(folder: Path) -> Host:
    host = Host(FileDisk(folder), Identity(store_id=GUID, created=1), "here", Limits(), SMALL)
    host.start(1_000_000, UUID(int=1))
    return host


def made(folder: Path, *, messages: int, with_checkpoint: bool = False) -> Path:
    """A store of some segments, with messages in each of them."""
    host = opened(folder)
    host.engine.create_queue(1, r".\private$\orders", QueueSettings(), UUID(int=2))
    host.settle()
    orders = host.engine.find_queue(r".\private$\orders").number
    outline = Outline(destination=r"OS:.\private$\orders", recoverable=True, body=b"x" * BODY_BYTES)
    for request in range(2, 2 + messages):
        host.engine.send(request, orders, [build_packet(outline)])
        host.settle()
    if with_checkpoint:
        writing, _ = host.begin_checkpoint()
        assert writing is not None
        writing.run()
        host.end_checkpoint(writing)
    host.close()
    return folder


def found_missing(folder: Path, tmp_path: Path, name: str) -> None:
    """The check, a backup and opening all name the file."""
    report = inspect(folder)
    assert report.verdict is Verdict.CORRUPT
    assert name in [each.file for each in report.corruptions]
    attempts: list[Callable[[], object]] = [
        lambda: back_up(folder, tmp_path / "copy"),
        lambda: opened(folder),
    ]
    for attempt in attempts:
        with pytest.raises(StoreCorrupt) as wrong:
            attempt()
        assert name in str(wrong.value)
        assert "missing" in str(wrong.value)


def test_the_only_segment_is_missing(tmp_path: Path) -> None:
    folder = made(tmp_path / "store", messages=3)
    (folder / segment_name(1)).unlink()
    found_missing(folder, tmp_path, segment_name(1))


def test_the_first_segment_is_missing_before_there_is_a_checkpoint(tmp_path: Path) -> None:
    folder = made(tmp_path / "store", messages=50)
    assert len(inspect(folder).segments) > 2
    (folder / segment_name(1)).unlink()
    found_missing(folder, tmp_path, segment_name(1))


def test_the_first_segment_is_missing_though_a_checkpoint_contains_it(tmp_path: Path) -> None:
    folder = made(tmp_path / "store", messages=50, with_checkpoint=True)
    report = inspect(folder)
    assert report.checkpoints[-1].oldest_segment == 1
    assert (report.checkpoints[-1].position or 0) >> 32 > 2
    (folder / segment_name(1)).unlink()
    found_missing(folder, tmp_path, segment_name(1))


def test_what_an_older_checkpoint_needs_is_missing(tmp_path: Path) -> None:
    folder = made(tmp_path / "store", messages=50, with_checkpoint=True)
    _forget_oldest(folder)
    opened(folder).close()
    (folder / segment_name(1)).unlink()
    with pytest.raises(StoreCorrupt, match=r"the segment is missing, but \d+ bytes of messages"):
        opened(folder)


def _forget_oldest(folder: Path) -> None:
    """Makes the checkpoint one that does not say which segments it needs, as they once were."""
    (path,) = (folder / "checkpoints").iterdir()
    data = bytearray(path.read_bytes())
    data[48:56] = bytes(8)
    data[60:64] = crc32(data[:60]).to_bytes(4, "little")
    path.write_bytes(data)


def test_a_checkpoint_does_not_need_the_segments_that_are_dropped_with_it(tmp_path: Path) -> None:
    folder = made(tmp_path / "store", messages=50)
    host = opened(folder)
    orders = host.engine.find_queue(r".\private$\orders").number
    host.engine.purge(1, orders)
    host.settle()
    writing, _ = host.begin_checkpoint()
    assert writing is not None
    writing.run()
    host.end_checkpoint(writing)
    numbers = [each.number for each in host.log.segments()]
    assert numbers[0] > 1
    assert writing.checkpoint.oldest_segment == numbers[0]
    host.close()
    opened(folder).close()


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("at_a_frame", [True, False])
def test_a_shortened_segment_in_the_middle_of_the_log_is_corrupt(
    tmp_path: Path, number: int, *, at_a_frame: bool
) -> None:
    folder = made(tmp_path / "store", messages=50)
    _shorten(folder, number, at_a_frame=at_a_frame)
    assert inspect(folder).verdict is Verdict.CORRUPT
    with pytest.raises(StoreCorrupt):
        back_up(folder, tmp_path / "copy")
    with pytest.raises(StoreCorrupt):
        opened(folder)


@pytest.mark.parametrize("at_a_frame", [True, False])
def test_a_shortened_segment_that_a_checkpoint_contains_is_found_by_the_check(
    tmp_path: Path, *, at_a_frame: bool
) -> None:
    """Opening does not read it: what lies in other segments is there, what was cut off says so."""
    folder = made(tmp_path / "store", messages=50, with_checkpoint=True)
    _shorten(folder, 1, at_a_frame=at_a_frame)
    assert inspect(folder).verdict is Verdict.CORRUPT
    with pytest.raises(StoreCorrupt):
        back_up(folder, tmp_path / "copy")
    host = opened(folder)
    state, orders = host.engine.state, host.engine.find_queue(r".\private$\orders")
    readable = [state.readable(place) is not None for place in orders.positions]
    assert (len(readable), readable[-1]) == (50, True)
    assert readable.count(False) > 5
    host.close()


def test_the_last_segment_cut_below_the_checkpoint_is_corrupt(tmp_path: Path) -> None:
    folder = made(tmp_path / "store", messages=20, with_checkpoint=True)
    last = inspect(folder).segments[-1].number
    _shorten(folder, last, at_a_frame=True)
    assert inspect(folder).verdict is Verdict.CORRUPT
    with pytest.raises(StoreCorrupt, match="the checkpoint contains the log up to"):
        opened(folder)


def test_the_last_segment_cut_behind_the_checkpoint_looks_like_one_that_was_torn(
    tmp_path: Path,
) -> None:
    """What the format cannot tell: that these bytes had been durable once."""
    folder = made(tmp_path / "store", messages=5)
    _shorten(folder, 1, at_a_frame=False)
    assert inspect(folder).verdict is Verdict.TORN
    opened(folder).close()


def _shorten(folder: Path, number: int, *, at_a_frame: bool) -> None:
    """Cuts a segment off behind its second frame, or in the middle of its third."""
    path = folder / segment_name(number)
    data = path.read_bytes()
    places = [at for at in range(SEGMENT_HEADER_SIZE, len(data), 8) if data[at : at + 4] == b"FRAM"]
    path.write_bytes(data[: places[2] + (0 if at_a_frame else 48)])
