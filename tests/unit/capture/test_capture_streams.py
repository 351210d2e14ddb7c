"""Connections put together from segments, through whole capture files."""

from collections.abc import Sequence

import pytest

from merq.capture import (
    Capture,
    CaptureEvent,
    Chunk,
    Closed,
    Direction,
    Ending,
    Gap,
    SkipReason,
    StreamLimits,
)
from merq.capture.reassembly import PIECE_COST
from unit.capture.building_captures import (
    ACK,
    CLIENT,
    FIN,
    PSH,
    RST,
    SERVER,
    SYN,
    as_file,
    ipv4,
    pcap,
    pcap_header,
    pcap_record,
    tcp,
    to_client,
    to_server,
)

TO_ACCEPTOR, TO_INITIATOR = Direction.TO_ACCEPTOR, Direction.TO_INITIATOR

OPENING = (
    to_server(seq=999, flags=SYN),
    to_client(seq=4999, ack=1000, flags=SYN | ACK),
    to_server(seq=1000, ack=5000),
)
"""Three frames, after which the client's bytes begin at 1000 and the server's at 5000."""


def of_client(port: int, payload: bytes = b"", *, seq: int = 0, flags: int = ACK) -> bytes:
    return ipv4(tcp(payload, seq=seq, flags=flags, ports=(port, 1801)))


def capture_of(packets: Sequence[bytes], *, limits: StreamLimits | None = None) -> Capture:
    return Capture(as_file(pcap(packets)), limits=limits)


def events_of(
    packets: Sequence[bytes], *, limits: StreamLimits | None = None
) -> list[CaptureEvent]:
    return list(capture_of(packets, limits=limits).events())


def told(events: Sequence[CaptureEvent], direction: Direction) -> list[bytes | int | None]:
    """One direction in short: the bytes of chunks, and the sizes of gaps between them."""
    short: list[bytes | int | None] = []
    for event in events:
        match event:
            case Chunk() if event.direction is direction:
                short.append(event.data)
            case Gap() if event.direction is direction:
                short.append(event.missing_bytes)
            case _:
                pass
    return short


def endings(events: Sequence[CaptureEvent]) -> list[Ending]:
    return [event.ending for event in events if isinstance(event, Closed)]


# Order.


@pytest.mark.spec("MS-MQQB 2.1.1")
def test_both_directions_of_a_connection_to_the_port_are_delivered() -> None:
    events = events_of([*OPENING, to_server(b"question", seq=1000), to_client(b"answer", seq=5000)])
    first, second = events
    assert isinstance(first, Chunk)
    assert isinstance(second, Chunk)
    assert (first.direction, first.data, first.frame_number) == (TO_ACCEPTOR, b"question", 4)
    assert (second.direction, second.data, second.frame_number) == (TO_INITIATOR, b"answer", 5)
    assert (first.time_ns, second.time_ns) == (4_000_000_000, 5_000_000_000)
    assert str(first) == "127.0.0.2:49759 → 127.0.0.3:1801, frame 4"
    assert str(second) == "127.0.0.3:1801 → 127.0.0.2:49759, frame 5"


def test_segments_out_of_order_are_put_in_order_and_keep_their_frames() -> None:
    events = events_of(
        [
            *OPENING,
            to_server(b"cc", seq=1004),
            to_server(b"bb", seq=1002),
            to_server(b"aa", seq=1000),
        ]
    )
    assert [(event.data, event.frame_number) for event in events if isinstance(event, Chunk)] == [
        (b"aa", 6),
        (b"bb", 5),
        (b"cc", 4),
    ]


def test_retransmissions_are_delivered_once() -> None:
    again = to_server(b"aabb", seq=1000)
    events = events_of([*OPENING, again, again, to_server(b"bbcc", seq=1002), again])
    assert told(events, TO_ACCEPTOR) == [b"aabb", b"cc"]


