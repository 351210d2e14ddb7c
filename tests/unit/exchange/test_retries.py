"""When it is tried again to connect, and what ends the wait."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hostile import stranger_packets as packets
from kit.exchange import START, Manager, Town
from kit.raw_sessions import RawSession
from merq.exchange import AllowedAdminQueues, Exchange, Peers
from merq.exchange.acquaintances import (
    APPLICATION_HOSTS_MAX,
    SESSION_ADDRESSES_MAX,
    Acquaintances,
)
from merq.exchange.retry_schedule import RETRY_JITTER
from merq.exchange.switchboard import Switchboard
from merq.host.transfers import transfer
from unit.exchange.exchange_world import GUIDS, ONE, PLAIN, QUEUE, TWO, changed, manager, pair
from unit.exchange.letter_messages import OTHER


def attempts(town: Town, sender: Manager, seconds: float) -> list[float]:
    """When the receiver is called, of this many seconds."""
    found = []
    end = town.now + seconds
    while town.now < end:
        before = len(town.dialled)
        town.wait(0.5, step=0.5)
        found += [town.now] * (len(town.dialled) - before)
    return found


def waits(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.limit("exchange.retry_max_s")
@pytest.mark.spec("MS-MQQB 3.1.2.3", "MS-MQQB 3.1.6.1", "E142")
def test_the_time_between_two_attempts_doubles_up_to_a_limit() -> None:
    town, sender, _ = pair(changed(retry_s=5.0, retry_max_s=60.0))
    town.down.add(TWO)
    sender.send(PLAIN, b"a", recoverable=True)
    town.run()
    times = attempts(town, sender, 300.0)
    assert [0.0, *times][:2] == [0.0, 5.0], "the first is the document's"
    assert waits([0.0, *times]) == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0]


def test_a_limit_below_the_first_time_changes_nothing_of_that() -> None:
    town, sender, _ = pair(changed(retry_s=5.0, retry_max_s=1.0))
    town.down.add(TWO)
    sender.send(PLAIN, b"a", recoverable=True)
    town.run()
    assert attempts(town, sender, 16.0) == [5.0, 10.0, 15.0]


def test_chance_shortens_all_but_the_first() -> None:
    town, sender, _ = pair()
    sender.exchange = Exchange(sender.host, changed(), Peers(), chance=lambda: 1.0)
    town.down.add(TWO)
    sender.send(PLAIN, b"a", recoverable=True)
    town.run()
    times = [0.0, *attempts(town, sender, 30.0)]
    assert waits(times) == [5.0, 10.0 * (1 - RETRY_JITTER), 20.0 * (1 - RETRY_JITTER)]


def late(town: Town, sender: Manager) -> None:
    """Somebody waits for a minute until it is tried again."""
    town.down.add(TWO)
    sender.send(PLAIN, b"a", recoverable=True)
    town.run()
    town.wait(80.0, step=1.0)


def test_a_new_message_of_an_application_does_not_wait() -> None:
    town, sender, receiver = pair()
    late(town, sender)
    before = len(town.dialled)
    town.wait(10.0, step=1.0)
    assert len(town.dialled) == before
    town.down.clear()
    sender.send(PLAIN, b"b")
    town.run()
    assert receiver.bodies(QUEUE) == [b"a", b"b"]


def test_but_many_messages_do_not_make_many_attempts() -> None:
    town, sender, _ = pair()
    late(town, sender)
    before = len(town.dialled)
    for _ in range(100):
        sender.send(PLAIN, b"x")
        town.wait(0.1)
    assert len(town.dialled) - before <= 3, "one every five seconds, as at first"


def test_a_session_from_there_ends_the_wait() -> None:
    town, sender, receiver = pair()
    late(town, sender)
    town.down.clear()
    sender.create("back")
    receiver.send(rf"DIRECT=TCP:{ONE}\private$\back", b"hello")
    town.wait(1.1)
    assert receiver.bodies(QUEUE) == [b"a"]


def test_whoever_connects_again_and_again_has_it_called_once_a_second_at_most() -> None:
    sender = manager(ONE)
    town = Town(sender)
    sender.send(PLAIN, b"a", recoverable=True)
    town.run()
    before = len(town.dialled)
    for _ in range(50):
        RawSession.connect(sender, TWO, GUIDS[TWO], town.now).establish(town.now).hang_up(town.now)
        town.wait(0.1)
    assert len(town.dialled) - before <= 6


def test_acknowledgments_alone_do_not_end_the_wait() -> None:
    receiver = manager(TWO, changed(allowed_admin_queues=AllowedAdminQueues.ANY))
    assert receiver.create("q") == QUEUE
    town = Town(receiver)
    session = RawSession.connect(receiver, "10.9.9.9", OTHER).establish()
    for number in range(60):
        admin = r"TCP:10.7.7.7\private$\told"
        packet = packets.message(
            OTHER.bytes_le, number + 1, rf"TCP:{TWO}\private$\q", admin=admin, asked=packets.PA
        )
        session.say(packet, town.now)
        town.wait(1.0, step=1.0)
    assert len(town.dialled) <= 5, "at 0, 5, 15 and 35 s"


def test_people_see_when_it_is_tried_again() -> None:
    town, sender, _ = pair()
    town.down.add(TWO)
    sender.send(PLAIN, b"a", recoverable=True)
    town.run()
    queue = sender.outgoing(PLAIN)
    assert transfer(sender.host.engine, queue).retry_at == START + 5
    town.wait(6.0, step=1.0)
    assert transfer(sender.host.engine, queue).retry_at == START + 15
    town.down.clear()
    town.wait(10.0, step=1.0)
    assert transfer(sender.host.engine, queue).retry_at == 0


@pytest.mark.limit("merq.exchange.acquaintances.SESSION_ADDRESSES_MAX")
def test_only_so_many_addresses_of_sessions_are_remembered() -> None:
    known = Acquaintances(Switchboard(manager(ONE).host, changed(), Peers()))
    known.session_opened(TWO)
    for number in range(SESSION_ADDRESSES_MAX):
        known.session_opened(f"2001:db8::{number:x}")
    assert known.knows_host("2001:db8::1")
    assert not known.knows_host("2001:db8::"), "the first of the network that has the most"
    assert known.knows_host(TWO), "and nobody else"


@pytest.mark.limit("merq.exchange.acquaintances.APPLICATION_HOSTS_MAX")
def test_only_so_many_hosts_of_applications_are_remembered() -> None:
    board = Switchboard(manager(ONE).host, changed(), Peers())
    known = Acquaintances(board)
    for number in range(APPLICATION_HOSTS_MAX + 1):
        known.meet(f"host{number}")
    assert not known.knows_host("host0")
    assert known.knows_host("HOST1")
    assert not known.knows_host("::ffff:10.0.0.7")
    known.meet("10.0.0.7")
    assert known.knows_host("::ffff:10.0.0.7"), "the same address"
