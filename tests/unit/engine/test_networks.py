"""Whose share something counts against."""

from __future__ import annotations

import pytest

from merq.engine.networks import network_of


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::1", "2001:db8:0:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("", ""),
        ("m1", "m1"),
    ],
)
def test_an_address_is_in_one_network(address: str, network: str) -> None:
    assert network_of(address) == network
