from __future__ import annotations

from uuid import UUID

import pytest

from merq.errors import StoreCorrupt, StoreFailed, StoreFull
from merq.store.checkpoints import Checkpoint, write_checkpoint
from merq.store.log import Log, LogSettings, pack_segment_header, position_of, segment_name
from merq.store.records import FRAME_PAYLOAD_MAX, Entry, Record
from merq.store.recovery import Frame, Identity, Opened, open_store
from merq.testing.disk import Operation, PowerCut, SimulatedDisk

WHO = Identity(store_id=UUID(int=7), created=1)
SETTINGS = LogSettings(segment_size=4096, reserve_step=1024)


def reopened(disk: SimulatedDisk) -> tuple[Opened, list[bytes]]:
    found: list[bytes] = []

    def replay(frame: Frame) -> None:
        found.extend(bytes(record.data) for record in frame.records())

    return open_store(disk, WHO, lambda _: None, replay, SETTINGS), found


def log_on(disk: SimulatedDisk) -> Log:
    return reopened(disk)[0].log


def checkpoint_of(disk: SimulatedDisk, log: Log, number: int = 1) -> None:
    log.sync()
    write_checkpoint(
        disk,
        WHO.store_id,
        Checkpoint(number=number, position=log.end, next_sequence=log.next_sequence, sections=()),
    )


def fill_segments(log: Log, until: int) -> None:
    while log.end >> 32 < until:
        log.append([Record(1, bytes(900))])
    log.sync()


def test_positions_grow_and_read_back_what_was_appended() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    places: list[tuple[int, bytes]] = []
    for number in range(30):
        records = [Record(1, bytes([number]) * (number * 20)), Record(2, b"x" * number)]
        appended = log.append(records)
        assert appended.sequence == number + 1
        assert appended.end == log.end
        places += zip(appended.positions, (r.data for r in records), strict=True)
    assert [at for at, _ in places] == sorted(at for at, _ in places)
    assert all(log.read(at, len(data)) == data for at, data in places)
    assert len(log.segments()) > 2


def test_many_records_of_one_kind_are_written_as_if_one_by_one() -> None:
    heads, bodies = [b"a", b"", b"ccc"], [b"one", b"two", b""]
    singly: list[Entry] = [(5, head, body) for head, body in zip(heads, bodies, strict=True)]
    run: Entry = (5, heads, bodies, sum(map(len, heads + bodies)))
    written = []
    for some in (singly, [run]):
        records: list[Entry] = [(1, b"before"), *some, (2, b"behind")]
        disk = SimulatedDisk()
        log = log_on(disk)
        appended = log.append(records)
        log.sync()
        written.append((appended, log.read_raw(position_of(1, 0), log.end & 0xFFFFFFFF)))
        found = reopened(disk.crash())[1]
        assert found == [b"before", b"aone", b"two", b"ccc", b"behind"]
    assert written[0] == written[1]


def test_a_position_is_segment_and_offset() -> None:
    assert position_of(3, 64) == 0x0000_0003_0000_0040
    assert segment_name(0x1F) == "log/000000000000001f.segment"


@pytest.mark.limit("store.segment_bytes")
def test_a_frame_larger_than_a_segment_gets_one_of_its_own() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    log.append([Record(1, b"small")])
    big = log.append([Record(1, b"B" * 10_000)])
    after = log.append([Record(1, b"after")])
    assert [place >> 32 for place in (big.positions[0], after.positions[0])] == [2, 3]
    log.sync()
    assert reopened(disk.crash())[1] == [b"small", b"B" * 10_000, b"after"]


def test_a_segment_that_is_too_large_by_now_is_not_filled_up() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    log.append([Record(1, bytes(500))])
    log.append([Record(1, bytes(500))])
    log.sync()
    log.close()
    small = LogSettings(segment_size=1024, reserve_step=1024)
    log = open_store(disk, WHO, lambda _: None, lambda _: None, small).log
    assert log.segments()[0].reserved > log.end & 0xFFFFFFFF
    assert log.append([Record(1, b"next")]).positions[0] >> 32 == 2


