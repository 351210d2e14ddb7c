"""[MS-MQDMPR] 3.1.1.1: what the queue manager as a whole keeps to."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, replace
from typing import Final

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.queue import KILOBYTE, UNLIMITED

LIMIT_MAX: Final = (1 << 63) - 1

LEASE_S: Final = 5
"""So long after it was heard of last nobody else may speak for a group. Then somebody else may, and
who was silent may not any more: it may have been thought dead, and its work begun again."""

MACHINE_QUOTA_MIN_KB: Final = 1 << 20
"""The quota that is derived from a disk is no smaller: 1 GB, which was MSMQ's own default. On a
disk that has less, the reserve says when it is full."""

DISK_PARTS: Final = 2
"""The quota that is derived from a disk is so many times smaller."""

NETWORK_QUOTA_PERCENT: Final = 50
"""What other queue managers may take of the quota and of the memory for express messages."""

WHOLE_PERCENT: Final = 100

NETWORK_RESERVE_FACTOR: Final = 4
"""Other queue managers stop at so many times the reserve of the disk: the rest is for
applications."""

STAGE_KEEP_S: Final = 6 * 3600
"""So long what was written waits to be published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """[MS-MQDMPR] 3.1.1.1: what the queue manager as a whole keeps to.

    Attributes:
        machine_quota: The most that all messages together may take, in kilobytes; None derives it
            from the size of the disk (`on_disk`).
        memory_bytes: Express messages may take this much memory; beyond it no message is taken
            before a fifth of it is free again.
        disk_reserve_bytes: With less free room than this on the disk no message is taken before
            there is twice as much.
        network_quota_percent: So much of `machine_quota` and of `memory_bytes` is for messages of
            other queue managers at most; 100 makes no difference between them and applications.
        lease_s: How long after it was heard of last nobody else may speak for a group of consumers.
        stage_keep_s: How long what was written into a stage waits to be published.
    """

    machine_quota: int | None = None
    memory_bytes: int = 1 << 30
    disk_reserve_bytes: int = 64 << 20
    network_quota_percent: int = NETWORK_QUOTA_PERCENT
    lease_s: int = LEASE_S
    stage_keep_s: int = STAGE_KEEP_S

    def __post_init__(self) -> None:
        for name, most in (
            ("machine_quota", UNLIMITED),
            ("memory_bytes", LIMIT_MAX),
            ("disk_reserve_bytes", LIMIT_MAX),
            ("network_quota_percent", WHOLE_PERCENT),
            ("lease_s", LIMIT_MAX),
            ("stage_keep_s", LIMIT_MAX),
        ):
            value: object = getattr(self, name)
            if value is None and name == "machine_quota":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
                raise MessageQueueError(
                    HResult.MQ_ERROR_INVALID_PARAMETER,
                    f"{name} is {reprlib.repr(value)}; a number from 0 to {most:#x} belongs there",
                )

    def on_disk(self, disk_bytes: int) -> Limits:
        """These limits with a quota: half of the disk, unless they have one already."""
        if self.machine_quota is not None:
            return self
        derived = max(MACHINE_QUOTA_MIN_KB, disk_bytes // DISK_PARTS // KILOBYTE)
        return replace(self, machine_quota=min(derived, UNLIMITED - 1))

    @property
    def quota_bytes(self) -> int:
        """What all messages together may take."""
        if self.machine_quota is None or self.machine_quota == UNLIMITED:
            return LIMIT_MAX
        return self.machine_quota * KILOBYTE

    @property
    def is_shared(self) -> bool:
        """Whether other queue managers have less than applications."""
        return self.network_quota_percent != WHOLE_PERCENT

    @property
    def network_quota_bytes(self) -> int:
        """What messages of other queue managers may take of the quota."""
        return self.quota_bytes * self.network_quota_percent // WHOLE_PERCENT

    @property
    def network_memory_bytes(self) -> int:
        """What their express messages may take in memory."""
        return self.memory_bytes * self.network_quota_percent // WHOLE_PERCENT

    @property
    def network_reserve_bytes(self) -> int:
        """With less free room than this on the disk no message of theirs is taken."""
        return self.disk_reserve_bytes * (NETWORK_RESERVE_FACTOR if self.is_shared else 1)
