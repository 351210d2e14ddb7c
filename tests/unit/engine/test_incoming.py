"""What came already: sequences by sender and name, and the latest identifiers of each sender."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.engine.history import BEFORE_START_TIMES, Recent
from merq.engine.incoming import (
    Incoming,
    Origin,
    SequenceKey,
    Sequences,
)
from merq.engine.sequence_records import pack_sequence, unpack_sequence
from unit.engine.conftest import Lower

ONE, OTHER = bytes(range(16)), bytes(range(16, 32))
KEY = SequenceKey(ONE, "7:os:here")
HERE = "10.0.0.1"


def at(sequence_id: int, number: int) -> Incoming:
    incoming = Incoming(KEY)
    incoming.sequence_id, incoming.number = sequence_id, number
    return incoming


# Sequences.


@pytest.mark.parametrize(
    ("sequence_id", "number", "previous", "accepted"),
    [
        (5, 4, 3, True),
        (5, 9, 3, True),  # gaps are allowed
        (5, 4, 0, True),  # at the head of what was not acknowledged
        (5, 9, 2, True),
        (5, 3, 2, False),  # a duplicate
        (5, 1, 0, False),
        (5, 5, 4, False),  # one before it is missing
        (6, 1, 0, True),
        (6, 7, 0, True),
        (6, 2, 1, False),  # the new sequence's first is missing
        (4, 9, 0, False),  # an old sequence
        (4, 9, 3, False),
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.1.5")
@pytest.mark.spec("MS-MQQB 3.1.5.8.6#same-sequence", "MS-MQQB 3.1.5.8.6#new-sequence")
def test_only_the_next_message_of_a_sequence_is_accepted(
    sequence_id: int, number: int, previous: int, accepted: bool
) -> None:
    assert at(5, 3).accepts(sequence_id, number, previous) is accepted


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.1.3.1")
@pytest.mark.spec("MS-MQQB 3.1.1.3.1#IncomingTxSequence")
def test_before_the_first_message_every_sequence_is_new() -> None:
    incoming = Incoming(KEY)
    assert incoming.accepts(1, 1, 0)
    assert incoming.accepts(1, 500, 0)
    assert not incoming.accepts(1, 2, 1)
    assert (incoming.sequence_id, incoming.number, incoming.settled) == (0, 0, (0, 0))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 8), st.integers(0, 7)), max_size=60))
@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.1.5")
def test_what_is_accepted_only_ever_grows(messages: list[tuple[int, int, int]]) -> None:
    incoming = Incoming(KEY)
    accepted: list[tuple[int, int]] = []
    for sequence_id, number, previous in messages:
        if previous < number and incoming.accepts(sequence_id, number, previous):
            incoming.sequence_id, incoming.number = sequence_id, number
            accepted.append((sequence_id, number))
    assert accepted == sorted(set(accepted))


@pytest.mark.spec("MS-MQDMPR 3.1.1.5")
def test_a_sequence_is_known_by_its_sender_and_the_name_it_sends_to() -> None:
    sequences = Sequences()
    upper, lower = (name.encode("utf-16-le") for name in ("OS:Here\\Q", "os:here\\q"))
    key = sequences.key_of(ONE, 7, upper)
    assert sequences.key_of(ONE, 7, lower) == key
    assert sequences.key_of(OTHER, 7, upper) != key
    assert sequences.key_of(ONE, 3, b"\x10\0\0\0") != sequences.key_of(ONE, 3, b"\x11\0\0\0")
    assert sequences.key_of(ONE, 3, b"\x10\0\0\0") != sequences.key_of(ONE, 5, b"\x10\0\0\0")
    assert sequences.find(key) is None
    found = sequences.match(key, 7, Origin("10.0.0.1", ONE), 0)
    assert (len(sequences), sequences.find(key)) == (0, None), "nothing is kept by asking"
    sequences.keep(found, lambda _: False)
    assert sequences.match(key, 7, Origin("10.0.0.1", ONE), 0) is found
    assert (len(sequences), [each.key for each in sequences.all()]) == (1, [key])


@pytest.mark.limit("merq.engine.incoming._KEYS_MAX")
@pytest.mark.spec("MS-MQDMPR 3.1.1.5")
def test_names_are_remembered_only_so_many_at_a_time(lower: Lower) -> None:
    lower("merq.engine.incoming", "_KEYS_MAX", 3)
    sequences = Sequences()
    keys = [sequences.key_of(ONE, 3, bytes([number, 0, 0, 0])) for number in range(10)]
    assert len(set(keys)) == 10
    assert [sequences.key_of(ONE, 3, bytes([number, 0, 0, 0])) for number in range(10)] == keys


@given(
    name=st.text(max_size=20),
    place=st.tuples(st.integers(0, (1 << 64) - 1), st.integers(1, (1 << 32) - 1)),
    address=st.sampled_from(["", "10.0.0.1", "fe80::1"]),
)
@pytest.mark.spec("MS-MQDMPR 3.1.1.5", "MS-MQQB 3.1.1.3.1")
def test_a_sequence_is_read_as_it_was_written(
    name: str, place: tuple[int, int], address: str
) -> None:
    incoming = Incoming(SequenceKey(ONE, name))
    incoming.origin, incoming.last_access = Origin(address, bytes(range(16))), 77
    sequences = Sequences()
    unpack_sequence(pack_sequence(incoming, *place), sequences)
    found = sequences.find(incoming.key)
    assert found is not None
    assert (found.sequence_id, found.number) == found.settled == place
    assert (found.origin, found.last_access) == (incoming.origin, 77)


@pytest.mark.spec("MS-MQQB 3.1.1.3.1")
def test_an_older_record_does_not_take_a_sequence_back() -> None:
    sequences = Sequences()
    for place in ((5, 3), (4, 9), (5, 2)):
        unpack_sequence(pack_sequence(Incoming(KEY), *place), sequences)
    found = sequences.find(KEY)
    assert found is not None
    assert found.settled == (5, 3)


# Identifiers.


@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "MS-MQQB 3.1.5.8.2")
@pytest.mark.spec("MS-MQQB 3.1.5.8.1#match", "E68")
def test_an_identifier_is_known_by_its_number_and_its_sender() -> None:
    recent = Recent()
    recent.add(ONE, 7, 100)
    assert recent.seen(ONE, 7, 100)
    assert not recent.seen(OTHER, 7, 100)
    assert not recent.seen(ONE, 8, 100)
    recent.remove(ONE, 7)
    recent.remove(OTHER, 7)
    assert not recent.seen(ONE, 7, 100)


@pytest.mark.limit("exchange.history_size")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.1.3")
@pytest.mark.spec("MS-MQQB 3.1.5.8.2#history-full", "E68")
def test_the_oldest_identifier_is_forgotten_when_there_is_no_room() -> None:
    recent = Recent(size=3)
    for ordinal in range(4):
        recent.add(ONE, ordinal, 100 + ordinal, HERE)
    recent.add(OTHER, 0, 100, HERE)
    seen = [recent.seen(ONE, ordinal, 200, HERE) for ordinal in range(4)]
    assert seen == [False, True, True, True]
    assert recent.seen(OTHER, 0, 200, HERE), "one sender does not drive out another's"
    assert len(recent) == 4


@pytest.mark.spec("MS-MQQB 3.1.1.3", "E151")
def test_of_what_came_before_the_start_more_is_known_for_others_may_have_sent_it() -> None:
    recent = Recent(size=3)
    for ordinal in range(20):
        recent.add(ONE, ordinal, 100 + ordinal)
    assert len(recent) == 3 * BEFORE_START_TIMES
    assert recent.seen(ONE, 19, 200, HERE), "wherever it comes from now"


@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "MS-MQQB 3.1.2.8", "MS-MQQB 3.1.6.7")
@pytest.mark.spec("MS-MQQB 3.1.5.8.1#renew")
def test_a_duplicate_renews_what_is_remembered_of_it() -> None:
    recent = Recent(size=2, lifetime_s=60)
    recent.add(ONE, 1, 100)
    recent.add(ONE, 2, 100)
    assert recent.seen(ONE, 1, 150)
    recent.forget(161)
    assert not recent.seen(ONE, 2, 161)
    assert recent.seen(ONE, 1, 161)


@pytest.mark.spec("MS-MQQB 3.1.2.8", "MS-MQQB 3.1.6.7")
def test_old_identifiers_are_forgotten() -> None:
    recent = Recent(lifetime_s=60)
    recent.add(ONE, 1, 100)
    recent.add(ONE, 2, 130)
    recent.forget(160)
    assert len(recent) == 2
    recent.forget(161)
    assert (len(recent), recent.seen(ONE, 2, 161)) == (1, True)
    recent.forget(500)
    assert (len(recent), recent.pack()) == (0, [])


@pytest.mark.limit("merq.engine.history.HISTORY_SOURCES_MAX")
def test_the_sender_that_is_silent_longest_is_forgotten(lower: Lower) -> None:
    lower("merq.engine.history", "HISTORY_SOURCES_MAX", 2)
    recent = Recent()
    third = bytes(16)
    recent.add(ONE, 1, 100)
    recent.add(OTHER, 1, 100)
    recent.add(ONE, 2, 100)
    recent.add(third, 1, 100)
    assert recent.seen(ONE, 1, 100)
    assert recent.seen(third, 1, 100)
    assert not recent.seen(OTHER, 1, 100)


@pytest.mark.spec("MS-MQQB 3.1.1.3")
def test_identifiers_are_read_as_they_were_written() -> None:
    recent, again = Recent(), Recent()
    for ordinal in (7, 3, 0xFFFFFFFF):
        recent.add(ONE, ordinal, 100)
    recent.add(OTHER, 3, 200)
    for data in recent.pack():
        again.unpack(data)
    assert again.pack() == recent.pack()
    assert len(again) == 4
