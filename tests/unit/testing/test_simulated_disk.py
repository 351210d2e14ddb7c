from __future__ import annotations

import pytest

from merq.errors import StoreFailed, StoreFull, StoreInUse
from merq.store.disk import Disk, LogFile
from merq.testing.disk import SECTOR_SIZE, Operation, PowerCut, SimulatedDisk

SEEDS = range(60)


def made(disk: Disk, name: str, data: bytes = b"") -> LogFile:
    """A file whose name and data are durable."""
    file = disk.create(name)
    file.write(0, data)
    file.sync()
    disk.sync_folder(name.rpartition("/")[0] or ".")
    return file


def left(seed: int, data: bytes, *, old: bytes = b"") -> bytes:
    """What power loss leaves of an unsynced write over what was there."""
    disk = SimulatedDisk(seed)
    made(disk, "a", old).write(0, data)
    return disk.crash().content("a")


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_synced_survives(seed: int) -> None:
    disk = SimulatedDisk(seed)
    made(disk, "log/a", b"kept" * 1000).write(2000, b"not synced")
    after = disk.crash().content("log/a")
    assert after[:2000] == (b"kept" * 1000)[:2000]
    assert after[2010:] == (b"kept" * 1000)[2010:]


def test_an_unsynced_write_survives_is_lost_or_is_torn_sector_by_sector() -> None:
    new, old = b"N" * SECTOR_SIZE * 4, b"o" * SECTOR_SIZE * 4
    outcomes = {left(seed, new, old=old) for seed in range(300)}
    assert new in outcomes
    assert old in outcomes
    sectors = {
        tuple(after[at : at + SECTOR_SIZE] for at in range(0, len(after), SECTOR_SIZE))
        for after in outcomes
    }
    whole, gone = b"N" * SECTOR_SIZE, b"o" * SECTOR_SIZE
    assert any(each[0] == gone and each[3] == whole for each in sectors), "any order"
    assert any(set(each[1]) == set(b"No") for each in sectors), "torn within a sector"
    assert all(set(after) <= set(b"No") for after in outcomes), "nothing from nowhere"


def test_a_file_that_grew_may_hold_zeros_in_place_of_what_was_written() -> None:
    outcomes = {left(seed, b"N" * 2000) for seed in range(300)}
    assert {b"", b"N" * 2000} <= outcomes
    assert any(len(after) == 2000 and 0 in after for after in outcomes)
    assert any(0 < len(after) < 2000 for after in outcomes)


def test_an_unsynced_truncation_or_reservation_may_or_may_not_have_happened() -> None:
    sizes = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        made(disk, "cut", b"12345678").truncate(3)
        made(disk, "grown", b"12345678").reserve(100)
        after = disk.crash()
        sizes.add((len(after.content("cut")), len(after.content("grown"))))
    assert sizes == {(3, 8), (3, 100), (8, 8), (8, 100)}


def test_names_are_durable_only_after_their_folder_was_synced() -> None:
    outcomes = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        made(disk, "old", b"old")
        made(disk, "gone", b"gone")
        disk.create("new").sync()
        disk.rename("old", "renamed")
        disk.remove("gone")
        after = disk.crash()
        outcomes.add(tuple(after.files()))
        assert ("old" in after.files()) != ("renamed" in after.files())
        disk = after.crash()
        assert disk.files() == after.files(), "what was decided stays"
    assert len(outcomes) == 8


def test_a_name_that_is_replaced_has_the_old_file_or_the_new() -> None:
    found = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        made(disk, "folder/name", b"old")
        made(disk, "folder/draft", b"new")
        disk.rename("folder/draft", "folder/name")
        found.add(disk.crash().content("folder/name"))
    assert found == {b"old", b"new"}


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_loses_nothing_but_makes_nothing_durable(seed: int) -> None:
    disk = SimulatedDisk(seed)
    disk.create("a").write(0, b"x" * 3000)
    killed = disk.crash("kill")
    assert killed.content("a") == b"x" * 3000
    with pytest.raises(PowerCut):
        disk.names(".")


def test_power_loss_after_a_kill_loses_what_was_not_synced() -> None:
    lost = 0
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        made(disk, "a").write(0, b"x" * 3000)
        lost += disk.crash("kill").crash().content("a") != b"x" * 3000
    assert lost > 10


def test_what_a_failed_sync_forgot_becomes_durable_only_when_written_again() -> None:
    lost = 0
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        file = made(disk, "a", b"o" * 1000)
        file.write(0, b"N" * 1000)
        disk.fail_next(Operation.SYNC)
        with pytest.raises(StoreFailed):
            file.sync()
        file.sync()
        assert file.read(0, 1000) == b"N" * 1000
        lost += disk.snapshot().crash().content("a") != b"N" * 1000
        file.write(0, b"N" * 1000)
        file.sync()
        assert disk.crash().content("a") == b"N" * 1000
    assert lost > 10


