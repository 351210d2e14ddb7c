"""What strangers leave half said takes no more memory than it may, and keeps nobody else away."""

from __future__ import annotations

from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Manager
from kit.raw_sessions import RawSession
from merq.exchange import ExchangeSettings
from merq.protocol.binary.settings import OPENING_PACKET_BYTES_MAX, PACKET_RATE_MIN

MIB = 1 << 20
QUEUE = r"TCP:10.0.0.1\private$\orders"
SMALL_ROOM = ExchangeSettings(held_bytes_max=16 * MIB)
LARGE = bytes(4 * MIB - 1000)


def office(settings: ExchangeSettings | None = None) -> tuple[Manager, int]:
    manager = Manager("office", "10.0.0.1", UUID(int=1), settings or ExchangeSettings())
    return manager, manager.create("orders")


def stranger(manager: Manager, number: int, now: float = 0.0) -> RawSession:
    """Somebody with an address of its own."""
    address = f"10.{number >> 8}.{number & 255}.9"
    return RawSession.connect(manager, address, UUID(int=100 + number), now)


def large(session: RawSession, ordinal: int = 1) -> bytes:
    return packets.message(session.guid.bytes_le, ordinal, QUEUE, body=LARGE)


def held(manager: Manager) -> int:
    return manager.exchange.held_bytes


@pytest.mark.limit("exchange.memory_bytes")
def test_half_packets_of_many_strangers_take_no_more_than_the_limit() -> None:
    manager, _ = office(SMALL_ROOM)
    sessions = [stranger(manager, number).establish() for number in range(40)]
    for session in sessions:
        session.say(large(session)[: 2 * MIB])
        assert held(manager) <= 16 * MIB
    assert sum(bool(session.link.closing) for session in sessions) == 40 - 8


def test_a_large_message_gets_through_beside_half_packets_that_stand_still() -> None:
    manager, orders = office(SMALL_ROOM)
    for number in range(7):
        still = stranger(manager, number).establish()
        still.say(large(still)[: 2 * MIB], now=0.0)
    honest = stranger(manager, 99, now=20.0).establish(20.0)
    whole = large(honest)
    for at in range(0, len(whole), MIB):
        honest.say(whole[at : at + MIB], now=20.0 + at / MIB)
    assert not honest.link.closing
    assert manager.bodies(orders) == [LARGE]


def test_a_large_message_gets_through_beside_many_sessions_of_one_network() -> None:
    manager, orders = office(SMALL_ROOM)
    honest = stranger(manager, 99).establish()
    whole = large(honest)
    honest.say(whole[: 3 * MIB])
    for number in range(100):
        guid = UUID(int=500 + number)
        pushing = RawSession.connect(manager, f"2001:db8::{number:x}", guid).establish()
        pushing.say(packets.message(guid.bytes_le, 1, QUEUE, body=LARGE)[: MIB // 2])
    honest.say(whole[3 * MIB :])
    assert manager.bodies(orders) == [LARGE]


def test_who_gives_way_is_told_why_and_what_it_held_is_free_at_once() -> None:
    manager, _ = office(SMALL_ROOM)
    sessions = [stranger(manager, number).establish() for number in range(6)]
    for at, session in enumerate(sessions):
        session.say(large(session)[: 3 * MIB], now=float(at))
    (cut,) = (session for session in sessions if session.link.closing)
    assert "memory runs out" in cut.link.closing
    assert cut is sessions[0], "it has kept its bytes for longest"
    assert held(manager) == 15 * MIB
    for session in sessions[1:]:
        session.hang_up()
    assert held(manager) == 0


def test_while_memory_is_tight_each_session_has_one_packet_at_a_time() -> None:
    manager, _ = office(SMALL_ROOM)
    exchange = manager.exchange
    for number in range(3):
        pushing = stranger(manager, number).establish()
        pushing.say(large(pushing)[: 3 * MIB])
    honest = stranger(manager, 99).establish()
    message = packets.message(honest.guid.bytes_le, 1, QUEUE, body=b"a", recoverable=True)
    exchange.received(honest.link, message, 0.0)
    assert exchange.is_paused(honest.link), "what came is not on the disk yet"
    honest.settle()
    assert not exchange.is_paused(honest.link)


def test_bytes_to_be_written_count_too() -> None:
    manager, _ = office(SMALL_ROOM)
    deaf = stranger(manager, 1).establish()
    deaf.link.unwritten_bytes = 20 * MIB
    manager.exchange.counted(deaf.link, 1.0)
    assert "memory runs out" in deaf.link.closing
    assert deaf.link.is_cut


@pytest.mark.limit("merq.protocol.binary.settings.OPENING_PACKET_BYTES_MAX")
def test_only_small_packets_are_taken_before_a_session_is_open() -> None:
    for opening in (b"", packets.establish(UUID(int=100).bytes_le)):
        manager, _ = office()
        early = stranger(manager, 0)
        early.say(opening)
        early.say(packets.base(OPENING_PACKET_BYTES_MAX + 1, 0x0B))
        assert f"a packet of {OPENING_PACKET_BYTES_MAX + 1} bytes came while" in early.link.closing
        assert held(manager) == 0


def test_both_packets_that_open_a_session_fit_and_may_come_in_pieces() -> None:
    manager, orders = office()
    slow = stranger(manager, 0)
    opening = packets.establish(slow.guid.bytes_le) + packets.parameters()
    for at in range(0, len(opening), 100):
        slow.say(opening[at : at + 100])
    assert slow.link.is_open
    slow.say(large(slow))
    assert manager.bodies(orders) == [LARGE]


def test_a_large_message_may_come_together_with_what_opens_the_session() -> None:
    manager, orders = office()
    eager = stranger(manager, 0)
    eager.say(packets.establish(eager.guid.bytes_le))
    eager.say(packets.parameters() + large(eager))
    assert manager.bodies(orders) == [LARGE]


def test_a_packet_that_makes_no_progress_ends_its_session() -> None:
    manager, _ = office()
    still = stranger(manager, 0).establish()
    still.say(large(still)[:100], now=1.0)
    manager.exchange.tick(30.9)
    assert not still.link.closing
    manager.exchange.tick(31.2)
    assert "only 100 came in time" in still.link.closing


def test_a_packet_that_comes_byte_by_byte_ends_its_session() -> None:
    manager, _ = office()
    dripping = stranger(manager, 0).establish()
    whole = large(dripping)
    for second in range(40):
        dripping.say(whole[second : second + 1], now=float(second))
        manager.exchange.tick(float(second))
    assert "came in time" in dripping.link.closing


def test_a_large_packet_over_a_slow_line_gets_through() -> None:
    manager, orders = office()
    slow = stranger(manager, 0).establish()
    whole = large(slow)
    step = 60 * PACKET_RATE_MIN
    for minute, at in enumerate(range(0, len(whole), step)):
        slow.say(whole[at : at + step], now=60.0 * minute)
        manager.exchange.tick(60.0 * minute + 29)
    assert manager.bodies(orders) == [LARGE]


def test_nobody_is_blamed_for_a_packet_that_we_do_not_read() -> None:
    manager, orders = office()
    waiting = stranger(manager, 0).establish()
    whole = large(waiting)
    waiting.say(whole[:MIB], now=1.0)
    manager.host.engine.state.low_on_disk = True
    for second in range(2, 2000, 10):
        manager.exchange.tick(float(second))
    manager.host.engine.state.low_on_disk = False
    waiting.say(whole[MIB:], now=2001.0)
    assert not waiting.link.closing
    assert manager.bodies(orders) == [LARGE]
