"""Whatever the network did to a stream it comes out whole; whatever a file has, it is survived."""

import tracemalloc
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from merq.capture import Capture, CaptureEvent, Chunk, Direction, Gap, StreamLimits
from merq.capture.reassembly import PIECE_COST
from unit.capture.building_captures import (
    ETHERNET,
    SYN,
    UDP,
    as_file,
    block,
    ethernet,
    interface,
    ipv4,
    ipv6,
    obsolete,
    pcap,
    pcapng,
    section,
    simple,
    tcp,
    to_client,
    to_server,
    udp,
    until_error,
)

MEMORY_MAX = 2 * 1024 * 1024
"""Far more than reading a small file takes, far less than a block may claim."""


def bytes_of(events: Sequence[CaptureEvent], direction: Direction) -> bytes:
    """A direction's bytes, with zeros for those that a gap says are missing."""
    parts = []
    for event in events:
        if isinstance(event, Chunk) and event.direction is direction:
            parts.append(event.data)
        elif isinstance(event, Gap) and event.direction is direction:
            parts.append(bytes(event.missing_bytes or 0))
    return b"".join(parts)


def content(size: int) -> bytes:
    """Bytes without a zero, each different from its neighbours, so that no mix-up is hidden."""
    return bytes(1 + (place * 7 + place // 255) % 255 for place in range(size))


@st.composite
def cuttings(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """Ranges that cover a stream: cut anywhere, some extended over others, repeated, displaced."""
    cuts = sorted(draw(st.sets(st.integers(1, size - 1), max_size=20)))
    ranges = []
    for start, end in zip([0, *cuts], [*cuts, size], strict=True):
        before = draw(st.integers(0, 30))
        after = draw(st.integers(0, 30))
        ranges.append((max(start - before, 0), min(end + after, size)))
    repeated = draw(st.lists(st.sampled_from(ranges), max_size=8))
    window = draw(st.integers(0, 6))
    keyed = [
        (place + draw(st.integers(0, window)), item)
        for place, item in enumerate([*ranges, *repeated])
    ]
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


@given(
    data=st.data(),
    size=st.integers(2, 400),
    first=st.integers(0, 2**32 - 1) | st.integers(2**32 - 300, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_a_stream_cut_displaced_repeated_and_overlapped_comes_out_whole(
    data: st.DataObject, size: int, first: int
) -> None:
    sent = content(size)
    ranges = data.draw(cuttings(size))
    packets = [to_server(seq=first - 1, flags=SYN)]
    packets += [to_server(sent[start:end], seq=first + start) for start, end in ranges]
    capture = Capture(as_file(pcap(packets)))
    events = list(capture.events())
    assert not any(isinstance(event, Gap) for event in events)
    assert bytes_of(events, Direction.TO_ACCEPTOR) == sent
    assert not capture.skipped


@given(
    data=st.data(),
    size=st.integers(2, 400),
    held_pieces=st.integers(0, 5),
    lost=st.sets(st.integers(0, 28), max_size=10),
)
@settings(max_examples=150, deadline=None)
def test_every_byte_delivered_is_in_its_place_whatever_is_lost(
    data: st.DataObject, size: int, held_pieces: int, lost: set[int]
) -> None:
    sent = content(size)
    ranges = data.draw(cuttings(size))
    kept = [item for place, item in enumerate(ranges) if place not in lost]
    packets = [to_client(seq=2**32 - 101, flags=SYN)]
    packets += [to_client(sent[start:end], seq=2**32 - 100 + start) for start, end in kept]
    limits = StreamLimits(held_per_direction_bytes=held_pieces * (PIECE_COST + 20))
    events = list(Capture(as_file(pcap(packets)), limits=limits).events())
    found = bytes_of(events, Direction.TO_ACCEPTOR)
    assert len(found) == max((end for _, end in kept), default=0)
    assert all(byte in (0, sent[place]) for place, byte in enumerate(found))


FRAMES = [
    ethernet(to_server(seq=9, flags=SYN)),
    ethernet(to_server(b"first", seq=10), tags=[0x8100]),
    ethernet(to_client(b"answer", seq=70)),
    ethernet(ipv6(bytes([17, 0]) + bytes(6) + udp(b"ping"), protocol=60), ethertype=0x86DD),
    ethernet(ipv4(udp(b"ping"), protocol=UDP, options=bytes(4))),
    ethernet(ipv4(tcp(b"third", seq=20, options=bytes(4)))),
]
FILES = [
    pcap(FRAMES, link_type=ETHERNET),
    pcap(FRAMES, order=">", link_type=ETHERNET),
    pcapng(FRAMES, link_type=ETHERNET),
    pcapng(FRAMES, order=">", link_type=ETHERNET) + pcapng(FRAMES, link_type=ETHERNET),
    section()
    + interface(link_type=ETHERNET)
    + b"".join(simple(frame) + obsolete(frame) for frame in FRAMES)
    + block(0x0BAD, b"unknown"),
]


def read_within_limits(data: bytes) -> None:
    """Events or a CaptureError, and no memory but for what the file holds; anything else fails."""
    tracemalloc.start()
    try:
        until_error(Capture(as_file(data)).events())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY_MAX


@given(
    beginning=st.sampled_from([b"", *(file[:4] for file in FILES), *(file[:24] for file in FILES)]),
    rest=st.binary(max_size=400),
)
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_events_or_a_capture_error(beginning: bytes, rest: bytes) -> None:
    read_within_limits(beginning + rest)


@given(
    file=st.sampled_from(FILES),
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=12
    ),
    kept=st.floats(0, 1) | st.just(1.0),
)
@settings(max_examples=200, deadline=None)
def test_a_changed_and_cut_file_gives_events_or_a_capture_error(
    file: bytes, changes: list[tuple[float, int]], kept: float
) -> None:
    changed = bytearray(file)
    for where, value in changes:
        changed[int(where * len(changed))] = value
    read_within_limits(bytes(changed[: int(kept * len(changed))]))


@given(packets=st.lists(st.binary(max_size=120), max_size=10), link_type=st.integers(0, 300))
@settings(max_examples=150, deadline=None)
def test_any_frames_of_any_link_type_are_read_or_counted(
    packets: list[bytes], link_type: int
) -> None:
    capture = Capture(as_file(pcap(packets, link_type=link_type)))
    _, error = until_error(capture.events())
    assert error is None
    assert capture.frame_count == len(packets)


segments = st.builds(
    lambda forth, seq, ack, flags, payload: (to_server if forth else to_client)(
        payload, seq=seq, ack=ack, flags=flags
    ),
    st.booleans(),
    st.integers(0, 12) | st.integers(2**32 - 6, 2**32 - 1) | st.integers(0, 2**32 - 1),
    st.integers(0, 12) | st.integers(2**32 - 6, 2**32 - 1),
    st.integers(0, 31),
    st.binary(max_size=6),
)


@given(packets=st.lists(segments, max_size=25), held_pieces=st.integers(0, 3))
@settings(max_examples=250, deadline=None)
def test_any_segments_of_one_pair_of_endpoints_are_survived(
    packets: list[bytes], held_pieces: int
) -> None:
    limits = StreamLimits(
        connections=1,
        closed_connections=1,
        held_per_direction_bytes=held_pieces * PIECE_COST,
        held_total_bytes=held_pieces * PIECE_COST,
    )
    capture = Capture(as_file(pcap(packets)), limits=limits)
    events, error = until_error(capture.events())
    assert error is None
    delivered = sum(len(event.data) for event in events if isinstance(event, Chunk))
    assert delivered <= sum(len(packet) - 40 for packet in packets)
    assert all(event.missing_bytes != 0 for event in events if isinstance(event, Gap))
