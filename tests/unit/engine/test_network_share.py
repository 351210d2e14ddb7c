"""Who takes how much of what is for other queue managers."""

from __future__ import annotations

import pytest

from merq.engine.network_share import (
    ADDRESSES_OF_SOURCE_MAX,
    CHARGES_MAX,
    SOURCES_MAX,
    Charge,
    Coming,
    NetworkShare,
)


def bring(share: NetworkShare, address: str, number: int, size: int) -> None:
    coming = Coming()
    coming.add(address, number, size)
    share.total_bytes += size
    share.settle(coming)


def test_one_alone_gets_half_and_the_next_one_half_of_the_rest() -> None:
    share = NetworkShare()
    assert share.room("a", 1000) == 500
    bring(share, "a", 1, 500)
    assert share.room("a", 1000) == 0
    assert share.room("b", 1000) == 250
    bring(share, "b", 2, 250)
    assert (share.room("b", 1000), share.room("c", 1000)) == (0, 125)


def test_what_comes_in_one_change_counts_as_what_came_before() -> None:
    share, coming = NetworkShare(), Coming()
    for _ in range(5):
        coming.add("a", 1, 100)
    assert share.room("a", 1000, coming) == 0
    assert share.room("b", 1000, coming) == 250


def test_who_was_refused_goes_on_when_there_is_a_tenth_of_what_is_free() -> None:
    share = NetworkShare()
    bring(share, "a", 1, 500)
    assert not share.is_relieved("a", 1000, 1)
    share.remove(1, 50)
    assert share.room("a", 1000) == 50
    assert not share.is_relieved("a", 1000, 1)
    share.remove(1, 10)
    assert share.is_relieved("a", 1000, 1)
    assert not share.is_relieved("a", 1000, 61)


def test_who_claims_to_be_another_does_not_leave_it_charged() -> None:
    share = NetworkShare()
    bring(share, "stranger", 1, 300)
    for _ in range(100):
        bring(share, "honest", 1, 50)
        share.remove(1, 50)
    assert share.used_by("honest") == 0
    assert share.used_by("stranger") == 300
    bring(share, "honest", 1, 400)
    share.remove(1, 400)
    assert share.used_by("honest") <= 300
    share.remove(1, 300)
    assert (share.total_bytes, share.used_by("honest"), share.used_by("stranger")) == (0, 0, 0)


@pytest.mark.limit("merq.engine.network_share.SOURCES_MAX")
@pytest.mark.limit("merq.engine.network_share.ADDRESSES_OF_SOURCE_MAX")
def test_of_too_many_senders_or_addresses_some_stay_charged_until_nothing_is_left() -> None:
    share = NetworkShare()
    for number in range(SOURCES_MAX + 1):
        bring(share, "a", number, 1)
    share.remove(SOURCES_MAX, 1)
    assert share.used_by("a") == share.total_bytes == SOURCES_MAX
    share.remove(0, 1)
    assert share.used_by("a") == SOURCES_MAX - 1 or share.used_by("a") == share.total_bytes
    for number in range(1, SOURCES_MAX):
        share.remove(number, 1)
    assert (share.total_bytes, share.used_by("a")) == (0, 0)
    for number in range(ADDRESSES_OF_SOURCE_MAX + 1):
        bring(share, str(number), 1, 10)
    share.remove(1, 80)
    assert share.used_by("8") == share.total_bytes == 10
    share.remove(1, 10)
    assert share.used_by("8") == 0


def test_charges_are_taken_up_again_and_relieved_as_before() -> None:
    share, again = NetworkShare(), NetworkShare()
    bring(share, "a", 1, 500)
    bring(share, "b", 1, 20)
    bring(share, "b", 2, 30)
    charges = share.charges(NetworkShare())
    assert charges == [Charge(1, "a", 500), Charge(2, "b", 30), Charge(1, "b", 20)]
    again.total_bytes = 550
    for each in charges:
        again.restore(each)
    for number, size in ((1, 100), (2, 30), (1, 10)):
        share.remove(number, size)
        again.remove(number, size)
        assert [again.used_by(each) for each in "ab"] == [share.used_by(each) for each in "ab"]


@pytest.mark.limit("merq.engine.network_share.CHARGES_MAX")
def test_only_the_largest_charges_are_kept() -> None:
    share = NetworkShare()
    for number in range(CHARGES_MAX):
        share.restore(Charge(number, f"{number}", 10))
    share.restore(Charge(CHARGES_MAX, "large", 1000))
    charges = share.charges(NetworkShare())
    assert len(charges) == CHARGES_MAX
    assert charges[0] == Charge(CHARGES_MAX, "large", 1000)