def test_the_next_segment_begins_when_asked_for_unless_the_newest_is_empty() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    log.roll()
    assert log.end >> 32 == 1
    log.append([Record(1, b"one")])
    log.roll()
    log.roll()
    assert log.end == log.durable == position_of(2, 64)
    log.append([Record(1, b"two")])
    log.sync()
    assert reopened(disk.crash())[1] == [b"one", b"two"]


def test_without_room_for_the_next_segment_the_log_goes_on_where_it_is() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    log.append([Record(1, b"one")])
    disk.capacity = disk.used + 10
    with pytest.raises(StoreFull):
        log.roll()
    log.append([Record(1, b"two")])
    log.sync()
    assert log.end >> 32 == 1
    assert reopened(disk.crash())[1] == [b"one", b"two"]


def test_a_segment_that_cannot_begin_because_the_disk_failed_ends_the_log() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    log.append([Record(1, b"one")])
    disk.fail_next(Operation.CREATE)
    with pytest.raises(StoreFailed, match="told to fail"):
        log.roll()
    with pytest.raises(StoreFailed, match="must be opened anew"):
        log.append([Record(1, b"never")])


@pytest.mark.limit("merq.store.records.FRAME_PAYLOAD_MAX")
def test_more_than_the_limit_at_once_is_refused_and_the_log_goes_on() -> None:
    log = log_on(SimulatedDisk())
    part = Record(1, bytes(1 << 20))  # one object many times: the limit without the memory
    with pytest.raises(StoreFull, match=f"at most {FRAME_PAYLOAD_MAX}"):
        log.append([part] * (FRAME_PAYLOAD_MAX >> 20))
    assert log.append([Record(1, b"next")]).sequence == 1


@pytest.mark.parametrize("kind", [0, 256, -1])
def test_a_kind_outside_1_to_255_is_never_written(kind: int) -> None:
    log = log_on(SimulatedDisk())
    with pytest.raises(AssertionError):
        log.append([Record(kind, b"")])


@pytest.mark.parametrize("reserves", [True, False])
@pytest.mark.parametrize(
    ("shift", "size"), [(0, 13), (0, 11), (1, 11), (0, 0), (-12, 24), (60, 12)]
)
def test_only_a_whole_record_can_be_read(reserves: bool, shift: int, size: int) -> None:
    log = log_on(SimulatedDisk(reserves=reserves))
    # Such a frame has no filling, so that nothing follows the record.
    place = log.append([Record(1, b"123456789abc")]).positions[0]
    with pytest.raises(StoreCorrupt, match=f"no whole record of {size} bytes") as caught:
        log.read(place + shift, size)
    where = (segment_name(1), (place + shift) & 0xFFFFFFFF)
    assert (caught.value.file, caught.value.offset) == where
    assert log.read(place, 12) == b"123456789abc"


@pytest.mark.parametrize("offset", [*range(-12, -4), 0, 7])
@pytest.mark.parametrize("bit", range(8))
def test_a_bit_that_rotted_is_not_handed_out(offset: int, bit: int) -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    place = log.append([Record(1, b"before"), Record(1, b"12345678")]).positions[1]
    disk.damage(segment_name(1), (place & 0xFFFFFFFF) + offset, 1 << bit)
    with pytest.raises(StoreCorrupt) as caught:
        log.read(place, 8)
    assert (caught.value.file, caught.value.offset) == (segment_name(1), place & 0xFFFFFFFF)


def test_a_record_that_came_back_as_zeros_is_not_handed_out() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    place = log.append([Record(1, bytes(100))]).positions[0]
    file = disk.open(segment_name(1))
    file.write((place & 0xFFFFFFFF) - 12, bytes(112))
    with pytest.raises(StoreCorrupt):
        log.read(place, 100)


def test_what_lives_in_a_segment_is_counted() -> None:
    log = log_on(SimulatedDisk())
    place = log.append([Record(1, b"12345678")]).positions[0]
    log.keep(place, 8)
    log.keep(place, 4)
    log.release(place, 8)
    assert log.segments()[0].living == 4
    with pytest.raises(AssertionError, match="released more than was kept"):
        log.release(place, 5)