def test_of_bytes_captured_twice_the_first_count() -> None:
    events = events_of(
        [
            *OPENING,
            to_server(b"33", seq=1003),
            to_server(b"6", seq=1006),
            to_server(b"XXXXXXXXX", seq=1000),
            to_server(b"YYYY", seq=1005),
        ]
    )
    assert told(events, TO_ACCEPTOR) == [b"XXX", b"33", b"X", b"6", b"XX"]


def test_sequence_numbers_wrap_around() -> None:
    start = 2**32 - 3
    packets = [to_server(seq=start - 1, flags=SYN)]
    packets += [to_server(b"56", seq=start + 5), to_server(b"01234", seq=start)]
    packets += [to_server(b"234", seq=start + 2), to_server(b"789", seq=start + 7)]
    assert told(events_of(packets), TO_ACCEPTOR) == [b"01234", b"56", b"789"]


def test_the_first_sequence_number_may_be_the_last_there_is() -> None:
    packets = [to_server(seq=2**32 - 1, flags=SYN), to_server(b"data", seq=0)]
    events = events_of([*packets, packets[0]])
    assert told(events, TO_ACCEPTOR) == [b"data"]
    assert endings(events) == []


def test_data_may_come_with_the_syn() -> None:
    packets = [to_server(b"early", seq=999, flags=SYN), to_server(b"later", seq=1005)]
    assert told(events_of(packets), TO_ACCEPTOR) == [b"early", b"later"]


@pytest.mark.parametrize("probe", [b"", b"\x00"])
def test_keep_alives_bring_nothing(probe: bytes) -> None:
    packets = [to_server(b"data", seq=1000), to_server(probe, seq=1003), to_client(ack=1004)]
    capture = capture_of([*OPENING, *packets, to_server(b"more", seq=1004)])
    assert told(list(capture.events()), TO_ACCEPTOR) == [b"data", b"more"]
    assert not capture.skipped


# Beginnings.


def test_who_sent_the_syn_is_the_initiator_whatever_its_port() -> None:
    calling_back = ipv4(
        tcp(b"x", seq=6, flags=SYN, ports=(1801, 50000)), source=SERVER, destination=CLIENT
    )
    (chunk,) = events_of([calling_back])
    assert isinstance(chunk, Chunk)
    assert str(chunk.connection.initiator) == "127.0.0.3:1801"
    assert chunk.direction is TO_ACCEPTOR


@pytest.mark.spec("MS-MQQB 2.1.1")
def test_without_a_syn_the_side_with_the_port_is_the_acceptor() -> None:
    events = events_of([to_client(b"answer", seq=70), to_server(b"question", seq=30)])
    assert told(events, TO_INITIATOR) == [None, b"answer"]
    assert told(events, TO_ACCEPTOR) == [None, b"question"]


def test_without_a_syn_between_two_such_ports_who_speaks_first_is_the_initiator() -> None:
    packet = ipv4(tcp(b"hello", ports=(1801, 1801)))
    events = events_of([packet])
    assert told(events, TO_ACCEPTOR) == [None, b"hello"]
    assert str(events[1]) == "127.0.0.2:1801 → 127.0.0.3:1801, frame 1"


def test_a_syn_answered_tells_both_beginnings() -> None:
    packets = [
        to_client(seq=4999, ack=1000, flags=SYN | ACK),
        to_server(b"cd", seq=1002),
        to_server(b"ab", seq=1000),
        to_client(b"answer", seq=5000),
    ]
    events = events_of(packets)
    assert told(events, TO_ACCEPTOR) == [b"ab", b"cd"]
    assert told(events, TO_INITIATOR) == [b"answer"]


def test_a_syn_captured_after_its_answer_opens_nothing_new() -> None:
    events = events_of([OPENING[1], OPENING[0], OPENING[1], to_server(b"data", seq=1000)])
    assert told(events, TO_ACCEPTOR) == [b"data"]
    assert endings(events) == []


def test_both_sides_may_open_at_once() -> None:
    packets = [
        to_server(seq=999, flags=SYN),
        to_client(seq=4999, flags=SYN),
        to_server(b"ab", seq=1000),
        to_client(b"cd", seq=5000),
    ]
    events = events_of(packets)
    assert told(events, TO_ACCEPTOR) == [b"ab"]
    assert told(events, TO_INITIATOR) == [b"cd"]


