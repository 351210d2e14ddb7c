"""TCP segments to the byte streams of every connection with one port, both directions.

Bytes out of order are held back until what is before them comes. When too much is held back, or
the capture ends, they are given with a gap before them. A RST is believed as it comes: a reset
need not fit the bytes seen, and the capture may lack those that it fits.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from merq.capture.events import Chunk, Closed, Connection, Direction, Ending, Gap
from merq.capture.frames import Endpoint, SkipReason, TcpFlag, TcpSegment
from merq.capture.reassembly import Flow

StreamEvent = Chunk | Gap | Closed


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """How much is remembered at most.

    Attributes:
        connections: Open at once; beyond it the one silent longest is forgotten.
        closed_connections: Remembered, so that what comes late is not taken for a new one.
        held_per_direction_bytes: Behind gaps of one direction; beyond it its first gap is given up.
        held_total_bytes: Behind all gaps; beyond it the direction that holds most gives up its own.
    """

    connections: int = 4096
    closed_connections: int = 1024
    held_per_direction_bytes: int = 4 * 1024 * 1024
    held_total_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        assert self.connections > 0, "a connection that is not remembered carries nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    initiator: Endpoint
    acceptor: Endpoint


@dataclass(slots=True, kw_only=True)
class _Tracked:
    """A connection, its two directions, and the time and number of its last frame."""

    connection: Connection
    to_acceptor: Flow
    to_initiator: Flow
    time_ns: int | None
    frame_number: int
    closed: bool = False

    @property
    def key(self) -> _Key:
        return _Key(initiator=self.connection.initiator, acceptor=self.connection.acceptor)

    @property
    def finished(self) -> bool:
        return self.to_acceptor.finished and self.to_initiator.finished

    def flow(self, direction: Direction) -> Flow:
        return self.to_acceptor if direction is Direction.TO_ACCEPTOR else self.to_initiator

    def against(self, direction: Direction) -> Flow:
        return self.to_initiator if direction is Direction.TO_ACCEPTOR else self.to_acceptor


class Streams:
    """The connections of one capture.

    Attributes:
        skipped: Counts data that came after the end of its connection.
    """

    def __init__(
        self, *, port: int, skipped: Counter[SkipReason], limits: StreamLimits | None = None
    ) -> None:
        self.skipped = skipped
        self._port = port
        self._limits = limits or StreamLimits()
        self._connection_count = 0
        self._held = 0
        # The one silent longest comes first.
        self._open: OrderedDict[_Key, _Tracked] = OrderedDict()
        self._closed: OrderedDict[_Key, _Tracked] = OrderedDict()

    def receive(self, segment: TcpSegment) -> list[StreamEvent]:
        """Take the next segment of the capture, and give what it leads to."""
        events: list[StreamEvent] = []
        tracked, direction = self._find(segment)
        if tracked is not None and _opens_anew(tracked, direction, segment):
            events += self._end(tracked, Ending.REPLACED)
            self._closed.pop(tracked.key, None)
            tracked = None
        if tracked is None:
            if not _begins(segment):
                return events
            self._track(segment)
            tracked, direction = self._find(segment)
            assert tracked is not None
            events += self._keep_connection_limit()
        if tracked.closed:
            self._late(tracked.flow(direction), segment)
            return events
        tracked.time_ns, tracked.frame_number = segment.time_ns, segment.frame_number
        self._open.move_to_end(tracked.key)
        if TcpFlag.RST in segment.flags:
            return events + self._end(tracked, Ending.RESET)
        return events + self._carry(tracked, direction, segment) + self._keep_total_limit()

    def finish(self) -> Iterator[StreamEvent]:
        """What is still held back when the capture ends; what is not finished stays open."""
        for tracked in list(self._open.values()):
            yield from self._flush(tracked.to_acceptor)
            yield from self._flush(tracked.to_initiator)
            yield from self._end_if_finished(tracked)

    def _find(self, segment: TcpSegment) -> tuple[_Tracked | None, Direction]:
        forth = _Key(initiator=segment.source, acceptor=segment.destination)
        back = _Key(initiator=segment.destination, acceptor=segment.source)
        for key, direction in ((forth, Direction.TO_ACCEPTOR), (back, Direction.TO_INITIATOR)):
            tracked = self._open.get(key) or self._closed.get(key)
            if tracked is not None:
                return tracked, direction
        return None, Direction.TO_ACCEPTOR

    def _track(self, segment: TcpSegment) -> None:
        self._connection_count += 1
        key = self._roles(segment)
        connection = Connection(
            number=self._connection_count, initiator=key.initiator, acceptor=key.acceptor
        )
        self._open[key] = _Tracked(
            connection=connection,
            to_acceptor=Flow(connection, Direction.TO_ACCEPTOR),
            to_initiator=Flow(connection, Direction.TO_INITIATOR),
            time_ns=segment.time_ns,
            frame_number=segment.frame_number,
        )

    def _roles(self, segment: TcpSegment) -> _Key:
        """Who opened the connection: the SYN tells, else the port that is listened on."""
        forth = _Key(initiator=segment.source, acceptor=segment.destination)
        back = _Key(initiator=segment.destination, acceptor=segment.source)
        if TcpFlag.SYN in segment.flags:
            return back if TcpFlag.ACK in segment.flags else forth
        return forth if segment.destination.port == self._port else back

    def _carry(
        self, tracked: _Tracked, direction: Direction, segment: TcpSegment
    ) -> list[StreamEvent]:
        flow, against = tracked.flow(direction), tracked.against(direction)
        if flow.finished:
            self._late(flow, segment)
            return []
        if TcpFlag.SYN in segment.flags:
            if flow.start is None:
                flow.open(segment.sequence_number + 1)
            if TcpFlag.ACK in segment.flags and against.start is None:
                against.open(segment.acknowledgment_number)
        held = flow.held
        events = flow.receive(segment)
        while flow.held > self._limits.held_per_direction_bytes:
            events += flow.pass_gap()
        self._held += flow.held - held
        return [*events, *self._end_if_finished(tracked)]

    def _late(self, flow: Flow, segment: TcpSegment) -> None:
        if TcpFlag.RST not in segment.flags and flow.brings_more(segment):
            self.skipped[SkipReason.AFTER_CLOSE] += 1

    def _keep_total_limit(self) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        while self._held > self._limits.held_total_bytes:
            holder = max(self._open.values(), key=_most_held)
            events += self._flush(max(holder.to_acceptor, holder.to_initiator, key=_held))
            events += self._end_if_finished(holder)
        return events

    def _keep_connection_limit(self) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        while len(self._open) > self._limits.connections:
            silent = next(iter(self._open.values()))
            events += self._end(silent, Ending.FORGOTTEN)
        return events

    def _end_if_finished(self, tracked: _Tracked) -> list[StreamEvent]:
        return self._end(tracked, Ending.FINISHED) if tracked.finished else []

    def _end(self, tracked: _Tracked, ending: Ending) -> list[StreamEvent]:
        """Close a connection, if it is not closed yet."""
        if tracked.closed:
            return []
        tracked.closed = True
        del self._open[tracked.key]
        # One forgotten is picked up again should it speak; of an ended one only latecomers come.
        if ending in {Ending.FINISHED, Ending.RESET}:
            self._closed[tracked.key] = tracked
        if len(self._closed) > self._limits.closed_connections:
            self._closed.popitem(last=False)
        closed = Closed(
            connection=tracked.connection,
            ending=ending,
            time_ns=tracked.time_ns,
            frame_number=tracked.frame_number,
        )
        return [*self._flush(tracked.to_acceptor), *self._flush(tracked.to_initiator), closed]

    def _flush(self, flow: Flow) -> list[Chunk | Gap]:
        self._held -= flow.held
        return flow.flush()


def _begins(segment: TcpSegment) -> bool:
    """Whether a connection not known is worth knowing from here on: it says something."""
    if TcpFlag.RST in segment.flags:
        return False
    return TcpFlag.SYN in segment.flags or segment.length > 0


def _opens_anew(tracked: _Tracked, direction: Direction, segment: TcpSegment) -> bool:
    """Whether a SYN opens another connection between endpoints that have, or had, one."""
    if TcpFlag.SYN not in segment.flags or TcpFlag.RST in segment.flags:
        return False
    flow, against = tracked.flow(direction), tracked.against(direction)
    answers = TcpFlag.ACK in segment.flags
    if flow.start == (segment.sequence_number + 1) % (1 << 32):
        return False
    if answers and against.start == segment.acknowledgment_number:
        return False
    if tracked.closed or flow.start is not None or answers:
        return True
    # Both sides may open at once, but not after one of them has spoken.
    return against.carried


def _held(flow: Flow) -> int:
    return flow.held


def _most_held(tracked: _Tracked) -> int:
    return max(tracked.to_acceptor.held, tracked.to_initiator.held)