def test_segments_are_dropped_from_the_oldest_on_and_the_newest_stays() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    fill_segments(log, until=4)
    checkpoint_of(disk, log)
    with pytest.raises(AssertionError):
        log.drop(2)
    log.drop(1)
    log.drop(2)
    log.drop(3)
    with pytest.raises(AssertionError):
        log.drop(4)
    assert [segment.number for segment in log.segments()] == [4]
    log.append([Record(1, b"last")])
    log.sync()
    assert reopened(disk.crash())[1] == [b"last"]


@pytest.mark.parametrize("seed", range(20))
def test_a_dropped_segment_does_not_come_back_without_its_successor(seed: int) -> None:
    disk = SimulatedDisk(seed)
    log = log_on(disk)
    fill_segments(log, until=4)
    checkpoint_of(disk, log)
    log.drop(1)
    log.drop(2)
    opened, _ = reopened(disk.crash())
    assert [segment.number for segment in opened.log.segments()] == [3, 4]


def test_a_missing_segment_is_named() -> None:
    disk = SimulatedDisk()
    fill_segments(log_on(disk), until=3)
    disk.remove(segment_name(2))
    with pytest.raises(StoreCorrupt, match=r"0002\.segment .*is missing"):
        reopened(disk)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("reserves", [True, False])
def test_a_full_disk_refuses_the_frame_and_the_log_goes_on(seed: int, reserves: bool) -> None:
    disk = SimulatedDisk(seed, reserves=reserves)
    log = log_on(disk)
    log.append([Record(1, b"before")])
    disk.capacity = disk.used + 300
    with pytest.raises(StoreFull):
        # Zeros at the end: what is missing of it looks as if it were there.
        log.append([Record(1, b"too much" + bytes(1500))])
    disk.capacity = None
    log.append([Record(1, b"after")])
    log.sync()
    assert reopened(disk.crash())[1] == [b"before", b"after"]


@pytest.mark.parametrize("seed", range(40))
def test_a_frame_without_room_does_not_appear_after_power_loss(seed: int) -> None:
    disk = SimulatedDisk(seed, reserves=False)
    log = log_on(disk)
    log.append([Record(1, b"before")])
    disk.capacity = disk.used + 1552
    with pytest.raises(StoreFull):
        log.append([Record(1, b"refused" + bytes(1508))])
    assert reopened(disk.crash())[1] in ([], [b"before"])


@pytest.mark.parametrize("operation", [Operation.WRITE, Operation.RESERVE, Operation.SYNC])
def test_a_failed_disk_gets_nothing_more_until_the_store_is_opened_anew(
    operation: Operation,
) -> None:
    disk = SimulatedDisk(3)
    log = log_on(disk)
    disk.fail_next(operation)

    def append_and_sync() -> None:
        log.append([Record(1, b"?")])
        log.sync()

    with pytest.raises(StoreFailed, match="told to fail"):
        append_and_sync()
    written = disk.operations
    for _ in range(2):
        with pytest.raises(StoreFailed, match="must be opened anew"):
            log.append([Record(1, b"never")])
        with pytest.raises(StoreFailed, match="must be opened anew"):
            log.sync()
    assert disk.operations == written
    opened, found = reopened(disk.crash("kill"))
    assert found in ([], [b"?"])
    opened.log.append([Record(1, b"again")])


@pytest.mark.parametrize("seed", range(10))
def test_what_a_failed_sync_forgot_is_written_again(seed: int) -> None:
    disk = SimulatedDisk(seed)
    log = log_on(disk)
    log.append([Record(1, b"x" * 2000)])
    disk.fail_next(Operation.SYNC)
    with pytest.raises(StoreFailed):
        log.sync()
    disk = disk.crash("kill")
    opened, found = reopened(disk)
    assert opened.log.durable == opened.log.end
    assert found == [b"x" * 2000]
    assert reopened(disk.crash())[1] == found


@pytest.mark.parametrize("seed", range(10))
def test_what_a_killed_process_left_is_durable_once_the_store_is_open(seed: int) -> None:
    disk = SimulatedDisk(seed)
    log_on(disk).append([Record(1, b"x" * 2000)])
    disk = disk.crash("kill")
    assert reopened(disk)[1] == [b"x" * 2000]
    assert reopened(disk.crash())[1] == [b"x" * 2000]


