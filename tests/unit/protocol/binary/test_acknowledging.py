"""What was sent and what came, counted, and acknowledged in 16 bits."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.sessions import fields_of, session_header
from merq.errors import WireError
from merq.protocol.binary.acknowledging import Received, Sent, SessionHeaderFields


def sent(*recoverable: bool) -> Sent[int]:
    """Messages whose tokens are their numbers, from 1."""
    table: Sent[int] = Sent()
    for token, each in enumerate(recoverable, start=1):
        table.add(token, is_recoverable=each)
    return table


def acknowledged(
    table: Sent[int], received: int = 0, *, recoverable: int = 0, flags: int = 0
) -> list[int]:
    header = session_header(received, recoverable=recoverable, flags=flags)
    return table.acknowledged(fields_of(header))


def rest(table: Sent[int]) -> list[int]:
    """What waited until now, in order: the other side says that it has everything."""
    return sorted(acknowledged(table, table.count, recoverable=table.recoverable_count))


# What was sent.


@pytest.mark.spec("MS-MQQB 3.1.1.4", "MS-MQQB 3.1.7.1.3")
def test_every_message_is_counted_and_recoverable_ones_beside_that() -> None:
    table = sent(False, True, True, False, True)
    assert (table.count, table.recoverable_count) == (5, 3)
    assert table.unacknowledged == table.waiting == 5
    assert rest(table) == [1, 2, 3, 4, 5]


@pytest.mark.spec("MS-MQQB 3.1.5.5.1", "MS-MQQB 3.1.5.5.2", "MS-MQQB 3.1.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.5.5.1#mark")
def test_express_messages_are_done_when_they_have_been_received() -> None:
    table = sent(False, False, False)
    assert acknowledged(table, 2) == [1, 2]
    assert table.unacknowledged == table.waiting == 1
    assert acknowledged(table, 2) == []
    assert acknowledged(table, 1) == [], "an acknowledgment that is overtaken says nothing new"
    assert acknowledged(table, 3) == [3]
    assert not table.has_waiting


@pytest.mark.spec("MS-MQQB 3.1.5.5.1", "MS-MQQB 3.1.5.5.3", "MS-MQQB 3.1.1.6.1")
@pytest.mark.spec("MS-MQQB 3.1.5.5.1#UnAckedMessageCount")
def test_recoverable_messages_are_done_when_they_are_on_the_disk() -> None:
    table = sent(True, True, True)
    assert acknowledged(table, 3) == []
    assert (table.unacknowledged, table.waiting) == (0, 3), "the window is open, they are kept"
    assert acknowledged(table, 3, recoverable=1, flags=0b11) == [1, 2]
    assert acknowledged(table, 3, recoverable=3, flags=0b1) == [3]
    assert not table.has_waiting


@pytest.mark.spec("MS-MQQB 3.1.5.5.3", "MS-MQMQ 2.2.20.4")
@pytest.mark.spec("MS-MQQB 3.1.5.5.3#number", "E53")
def test_the_number_alone_acknowledges_all_up_to_it() -> None:
    table = sent(True, True, True, True)
    assert acknowledged(table, recoverable=3) == [1, 2, 3]


@pytest.mark.spec("MS-MQQB 3.1.5.5.3", "MS-MQMQ 2.2.20.4")
@pytest.mark.spec("MS-MQQB 3.1.5.5.3#flags")
def test_a_bit_field_with_holes_leaves_what_is_in_the_holes() -> None:
    table = sent(*[True] * 8)
    assert acknowledged(table, 8, recoverable=2, flags=0b0101101) == [1, 2, 4, 5, 7]
    assert table.waiting == 3
    assert acknowledged(table, 8, recoverable=3, flags=0b001001) == [3, 6]
    assert acknowledged(table, 8, recoverable=8, flags=1) == [8]
    assert not table.has_waiting


@pytest.mark.spec("MS-MQMQ 2.2.20.4")
def test_the_bit_field_names_32_messages() -> None:
    table = sent(*[True] * 33)
    assert acknowledged(table, 33, recoverable=1, flags=0xFFFFFFFF) == list(range(1, 33))
    assert rest(table) == [33]
    table = sent(*[True] * 33)
    assert acknowledged(table, 33, recoverable=1, flags=0x80000001) == [1, 32]


@pytest.mark.parametrize(
    ("received", "recoverable", "flags"),
    [(4, 0, 0), (0x7FFF, 0, 0), (0, 3, 0), (0, 3, 1), (0, 2, 0b10), (0, 1, 1 << 31)],
)
@pytest.mark.spec("MS-MQQB 3.1.5.5.1", "MS-MQQB 3.1.5.5.3")
@pytest.mark.spec("E53")
def test_what_was_never_sent_cannot_be_acknowledged(
    received: int, recoverable: int, flags: int
) -> None:
    table = sent(True, False, True)
    with pytest.raises(WireError, match="were not sent"):
        acknowledged(table, received, recoverable=recoverable, flags=flags)
    assert rest(table) == [1, 2, 3], "nothing of it is believed"


@pytest.mark.spec("MS-MQQB 3.1.5.5.1", "MS-MQQB 3.1.5.5.3")
def test_of_a_bogus_acknowledgment_nothing_is_believed() -> None:
    table = sent(False, True)
    with pytest.raises(WireError, match="1 recoverable messages that were not sent"):
        acknowledged(table, 2, recoverable=2, flags=1)
    assert table.unacknowledged == 2
    assert rest(table) == [1, 2]


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.1.3.1", "MS-MQQB 3.1.1.4")
def test_the_counts_go_round_after_16_bits(recoverable: bool) -> None:
    table: Sent[int] = Sent()
    done = 0
    for number in range(1, 70_001):
        table.add(number, is_recoverable=recoverable)
        if number % 20 == 0:
            first, flags = (number - 19, (1 << 20) - 1) if recoverable else (0, 0)
            found = acknowledged(table, number, recoverable=first, flags=flags)
            assert found == list(range(number - 19, number + 1))
            done += len(found)
    assert done == 70_000
    assert not table.has_waiting


@pytest.mark.spec("MS-MQMQ 2.2.20.4")
def test_the_number_of_a_recoverable_message_may_be_0_after_65535() -> None:
    table: Sent[int] = Sent()
    for number in range(1, 65_538):
        table.add(number, is_recoverable=True)
        if number <= 65_535:
            acknowledged(table, number, recoverable=number, flags=1)
    assert acknowledged(table, 65_537, recoverable=65_536, flags=0b11) == [65_536, 65_537]


@given(
    kinds=st.lists(st.booleans(), min_size=1, max_size=40),
    claims=st.lists(
        st.tuples(st.integers(0, 45), st.integers(0, 45), st.integers(0, 0xFFFFFFFF)), max_size=12
    ),
)
@pytest.mark.spec("MS-MQQB 3.1.5.5.1", "MS-MQQB 3.1.5.5.2", "MS-MQQB 3.1.5.5.3")
def test_whatever_is_claimed_a_message_is_done_once_or_waits(
    kinds: list[bool], claims: list[tuple[int, int, int]]
) -> None:
    table = sent(*kinds)
    done: list[int] = []
    for received, recoverable, flags in claims:
        header = SessionHeaderFields(received, recoverable, flags, 0, 0, 64, 0)
        with suppress(WireError):
            done += table.acknowledged(header)
        assert table.waiting == len(kinds) - len(done)
    assert sorted(done + rest(table)) == list(range(1, len(kinds) + 1))
    assert not table.has_waiting


# What came.


def header_of(received: Received, window: int = 64) -> SessionHeaderFields:
    nothing: Sent[int] = Sent()
    return SessionHeaderFields.unpack(received.header(nothing, window), 0)


def came(*recoverable: bool) -> Received:
    received = Received()
    for each in recoverable:
        received.came(is_recoverable=each)
    return received


@pytest.mark.spec("MS-MQQB 3.1.6.4", "MS-MQMQ 2.2.20.4")
@pytest.mark.spec("MS-MQQB 3.1.6.4#reset")
def test_an_acknowledgment_says_how_many_came_and_which_are_on_the_disk() -> None:
    received = came(False, True, True, False)
    received.handled, received.persisted = 4, 2
    assert (received.unacknowledged, received.persisted_unacked) == (4, 2)
    assert header_of(received)[:3] == (4, 1, 0b11)
    assert (received.unacknowledged, received.persisted_unacked) == (0, 0)
    assert header_of(received)[:3] == (4, 0, 0), "what was said is not said again"


@pytest.mark.spec("MS-MQQB 3.1.1.6.1", "MS-MQQB 3.1.5.8.7")
@pytest.mark.spec("MS-MQQB 3.1.5.8.7#disk", "MS-MQQB 3.1.6.4#AckSequenceNumber")
def test_what_is_not_on_the_disk_is_not_acknowledged() -> None:
    received = came(True, True)
    assert received.has_unpersisted
    assert header_of(received)[:3] == (0, 0, 0)
    received.handled = received.persisted = 1
    assert header_of(received)[:3] == (1, 1, 0b1)
    received.handled = received.persisted = 2
    assert header_of(received)[:3] == (2, 2, 0b1)
    assert not received.has_unpersisted


@pytest.mark.spec("MS-MQQB 3.1.5.8.7")
def test_more_than_32_take_several_acknowledgments() -> None:
    received = came(*[True] * 40)
    found = []
    for count in (31, 32, 40):
        received.handled = received.persisted = count
        found.append(received.is_full)
    assert header_of(received)[:3] == (40, 1, 0xFFFFFFFF)
    assert [*found, received.is_full] == [False, True, True, False]
    assert header_of(received)[:3] == (40, 33, 0xFF)


@pytest.mark.spec("MS-MQQB 3.1.6.4", "MS-MQQB 3.1.7.1.3")
def test_an_acknowledgment_says_what_was_sent_and_how_much_may_be_open() -> None:
    header = SessionHeaderFields.unpack(Received().header(sent(True, False, True), 7), 0)
    assert header == (0, 0, 0, 3, 2, 7, 0)


@pytest.mark.spec("MS-MQQB 3.1.5.5.5")
@pytest.mark.spec(
    "MS-MQQB 3.1.5.5.5#UserMsgSequenceNumber", "MS-MQQB 3.1.5.5.5#RecoverableMsgSeqNumber"
)
def test_both_sides_must_have_counted_alike() -> None:
    received = came(False, True, True)
    right = SessionHeaderFields(0, 0, 0, 3, 2, 64, 0)
    assert received.mismatch(right, is_recoverable=None) == ""
    assert "4 messages, 3 came" in received.mismatch(right._replace(sent=4), is_recoverable=None)
    for count in (1, 3):
        wrong = right._replace(recoverable_sent=count)
        assert f"{count} recoverable" in received.mismatch(wrong, is_recoverable=None)


@pytest.mark.spec("MS-MQQB 3.1.5.5.5", "MS-MQQB 3.1.5.8.4")
def test_a_message_that_a_header_travels_on_may_be_counted_in_it_or_not() -> None:
    received = came(True, True)
    for count in (1, 2):
        header = SessionHeaderFields(0, 0, 0, 2, count, 64, 0)
        assert received.mismatch(header, is_recoverable=True) == ""
    header = SessionHeaderFields(0, 0, 0, 2, 1, 64, 0)
    assert received.mismatch(header, is_recoverable=False) != ""
