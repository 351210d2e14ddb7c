"""Which connections are made first, and how many at the same time."""

from __future__ import annotations

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Manager
from kit.raw_sessions import RawSession
from merq.exchange import AllowedAdminQueues, Link, Peers
from merq.exchange.dials import SLICE_S, DialKind, Dials
from merq.exchange.lookups import LOOKUPS_MAX, OTHERS_LOOKUPS_MAX, Lookups
from merq.exchange.routes import NULL_GUID
from merq.exchange.switchboard import Switchboard
from merq.exchange.tls_policy import TlsUse
from unit.exchange.exchange_world import QUEUE, THREE, TWO, changed, manager
from unit.exchange.letter_messages import OTHER


def link(number: int) -> Link:
    return Link(number, f"10.0.{number >> 8}.{number & 255}", is_outgoing=True)


def links(count: int, start: int = 0) -> list[Link]:
    return [link(start + number) for number in range(count)]


@pytest.mark.parametrize(
    ("kind", "most"), [(DialKind.FRESH, 8), (DialKind.AGAIN, 4), (DialKind.ANSWER, 2)]
)
def test_each_kind_has_its_share_of_the_room(kind: DialKind, most: int) -> None:
    dials = Dials(8)
    for each in links(20):
        dials.add(each, kind)
    taken = dials.take()
    assert len(taken) == len(dials) == most
    assert dials.take() == []
    dials.ended(taken[0])
    assert len(dials.take()) == 1


def test_however_little_room_there_is_each_kind_has_a_turn() -> None:
    dials = Dials(1)
    for kind in DialKind:
        dials.add(link(int(kind.value * 100)), kind)
    for _ in DialKind:
        (taken,) = dials.take()
        dials.ended(taken)
    assert dials.take() == []


def test_what_waits_and_is_not_wanted_any_more_is_never_made() -> None:
    dials = Dials(8)
    unwanted = link(1)
    dials.add(unwanted, DialKind.FRESH)
    dials.ended(unwanted)
    assert dials.take() == []


def test_what_waits_for_acknowledgments_is_made_sooner_if_an_application_sends_there() -> None:
    dials = Dials(4)
    waiting = links(10)
    for each in waiting:
        dials.add(each, DialKind.ANSWER)
    assert dials.take() == waiting[:1]
    dials.hasten(waiting[9], DialKind.FRESH)
    dials.hasten(waiting[9], DialKind.ANSWER)
    assert dials.take() == [waiting[9]]


def test_an_attempt_that_takes_long_is_given_up_only_for_others_that_were_not_tried_yet() -> None:
    dials = Dials(4)
    for each in links(4):
        dials.add(each, DialKind.FRESH)
    slow = dials.take()
    assert dials.overdue(0.0) == []
    assert dials.next_deadline() is None
    assert dials.overdue(20.0) == [], "nobody else waits"
    dials.add(link(7), DialKind.AGAIN)
    assert dials.overdue(20.0) == [], "those that failed before do not end others' attempts"
    dials.add(link(8), DialKind.FRESH)
    assert dials.next_deadline() == SLICE_S
    assert dials.overdue(SLICE_S - 0.1) == []
    assert dials.overdue(SLICE_S) == slow[:1]
    dials.ended(slow[0])
    assert [each.number for each in dials.take()] == [8]


def test_of_those_that_failed_before_none_waits_for_one_that_never_answers() -> None:
    dials = Dials(4)
    waiting = links(10)
    for each in waiting:
        dials.add(each, DialKind.AGAIN)
    now = 0.0
    tried: list[Link] = []
    while len(tried) < len(waiting):
        tried += dials.take()
        for each in dials.overdue(now):
            dials.ended(each)
        now += SLICE_S
        assert now < 10 * SLICE_S
    assert tried == waiting


def test_what_only_acknowledgments_wait_for_has_a_share_of_all_connections() -> None:
    board = Switchboard(manager(THREE).host, changed(dialled_links_max=8), Peers())

    def dial(number: int, kind: DialKind) -> Link | None:
        return board.dial(f"10.0.0.{number}", NULL_GUID, kind, TlsUse.CLEAR, "")

    answers = [dial(number, DialKind.ANSWER) for number in range(3)]
    assert [each is None for each in answers] == [False, False, True]
    others = [dial(number, DialKind.FRESH) for number in range(7)]
    assert [each is None for each in others] == [False] * 6 + [True]
    assert answers[0] is not None
    board.remove(answers[0], 0.0)
    assert dial(9, DialKind.ANSWER) is not None


# Together.


def sender_of(**fields: object) -> Manager:
    return manager(THREE, changed(**fields))


def to(number: int) -> str:
    return rf"DIRECT=TCP:10.5.{number >> 8}.{number & 255}\private$\q"


