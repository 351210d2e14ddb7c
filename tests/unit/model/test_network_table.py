"""Who gives way: the largest network of the largest neighbourhood, and of equals the last."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.model.network_table import NetworkCounts, NetworkTable
from merq.model.peer_networks import neighbourhood, peer_network

NETWORKS = ("10.0.0.1", "10.0.0.2", "10.0.1.1", "2001:db8::/64", "2001:db8:0:1::/64", "", "host")


@pytest.mark.parametrize(
    ("address", "around"),
    [
        ("10.1.2.3", "10.1.2.0/24"),
        ("::ffff:10.1.2.3", "10.1.2.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/48"),
        ("host", "host"),
        ("", ""),
    ],
)
def test_a_neighbourhood_is_what_one_owner_often_has(address: str, around: str) -> None:
    assert neighbourhood(peer_network(address)) == around


def test_the_network_that_has_the_most_gives_way_and_loses_what_it_used_longest_ago() -> None:
    table: NetworkTable[str] = NetworkTable()
    for key, network in (("a", "10.0.0.1"), ("b", "10.9.0.1"), ("c", "10.9.0.1")):
        table.add(key, network)
    assert table.first_to_go() == "b"
    table.use("b")
    assert table.first_to_go() == "c"
    table.discard("c")
    assert table.first_to_go() == "b", "of equals the one that came last"
    assert "a" in table
    assert "c" not in table
    table.add("b", "10.0.0.1")
    assert (table.of("10.0.0.1"), table.of("10.9.0.1"), len(table)) == (["a", "b"], [], 2)
    table.use("nobody")
    table.discard("nobody")
    assert list(table) == ["a", "b"]


def test_many_networks_side_by_side_give_way_before_one_that_has_several() -> None:
    counts = NetworkCounts()
    for _ in range(5):
        counts.add("10.0.0.1")
    for number in range(6):
        counts.add(f"2001:db8:0:{number}::/64")
    assert counts.largest() == "2001:db8:0:5::/64"
    assert list(counts.falling())[-1] == "10.0.0.1"


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(NETWORKS))))
def test_counts_are_those_of_a_counter(steps: list[tuple[bool, str]]) -> None:
    counts, model = NetworkCounts(), Counter[str]()
    for is_more, network in steps:
        if is_more:
            counts.add(network)
            model[network] += 1
        elif model[network]:
            counts.remove(network)
            model[network] -= 1
        around = Counter[str]()
        for each, count in model.items():
            around[neighbourhood(each)] += count
        assert len(counts) == model.total()
        assert sorted(counts.falling()) == sorted(each for each in model if model[each])
        if not counts:
            continue
        found = counts.largest()
        assert around[neighbourhood(found)] == max(around.values())
        near = [model[each] for each in model if neighbourhood(each) == neighbourhood(found)]
        assert model[found] == max(near)
        assert next(counts.falling()) == found
