"""What the service does when its disk fails, or when something happens that nobody foresaw."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

import merq.aio
from merq.errors import InDoubt, StoreFailed
from merq.host import reporting
from merq.service.settings import RetrySettings, ServiceSettings
from merq.store.disk import FileDisk
from unit.aio.serving_aio import ORDERS, run, served

_T = TypeVar("_T")


def failing_once(real: Callable[..., _T], wrong: Exception) -> Callable[..., _T]:
    """The real thing, but for the first call."""
    calls = iter((wrong,))

    def call(*arguments: object, **named: object) -> _T:
        failure = next(calls, None)
        if failure is not None:
            raise failure
        return real(*arguments, **named)

    return call


def test_after_a_failed_sync_the_store_is_opened_anew_and_clients_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ServiceSettings(data=tmp_path / "data")

    async def story() -> None:
        async with served(settings), merq.aio.connect(f"unix:{settings.socket_path}") as manager:
            queue = await manager.create_queue(ORDERS)
            await queue.send("before", recoverable=True)
            with monkeypatch.context() as disk:
                wrong = OSError(errno.EIO, "Input/output error")
                disk.setattr(os, "fdatasync", failing_once(os.fdatasync, wrong))
                with pytest.raises(InDoubt):
                    await queue.send("meanwhile", recoverable=True)
            await queue.send("after", recoverable=True)
            bodies = [message.body async for message in queue.peek_all()]
            assert bodies in (["before", "after"], ["before", "meanwhile", "after"])

    run(story())
    assert "the disk failed" in caplog.text


@pytest.mark.spec("MS-MQDMPR 3.1.4.1")
def test_a_service_that_ran_tries_again_if_its_store_cannot_be_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Only a start is given up at once: a disk that is away for a while ends nothing."""
    settings = ServiceSettings(
        data=tmp_path / "data", retry=RetrySettings(first_s=0.1, later_s=0.1)
    )
    assert not settings.retry.at_start

    async def story() -> None:
        async with served(settings), merq.aio.connect(f"unix:{settings.socket_path}") as manager:
            queue = await manager.create_queue(ORDERS)
            with monkeypatch.context() as disk:
                wrong = OSError(errno.EIO, "Input/output error")
                disk.setattr(os, "fdatasync", failing_once(os.fdatasync, wrong))
                gone = StoreFailed("the disk is away")
                disk.setattr(FileDisk, "lock", failing_once(FileDisk.lock, gone))
                with pytest.raises(InDoubt):
                    await queue.send("meanwhile", recoverable=True)
                await queue.send("after", recoverable=True)

    run(story())
    assert "initialisation failed" in caplog.text


def test_after_something_unforeseen_the_engine_is_not_trusted_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ServiceSettings(data=tmp_path / "data")

    async def story() -> None:
        async with served(settings), merq.aio.connect(f"unix:{settings.socket_path}") as manager:
            queue = await manager.create_queue(ORDERS)
            await queue.send("before", recoverable=True)
            broken = failing_once(reporting.status, AssertionError("nobody foresaw this"))
            monkeypatch.setattr(reporting, "status", broken)
            assert (await manager.status()).messages == 1  # asked again of what came back
            await queue.send("after", recoverable=True)
            assert [message.body async for message in queue.peek_all()] == ["before", "after"]

    run(story())
    assert "stumbled and starts anew" in caplog.text
    assert "nobody foresaw this" in caplog.text
