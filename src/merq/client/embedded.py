"""The queue manager in-process: `merq.open(path)`.

Blocking and thread-safe: threads take turns at the engine and share syncs of the disk. What is said
to be done is durable.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from secrets import token_bytes
from threading import TIMEOUT_MAX, Condition, Lock, Thread
from typing import Final, TypeVar
from uuid import UUID, uuid4

from merq import __version__
from merq.engine.changes import Answer
from merq.engine.limits import Limits
from merq.errors import MerqError, MessageQueueError, StoreError, StoreFailed, StoreFull
from merq.host import SECRET_SIZE, Desk, Hall, Host, HostSettings, Pending
from merq.hresult import HResult
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Begin, Request
from merq.store.disk import Disk
from merq.store.recovery import Identity

IDLE_S: Final = 1.0
"""How often the time, the disk and the memory are looked at while nothing happens."""

_T = TypeVar("_T")


class Driver:
    """Feeds the engine: lets threads take turns, and wait for answers and for the disk."""

    def __init__(
        self,
        disk: Disk,
        name: str,
        limits: Limits,
        settings: HostSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._disk = disk
        self._clock = clock
        # Entered directly: Ctrl-C between a condition's own steps would leave it locked for ever.
        self._lock = Lock()
        self._turn = Condition(self._lock)
        # Answers wake those who wait for them, not the timekeeper.
        self._time = Condition(self._lock)
        self._answers: dict[int, Result] = {}
        self._abandoned: set[int] = set()
        self._count = 0
        self._transaction_count = 0
        self._syncing = False
        self._checkpointing = False
        self._maintaining = False
        self._quiet_wanted = 0
        self._failure: StoreError | None = None
        self._closed = False
        disk.lock()
        try:
            fresh = Identity(store_id=uuid4(), created=int(clock()))
            self._host = Host(disk, fresh, name, limits, settings)
            self.engine = self._host.engine
            self._desk = Desk(self._host, Hall(__version__, int(clock())))
            self._start()
        except BaseException:
            disk.unlock()
            raise
        self._timekeeper = Thread(target=self._keep_time, name="merq-time", daemon=True)
        self._timekeeper.start()

    def _start(self) -> None:
        try:
            self._host.start(int(self._clock()), uuid4(), token_bytes(SECRET_SIZE))
        except BaseException:
            self._host.close()
            raise

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""
        return self.engine.state.guid

    @property
    def name(self) -> str:
        """The computer name that other names call the queue manager by."""
        return self.engine.state.name

    def begin(self) -> int:
        """A new transaction; gives its number."""
        with self._lock:
            self._transaction_count += 1
            number = self._transaction_count
        self.ask(Begin(number))
        return number

    def ask(self, request: Request, timeout: float | None = 0) -> Result:
        """Asks for something and waits for the answer.

        Args:
            request: What is asked for.
            timeout: How long it waits for a message, in seconds; None is for ever.

        Raises:
            MessageQueueError: What was asked for cannot be; nothing was changed.
            StoreFailed: The disk failed; whether it happened is known when the store is opened.
        """
        deadline = None if timeout is None else time.monotonic() + timeout if timeout else 0.0
        with self._lock:
            if self._closed or self._failure is not None:
                self._check()
            self._count += 1
            number = self._count
            reply = self._feed(lambda: self._desk.perform(number, request))
            if not isinstance(reply, Pending):
                return reply
            if number not in self._answers:
                self._wait_for_answer(number, deadline)
            result = self._answers.pop(number)
        if isinstance(result, MessageQueueError):
            raise result
        return result

    def _feed(self, ask: Callable[[], _T]) -> _T:
        """Lets the engine do something, at the time that it is now, and performs what comes of it.

        An engine that is interrupted halfway (Ctrl-C) is not to be trusted any more; what it has
        said is, and so is the disk.
        """
        try:
            now = int(self._clock())
            if now != self.engine.state.now:
                self.engine.tick(now)
            try:
                return ask()
            finally:
                self._perform()  # what the time brought happens even if the request is refused
        except StoreFailed as wrong:
            self._fail(wrong)
            raise
        except MerqError:
            raise
        except BaseException as wrong:
            self._fail(StoreFailed(f"interrupted by {type(wrong).__name__}"))
            raise

    def close(self) -> None:
        """Makes everything durable and gives the folder back."""
        with self._lock:
            self._quieten()
            if self._closed:
                return
            try:
                if self._failure is None:
                    self._take(self._host.close_with_checkpoint())
            except StoreFailed as wrong:
                self._fail(wrong)
                raise
            finally:
                self._closed = True
                self._turn.notify_all()
                self._time.notify_all()
                self._host.close()
                self._disk.unlock()
        self._timekeeper.join()

    def _quieten(self) -> None:
        """Returns when nothing is being written; meanwhile nothing new is, or it never ends."""
        self._quiet_wanted += 1
        try:
            while self._syncing or self._checkpointing:
                self._turn.wait()
        finally:
            self._quiet_wanted -= 1
            self._turn.notify_all()

    def _fail(self, wrong: StoreError) -> None:
        """Whoever waits is told that nothing more happens here."""
        if self._failure is None:
            self._failure = wrong
        self._turn.notify_all()
        self._time.notify_all()

    def _check(self) -> None:
        if self._closed:
            raise MessageQueueError(
                HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, "the queue manager was closed"
            )
        if self._failure is not None:
            raise StoreFailed(f"the queue manager must be opened anew: {self._failure}")

    def _wait_for_answer(self, request: int, deadline: float | None) -> None:
        try:
            while request not in self._answers:
                self._wait(request, deadline)
        except BaseException:
            self._abandon(request)
            raise

    def _abandon(self, request: int) -> None:
        """Nobody is there any more for the answer: Ctrl-C while waiting.

        No message is spent on who has gone, unless its removal was on its way to the disk.
        """
        if self._answers.pop(request, self) is not self or self._closed or self._failure:
            return
        self._abandoned.add(request)
        if self._desk.cancel(request):
            self._perform()

    def _wait(self, request: int, deadline: float | None) -> None:
        """One step towards an answer: a sync, somebody else's sync, or the passing of time."""
        self._check()
        if self._syncing or self._quiet_wanted:
            self._turn.wait()
        elif self._host.has_unsynced:
            self._sync()
        else:
            remaining = TIMEOUT_MAX if deadline is None else deadline - time.monotonic()
            if remaining > 0:
                self._turn.wait(min(remaining, TIMEOUT_MAX))
            elif self._desk.cancel(request):
                self._perform()

    def _sync(self) -> None:
        """One thread goes to the disk for all; others go on meanwhile."""
        syncing = self._host.begin_sync()
        if syncing is None:
            return
        self._syncing = True
        self._turn.release()
        try:
            syncing.run()
        finally:
            self._turn.acquire()
            self._syncing = False
            self._turn.notify_all()
        try:
            self._take(self._host.end_sync(syncing))
        except StoreFailed as wrong:
            self._fail(wrong)
            raise

    def _perform(self) -> None:
        self._take(self._host.perform())
        if self._host.needs_upkeep and not self._maintaining:
            self._time.notify_all()

    def _take(self, answers: list[Answer]) -> None:
        """Puts answers where those who asked find them."""
        if not answers:
            return
        for answer in answers:
            if self._abandoned and answer.request in self._abandoned:
                self._abandoned.remove(answer.request)
                self._desk.settled(answer.request, None)
                continue
            self._desk.settled(answer.request, answer.result)
            self._answers[answer.request] = answer.result
        self._turn.notify_all()

    # Upkeep.

    def maintain(self) -> None:
        """Writes a checkpoint if it is time, and gives up what the log holds of the dead."""
        with self._lock:
            while self._maintaining:
                self._turn.wait()
            self._check()
            try:
                self._maintain()
            except StoreFailed as wrong:
                self._fail(wrong)
                raise

    def _maintain(self) -> None:
        if self._maintaining or not self._host.needs_upkeep:
            return
        self._maintaining = True
        try:
            self._tidy_up()
        finally:
            self._maintaining = False
            self._turn.notify_all()

    def _tidy_up(self) -> None:
        host = self._host
        while not self._is_over() and host.is_wasteful():
            if host.is_short or host.has_much_to_drop:
                self._write_checkpoint()  # what is dead already makes room for the rest
            more = True
            while more and not self._is_over():
                more, answers = host.relocate_some()
                self._take(answers)
                self._let_others()
        self._write_checkpoint()

    def _is_over(self) -> bool:
        """Whether it was closed, or failed, while others had their turn."""
        return self._closed or self._failure is not None

    def _let_others(self) -> None:
        """Whoever waits for a turn gets it before this thread goes on."""
        self._turn.release()
        time.sleep(0)
        self._turn.acquire()

    def _write_checkpoint(self) -> None:
        """A snapshot is taken in this thread's turn, and written while others have theirs."""
        self._quieten()
        if self._is_over():
            return  # the folder may be somebody else's by now
        writing, answers = self._host.begin_checkpoint()
        self._take(answers)
        if writing is None:
            return
        self._checkpointing = True
        self._turn.release()
        try:
            writing.run()
        finally:
            self._turn.acquire()
            self._checkpointing = False
            self._turn.notify_all()
        if not self._is_over():
            self._host.end_checkpoint(writing)

    def _keep_time(self) -> None:
        with self._lock:
            while not self._closed and self._failure is None:
                try:
                    self._catch_up()
                except StoreFull:
                    self._rest()  # no room for a checkpoint: another time, but not at once
                    continue
                except StoreFailed as wrong:
                    self._fail(wrong)
                    return
                self._time.wait(IDLE_S)

    def _rest(self) -> None:
        """Waits, whoever calls meanwhile."""
        until = time.monotonic() + IDLE_S
        while not self._is_over() and (remaining := until - time.monotonic()) > 0:
            self._time.wait(remaining)

    def _catch_up(self) -> None:
        now = int(self._clock())
        due = self.engine.next_deadline()
        if due is not None and due < now:
            self.engine.tick(now)
            self._perform()
        self._host.watch_resources()
        # Also for what nobody waits for: a message that expired was found by who looked.
        if not self._syncing and not self._quiet_wanted and self._host.has_unsynced:
            self._sync()
        if not self._closed:
            self._maintain()
