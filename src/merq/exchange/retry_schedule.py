"""[MS-MQQB] 3.1.2.3: when it is tried again to connect.

The document tries every few seconds, for ever. Here the time doubles with each attempt that fails,
up to a limit, so that what cannot be reached costs little.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from merq.engine.state import State
from merq.exchange.lines import Line
from merq.exchange.settings import ExchangeSettings

WAKE_SPACING_S: Final = 1.0
"""A session with the other side ends the wait for the next attempt to connect, but not sooner than
this after the last one: anybody may connect, again and again."""

RETRY_JITTER: Final = 0.25
"""By how much of itself the time between two attempts is shortened at most, by chance, so that what
failed together is not tried again together."""

_DOUBLINGS_MAX: Final = 64


class RetrySchedule:
    """When each line looks for its way again.

    Args:
        chance: A number from 0 up to 1, another one each time.
    """

    def __init__(
        self, settings: ExchangeSettings, state: State, chance: Callable[[], float]
    ) -> None:
        self._retry_s = settings.retry_s
        self._most_s = max(settings.retry_s, settings.retry_max_s)
        self._state = state
        self._chance = chance

    def failed(self, line: Line, now: float) -> None:
        """An attempt has failed: the next comes after `retry_s`, then after twice as long."""
        delay = min(self._retry_s * 2.0 ** min(line.failures, _DOUBLINGS_MAX), self._most_s)
        if line.failures:
            delay *= 1 - RETRY_JITTER * self._chance()
        line.failures += 1
        line.tried_at = now
        self._wait_until(line, now + delay, now)

    def hasten(self, line: Line, now: float) -> None:
        """An application has sent something: it is not to wait for what failed before.

        But it is not tried more often than every `retry_s`, however much is sent.
        """
        if line.retry_at is not None and line.tried_at is not None:
            soon = line.tried_at + self._retry_s
            if soon < line.retry_at:
                self._wait_until(line, max(soon, now), now)

    def is_hurried(self, line: Line) -> bool:
        """Whether `hasten` would change anything."""
        if line.retry_at is None or line.tried_at is None:
            return False
        return line.tried_at + self._retry_s < line.retry_at

    def wake(self, line: Line, now: float) -> None:
        """There is a session with who is at the other end."""
        line.failures = 0
        soon = now if line.tried_at is None else line.tried_at + WAKE_SPACING_S
        if line.retry_at is not None and soon > now:
            self._wait_until(line, min(soon, line.retry_at), now)
        else:
            line.retry_at = None

    def is_time(self, line: Line, now: float) -> bool:
        """Whether a line may look for its way; then it waits no longer."""
        if line.retry_at is not None and now < line.retry_at:
            return False
        line.retry_at = None
        return True

    def _wait_until(self, line: Line, time: float, now: float) -> None:
        line.retry_at = time
        line.transfer.retry_time = self._state.now + ceil(time - now)
