"""What stands between a simulated disk and the client's classes: no threads, no waiting.

It does what `merq.client.embedded.Driver` does, but time is told to it, and whoever waits lets it
jump to the next moment at which anything can happen.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from merq.engine.changes import Answer
from merq.engine.limits import Limits
from merq.errors import MerqError, MessageQueueError, StoreFailed, StoreFull
from merq.host import Desk, Hall, Host, HostSettings, Pending
from merq.hresult import HResult
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Begin, Request
from merq.store.recovery import Identity
from merq.testing.disk import PowerCut, SimulatedDisk

_T = TypeVar("_T")


class WaitsForEver(Exception):
    """Somebody waits without a limit, and nothing in this world can end it."""


@dataclass(slots=True)
class Clock:
    """The world's time, in seconds since 1970; it goes on when it is told to."""

    now: float


class SimulatedDriver:
    """Feeds an engine on a simulated disk, one caller at a time."""

    def __init__(
        self,
        disk: SimulatedDisk,
        name: str,
        clock: Clock,
        guids: Callable[[], UUID],
        limits: Limits,
        settings: HostSettings,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._answers: dict[int, Result] = {}
        self._count = 0
        self._transaction_count = 0
        self._failure: StoreFailed | None = None
        self._closed = False
        self._off = False
        disk.lock()
        try:
            fresh = Identity(store_id=guids(), created=int(clock.now))
            self._host = Host(disk, fresh, name, limits, settings)
            self.engine = self._host.engine
            self._desk = Desk(self._host, Hall("simulated", int(clock.now)))
            self._start(guids())
        except BaseException:
            disk.unlock()
            raise

    def _start(self, guid: UUID) -> None:
        try:
            self._host.start(int(self._clock.now), guid)
        except BaseException:
            self._host.close()
            raise

    @property
    def name(self) -> str:
        """The computer name that other names call the queue manager by."""
        return self.engine.state.name

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""
        return self.engine.state.guid

    # What the client's classes ask for.

    def begin(self) -> int:
        """A new transaction; gives its number."""
        self._transaction_count += 1
        number = self._transaction_count
        self.ask(Begin(number))
        return number

    def ask(self, request: Request, timeout: float | None = 0) -> Result:
        """Asks for something; gives the answer, or raises it if it is an error.

        Args:
            request: What is asked for.
            timeout: How long it waits for a message, in seconds of the world's time; None is for
                ever.

        Raises:
            WaitsForEver: Nothing can come, and the wait has no limit.
            PowerCut: The power went, or had gone before.
        """
        self._check()
        self._count += 1
        number = self._count
        deadline = None if timeout is None else self._clock.now + timeout
        reply = self._feed(lambda: self._desk.perform(number, request))
        if not isinstance(reply, Pending):
            return reply
        while number not in self._answers:
            self._feed(lambda: self._go_on(number, deadline))
        self._feed(self._maintain)
        result = self._answers.pop(number)
        if isinstance(result, MessageQueueError):
            raise result
        return result

    def close(self) -> None:
        """Makes everything durable and gives the folder back; nothing to do if the power went."""
        if self._closed or self._off:
            return
        self._closed = True
        try:
            if self._failure is None:
                self._guarded(self._host.settle)
        finally:
            if not self._off:
                self._host.close()
                self._disk.unlock()

    # Time, and the end of it.

    def pass_time(self) -> None:
        """The clock was put on: what is due happens."""
        if self._closed or self._off or self._failure is not None:
            return
        self._feed(lambda: None)
        self._feed(self._settle)

    def switch_off(self) -> None:
        """The power is gone: whoever goes on asking is told so."""
        self._off = True

    def checkpoint(self) -> None:
        """Writes a checkpoint now, and drops what of the log nobody needs.

        Raises:
            StoreFull: There is no room for it; nothing is lost.
        """
        self._check()
        self._guarded(self._write_checkpoint)

    def _check(self) -> None:
        if self._off:
            raise PowerCut("the machine is off: restart the world")
        if self._closed:
            raise MessageQueueError(
                HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, "the queue manager was closed"
            )
        if self._failure is not None:
            raise StoreFailed(f"the queue manager must be opened anew: {self._failure}")

    def _feed(self, ask: Callable[[], _T]) -> _T:
        """Lets the engine do something, now, and performs what comes of it."""

        def fed() -> _T:
            now = int(self._clock.now)
            if now != self.engine.state.now:
                self.engine.tick(now)
            self._host.watch_resources()
            try:
                return ask()
            finally:
                self._take(self._host.perform())

        return self._guarded(fed)

    def _guarded(self, doing: Callable[[], _T]) -> _T:
        """After a failure of the disk, or anything unforeseen, the engine is not trusted."""
        try:
            return doing()
        except PowerCut:
            self._off = True
            raise
        except StoreFailed as wrong:
            self._failure = wrong
            raise
        except (MerqError, WaitsForEver):
            raise
        except BaseException as wrong:
            self._failure = StoreFailed(f"interrupted by {type(wrong).__name__}")
            raise

    def _go_on(self, request: int, deadline: float | None) -> None:
        """One step towards an answer: a sync, or a jump in time."""
        if self._host.has_unsynced:
            self._sync()
            return
        due = self.engine.next_deadline()
        moment = None if due is None else due + 1.0
        if deadline is not None and (moment is None or deadline < moment):
            self._clock.now = max(self._clock.now, deadline)
            self._desk.cancel(request)
        elif moment is not None:
            self._clock.now = max(self._clock.now, moment)
            self.engine.tick(int(self._clock.now))
        else:
            self._desk.cancel(request)
            raise WaitsForEver(
                "a receive or peek without a timeout found nothing, and nothing can come: there "
                "are no other threads in a simulated world"
            )

    def _sync(self) -> None:
        syncing = self._host.begin_sync()
        if syncing is not None:
            syncing.run()
            self._take(self._host.end_sync(syncing))

    def _settle(self) -> None:
        self._take(self._host.settle())
        assert not self._host.set_aside_count, "a message could not be handled"
        self._maintain()

    def _take(self, answers: list[Answer]) -> None:
        for answer in answers:
            assert answer.request not in self._answers, "a request has one answer"
            self._desk.settled(answer.request, answer.result)
            self._answers[answer.request] = answer.result

    def _maintain(self) -> None:
        if not self._host.needs_upkeep:
            return
        # Without room for a checkpoint it is tried again another time.
        with suppress(StoreFull):
            self._write_checkpoint()
            while self._host.is_wasteful() and self._relocate():
                pass

    def _relocate(self) -> bool:
        """Copies what lives out of the oldest segment; whether it could be given up."""
        oldest = self._host.log.segments()[0].number
        more = True
        while more:
            more, answers = self._host.relocate_some()
            self._take(answers)
        self._write_checkpoint()
        return self._host.log.segments()[0].number != oldest

    def _write_checkpoint(self) -> None:
        writing, answers = self._host.begin_checkpoint()
        self._take(answers)
        if writing is not None:
            writing.run()
            self._host.end_checkpoint(writing)