def test_a_thousand_addresses_where_nobody_answers_do_not_delay_one_that_is_there() -> None:
    sender = sender_of()
    for number in range(1000):
        sender.send(to(number), b"x")
    now = 0.0
    sender.turn(now)
    # All have been tried once, in vain, and none of the later attempts ever ends.
    while taken := sender.exchange.take_dialing():
        for each in taken:
            sender.exchange.dial_failed(each, "nobody answers", now)
    for _ in range(40):
        now += 1.0
        sender.exchange.tick(now)
        sender.turn(now)
        sender.exchange.take_dialing()
    assert len(sender.exchange.links) > 500, "they want to be tried"
    sender.send(rf"DIRECT=TCP:{TWO}\private$\q", b"honest")
    sender.turn(now)
    assert [each.address for each in sender.exchange.take_dialing()] == [TWO]


def test_not_even_if_all_of_them_are_tried_for_the_first_time() -> None:
    sender = sender_of()
    for number in range(1000):
        sender.send(to(number), b"x")
    sender.send(rf"DIRECT=TCP:{TWO}\private$\q", b"honest")
    now, called = 0.0, False
    while not called:
        sender.turn(now)
        called = TWO in [each.address for each in sender.exchange.take_dialing()]
        now += 0.5
        sender.exchange.tick(now)
        for each in list(sender.exchange.dirty):
            if each.closing:
                sender.exchange.lost(each, each.closing, now)
        assert now < 12.0, "a connection may take 20 s to fail"
    texts = [each.text for each in sender.transfer(to(0)).history]
    assert any("other connections wait to be made" in text for text in texts)


@pytest.mark.limit("exchange.dials_max")
def test_what_strangers_cause_leaves_room_for_applications() -> None:
    receiver = manager(TWO, changed(allowed_admin_queues=AllowedAdminQueues.ANY, dials_max=16))
    assert receiver.create("q") == QUEUE
    session = RawSession.connect(receiver, "10.9.9.9", OTHER).establish()
    for number in range(100):
        admin = rf"TCP:10.7.7.{number}\private$\told"
        text = rf"TCP:{TWO}\private$\q"
        packet = packets.message(OTHER.bytes_le, number + 1, text, admin=admin, asked=packets.PA)
        session.say(packet)
    assert len(receiver.exchange.take_dialing()) == 4
    receiver.send(rf"DIRECT=TCP:{THREE}\private$\q", b"ours")
    receiver.turn(0.0)
    assert [each.address for each in receiver.exchange.take_dialing()] == [THREE]


# Names.


@pytest.mark.limit("merq.exchange.lookups.LOOKUPS_MAX", "merq.exchange.lookups.OTHERS_LOOKUPS_MAX")
def test_names_that_others_brought_do_not_hold_up_those_of_applications() -> None:
    lookups = Lookups()
    for number in range(1000):
        lookups.add(f"stranger{number}", is_for_others=True)
    for number in range(100):
        lookups.add(f"ours{number}", is_for_others=False)
    taken = lookups.take()
    assert len(taken) == LOOKUPS_MAX + OTHERS_LOOKUPS_MAX
    assert [each for each in taken if each.startswith("ours")] == [
        f"ours{number}" for number in range(LOOKUPS_MAX)
    ]
    assert lookups.take() == []
    lookups.ended("stranger0")
    assert lookups.take() == [f"stranger{OTHERS_LOOKUPS_MAX}"]
    lookups.ended("ours0")
    assert lookups.take() == [f"ours{LOOKUPS_MAX}"]


def test_a_name_that_an_application_needs_too_is_no_strangers_any_more() -> None:
    lookups = Lookups()
    for number in range(10):
        lookups.add(f"name{number}", is_for_others=True)
    lookups.add("name9", is_for_others=False)
    lookups.add("name9", is_for_others=True)
    assert "name9" in lookups.take()
    assert not lookups.is_for_others("name9")
    assert lookups.is_for_others("name0")
    lookups.add("name9", is_for_others=False)
    lookups.ended("name9")
    assert "name9" not in lookups.take(), "it was being looked up"


def test_a_thousand_names_of_strangers_are_looked_up_a_few_at_a_time() -> None:
    receiver = manager(TWO)
    assert receiver.create("q") == QUEUE
    session = RawSession.connect(receiver, "10.9.9.9", OTHER).establish()
    for number in range(1000):
        admin = rf"OS:stranger{number}\private$\told"
        text = rf"TCP:{TWO}\private$\q"
        packet = packets.message(OTHER.bytes_le, number + 1, text, admin=admin, asked=packets.PA)
        session.say(packet)
    assert len(receiver.exchange.take_lookups()) == OTHERS_LOOKUPS_MAX
    receiver.send(r"DIRECT=OS:honest\private$\q", b"a")
    receiver.turn(0.0)
    assert receiver.exchange.take_lookups() == ["honest"]
