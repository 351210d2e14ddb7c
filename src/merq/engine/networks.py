"""Whose share something counts against: the network that an address is in."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

NETWORKS_REMEMBERED_MAX: Final = 4096
"""Addresses of which it is remembered in which network they are."""

_HOST_BITS: Final = 64


@lru_cache(maxsize=NETWORKS_REMEMBERED_MAX)
def network_of(address: str) -> str:
    """The address itself, or the first 64 bits of one of IPv6: whoever has one has all of those.

    What is no address is a network of its own.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{IPv6Address(int(found) >> _HOST_BITS << _HOST_BITS)}/64"
