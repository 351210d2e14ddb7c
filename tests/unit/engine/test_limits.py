"""[MS-MQDMPR] 3.1.1.1: quotas, also when nobody has chosen any."""

from __future__ import annotations

from pathlib import Path

import pytest

import merq
from merq.engine.limits import LIMIT_MAX, MACHINE_QUOTA_MIN_KB, Limits
from merq.errors import MessageQueueError
from merq.model.queue import KILOBYTE, UNLIMITED
from merq.store.disk import FileDisk

GIB = 1 << 30


@pytest.mark.spec("MS-MQMQ note 24", "MS-MQDMPR note 3")
@pytest.mark.parametrize(
    ("disk_bytes", "quota_bytes"),
    [
        (0, GIB),
        (GIB, GIB),
        (100 * GIB, 50 * GIB),
        (1 << 50, (UNLIMITED - 1) * KILOBYTE),
    ],
)
def test_the_quota_is_half_of_the_disk_unless_somebody_chose_one(
    disk_bytes: int, quota_bytes: int
) -> None:
    assert MACHINE_QUOTA_MIN_KB * KILOBYTE == GIB
    assert Limits().on_disk(disk_bytes).quota_bytes == quota_bytes
    assert Limits(machine_quota=7).on_disk(disk_bytes).quota_bytes == 7 * KILOBYTE
    assert Limits(machine_quota=UNLIMITED).on_disk(disk_bytes).quota_bytes == LIMIT_MAX


def test_the_network_has_its_share_of_everything() -> None:
    limits = Limits(
        machine_quota=1000, memory_bytes=1000, disk_reserve_bytes=10, network_quota_percent=30
    )
    assert limits.network_quota_bytes == 300 * KILOBYTE
    assert limits.network_memory_bytes == 300
    assert limits.network_reserve_bytes == 40
    assert Limits(network_quota_percent=100, disk_reserve_bytes=10).network_reserve_bytes == 10


@pytest.mark.parametrize("share", [-1, 101, True, "50"])
def test_a_share_is_a_percentage(share: object) -> None:
    with pytest.raises(MessageQueueError, match="network_quota_percent is"):
        Limits(network_quota_percent=share)  # type: ignore[arg-type]


def test_an_embedded_queue_manager_has_a_quota_by_default(tmp_path: Path) -> None:
    with merq.open(tmp_path / "data") as manager:
        half = FileDisk(tmp_path).total_bytes() // 2 // KILOBYTE * KILOBYTE
        assert manager.status().quota_bytes == max(GIB, half)


def test_a_store_above_the_quota_opens_and_gives_its_messages(tmp_path: Path) -> None:
    with merq.open(tmp_path / "data", limits=Limits(machine_quota=UNLIMITED)) as manager:
        assert manager.status().quota_bytes == 0
        queue = manager.create_queue(r".\private$\q")
        for number in range(3):
            queue.send(bytes([number]) * 1000, recoverable=True)
    with merq.open(tmp_path / "data", limits=Limits(machine_quota=1)) as manager:
        queue = manager.queue(r".\private$\q")
        with pytest.raises(MessageQueueError, match="quota of 1 KB"):
            queue.send(b"more")
        for number in range(3):
            assert queue.receive().body == bytes([number]) * 1000
        queue.send(b"room again")