@pytest.mark.parametrize("seed", range(20))
def test_a_checkpoint_that_was_used_to_open_stays(seed: int) -> None:
    """Its name may not be durable if the process was killed; segments are dropped because of it."""
    disk = SimulatedDisk(seed)
    log = log_on(disk)
    fill_segments(log, until=2)
    log.sync()

    def kill_before_the_names_are_synced(operation: Operation, name: str) -> None:
        if (operation, name) == (Operation.SYNC_FOLDER, "checkpoints"):
            raise PowerCut

    disk.before = kill_before_the_names_are_synced
    with pytest.raises(PowerCut):
        checkpoint_of(disk, log)
    disk = disk.crash("kill")
    log = log_on(disk)
    log.drop(1)
    assert reopened(disk.crash())[0].log.next_sequence == log.next_sequence


def test_a_checkpoints_segment_is_not_taken_for_one_that_never_was() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    checkpoint_of(disk, log)
    log.close()
    disk.damage(segment_name(1), 3)
    with pytest.raises(StoreCorrupt) as caught:
        reopened(disk)
    assert (caught.value.file, caught.value.offset) == (segment_name(1), 0)
    assert disk.open_files == 0


def test_a_log_that_ends_before_its_checkpoint_is_refused() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    log.append([Record(1, bytes(100))])
    checkpoint_of(disk, log)
    file = disk.open(segment_name(1))
    file.truncate(100)
    with pytest.raises(StoreCorrupt) as caught:
        reopened(disk)
    assert (caught.value.file, caught.value.offset) == (segment_name(1), 100)


def test_a_newer_checkpoint_replaces_the_one_before() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    for number in (1, 2, 3):
        log.append([Record(1, b"x")])
        checkpoint_of(disk, log, number)
    assert disk.names("checkpoints") == [f"{3:016x}.checkpoint"]


def test_a_checkpoint_without_room_leaves_the_one_before() -> None:
    disk = SimulatedDisk()
    log = log_on(disk)
    log.append([Record(1, b"x")])
    checkpoint_of(disk, log, 1)
    disk.capacity = disk.used + 10
    with pytest.raises(StoreFull):
        checkpoint_of(disk, log, 2)
    assert disk.names("checkpoints") == [f"{1:016x}.checkpoint"]
    disk.capacity = None
    checkpoint_of(disk, log, 2)
    assert disk.names("checkpoints") == [f"{2:016x}.checkpoint"]


def test_a_checkpoint_that_expects_another_frame_is_refused_and_cuts_nothing() -> None:
    disk = SimulatedDisk()
    opened = reopened(disk)[0]
    log = opened.log
    log.append([Record(1, b"one")])
    log.sync()
    wrong = Checkpoint(number=1, position=log.end, next_sequence=7, sections=())
    write_checkpoint(disk, WHO.store_id, wrong)
    log.append([Record(1, b"two")])
    log.sync()
    log.close()
    with pytest.raises(StoreCorrupt, match="frame 2 is here, the checkpoint expects 7"):
        reopened(disk)
    assert not disk.names("aside")


def test_a_newest_segment_of_another_store_is_refused_and_not_removed() -> None:
    disk = SimulatedDisk()
    opened = reopened(disk)[0]
    opened.log.append([Record(1, b"one")])
    opened.log.sync()
    opened.log.close()
    foreign = disk.create(segment_name(2))
    foreign.write(0, pack_segment_header(2, UUID(int=99), 2))
    foreign.sync()
    foreign.close()
    disk.sync_folder("log")
    with pytest.raises(StoreCorrupt, match="it is segment 2 of store"):
        reopened(disk)
    assert disk.exists(segment_name(2))


@pytest.mark.limit("store.reserve_bytes")
def test_room_is_reserved_a_step_at_a_time_and_as_much_as_a_large_frame_needs() -> None:
    log = log_on(SimulatedDisk())
    step, begun = SETTINGS.reserve_step, log.segments()[0].reserved
    log.append([Record(7, bytes(10))])
    assert log.segments()[0].reserved == begun + step
    log.append([Record(7, bytes(step))])
    assert log.segments()[0].reserved == begun + 2 * step
    log.append([Record(7, bytes(3 * step))])
    assert log.segments()[-1].reserved >= 3 * step