def test_a_full_disk_may_take_part_of_a_write() -> None:
    sizes = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed, capacity=1000)
        made(disk, "other", bytes(600))
        file = made(disk, "a", b"1234")
        with pytest.raises(StoreFull):
            file.write(4, b"x" * 500)
        sizes.add(file.size())
        assert disk.used <= 1000
        file.write(0, b"over")
        disk.remove("other")
        file.write(4, b"x" * 500)
    assert min(sizes) < 100
    assert max(sizes) > 300


def test_reserving_makes_room_that_writing_cannot_lack() -> None:
    disk = SimulatedDisk(capacity=1000)
    file = made(disk, "a")
    file.reserve(900)
    assert disk.free_bytes() == 100
    with pytest.raises(StoreFull):
        file.reserve(1001)
    made(disk, "b", bytes(disk.free_bytes()))
    file.write(0, b"x" * 900)
    assert file.read(890, 100)[:10] == b"x" * 10


def test_the_same_seed_gives_the_same_end() -> None:
    assert left(5, b"N" * 9000) == left(5, b"N" * 9000)
    assert len({left(seed, b"N" * 9000) for seed in SEEDS}) > 10


def test_the_nth_operation_of_a_kind_fails_once() -> None:
    disk = SimulatedDisk()
    file = disk.create("a")
    disk.fail_next(Operation.WRITE, after=2)
    file.write(0, b"1")
    file.sync()
    file.write(1, b"2")
    with pytest.raises(StoreFailed, match="writing a at 2"):
        file.write(2, b"3")
    file.write(2, b"3")
    assert disk.content("a") == b"123"


@pytest.mark.parametrize("at", range(8))
def test_power_is_cut_in_exactly_the_operation_asked_for(at: int) -> None:
    disk = SimulatedDisk()
    seen: list[Operation] = []
    disk.before = lambda operation, _: seen.append(operation)
    disk.cut_power_in(at)

    def work() -> None:
        file = disk.create("a")
        file.write(0, b"1")
        file.reserve(10)
        file.truncate(5)
        file.sync()
        disk.rename("a", "b")
        disk.sync_folder(".")
        disk.remove("b")

    with pytest.raises(PowerCut):
        work()
    assert disk.operations == len(seen) == at + 1
    with pytest.raises(PowerCut, match="off"):
        disk.create("more")
    assert disk.crash().operations == 0


def test_power_that_is_kept_after_all_is_not_cut() -> None:
    disk = SimulatedDisk()
    disk.cut_power_in(0)
    disk.keep_power()
    assert made(disk, "a", b"x").size() == 1


def test_one_process_of_a_machine_has_the_lock_until_it_ends() -> None:
    disk = SimulatedDisk()
    other = disk.another_process()
    disk.lock()
    for who in (disk, other):
        with pytest.raises(StoreInUse):
            who.lock()
    other.unlock()
    with pytest.raises(StoreInUse):
        other.lock()
    disk.unlock()
    other.lock()
    other.create("a").close()
    assert disk.exists("a")
    disk.crash("kill").lock()


def test_what_is_damaged_is_damaged_for_good() -> None:
    disk = SimulatedDisk()
    made(disk, "a", b"abc")
    disk.damage("a", 1, 0x20)
    assert disk.crash().content("a") == b"aBc"


def test_files_that_are_open_are_counted_and_a_closed_one_is_not_used() -> None:
    disk = SimulatedDisk()
    file = disk.create("a")
    disk.open("a").close()
    assert disk.open_files == 1
    file.close()
    file.close()
    assert disk.open_files == 0
    with pytest.raises(AssertionError, match="closed before"):
        file.read(0, 1)


def test_what_is_not_there_is_refused_as_a_real_disk_does() -> None:
    disk = SimulatedDisk()
    disk.create("a")
    for refused in (
        lambda: disk.create("a"),
        lambda: disk.open("b"),
        lambda: disk.remove("b"),
        lambda: disk.rename("b", "c"),
        lambda: disk.sync_folder("nowhere"),
    ):
        with pytest.raises(StoreFailed):
            refused()


def test_free_bytes_follow_the_capacity() -> None:
    disk = SimulatedDisk()
    made(disk, "a", bytes(40))
    assert disk.free_bytes() > 1 << 30
    disk.capacity = 100
    assert disk.free_bytes() == 60
    disk.remove("a")
    assert disk.free_bytes() == 100
    made(disk, "b", bytes(70))
    disk.capacity = 50
    assert disk.free_bytes() == 0
