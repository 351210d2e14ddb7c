"""Notices a clock that jumps, or shows a time that messages cannot say; told once, not each second.

The queue manager goes by the computer's clock: what it sends carries its time, and messages live by
it. A jump forward ends those whose lifetime it skips, as sleep does; a jump back lets others live
longer. Nothing else is lost by either, but a person should know.
"""

from __future__ import annotations

from typing import Final

from merq.engine.manager import TIME_MAX
from merq.engine.state import State
from merq.host.news import NewsBox

JUMP_S: Final = 3600
"""A clock that moves so much more or less than time passed has jumped."""

BEHIND_S: Final = 86_400
"""At a start: a clock so far behind what was written last is behind."""


class ClockWatch:
    """What the clock showed last, beside time that only goes forward."""

    def __init__(self, news: NewsBox) -> None:
        self._news = news
        self._offset_s: float | None = None
        self._is_outside = False

    def started(self, wall_s: int, state: State) -> None:
        """The queue manager starts: is the clock behind what is in the store?"""
        latest = latest_known_s(state)
        if latest - max(wall_s, 0) > BEHIND_S:
            self._news.warn(
                "the clock is behind what was written before: messages live longer by as much, and "
                "peers may take ours for old; set the clock",
                clock_s=wall_s,
                written_s=latest,
                behind_s=latest - wall_s,
            )

    def saw(self, wall_s: int, monotonic_s: float) -> None:
        """What the clock shows, and time that only goes forward."""
        is_outside = not 0 <= wall_s <= TIME_MAX
        if is_outside and not self._is_outside:
            self._news.warn(
                "the clock is outside of 1970 to 2106, which is all that messages can say: time "
                "stands still until it is set",
                clock_s=wall_s,
            )
        self._is_outside = is_outside
        offset_s = wall_s - monotonic_s
        if self._offset_s is not None and abs(offset_s - self._offset_s) > JUMP_S:
            by = round(offset_s - self._offset_s)
            if by > 0:
                text = "the clock jumped forward: messages whose lifetimes it skipped have expired"
            else:
                text = "the clock jumped back: messages live longer by as much"
            self._news.warn(text, clock_s=wall_s, by_s=by)
        self._offset_s = offset_s


def latest_known_s(state: State) -> int:
    """The latest time that the store surely was written at, in seconds since 1970."""
    changed = max((each.properties.modified for each in state.queues.values()), default=0)
    return max(changed, state.last_sequence_id >> 32)