def test_a_stream_is_not_picked_up_in_a_keep_alive() -> None:
    events = events_of([to_server(b"\x00", seq=1003), to_server(b"data", seq=1004)])
    assert told(events, TO_ACCEPTOR) == [None, b"data"]


def test_segments_without_data_of_unknown_connections_tell_nothing() -> None:
    packets = [to_server(), to_client(flags=FIN | ACK), to_server(flags=RST)]
    capture = capture_of(packets)
    assert list(capture.events()) == []
    assert not capture.skipped


# Gaps.


def test_bytes_never_captured_are_a_gap_when_the_capture_ends() -> None:
    packets = [*OPENING, to_server(b"aa", seq=1000), to_server(b"cc", seq=1007)]
    packets += [to_server(b"ee", seq=1010)]
    events = events_of(packets)
    assert told(events, TO_ACCEPTOR) == [b"aa", 5, b"cc", 1, b"ee"]
    gap = events[1]
    assert isinstance(gap, Gap)
    assert (gap.frame_number, gap.time_ns) == (5, 5_000_000_000)
    assert str(gap) == "127.0.0.2:49759 → 127.0.0.3:1801, frame 5"


def test_a_gap_is_given_up_when_more_is_held_back_than_the_limit() -> None:
    limits = StreamLimits(held_per_direction_bytes=2 * (PIECE_COST + 10))
    packets = [*OPENING, *(to_server(b"0123456789", seq=1100 + 10 * n) for n in range(3))]
    packets += [to_server(b"too late", seq=1000), to_client(b"last", seq=5000)]
    events = events_of(packets, limits=limits)
    assert told(events, TO_ACCEPTOR) == [100, b"0123456789", b"0123456789", b"0123456789"]
    assert isinstance(events[-1], Chunk)
    assert events[-1].data == b"last"


def test_only_as_many_gaps_are_given_up_as_the_limit_asks() -> None:
    limits = StreamLimits(held_per_direction_bytes=2 * (PIECE_COST + 1))
    packets = [*OPENING, *(to_server(b"x", seq=1000 + place) for place in (1, 3, 5))]
    packets += [to_server(b"yyyyy", seq=1000)]
    assert told(events_of(packets, limits=limits), TO_ACCEPTOR) == [1, b"x", b"y", b"x", b"y", b"x"]


def test_too_much_in_all_costs_the_direction_that_holds_most() -> None:
    limits = StreamLimits(held_total_bytes=3 * PIECE_COST + 64)
    packets = [
        *OPENING,
        to_server(b"small", seq=1001),
        to_client(b"larger", seq=5001),
        to_client(b"large", seq=5009),
        to_server(b"s", seq=1007),
        to_server(b"!", seq=1000),
    ]
    events = events_of(packets, limits=limits)
    # The fourth piece is too much; what gives way comes before the bytes that fill the other gap.
    assert told(events[:4], TO_INITIATOR) == [1, b"larger", 2, b"large"]
    assert told(events[4:], TO_ACCEPTOR) == [b"!", b"small", 1, b"s"]


def test_giving_way_may_bring_a_connection_to_its_end() -> None:
    limits = StreamLimits(held_total_bytes=PIECE_COST)
    packets = [
        *OPENING,
        to_client(seq=5000, flags=FIN | ACK),
        to_server(seq=1009, flags=FIN | ACK),
        to_server(b"held", seq=1005),
        of_client(7, b"meanwhile"),
    ]
    events = events_of(packets, limits=limits)
    assert told(events[:2], TO_ACCEPTOR) == [5, b"held"]
    assert endings(events[2:3]) == [Ending.FINISHED]


def test_a_frame_captured_too_short_is_a_gap_at_once() -> None:
    cut = to_server(b"0123456789", seq=1000)
    data = pcap_header() + b"".join(pcap_record(packet) for packet in OPENING)
    data += pcap_record(cut[:-4], original=len(cut)) + pcap_record(to_server(b"next", seq=1010))
    events = list(Capture(as_file(data)).events())
    assert told(events, TO_ACCEPTOR) == [b"012345", 4, b"next"]
    gap = events[1]
    assert isinstance(gap, Gap)
    assert gap.frame_number == 4


