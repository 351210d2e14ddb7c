"""[MS-MQDMPR] 3.2: cursors, which walk over the messages of a queue.

A cursor remembers a place, not a message: messages that come, go or are locked in the meantime do
not disturb it. Waiting itself is elsewhere; the cursor only knows that it waits.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from merq.engine.positions import AVAILABLE, Place, PositionList

START: Final = -1
"""Before the first message: where a new cursor stands."""

END: Final = 1 << 63
"""Behind the last message."""


class CursorState(Enum):
    """[MS-MQDMPR] 3.2.1.2: what was last done with a cursor."""

    UNREAD = "unread"
    READ = "read"
    WAIT_PEEK = "waiting to peek"
    WAIT_RECEIVE = "waiting to receive"


class Outcome(Enum):
    """[MS-MQDMPR] 3.2.7.2, 3.2.7.3, 3.2.7.4: what came of asking a cursor for a message."""

    SUCCEEDED = "succeeded"
    WAITING = "waiting"
    NOT_FOUND = "not found"
    ALREADY_RECEIVED = "already received"
    ILLEGAL_ACTION = "illegal cursor action"


class Answer(NamedTuple):
    """An outcome, and the message where there is one."""

    outcome: Outcome
    place: Place | None = None


class Cursor:
    """[MS-MQDMPR] 3.2.1.2, 3.2.7.1: a place in a queue, and whether its message was read."""

    __slots__ = ("handle", "place", "queue", "state")

    def __init__(self, handle: int, queue: PositionList) -> None:
        self.handle = handle
        self.queue = queue
        self.place = START
        self.state = CursorState.UNREAD

    def peek(self) -> Answer:
        """[MS-MQDMPR] 3.2.7.2: the message at the cursor; a new cursor moves to the first."""
        if self.state is CursorState.READ:
            return self._current()
        return self._advance(CursorState.READ, CursorState.WAIT_PEEK)

    def peek_next(self) -> Answer:
        """[MS-MQDMPR] 3.2.7.3: the message behind the one that was read."""
        if self.state is CursorState.UNREAD:
            return Answer(Outcome.ILLEGAL_ACTION)
        return self._advance(CursorState.READ, CursorState.WAIT_PEEK)

    def receive(self, *, no_wait: bool) -> Answer:
        """[MS-MQDMPR] 3.2.7.4: the message at the cursor, to be taken by the caller."""
        if self.state is CursorState.READ:
            answer = self._current()
            if answer.outcome is Outcome.SUCCEEDED:
                self.state = CursorState.UNREAD
            return answer
        before = self.state
        answer = self._advance(CursorState.UNREAD, CursorState.WAIT_RECEIVE)
        if answer.outcome is Outcome.WAITING and no_wait:
            self.state = before
            return Answer(Outcome.NOT_FOUND)
        return answer

    def message_available(self, place: Place) -> None:
        """[MS-MQDMPR] 3.2.7.5: what the cursor waited for has come."""
        if self.state is CursorState.WAIT_PEEK:
            self.state = CursorState.READ
        elif self.state is CursorState.WAIT_RECEIVE:
            self.state = CursorState.UNREAD
        self.place = place.lookup_id

    def wait_expired(self) -> None:
        """[MS-MQDMPR] 3.2.7.6: nothing has come in time."""
        if self.state is CursorState.WAIT_RECEIVE:
            self.place = END
        self.state = CursorState.UNREAD

    def _current(self) -> Answer:
        found = self.queue.get(self.place)
        if found is None or found.state != AVAILABLE:
            return Answer(Outcome.ALREADY_RECEIVED)
        return Answer(Outcome.SUCCEEDED, found)

    def _advance(self, then: CursorState, waiting: CursorState) -> Answer:
        """[MS-MQDMPR] 3.1.7.3.2: to the next available message, forward."""
        found = self.queue.first() if self.place == START else self.queue.after(self.place)
        if found is None:
            self.state = waiting
            return Answer(Outcome.WAITING)
        self.state = then
        self.place = found.lookup_id
        return Answer(Outcome.SUCCEEDED, found)
