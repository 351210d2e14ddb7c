"""Whoever has a network of IPv6 is one peer, with whichever of its addresses it comes."""

from __future__ import annotations

from uuid import UUID

from hostile import stranger_packets as packets
from kit.exchange import Manager
from kit.raw_sessions import RawSession
from merq.exchange import ExchangeSettings

FEW = ExchangeSettings(links_per_peer_max=3)
REFUSED = 0x10


def answer(manager: Manager, address: str) -> bytes:
    """What somebody at the address hears who asks for a session."""
    session = RawSession.connect(manager, address, UUID(int=7))
    session.say(packets.establish(session.guid.bytes_le))
    return session.written[0]


def test_connections_of_an_ipv6_network_are_counted_together() -> None:
    manager = Manager("office", "10.0.0.1", UUID(int=1), FEW)
    for number in range(3):
        assert not answer(manager, f"2001:db8::{number:x}")[18] & REFUSED
    assert answer(manager, "2001:db8::ffff:1")[18] & REFUSED
    assert not answer(manager, "2001:db8:0:1::1")[18] & REFUSED, "another network"
    (_, refused) = (fields for text, fields in manager.exchange.take_told() if "reason" in fields)
    assert refused["reason"] == "3 connections from 2001:db8::/64 are open"


def test_who_hangs_up_makes_room_for_others_of_its_network() -> None:
    manager = Manager("office", "10.0.0.1", UUID(int=1), FEW)
    sessions = [
        RawSession.connect(manager, f"2001:db8::{number:x}", UUID(int=7)) for number in range(3)
    ]
    sessions[0].hang_up()
    assert not answer(manager, "2001:db8::9")[18] & REFUSED
    assert answer(manager, "2001:db8::a")[18] & REFUSED


def test_addresses_of_ipv4_are_counted_one_by_one() -> None:
    manager = Manager("office", "10.0.0.1", UUID(int=1), FEW)
    for number in range(9):
        assert not answer(manager, f"10.0.1.{number}")[18] & REFUSED
