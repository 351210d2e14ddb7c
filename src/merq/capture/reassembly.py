"""One direction of one connection: segments go in as they were captured, bytes come out in order.

Of bytes that were captured more than once the first ones count. Which connection a segment belongs
to, and when too much is held back, is decided in streams.py.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace

from merq.capture.events import Chunk, Connection, Direction, Gap
from merq.capture.frames import TcpFlag, TcpSegment

PIECE_COST = 256
"""Bytes charged for each piece held back besides its own: tiny pieces are not free."""

_SEQUENCE_NUMBER_COUNT = 1 << 32


class Flow:
    """The bytes of one direction.

    Attributes:
        start: The sequence number of the first byte, or None while no segment has told it.
        carried: Bytes have come, delivered or held back.
        finished: The sender's FIN has been reached; nothing more is taken.
        held: What is held back behind a gap, in bytes with `PIECE_COST` for each piece.
    """

    def __init__(self, connection: Connection, direction: Direction) -> None:
        self.start: int | None = None
        self.carried = False
        self.finished = False
        self.held = 0
        self._connection = connection
        self._direction = direction
        # Places in the stream are sequence numbers that do not wrap: they grow past 32 bits.
        self._next = 0
        self._fin: _Piece | None = None
        # By place, without overlap, all of them after `_next`.
        self._pieces: list[_Piece] = []

    def open(self, sequence_number: int) -> None:
        """Say where the first byte is, before any has come."""
        assert not self.carried
        self.start = self._next = sequence_number % _SEQUENCE_NUMBER_COUNT

    def receive(self, segment: TcpSegment) -> list[Chunk | Gap]:
        """Take a segment, and give what is now in order."""
        assert not self.finished
        events: list[Chunk | Gap] = []
        fin = TcpFlag.FIN in segment.flags
        if self.start is None:
            if not segment.length:
                self.finished = fin
                return events
            events.append(self._pick_up(segment))
        place = self._place(_first_number(segment))
        captured = place + len(segment.payload)
        end = place + segment.length
        if fin and self._fin is None:
            self._fin = _piece(segment, end, end, b"")
        self._hold(_piece(segment, place, captured, segment.payload))
        self._hold(_piece(segment, captured, end, None))
        return events + self._drain()

    def brings_more(self, segment: TcpSegment) -> bool:
        """Whether a segment has bytes after those delivered."""
        if self.start is None:
            return segment.length > 0
        return self._place(_first_number(segment)) + segment.length > self._next

    def flush(self) -> list[Chunk | Gap]:
        """Wait for nothing more: everything held back is given, with the gaps before it."""
        events: list[Chunk | Gap] = []
        while self._pieces or (self._fin is not None and not self.finished):
            events += self.pass_gap()
        return events

    def pass_gap(self) -> list[Chunk | Gap]:
        """Give up the first gap, and go on behind it."""
        waiting = [piece for piece in (*self._pieces[:1], self._fin) if piece is not None]
        resume = min(waiting, key=lambda piece: piece.start)
        gap = self._gap(resume, resume.start - self._next)
        self._next = resume.start
        return [gap, *self._drain()]

    def _pick_up(self, segment: TcpSegment) -> Gap:
        """Begin in the middle, where the capture began after the connection did."""
        # A single byte is what a keep-alive repeats of bytes long past (RFC 1122 4.2.3.6).
        repeated = 1 if segment.length == 1 else 0
        self.open(_first_number(segment) + repeated)
        return self._gap(_piece(segment, self._next, self._next, b""), None)

    def _place(self, sequence_number: int) -> int:
        """Where in the stream a number is: the place nearest to the next byte that has it."""
        ahead = (sequence_number - self._next) % _SEQUENCE_NUMBER_COUNT
        if ahead >= _SEQUENCE_NUMBER_COUNT // 2:
            ahead -= _SEQUENCE_NUMBER_COUNT
        return self._next + ahead

    def _hold(self, piece: "_Piece") -> None:
        """Keep those parts of a piece that are neither delivered nor held already."""
        begin = max(piece.start, self._next)
        end = piece.end if self._fin is None else min(piece.end, self._fin.start)
        index = bisect_right(self._pieces, begin, key=lambda held: held.start)
        if index and self._pieces[index - 1].end > begin:
            begin = self._pieces[index - 1].end
        while begin < end:
            following = self._pieces[index] if index < len(self._pieces) else None
            free_end = end if following is None else min(end, following.start)
            if begin < free_end:
                part = piece.part(begin, free_end)
                self._pieces.insert(index, part)
                self.held += part.cost
                self.carried = True
                index += 1
            begin = end if following is None else following.end
            index += 1

    def _drain(self) -> list[Chunk | Gap]:
        events: list[Chunk | Gap] = []
        for piece in self._pieces:
            if piece.start != self._next:
                break
            events.append(self._event(piece))
            self.held -= piece.cost
            self._next = piece.end
        del self._pieces[: len(events)]
        if self._fin is not None and self._next >= self._fin.start:
            self.finished = True
            self._pieces.clear()
            self.held = 0
        return events

    def _event(self, piece: "_Piece") -> Chunk | Gap:
        if piece.data is None:
            return self._gap(piece, piece.end - piece.start)
        return Chunk(
            connection=self._connection,
            direction=self._direction,
            data=piece.data,
            time_ns=piece.time_ns,
            frame_number=piece.frame_number,
        )

    def _gap(self, piece: "_Piece", missing_bytes: int | None) -> Gap:
        return Gap(
            connection=self._connection,
            direction=self._direction,
            missing_bytes=missing_bytes,
            time_ns=piece.time_ns,
            frame_number=piece.frame_number,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Bytes with their place in the stream; `data` is None where the capture cut them away."""

    start: int
    end: int
    data: bytes | None
    time_ns: int | None
    frame_number: int

    @property
    def cost(self) -> int:
        return PIECE_COST + len(self.data or b"")

    def part(self, start: int, end: int) -> "_Piece":
        if (start, end) == (self.start, self.end):
            return self
        data = None if self.data is None else self.data[start - self.start : end - self.start]
        return replace(self, start=start, end=end, data=data)


def _piece(segment: TcpSegment, start: int, end: int, data: bytes | None) -> _Piece:
    return _Piece(
        start=start,
        end=end,
        data=data,
        time_ns=segment.time_ns,
        frame_number=segment.frame_number,
    )


def _first_number(segment: TcpSegment) -> int:
    """The number of a segment's first byte: a SYN takes a number of its own before it."""
    return segment.sequence_number + (TcpFlag.SYN in segment.flags)
