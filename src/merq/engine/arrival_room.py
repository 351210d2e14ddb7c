"""How much other queue managers may still bring, all together and from one address."""

from __future__ import annotations

from typing import Final, NamedTuple

from merq.engine.changes import ArriveStep
from merq.engine.state import State


class Shortage(NamedTuple):
    """[MS-MQQB] 3.1.5.8.8: why a session is to be closed instead of taking a message.

    Attributes:
        refusal: The reason; empty if there is none.
        needed: The room that the message would have taken, if that is why; else 0.
        is_express: It would have taken memory.
    """

    refusal: str
    needed: int = 0
    is_express: bool = False


NO_SHORTAGE: Final = Shortage("")
"""There is room."""


class ArrivalRoom:
    """What is left of quota and memory for messages of other queue managers."""

    def __init__(self, state: State) -> None:
        self._state = state

    def left(self, step: ArriveStep, address: str, *, is_express: bool) -> int:
        """How many bytes more may come from an address, behind what the change brings."""
        state, limits = self._state, self._state.limits
        room = state.free_bytes
        if limits.is_shared:
            most = limits.network_quota_bytes
            room = min(room, state.network.room(address, most, step.coming))
            if is_express:
                most, coming = limits.network_memory_bytes, step.coming_in_memory
                room = min(room, state.network_memory.room(address, most, coming))
        return room

    def shortage(self, step: ArriveStep, address: str, size: int, *, is_express: bool) -> Shortage:
        """Why no message of this size can be taken from an address; without size, none at all."""
        state = self._state
        if size and self.left(step, address, is_express=is_express) < size:
            return Shortage(self._why(step, address, size), size, is_express)
        if state.throttled or state.network_low_on_disk:
            return Shortage("the queue manager is short of disk or memory")
        return NO_SHORTAGE

    def _why(self, step: ArriveStep, address: str, size: int) -> str:
        state, limits = self._state, self._state.limits
        if not state.has_room(size):
            return f"the computer's quota of {limits.machine_quota} KB is used up"
        share, coming, what = state.network, step.coming, "quota"
        most = limits.network_quota_bytes
        if share.room(address, most, coming) >= size:
            share, coming, what = state.network_memory, step.coming_in_memory, "memory"
            most = limits.network_memory_bytes
        return (
            f"its messages take {share.used_by(address) + coming.of(address)} bytes, those of all "
            f"other queue managers {share.total_bytes + coming.total_bytes} of {most}, their share "
            f"of the {what}; another message of {size} is taken when there is more room"
        )

    def is_relieved(self, address: str, shortage: Shortage) -> bool:
        """Whether there is room again for an address that was refused a message."""
        state, limits = self._state, self._state.limits
        needed = shortage.needed
        if state.free_bytes < needed:
            return False
        if not limits.is_shared:
            return True
        memory, most = state.network_memory, limits.network_memory_bytes
        if shortage.is_express and not memory.is_relieved(address, most, needed):
            return False
        return state.network.is_relieved(address, limits.network_quota_bytes, needed)
