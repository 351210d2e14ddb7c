"""What cannot be handled is set aside: its packet is kept for a person, and all else goes on.

A packet that a peer made, or an earlier release took, must not stop the queue manager: neither now
nor at every start. Whatever is raised while one message is looked at, or while somebody is told of
it, ends there; what was planned for it is taken back. Drivers keep the packets, and say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, NamedTuple, ParamSpec

from merq.engine.changes import Change
from merq.engine.state import State
from merq.errors import StoreFailed
from merq.wire.view import MessageView

_P = ParamSpec("_P")


class Mark(NamedTuple):
    """How far a change was planned before something was tried."""

    steps: int
    entries: int


def mark(change: Change) -> Mark:
    """How far a change is planned."""
    return Mark(len(change.steps), len(change.entries))


def set_aside(
    state: State, change: Change, begun: Mark, packet: bytes, doing: str, wrong: Exception
) -> None:
    """Something failed in the middle: what it planned since the mark does not happen.

    Args:
        state: Counts it, and has it until a driver takes it.
        change: What was being planned.
        begun: How far it was planned before that.
        packet: The message it was about; empty if it was about none.
        doing: What was being done.
        wrong: What came of it.
    """
    state.take_back(change, begun.steps, begun.entries)
    state.aside.add(packet, doing, f"{type(wrong).__name__} at {_place(wrong)}: {wrong}")


def attempt(
    state: State, change: Change, packet: bytes, doing: str, act: Callable[[], object]
) -> None:
    """Does something that a message asks for; if that fails, the message is set aside."""
    begun = mark(change)
    try:
        act()
    except StoreFailed:
        raise  # of that nobody is to blame but the disk
    except Exception as wrong:  # noqa: BLE001 - whatever it is, it is counted, kept and told
        set_aside(state, change, begun, packet, doing, wrong)


def never_failing(
    doing: str,
) -> Callable[
    [Callable[Concatenate[State, Change, MessageView, _P], None]],
    Callable[Concatenate[State, Change, MessageView, _P], None],
]:
    """Makes a function that tells of a message one that sets the message aside where it fails."""

    def decorate(
        tell: Callable[Concatenate[State, Change, MessageView, _P], None],
    ) -> Callable[Concatenate[State, Change, MessageView, _P], None]:
        def told(
            state: State, change: Change, view: MessageView, /, *args: _P.args, **kwargs: _P.kwargs
        ) -> None:
            begun = mark(change)
            try:
                tell(state, change, view, *args, **kwargs)
            except StoreFailed:
                raise
            except Exception as wrong:  # noqa: BLE001 - it is counted, kept and told
                set_aside(state, change, begun, view.packet, doing, wrong)

        told.__doc__ = tell.__doc__
        return told

    return decorate


def _place(wrong: Exception) -> str:
    """The line where something was raised."""
    at = wrong.__traceback__
    if at is None:
        return "an unknown place"
    while at.tb_next is not None:
        at = at.tb_next
    file = at.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{at.tb_lineno}"
