"""[MS-MQDMPR] 3.1.1.1: what the queue manager as a whole keeps to."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Final

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.queue import UNLIMITED

LIMIT_MAX: Final = (1 << 63) - 1

LEASE_S: Final = 5
"""So long after it was heard of last nobody else may speak for a group. Then somebody else may, and
who was silent may not any more: it may have been thought dead, and its work begun again."""

STAGE_KEEP_S: Final = 6 * 3600
"""So long what was written waits to be published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """[MS-MQDMPR] 3.1.1.1: what the queue manager as a whole keeps to.

    Attributes:
        machine_quota: The most that all messages together may take, in kilobytes.
        memory_bytes: Express messages may take this much memory; beyond it no message is taken
            before a fifth of it is free again.
        disk_reserve_bytes: With less free room than this on the disk no message is taken before
            there is twice as much.
        lease_s: How long after it was heard of last nobody else may speak for a group of consumers.
        stage_keep_s: How long what was written into a stage waits to be published.
    """

    machine_quota: int = UNLIMITED
    memory_bytes: int = 1 << 30
    disk_reserve_bytes: int = 64 << 20
    lease_s: int = LEASE_S
    stage_keep_s: int = STAGE_KEEP_S

    def __post_init__(self) -> None:
        for name, most in (
            ("machine_quota", UNLIMITED),
            ("memory_bytes", LIMIT_MAX),
            ("disk_reserve_bytes", LIMIT_MAX),
            ("lease_s", LIMIT_MAX),
            ("stage_keep_s", LIMIT_MAX),
        ):
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
                raise MessageQueueError(
                    HResult.MQ_ERROR_INVALID_PARAMETER,
                    f"{name} is {reprlib.repr(value)}; a number from 0 to {most:#x} belongs there",
                )
