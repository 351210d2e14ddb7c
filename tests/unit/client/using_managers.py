"""What the tests of the embedded queue manager share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

import merq
from merq.client.embedded import Driver
from merq.client.manager import Manager
from merq.errors import MessageQueueError
from merq.host import HostSettings
from merq.store.log import LogSettings

ORDERS = r".\private$\orders"
SMALL = HostSettings(log=LogSettings(segment_size=1 << 16, reserve_step=1 << 12))
SMALL_CHECKPOINTS = replace(SMALL, checkpoint_bytes=1 << 16)


def refused(code: int, ask: Callable[[], object]) -> MessageQueueError:
    with pytest.raises(MessageQueueError) as caught:
        ask()
    assert caught.value.code == code
    assert isinstance(caught.value, merq.MerqError)
    assert len(str(caught.value)) > 10
    return caught.value


def driver_of(manager: Manager) -> Driver:
    """The threads behind a queue manager."""
    assert isinstance(manager._driver, Driver)
    return manager._driver


def waiting_at(manager: Manager, queue: merq.Queue, readers: int) -> None:
    """Returns when so many readers wait at a queue."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with driver_of(manager)._turn:
            if len(driver_of(manager).engine.queue(queue._number).waiting) == readers:
                return
        time.sleep(0.001)
    raise AssertionError("nobody came to wait")
