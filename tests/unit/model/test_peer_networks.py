"""Which addresses are counted as one peer's."""

from __future__ import annotations

import pytest

from merq.model.peer_networks import CACHED_MAX, peer_network


def test_an_ipv4_address_counts_alone() -> None:
    assert peer_network("192.0.2.7") == "192.0.2.7"
    assert peer_network("192.0.2.7") != peer_network("192.0.2.8")


def test_all_addresses_of_an_ipv6_network_count_as_one() -> None:
    assert peer_network("2001:db8:0:1::1") == "2001:db8:0:1::/64"
    assert peer_network("2001:0DB8::1:ffff:ffff:ffff:ffff") == "2001:db8:0:1::/64"
    assert peer_network("2001:db8:0:2::1") != peer_network("2001:db8:0:1::1")


@pytest.mark.parametrize("address", ["::ffff:192.0.2.7", "::ffff:c000:207"])
def test_ipv4_inside_of_ipv6_counts_as_ipv4(address: str) -> None:
    assert peer_network(address) == "192.0.2.7"


def test_a_zone_does_not_make_another_peer() -> None:
    assert peer_network("fe80::1%eth0") == peer_network("fe80::2%eth1") == "fe80::/64"


def test_what_is_no_address_counts_as_it_is_spelled() -> None:
    assert peer_network("user 1000") == "user 1000"


@pytest.mark.limit("merq.model.peer_networks.CACHED_MAX")
def test_no_more_addresses_are_remembered_than_there_is_room_for() -> None:
    for number in range(CACHED_MAX + 10):
        peer_network(f"10.1.{number >> 8}.{number & 255}")
    assert peer_network.cache_info().currsize <= CACHED_MAX