def test_a_fragmented_segment_is_counted_and_leaves_a_gap() -> None:
    fragment = ipv4(tcp(b"lost", seq=1000), fragment=0x2000)
    capture = capture_of([*OPENING, fragment, to_server(b"found", seq=1004)])
    assert told(list(capture.events()), TO_ACCEPTOR) == [4, b"found"]
    assert capture.skipped == {SkipReason.FRAGMENT: 1}


# Endings.


def test_a_connection_is_closed_when_both_sides_have_finished() -> None:
    packets = [
        *OPENING,
        to_server(b"bye", seq=1000, flags=FIN | PSH | ACK),
        to_client(b"wait", seq=5000),
        to_client(seq=5004, flags=FIN | ACK),
    ]
    events = events_of(packets)
    closed = events[-1]
    assert isinstance(closed, Closed)
    assert (closed.ending, closed.frame_number) == (Ending.FINISHED, 6)
    assert told(events, TO_INITIATOR) == [b"wait"]


def test_a_fin_waits_for_the_bytes_before_it() -> None:
    packets = [
        *OPENING,
        to_client(seq=5000, flags=FIN | ACK),
        to_server(seq=1004, flags=FIN | ACK),
        to_server(b"late", seq=1000),
    ]
    events = events_of(packets)
    assert told(events, TO_ACCEPTOR) == [b"late"]
    assert isinstance(events[-1], Closed)


def test_bytes_beyond_a_fin_that_waits_are_cut_away() -> None:
    packets = [
        *OPENING,
        to_server(seq=1004, flags=FIN | ACK),
        to_server(b"data and more", seq=1000),
    ]
    assert told(events_of(packets), TO_ACCEPTOR) == [b"data"]


def test_bytes_lost_before_a_fin_are_a_gap_and_the_connection_is_closed() -> None:
    packets = [*OPENING, to_client(seq=5000, flags=FIN | ACK), to_server(seq=1004, flags=FIN | ACK)]
    events = events_of(packets)
    assert told(events, TO_ACCEPTOR) == [4]
    assert endings(events) == [Ending.FINISHED]


def test_a_reset_gives_what_is_held_back_and_closes() -> None:
    packets = [*OPENING, to_server(b"held", seq=1002), to_client(seq=5000, flags=RST)]
    events = events_of(packets)
    assert told(events, TO_ACCEPTOR) == [2, b"held"]
    assert endings(events) == [Ending.RESET]


def test_a_reset_is_one_whatever_else_the_segment_claims() -> None:
    events = events_of([*OPENING, to_server(seq=7, flags=RST | SYN)])
    assert endings(events) == [Ending.RESET]


def test_data_after_the_end_is_counted_and_retransmissions_are_not() -> None:
    packets = [
        *OPENING,
        to_server(b"data", seq=1000),
        to_client(seq=5000, flags=RST),
        to_server(b"data", seq=1000),
        to_server(b"in flight", seq=1004),
        to_client(seq=5000, flags=RST),
    ]
    capture = capture_of(packets)
    events = list(capture.events())
    assert told(events, TO_ACCEPTOR) == [b"data"]
    assert endings(events) == [Ending.RESET]
    assert capture.skipped == {SkipReason.AFTER_CLOSE: 1}


def test_data_behind_a_fin_is_counted() -> None:
    packets = [*OPENING, to_server(seq=1000, flags=FIN | ACK), to_server(b"more", seq=1001)]
    capture = capture_of(packets)
    assert told(list(capture.events()), TO_ACCEPTOR) == []
    assert capture.skipped == {SkipReason.AFTER_CLOSE: 1}


def test_data_held_back_behind_a_fin_is_dropped() -> None:
    packets = [*OPENING, to_server(b"beyond", seq=1010), to_server(b"end", seq=1000, flags=FIN)]
    assert told(events_of(packets), TO_ACCEPTOR) == [b"end"]


