"""A network in memory: bytes come in pieces, late, and lines are cut at any moment.

`SimulatedNetwork` makes lines, and chance decides what becomes of what is written to them. A line
that is cut still delivers some of what was on its way, each direction as much as it likes; each end
learns of it when it has got that, so one end may know long before the other.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Final

PIECE_BYTES_MAX: Final = 1 << 16
"""The most that arrives at once, as from a socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How bad a network is; chances are from 0 to 1.

    Attributes:
        cut: That some line is cut, in each step.
        refused: That a connection cannot be made.
        torn: That what arrives ends anywhere, not where a write did.
    """

    cut: float = 0.0
    refused: float = 0.0
    torn: float = 0.3


CALM: Final = Weather(torn=0.0)
"""Nothing goes wrong."""


class Stream:
    """One direction of a line: bytes on their way, and then perhaps its end."""

    __slots__ = ("_pieces", "has_ended", "size")

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self.size = 0
        self.has_ended = False

    def write(self, data: bytes) -> None:
        """Bytes are on their way; what is written after the end goes nowhere."""
        if data and not self.has_ended:
            self._pieces.append(data)
            self.size += len(data)

    def take(self, chance: Random, torn: float) -> bytes:
        """What arrives now; nothing if all of it has."""
        if not self._pieces:
            return b""
        data = self._pieces.popleft()
        while self._pieces and chance.random() < 0.5 and len(data) < PIECE_BYTES_MAX:
            data += self._pieces.popleft()
        if chance.random() < torn:
            cut = chance.randint(1, len(data))
            if cut < len(data):
                self._pieces.appendleft(data[cut:])
                data = data[:cut]
        self.size -= len(data)
        return data

    def end(self) -> None:
        """Nothing more is written; what is on its way arrives."""
        self.has_ended = True

    def cut(self, chance: Random) -> None:
        """Only some of what is on its way arrives, and then the end."""
        data = b"".join(self._pieces)
        kept = data[: chance.choice((0, len(data), chance.randint(0, len(data))))]
        self._pieces = deque([kept] if kept else ())
        self.size = len(kept)
        self.has_ended = True


class Line:
    """A connection between a client and a server.

    Attributes:
        up: From the client to the server.
        down: From the server to the client.
        is_left_by_client: The client looks at it no more.
        is_left_by_server: The server looks at it no more.
    """

    __slots__ = ("down", "is_left_by_client", "is_left_by_server", "up")

    def __init__(self) -> None:
        self.up = Stream()
        self.down = Stream()
        self.is_left_by_client = False
        self.is_left_by_server = False

    def hang_up(self) -> None:
        """The client ends it; what it wrote before arrives."""
        self.is_left_by_client = True
        self.up.end()

    def leave(self, chance: Random) -> None:
        """The server is gone: what it wrote may arrive or not."""
        self.is_left_by_server = True
        self.down.cut(chance)

    def cut(self, chance: Random) -> None:
        """Both directions end somewhere in what is on its way."""
        self.up.cut(chance)
        self.down.cut(chance)


class SimulatedNetwork:
    """Every line that there is, and the chance that rules them.

    Attributes:
        weather: How bad it is now; may be altered at any time.
        lines: Lines that at least one end looks at.
        cuts: How many lines were cut so far.
    """

    def __init__(self, chance: Random, weather: Weather = CALM) -> None:
        self.chance = chance
        self.weather = weather
        self.lines: dict[Line, None] = {}
        self.cuts = 0

    def connect(self) -> Line | None:
        """A new line; None if the weather does not allow it."""
        if self.chance.random() < self.weather.refused:
            return None
        line = Line()
        self.lines[line] = None
        return line

    def rage(self) -> None:
        """Cuts a line, if the weather has it so."""
        if self.lines and self.chance.random() < self.weather.cut:
            self.cut_one()

    def cut_one(self) -> None:
        """Cuts any of the lines."""
        if self.lines:
            self.cuts += 1
            self.chance.choice(list(self.lines)).cut(self.chance)

    def arriving(self, stream: Stream) -> bytes:
        """What comes out of a stream now; nothing if all of it has come."""
        return stream.take(self.chance, self.weather.torn)

    def tidy(self, line: Line) -> None:
        """A line that nobody looks at any more is no line."""
        if line.is_left_by_client and line.is_left_by_server:
            self.lines.pop(line, None)
