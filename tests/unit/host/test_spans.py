"""Records that lie near each other in the log are read in one piece."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.host.spans import GAP_BYTES_MAX, SPAN_BYTES_MAX, Span, spans
from merq.store.records import RECORD_HEADER_SIZE

HEADER = 16
SEGMENT = 1 << 32


def found(positions: list[int], sizes: list[int]) -> list[Span]:
    return list(spans(array("Q", positions), array("I", sizes), HEADER))


def in_a_row(count: int, size: int, start: int = SEGMENT + 64) -> tuple[list[int], list[int]]:
    """Positions and sizes of records that lie one behind the other."""
    step = RECORD_HEADER_SIZE + HEADER + size
    return [start + RECORD_HEADER_SIZE + step * each for each in range(count)], [size] * count


def test_nothing_is_nowhere() -> None:
    assert found([], []) == []


def test_neighbours_are_one_piece() -> None:
    positions, sizes = in_a_row(10, 100)
    whole = 10 * (RECORD_HEADER_SIZE + HEADER + 100)
    assert found(positions, sizes) == [Span(0, 10, positions[0] - RECORD_HEADER_SIZE, whole)]


def test_one_is_read_with_its_header_however_large_it_is() -> None:
    size = 2 * SPAN_BYTES_MAX
    (span,) = found([SEGMENT + 100], [size])
    assert span == Span(
        0, 1, SEGMENT + 100 - RECORD_HEADER_SIZE, RECORD_HEADER_SIZE + HEADER + size
    )


@pytest.mark.limit("merq.host.spans.GAP_BYTES_MAX")
def test_a_small_gap_is_read_over_and_a_large_one_is_not() -> None:
    positions, sizes = in_a_row(4, 100)
    near = [*positions[:2], *(each + GAP_BYTES_MAX for each in positions[2:])]
    assert len(found(near, sizes)) == 1
    far = [*positions[:2], *(each + GAP_BYTES_MAX + 1 for each in positions[2:])]
    assert [(each.first, each.end) for each in found(far, sizes)] == [(0, 2), (2, 4)]


def test_a_piece_lies_in_one_segment() -> None:
    one, sizes = in_a_row(2, 100)
    two, _ = in_a_row(2, 100, start=2 * SEGMENT + 64)
    pieces = found(one + two, sizes * 2)
    assert [(each.first, each.end, each.position >> 32) for each in pieces] == [
        (0, 2, 1),
        (2, 4, 2),
    ]


def test_records_that_do_not_lie_in_order_are_pieces_of_their_own() -> None:
    positions, sizes = in_a_row(3, 100)
    pieces = found([positions[2], positions[0], positions[1]], sizes)
    assert [(each.first, each.end) for each in pieces] == [(0, 1), (1, 3)]


@pytest.mark.limit("merq.host.spans.SPAN_BYTES_MAX")
def test_a_piece_has_a_size() -> None:
    positions, sizes = in_a_row(100, SPAN_BYTES_MAX // 10)
    pieces = found(positions, sizes)
    assert len(pieces) > 10
    assert all(each.size <= SPAN_BYTES_MAX for each in pieces)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 20_000), st.integers(1, 3000)), max_size=30
    )
)
def test_every_record_is_in_its_piece(rows: list[tuple[int, int, int]]) -> None:
    positions = [segment + 1 << 32 | 100 + at for segment, at, _ in rows]
    sizes = [size for _, _, size in rows]
    pieces = found(positions, sizes)
    assert [row for each in pieces for row in range(each.first, each.end)] == list(range(len(rows)))
    for each in pieces:
        for row in range(each.first, each.end):
            start = positions[row] - RECORD_HEADER_SIZE
            end = positions[row] + HEADER + sizes[row]
            assert each.position <= start
            assert end <= each.position + each.size
            assert start >> 32 == each.position >> 32
