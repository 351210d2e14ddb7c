"""Connections between computers, as bad as networks get.

A `Wire` has two ends. What is written at one comes out at the other in pieces, late, or in part; an
end may learn long after the other that a wire is cut; and what is under way on an old wire may come
after what went through a newer one. A packet may be damaged or left out, which TCP does not do: who
reads it has to notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol

from merq.testing.network import Stream, Weather

SIGNATURE: Final = b"LIOR"
"""[MS-MQMQ] 2.2.19.1: by this a packet is told from what is left of one."""

HEADER_BYTES_MIN: Final = 16

_INTERNAL: Final = 0x08
_TRANSACTIONAL: Final = 0x10


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm(Weather):
    """How bad the network between computers is; chances are from 0 to 1.

    Attributes:
        late: That what is written to a wire stays on its way for a while.
        late_s: For how long at most.
        half_open: That one end of a wire that is cut does not learn of it for a while.
        half_open_s: For how long at most.
        lost_name: That a host name is not found.
        damaged: That a packet which is on its way is damaged, in each step.
    """

    late: float = 0.0
    late_s: float = 3.0
    half_open: float = 0.0
    half_open_s: float = 40.0
    lost_name: float = 0.0
    damaged: float = 0.0


STILL: Final = Storm(torn=0.0)
"""Nothing goes wrong."""


class Flow(Stream):
    """One direction of a wire.

    Attributes:
        held_until: Nothing comes out before this time.
    """

    __slots__ = ("held_until",)

    def __init__(self) -> None:
        super().__init__()
        self.held_until = 0.0

    @property
    def has_news(self) -> bool:
        """Whether bytes are on their way, or the end is."""
        return self.size > 0 or self.has_ended

    def hold(self, until: float) -> None:
        """Nothing comes out before this time."""
        self.held_until = max(self.held_until, until)

    def drop(self) -> None:
        """Nothing of what is on its way arrives."""
        self._pieces.clear()
        self.size = 0

    def damage(self, chance: Random) -> bool:
        """Damages a whole packet that is on its way, or leaves it out; False if there is none.

        Only transactional messages are left out: their sequence tells. Others are only counted by a
        session, and the wrong one would be taken for lost.
        """
        whole = [
            at
            for at, piece in enumerate(self._pieces)
            if len(piece) >= HEADER_BYTES_MIN
            and piece[4:8] == SIGNATURE
            and int.from_bytes(piece[8:12], "little") == len(piece)
        ]
        if not whole:
            return False
        at = chance.choice(whole)
        piece = self._pieces[at]
        if not piece[2] & _INTERNAL and piece[62] & _TRANSACTIONAL:
            self.size -= len(piece)
            del self._pieces[at]
        elif chance.random() < 0.5:
            self._pieces[at] = piece[:4] + b"ROIL" + piece[8:]
        else:
            self._pieces[at] = piece[:8] + b"\xff\xff\xff\x7f" + piece[12:]
        return True


class Computer(Protocol):
    """What a network knows of a computer with a queue manager; a link is known to the latter.

    Attributes:
        name: Its host name.
        addresses: Its addresses, the first of which others see.
        lives: How often it was started.
        is_due: Its event loop has something to do.
        ends: Its ends of wires, by link.
    """

    name: str
    addresses: tuple[str, ...]
    lives: int
    is_due: bool
    ends: dict[Any, End]

    @property
    def is_up(self) -> bool:
        """Whether the queue manager runs."""

    @property
    def syncing(self) -> object | None:
        """The sync that is under way."""

    def guarded(self, doing: Callable[..., object], *arguments: object) -> None:
        """Does something that may be interrupted by a crash of this computer."""

    def turn(self) -> None:
        """One turn of its event loop."""

    def end_sync(self) -> None:
        """A sync that is under way ends."""

    def tick(self) -> None:
        """The time was put on."""

    def hear(self, end: End) -> None:
        """Something comes out of a wire, or its end does."""

    def was_read(self, end: End) -> None:
        """The other end of a wire has got something."""

    def is_reading(self, end: End) -> bool:
        """Whether it takes what comes out of a wire."""

    def accept(self, address: str) -> Any:
        """Somebody connects; None if it is refused."""

    def is_dialing(self, link: Any) -> bool:
        """Whether it still wants a connection."""

    def dialled(self, link: Any) -> None:
        """A connection that it wanted stands."""

    def dial_failed(self, link: Any, reason: str) -> None:
        """A connection that it wanted cannot be made."""

    def next_moments(self) -> list[float]:
        """When something happens on it by itself."""


class End:
    """One end of a wire: a computer and its link.

    Attributes:
        machine: Whose end it is.
        link: How the machine knows it.
        inflow: What comes out here.
        outflow: What was written here.
        is_left: Nobody looks at it any more.
    """

    __slots__ = ("inflow", "is_left", "link", "machine", "other", "outflow")

    def __init__(self, machine: Computer, link: Any, inflow: Flow, outflow: Flow) -> None:
        self.machine = machine
        self.link = link
        self.inflow = inflow
        self.outflow = outflow
        self.is_left = False
        self.other: End | None = None

    def leave(self, chance: Random, until: float) -> None:
        """Nobody looks at this end any more: what was written here may arrive or not."""
        self.is_left = True
        self.inflow.drop()
        if not self.outflow.has_ended:
            self.outflow.cut(chance)
            self.outflow.hold(until)

    def hang_up(self) -> None:
        """This end is closed; what was written here arrives."""
        self.is_left = True
        self.inflow.drop()
        self.outflow.end()


class Wire:
    """A connection between two computers; the first end has dialled."""

    __slots__ = ("ends",)

    def __init__(self, near: Computer, near_link: Any, far: Computer, far_link: Any) -> None:
        there, back = Flow(), Flow()
        first = End(near, near_link, back, there)
        second = End(far, far_link, there, back)
        first.other, second.other = second, first
        self.ends = (first, second)

    @property
    def is_over(self) -> bool:
        """Whether nobody looks at either end."""
        return all(end.is_left for end in self.ends)

    def cut(self, chance: Random, now: float, storm: Storm) -> None:
        """Both directions end somewhere in what is on its way; one end may learn of it late."""
        for end in self.ends:
            end.inflow.cut(chance)
        if chance.random() < storm.half_open:
            unaware = chance.choice(self.ends).inflow
            unaware.hold(now + chance.random() * storm.half_open_s)
