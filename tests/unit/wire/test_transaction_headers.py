"""[MS-MQMQ] 2.2.20.5: the places of messages in a row are those that each would get alone."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from merq.errors import WireError
from merq.wire.build import TransactionPlace, transaction_header, transaction_headers

pytestmark = pytest.mark.spec("MS-MQMQ 2.2.20.5")

U32_MAX = 0xFFFFFFFF
FIRST = TransactionPlace(sequence_id=5, sequence_number=1, previous_sequence_number=0)


def places(first: TransactionPlace, finals: list[bool], *, is_last: bool) -> list[TransactionPlace]:
    """Where each of them stands."""
    found = []
    previous = first.previous_sequence_number
    for row, final in enumerate(finals):
        number = first.sequence_number + row
        found.append(
            TransactionPlace(
                sequence_id=first.sequence_id,
                sequence_number=number,
                previous_sequence_number=previous,
                identifier=first.identifier,
                is_first=first.is_first and not row,
                is_last=is_last and row == len(finals) - 1,
                final_ack_required=final,
            )
        )
        previous = number
    return found


@given(
    first=st.builds(
        TransactionPlace,
        sequence_id=st.integers(0, (1 << 64) - 1),
        sequence_number=st.integers(1, U32_MAX) | st.integers(U32_MAX - 9, U32_MAX),
        previous_sequence_number=st.integers(0, U32_MAX - 1),
        identifier=st.integers(0, (1 << 20) - 1),
        is_first=st.booleans(),
        is_last=st.booleans(),
        final_ack_required=st.booleans(),
    ),
    finals=st.lists(st.booleans(), min_size=1, max_size=9),
    is_last=st.booleans(),
)
def test_they_are_the_same_as_one_by_one(
    first: TransactionPlace, finals: list[bool], is_last: bool
) -> None:
    assume(first.sequence_number + len(finals) - 1 <= U32_MAX)
    expected = [transaction_header(each) for each in places(first, finals, is_last=is_last)]
    assert transaction_headers(first, finals, is_last=is_last) == expected


@pytest.mark.parametrize(
    ("first", "field"),
    [
        (FIRST._replace(sequence_number=0), "sequence_number"),
        (FIRST._replace(sequence_number=U32_MAX + 1), "sequence_number"),
        (FIRST._replace(sequence_number=U32_MAX - 1), "sequence_number"),
        (FIRST._replace(previous_sequence_number=-1), "previous_sequence_number"),
        (FIRST._replace(previous_sequence_number=U32_MAX), "previous_sequence_number"),
        (FIRST._replace(identifier=1 << 20), "transaction"),
        (FIRST._replace(identifier=-1), "transaction"),
        (FIRST._replace(sequence_id=1 << 64), "transaction"),
        (FIRST._replace(sequence_id=-1), "transaction"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(first: TransactionPlace, field: str) -> None:
    with pytest.raises(WireError) as wrong:
        transaction_headers(first, [False] * 3, is_last=True)
    assert wrong.value.field == field


def test_the_highest_numbers_fit() -> None:
    first = FIRST._replace(sequence_number=U32_MAX - 1, previous_sequence_number=U32_MAX - 2)
    headers = transaction_headers(first, [False] * 2, is_last=True)
    assert headers == [
        transaction_header(each) for each in places(first, [False] * 2, is_last=True)
    ]
    with pytest.raises(WireError):
        transaction_headers(first, [False] * 3, is_last=True)
