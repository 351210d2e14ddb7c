"""Whose addresses count as one peer's, for every limit that is by address."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

IPV6_PREFIX_BITS: Final = 64
"""One network is given so many bits, and whoever has one may take any address in it."""

IPV4_NEIGHBOURHOOD_BITS: Final = 24
IPV6_NEIGHBOURHOOD_BITS: Final = 48
"""Networks that share so many bits often belong to one owner: of IPv6 a site is given as many."""

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


@lru_cache(maxsize=CACHED_MAX)
def neighbourhood(network: str) -> str:
    """The wider network around one of `peer_network`; what is no address is by itself."""
    try:
        found = ip_network(network)
    except ValueError:
        return network
    bits = IPV4_NEIGHBOURHOOD_BITS if found.version == 4 else IPV6_NEIGHBOURHOOD_BITS
    return str(found.supernet(new_prefix=bits))
