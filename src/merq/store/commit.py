"""Group commit for threads: whoever waits while a sync is under way shares the next one."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Condition

from merq.store.log import Appended, Log
from merq.store.records import Record


class GroupCommit:
    """A log that many threads append to, each waiting for its own frame and no longer."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._turn = Condition()
        self._syncing = False
        self.syncs = 0

    def append(self, records: Sequence[Record]) -> Appended:
        """Writes one frame; it is not durable before `wait` has returned for its end."""
        with self._turn:
            return self._log.append(records)

    def wait(self, end: int) -> None:
        """Returns when the log is durable up to `end`.

        Raises:
            StoreFailed: The disk failed; whether the frame survives is known when the store is
                opened anew.
        """
        with self._turn:
            while self._log.durable < end:
                if self._syncing:
                    self._turn.wait()
                else:
                    self._sync()

    def _sync(self) -> None:
        """One thread goes to the disk for all; appending goes on meanwhile."""
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
            self.syncs += 1
            self._turn.notify_all()
        self._log.end_sync(syncing)
