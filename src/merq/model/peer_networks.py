"""Whose addresses count as one peer's, for every limit that is by address."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

IPV6_PREFIX_BITS: Final = 64
"""One network is given so many bits, and whoever has one may take any address in it."""

CACHED_MAX: Final = 4096
"""Addresses whose network is remembered."""


@lru_cache(maxsize=CACHED_MAX)
def peer_network(address: str) -> str:
    """The key by which an address is counted: itself for IPv4, its /64 for IPv6.

    IPv4 inside of IPv6 counts as IPv4, a zone does not count, and what is no address counts as it
    is spelled.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    prefix = int(found) >> (128 - IPV6_PREFIX_BITS) << (128 - IPV6_PREFIX_BITS)
    return f"{IPv6Address(prefix)}/{IPV6_PREFIX_BITS}"
