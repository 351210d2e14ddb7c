"""The queue manager in-process: `merq.open(path)`.

Blocking and thread-safe: threads take turns at the engine and share syncs of the disk. What is said
to be done is durable.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import TIMEOUT_MAX, Condition, Thread
from typing import Final
from uuid import UUID, uuid4

from merq.engine import notices
from merq.engine.changes import Answer, Change, PutStep, Result
from merq.engine.manager import QueueManager
from merq.engine.records import PUT_HEADER_SIZE
from merq.engine.snapshot import plan_relocation, restore_snapshot, take_snapshot
from merq.engine.state import Limits
from merq.errors import MessageQueueError, StoreError, StoreFailed, StoreFull
from merq.hresult import HResult
from merq.store.checkpoints import Checkpoint, Section, write_checkpoint
from merq.store.disk import Disk
from merq.store.log import Log, LogSettings
from merq.store.records import Record
from merq.store.recovery import Frame, Identity, open_store

CACHE_BYTES: Final = 64 << 20
"""Packets that were written lately are kept in memory up to this."""

CHECKPOINT_BYTES: Final = 64 << 20
"""A checkpoint is written when the log has grown by this much since the last."""

SETTLING_ROUNDS_MAX: Final = 100
"""Syncs that a checkpoint waits for until nothing is under way."""

IDLE_S: Final = 1.0
"""How often the time is looked at while nothing happens."""


class LogPackets:
    """Packets by position, from the log, the latest from memory."""

    def __init__(self) -> None:
        self.log: Log | None = None
        self._cache: dict[int, bytes] = {}
        self._cached = 0
        self._living: dict[int, int] = {}

    def attach(self, log: Log) -> None:
        """The log is open: what was counted while it was read is counted there."""
        self.log = log
        for segment, size in self._living.items():
            log.keep(segment << 32, size)
        self._living.clear()

    def remember(self, position: int, packet: bytes) -> None:
        """A packet that was just written."""
        self._cache[position] = packet
        self._cached += len(packet)
        while self._cached > CACHE_BYTES:
            oldest = next(iter(self._cache))
            self._cached -= len(self._cache.pop(oldest))

    def read(self, position: int, size: int) -> bytes:
        """The packet there."""
        found = self._cache.get(position)
        if found is not None:
            return found
        assert self.log is not None
        return self.log.read(position, size)

    def keep(self, position: int, size: int) -> None:
        """The packet is needed."""
        if self.log is None:
            self._living[position >> 32] = self._living.get(position >> 32, 0) + size
        else:
            self.log.keep(position, size)

    def release(self, position: int, size: int) -> None:
        """The packet is needed no more."""
        found = self._cache.pop(position, None)
        if found is not None:
            self._cached -= len(found)
        if self.log is None:
            self._living[position >> 32] -= size
        else:
            self.log.release(position, size)


class Driver:
    """Feeds the engine: performs its effects, gives it time, and lets threads wait for answers."""

    def __init__(
        self,
        disk: Disk,
        name: str,
        limits: Limits,
        settings: LogSettings | None = None,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._turn = Condition()
        self._answers: dict[int, Result] = {}
        self._abandoned: set[int] = set()
        self._count = 0
        self._syncing = False
        self._quiet_wanted = 0
        self._failure: StoreError | None = None
        self._closed = False
        self._checkpoint_number = 0
        self._contained = 0
        self._told = 0
        self._checkpoint_bytes = checkpoint_bytes
        disk.lock()
        try:
            with self._turn:
                self._open(name, limits, settings)
        except BaseException:
            disk.unlock()
            raise
        self._timekeeper = Thread(target=self._keep_time, name="merq-time", daemon=True)
        self._timekeeper.start()

    def _open(self, name: str, limits: Limits, settings: LogSettings | None) -> None:
        fresh = Identity(store_id=uuid4(), created=int(self._clock()))
        self._packets = LogPackets()
        self.engine = QueueManager(fresh.store_id, name, self._packets, limits)

        def replay(frame: Frame) -> None:
            for kind, position, data in frame.records():
                self.engine.replay(kind, data, position)

        def restore(checkpoint: Checkpoint) -> None:
            self._checkpoint_number = checkpoint.number
            self._contained = checkpoint.position
            restore_snapshot(self.engine.state, list(checkpoint.sections))

        opened = open_store(self._disk, fresh, restore, replay, settings)
        # The queue manager's identifier is the store's: made once per folder.
        self.engine.state.guid = opened.identity.store_id
        self.torn = opened.torn
        self._log = opened.log
        self._packets.attach(self._log)
        try:
            self._start()
        except BaseException:
            self._log.close()
            raise

    def _start(self) -> None:
        self.engine.tick(int(self._clock()))
        self.engine.provision(uuid4())
        self._perform()
        self._settle()
        if notices.JOURNAL_NUMBER not in self.engine.state.queues:
            raise StoreFull("there is no room for the queues that every queue manager has")

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""
        return self.engine.state.guid

    def run(
        self, ask: Callable[[int], object], number: int = 0, timeout: float | None = 0
    ) -> Result:
        """Asks the engine for something and waits for the answer.

        Args:
            ask: Called with the request's number, in this thread's turn.
            number: The queue at which the request may have to wait.
            timeout: How long it waits for a message, in seconds; None is for ever.

        Raises:
            MessageQueueError: What was asked for cannot be; nothing was changed.
            StoreFailed: The disk failed; whether it happened is known when the store is opened.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._turn:
            self._check()
            self._count += 1
            request = self._count
            try:
                self._ask(request, ask)
                self._wait_for_answer(request, number, deadline)
            except StoreFailed as wrong:
                self._fail(wrong)
                raise
            result = self._answers.pop(request)
        if isinstance(result, MessageQueueError):
            raise result
        return result

    def _ask(self, request: int, ask: Callable[[int], object]) -> None:
        self.engine.tick(int(self._clock()))
        try:
            ask(request)
        finally:
            self._perform()  # what the time brought happens even if the request is refused

    def look(self, ask: Callable[[QueueManager], object]) -> object:
        """Something that needs no answer from the engine, in this thread's turn."""
        with self._turn:
            self._check()
            return ask(self.engine)

    def close(self) -> None:
        """Makes everything durable and gives the folder back."""
        with self._turn:
            self._quieten()
            if self._closed:
                return
            try:
                if self._failure is None:
                    self._settle()
            except StoreFailed as wrong:
                self._fail(wrong)
                raise
            finally:
                self._closed = True
                self._turn.notify_all()
                self._log.close()
                self._disk.unlock()
        self._timekeeper.join()

    def _quieten(self) -> None:
        """Returns when no sync is under way; meanwhile none begins, or a busy manager never is."""
        self._quiet_wanted += 1
        try:
            while self._syncing:
                self._turn.wait()
        finally:
            self._quiet_wanted -= 1
            self._turn.notify_all()

    def _settle(self) -> None:
        """Everything that is under way happens, in one turn."""
        while True:
            self._log.sync()
            self._tell()
            self._perform()
            if self._log.durable == self._log.end:
                return

    def _tell(self) -> None:
        """The engine learns how far the log is durable; the log moves that on by itself too."""
        if self._log.durable != self._told:
            self._told = self._log.durable
            self.engine.durable(self._told)

    def _fail(self, wrong: StoreError) -> None:
        """Whoever waits is told that nothing more happens here."""
        if self._failure is None:
            self._failure = wrong
        self._turn.notify_all()

    def _check(self) -> None:
        if self._closed:
            raise MessageQueueError(
                HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, "the queue manager was closed"
            )
        if self._failure is not None:
            raise StoreFailed(f"the queue manager must be opened anew: {self._failure}")

    def _wait_for_answer(self, request: int, number: int, deadline: float | None) -> None:
        try:
            while request not in self._answers:
                self._wait(request, number, deadline)
        except BaseException:
            self._abandon(request, number)
            raise

    def _abandon(self, request: int, number: int) -> None:
        """Nobody is there any more for the answer: Ctrl-C while waiting.

        No message is spent on who has gone, unless its removal was on its way to the disk.
        """
        if self._answers.pop(request, self) is not self or self._closed or self._failure:
            return
        self._abandoned.add(request)
        queue = self.engine.state.queues.get(number)
        if queue is not None and self.engine.readers.cancel(request, queue):
            self._perform()

    def _wait(self, request: int, number: int, deadline: float | None) -> None:
        """One step towards an answer: a sync, somebody else's sync, or the passing of time."""
        self._check()
        if self._syncing or self._quiet_wanted:
            self._turn.wait()
        elif self._log.durable < self._log.end:
            self._sync()
        else:
            remaining = TIMEOUT_MAX if deadline is None else deadline - time.monotonic()
            if remaining > 0:
                self._turn.wait(min(remaining, TIMEOUT_MAX))
            elif self.engine.cancel(request, number):
                self._perform()

    def _sync(self) -> None:
        """One thread goes to the disk for all; others go on meanwhile."""
        syncing = self._log.begin_sync()
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
            self._log.end_sync(syncing)
        except StoreFailed as wrong:
            self._fail(wrong)
            raise
        self._tell()
        self._perform()

    def _perform(self) -> None:
        while effects := self.engine.take_effects():
            for effect in effects:
                if isinstance(effect, Answer):
                    if effect.request in self._abandoned:
                        self._abandoned.remove(effect.request)
                        continue
                    self._answers[effect.request] = effect.result
                    self._turn.notify_all()
                else:
                    self._write(effect.change)

    def _write(self, change: Change) -> None:
        try:
            appended = self._log.append([Record(kind, data) for kind, data in change.entries])
        except StoreFull as full:
            error = MessageQueueError(
                HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED,
                f"the disk is full and nothing was changed: {full}",
            )
            # What made room may have made what was written before durable.
            self._tell()
            self.engine.failed(change, error)
            return
        except StoreFailed as wrong:
            self._fail(wrong)
            raise
        for step in change.steps:
            if isinstance(step, PutStep) and step.entry is not None:
                location = appended.positions[step.entry] + PUT_HEADER_SIZE
                self._packets.remember(location, step.packet)
        self.engine.written(change, appended.positions, appended.end)
        self._tell()

    def maintain(self) -> None:
        """Writes a checkpoint if it is time, and gives up what the log holds of the dead."""
        with self._turn:
            self._check()
            try:
                self._maintain()
            except StoreFailed as wrong:
                self._fail(wrong)
                raise

    def _maintain(self) -> None:
        if self._grown() < self._checkpoint_bytes:
            return
        self._write_checkpoint()
        while self._is_wasteful():
            oldest = self._log.segments()[0].number
            if plan_relocation(self.engine.state, oldest):
                self._perform()
            self._write_checkpoint()
            if self._closed or self._log.segments()[0].number == oldest:
                return  # there was no room to copy what lives; another time

    def _grown(self) -> int:
        """How much the log has grown since the last checkpoint, in bytes."""
        first = self._contained >> 32
        grown = sum(each.used for each in self._log.segments() if each.number >= first)
        return grown - (self._contained & 0xFFFFFFFF if self._contained else 0)

    def _is_wasteful(self) -> bool:
        """Whether more than half of the log is dead, the newest segments aside."""
        segments = self._log.segments()
        used = sum(each.used for each in segments)
        living = sum(each.living for each in segments)
        return len(segments) > 2 and used - living > living + segments[-1].used

    def _write_checkpoint(self) -> None:
        """A snapshot of what has happened, at the end of the log; older segments may go then."""
        self._quieten()
        if self._closed:
            return  # the folder may be somebody else's by now
        for _ in range(SETTLING_ROUNDS_MAX):
            self._log.sync()
            self._tell()
            self._perform()
            if self.engine.state.is_settled and self._log.durable == self._log.end:
                break
        else:
            return
        sections = tuple(Section(*each) for each in take_snapshot(self.engine.state))
        checkpoint = Checkpoint(
            number=self._checkpoint_number + 1,
            position=self._log.end,
            next_sequence=self._log.next_sequence,
            sections=sections,
        )
        write_checkpoint(self._disk, self.guid, checkpoint)
        self._checkpoint_number = checkpoint.number
        self._contained = checkpoint.position
        for segment in self._log.segments()[:-1]:
            if segment.living or segment.number >= checkpoint.position >> 32:
                break
            self._log.drop(segment.number)

    def _keep_time(self) -> None:
        with self._turn:
            while not self._closed and self._failure is None:
                try:
                    self._catch_up()
                except StoreFailed as wrong:
                    self._fail(wrong)
                    return
                self._turn.wait(IDLE_S)

    def _catch_up(self) -> None:
        now = int(self._clock())
        due = self.engine.next_deadline()
        if due is not None and due < now:
            self.engine.tick(now)
            self._perform()
        # Also for what nobody waits for: a message that expired was found by who looked.
        if not self._syncing and not self._quiet_wanted and self._log.durable < self._log.end:
            self._sync()
        if self._closed:
            return
        # Without room for a checkpoint the next round tries again.
        with suppress(StoreFull):
            self._maintain()