# The same endpoints again.


def test_a_new_syn_after_the_end_opens_a_new_connection() -> None:
    packets = [
        *OPENING,
        to_client(seq=5000, flags=RST),
        to_server(seq=77, flags=SYN),
        to_server(b"again", seq=78),
    ]
    events = events_of(packets)
    chunk = events[-1]
    assert isinstance(chunk, Chunk)
    assert (chunk.connection.number, chunk.data) == (2, b"again")


def test_a_new_syn_replaces_a_connection_that_never_ended() -> None:
    packets = [
        *OPENING,
        to_server(b"held", seq=1002),
        to_server(seq=77_000, flags=SYN),
        to_server(b"again", seq=77_001),
    ]
    gap, chunk, closed, again = events_of(packets)
    assert isinstance(gap, Gap)
    assert isinstance(chunk, Chunk)
    assert isinstance(closed, Closed)
    assert isinstance(again, Chunk)
    assert (gap.connection.number, chunk.connection.number) == (1, 1)
    assert (closed.ending, closed.connection.number) == (Ending.REPLACED, 1)
    assert (closed.frame_number, again.connection.number) == (4, 2)


def test_a_syn_answered_anew_replaces_the_connection_too() -> None:
    packets = [*OPENING, to_client(seq=80_000, ack=90_000, flags=SYN | ACK)]
    events = events_of([*packets, to_server(b"new", seq=90_000)])
    assert endings(events) == [Ending.REPLACED]
    assert told(events, TO_ACCEPTOR) == [b"new"]


def test_a_repeated_syn_replaces_nothing() -> None:
    events = events_of([*OPENING, *OPENING, to_server(b"data", seq=1000), *OPENING])
    assert told(events, TO_ACCEPTOR) == [b"data"]
    assert endings(events) == []


@pytest.mark.parametrize(
    "ended", [(*OPENING, to_server(flags=RST)), (OPENING[0], to_client(ack=1000, flags=RST | ACK))]
)
def test_after_the_end_the_former_acceptor_may_open(ended: tuple[bytes, ...]) -> None:
    events = events_of([*ended, to_client(seq=7, flags=SYN), to_client(b"x", seq=8)])
    chunk = events[-1]
    assert isinstance(chunk, Chunk)
    assert str(chunk.connection.initiator) == "127.0.0.3:1801"
    assert chunk.data == b"x"


def test_a_syn_of_the_side_that_was_silent_replaces_a_connection_in_use() -> None:
    packets = [to_server(b"data", seq=1000), to_client(seq=7, flags=SYN), to_client(b"x", seq=8)]
    events = events_of(packets)
    assert endings(events) == [Ending.REPLACED]
    assert told(events, TO_ACCEPTOR) == [None, b"data", b"x"]


# Limits.


def test_beyond_the_limit_the_connection_silent_longest_is_forgotten() -> None:
    packets = [
        of_client(1, seq=9, flags=SYN),
        of_client(2, seq=9, flags=SYN),
        of_client(1, b"alive", seq=10),
        of_client(3, seq=9, flags=SYN),
        of_client(2, b"back", seq=10),
    ]
    events = events_of(packets, limits=StreamLimits(connections=2))
    assert endings(events) == [Ending.FORGOTTEN, Ending.FORGOTTEN]
    assert [event.connection.initiator.port for event in events if isinstance(event, Closed)] == [
        2,
        1,
    ]
    assert told(events, TO_ACCEPTOR) == [b"alive", None, b"back"]


def test_only_so_many_ended_connections_are_remembered() -> None:
    ended = [
        packet
        for port in (1, 2)
        for packet in (of_client(port, seq=9, flags=SYN), of_client(port, seq=10, flags=RST))
    ]
    late = [of_client(1, b"one", seq=10), of_client(2, b"two", seq=10)]
    capture = capture_of([*ended, *late], limits=StreamLimits(closed_connections=1))
    assert told(list(capture.events()), TO_ACCEPTOR) == [None, b"one"]
    assert capture.skipped == {SkipReason.AFTER_CLOSE: 1}
