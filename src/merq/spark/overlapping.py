"""Two things at once: the queue manager works while this process does.

A task that reads asks for the next messages before it takes those apart that have come; one that
writes packs the next rows while those before them go to the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self, TypeVar

UNDER_WAY_MAX: Final = 2
"""What is handed over and not answered."""

_T = TypeVar("_T")
_END: Final = object()


def ahead(items: Iterator[_T]) -> Iterator[_T]:
    """The same items; while one is dealt with, the next is got in a thread."""
    with ThreadPoolExecutor(1, thread_name_prefix="merq-ahead") as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield item  # type: ignore[misc]


class Handover:
    """Calls that are made one after the other in a thread; the first that fails fails the next."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="merq-handover")
        self._under_way: deque[Future[object]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(cancel_futures=error is not None)

    def call(self, what: Callable[[], object]) -> None:
        """Makes a call, when those before it are done."""
        if len(self._under_way) >= UNDER_WAY_MAX:
            self._under_way.popleft().result()
        self._under_way.append(self._thread.submit(what))

    def finish(self) -> None:
        """All calls have been made, and none has failed."""
        while self._under_way:
            self._under_way.popleft().result()
