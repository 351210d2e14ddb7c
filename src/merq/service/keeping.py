"""The disk's side of the service: syncs that many share, checkpoints, tidying up, the time.

Everything but waiting for the disk happens in the event loop. A lone message is synced there too,
and everything is if the disk is quick: a detour through a thread would take longer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from merq.errors import StoreFull
from merq.host import Host
from merq.service.logs import Log
from merq.service.reception import Reception
from merq.store.log import Syncing

IDLE_S: Final = 1.0
"""How often the time, the disk and the memory are looked at while nothing happens."""


SYNCS_A_TURN: Final = 8
"""So often the disk is gone to before others have their turn."""


TURN_S: Final = 0.001
"""After this time others have their turn, too."""


QUICK_SYNC_S: Final = 0.003
"""A disk that takes no longer than this is waited for in the event loop."""

SYNCS_REMEMBERED: Final = 8
"""About so many of the latest syncs say how quick the disk is."""


class Keeper:
    """Keeps what the reception's clients want kept.

    Args:
        flush: Called when connections have something to be written.
        fail: Called once, when the disk has failed or something unforeseen happened: the store must
            be opened anew.
    """

    def __init__(
        self,
        host: Host,
        reception: Reception,
        flush: Callable[[], None],
        fail: Callable[[Exception], None],
        log: Log,
    ) -> None:
        self._host = host
        self._log = log
        self._reception = reception
        self._sync_s = 0.0  # it is quick until it is measured
        self._flush = flush
        self._fail = fail
        self._loop = asyncio.get_running_loop()
        self._disk_thread = ThreadPoolExecutor(1, thread_name_prefix="merq-disk")
        self._checkpoint_thread = ThreadPoolExecutor(1, thread_name_prefix="merq-checkpoint")
        self._is_due = False
        self._syncing: asyncio.Future[None] | None = None
        self._quiet_wanted = False
        self._kick = asyncio.Event()
        self._is_over = False
        self._end = self._tidied = 0
        self._upkeep = self._loop.create_task(self._keep_time(), name="merq upkeep")

    @property
    def is_working(self) -> bool:
        """Whether anything can still be asked."""
        return not self._is_over

    # Turns.

    def wake(self) -> None:
        """Something was asked: what comes of it is performed when this turn of the loop ends.

        With one client alone there is nobody to wait for.
        """
        exchange = self._reception.exchange
        if len(self._reception) + (0 if exchange is None else len(exchange)) == 1:
            self._turn()
        else:
            self.wake_later()

    def wake_later(self) -> None:
        """The same, always when this turn of the loop ends."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._turn)

    def tick(self) -> None:
        """The engine learns what time it is."""
        now = int(time.time())
        if now != self._host.engine.state.now:
            self._host.engine.tick(now)

    def _turn(self) -> None:
        self._is_due = False
        if self._is_over:
            return
        try:
            now = self._loop.time()
            end = time.monotonic() + TURN_S
            if self._reception.has_arrivals:
                # What applications want kept does not wait for them.
                self._reception.perform()
                self._sync()
            self._reception.perform(now)
            # What became durable may be on its way to others now, and leave more to be kept.
            for _ in range(SYNCS_A_TURN):
                if not self._sync():
                    break
                if time.monotonic() > end:
                    self.wake_later()
                    break
                self._reception.perform(now)
            else:
                self.wake_later()
            if self._host.needs_upkeep:
                self._kick.set()
            if self._reception.has_arrivals:
                self.wake_later()  # in between it is the turn of applications
        except Exception as wrong:  # noqa: BLE001 - whatever it is, it is told and acted on
            self.stumble(wrong)
            return
        self._flush()

    def _sync(self) -> bool:
        """Goes to the disk for all who wait, unless somebody is on the way there.

        Gives whether everything is durable by now.
        """
        if self._syncing is not None or self._quiet_wanted:
            return False
        syncing = self._host.begin_sync()
        if syncing is None:
            return False
        if self._sync_s < QUICK_SYNC_S or self._host.engine.state.pending_changes == 1:
            began = time.monotonic()
            syncing.run()
            self._sync_s += (time.monotonic() - began - self._sync_s) / SYNCS_REMEMBERED
            self._reception.take(self._host.end_sync(syncing))
            return True
        self._syncing = self._loop.create_future()
        running = self._loop.run_in_executor(self._disk_thread, syncing.run)
        running.add_done_callback(lambda done: self._synced(done, syncing))
        return False

    def _synced(self, done: asyncio.Future[None], syncing: Syncing) -> None:
        waiting, self._syncing = self._syncing, None
        assert waiting is not None
        waiting.set_result(None)
        if self._is_over:
            done.exception()  # whoever closes finds out what is durable
            return
        try:
            done.result()
            self._reception.take(self._host.end_sync(syncing))
        except Exception as wrong:  # noqa: BLE001 - whatever it is, it is told and acted on
            self.stumble(wrong)
            return
        self._turn()

    def stumble(self, wrong: Exception) -> None:
        """The disk failed, or something unforeseen happened in the middle of the engine.

        It is not to be trusted any more; what it has said is, and so is what the disk has.
        """
        if not self._is_over:
            self._is_over = True
            self._fail(wrong)

    # Upkeep.

    async def _keep_time(self) -> None:
        while not self._is_over:
            try:
                self.tick()
                self._host.clock.saw(int(time.time()), self._loop.time())
                self._reception.forget(self._loop.time())
                self._host.watch_resources()
                self._turn()
                self._tell_news()
                if (self._host.needs_upkeep or self._is_idle()) and not self._is_over:
                    await self._tidy_up()
            except StoreFull:
                await asyncio.sleep(IDLE_S)  # no room for a checkpoint: another time
            except Exception as wrong:  # noqa: BLE001 - whatever it is, it is told and acted on
                self.stumble(wrong)
                return
            self._kick.clear()
            try:
                await asyncio.wait_for(self._kick.wait(), IDLE_S)
            except TimeoutError:
                continue

    def _tell_news(self) -> None:
        for each in self._host.news.take():
            tell = self._log.warning if each.is_trouble else self._log.info
            tell(each.text, **each.facts)

    def _is_idle(self) -> bool:
        """Whether it is time to tidy up what was purged: nothing was written for a while.

        Once only, until something is: what is damaged cannot be copied, and stays.
        """
        host = self._host
        before, self._end = self._end, host.log.end
        if self._end != before or self._end == self._tidied:
            return False
        self._tidied = self._end
        return host.is_wasteful() or host.has_much_to_drop

    async def _tidy_up(self) -> None:
        host = self._host
        while not self._is_over and host.is_wasteful():
            if host.is_short or host.has_much_to_drop:
                await self._write_checkpoint()
            more = True
            while more and not self._is_over:
                more, answers = host.relocate_some()
                self._reception.take(answers)
                self._turn()
                await asyncio.sleep(0)
        await self._write_checkpoint()

    async def _write_checkpoint(self) -> None:
        """A snapshot is taken in one turn, and written while others go on."""
        await self._quieten()
        if self._is_over:
            return
        writing, answers = self._host.begin_checkpoint()
        self._reception.take(answers)
        self._flush()
        if writing is None:
            return
        await self._loop.run_in_executor(self._checkpoint_thread, writing.run)
        if not self._is_over:
            self._host.end_checkpoint(writing)

    async def _quieten(self) -> None:
        """Returns when no sync is under way."""
        self._quiet_wanted = True
        try:
            while self._syncing is not None:
                await asyncio.shield(self._syncing)
        finally:
            self._quiet_wanted = False

    # The end.

    async def close(self) -> None:
        """Everything that was asked happens; nothing is done any more when this returns.

        Raises:
            StoreFailed: The disk did not take it.
        """
        failed, self._is_over = self._is_over, True
        self._upkeep.cancel()
        await asyncio.gather(self._upkeep, return_exceptions=True)
        if self._syncing is not None:
            await self._syncing
        for thread in (self._disk_thread, self._checkpoint_thread):
            await self._loop.run_in_executor(None, thread.shutdown)
        if not failed:
            self._reception.take(self._host.close_with_checkpoint())
            self._flush()
