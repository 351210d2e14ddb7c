"""A sender's GUID is no secret. Who claims it does not end, move or starve the sender's sequence.

Packets by hand, in the name of a sender that is there, before it, beside it and after it; and the
honest senders that look like that: those that move, were restored, or have a wrong clock.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from acceptance.service_process import wait_until
from hostile import stranger_packets as packets
from hostile.strangers import Stranger
from kit.exchange import START, Manager, Town
from kit.raw_sessions import RawSession
from kit.stations import Station
from merq.engine.incoming import FUTURE_S, PEERS_PER_SENDER_MAX
from merq.exchange.inbound import DROPPED_TOLD_S
from unit.exchange.exchange_world import GUIDS, ONE, ORDERED, THREE, TWO, TX, changed, manager, pair

MAX_64, MAX_32 = 2**64 - 1, 2**32 - 1
YEAR_S = 366 * 24 * 3600
NAME = ORDERED.removeprefix("DIRECT=")


def in_sequence(
    guid: UUID, sequence: int, number: int, body: bytes, *, previous: int = 0, ordinal: int = 77
) -> bytes:
    """A message in somebody's name, at a place of a sequence."""
    place = packets.Transaction(sequence, number, previous)
    return packets.message(guid.bytes_le, ordinal, NAME, body=body, transaction=place)


def lie(receiver: Manager, sequence: int, *, address: str = THREE, now: float = 0.0) -> RawSession:
    """Somebody elsewhere says that it is the sender, and sends one message in its name."""
    liar = RawSession.connect(receiver, address, GUIDS[ONE], now).establish(now)
    liar.say(in_sequence(GUIDS[ONE], sequence, MAX_32, b"lie"), now)
    return liar


def honest(receiver: Manager) -> list[bytes]:
    return [each for each in receiver.bodies(TX) if each != b"lie"]


# Lies.

LIES = {
    "the last identifier": MAX_64,
    "ten years to come": START + 10 * YEAR_S << 32 | MAX_32,
    "tomorrow": START + FUTURE_S << 32 | MAX_32,
    "now": START << 32 | MAX_32,
}


@pytest.mark.parametrize("sequence", LIES.values(), ids=LIES)
@pytest.mark.parametrize("is_first", [False, True], ids=["sender first", "liar first"])
@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.5.8.6#new-sequence", "E136")
def test_one_message_in_a_senders_name_does_not_starve_it(sequence: int, *, is_first: bool) -> None:
    town, sender, receiver = pair()
    sent = []
    if not is_first:
        sender.commit(ORDERED, b"before")
        sent = [b"before"]
        town.wait(3.0)
    lie(receiver, sequence, now=town.now)
    # The liar stands still; the sender's own clock is a second on.
    town.wait(1.0)
    sender.commit(ORDERED, b"a", b"b")
    town.wait(3.0)
    sender.commit(ORDERED, b"c")
    town.wait(3.0)
    assert sender.waiting(ORDERED) == [], "it is acknowledged"
    assert honest(receiver) == [*sent, b"a", b"b", b"c"]


@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.1.3.1", "E136")
def test_nor_after_a_restart(*, is_checkpointed: bool) -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"before")
    town.wait(3.0)
    lie(receiver, START + 5 << 32, now=town.now)
    if is_checkpointed:
        writing, _ = receiver.host.begin_checkpoint()
        assert writing is not None
        writing.run()
        receiver.host.end_checkpoint(writing)
    town.restart(receiver)
    sender.commit(ORDERED, b"after")
    town.wait(10.0)
    assert honest(receiver) == [b"before", b"after"]
    assert sender.waiting(ORDERED) == []


@pytest.mark.spec("E136")
def test_what_is_from_the_future_is_refused_where_another_peer_is_known() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"before")
    town.wait(3.0)
    lie(receiver, START + FUTURE_S + 60 << 32, now=town.now)
    assert receiver.bodies(TX) == [b"before"]
    lie(receiver, START + FUTURE_S << 32, address="10.0.0.4", now=town.now)
    assert receiver.bodies(TX) == [b"before", b"lie"]


@pytest.mark.limit("merq.engine.incoming.PEERS_PER_SENDER_MAX")
@pytest.mark.spec("E136")
def test_liars_from_ever_new_addresses_drive_nobody_out() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"before")
    town.wait(3.0)
    for number in range(3 * PEERS_PER_SENDER_MAX):
        lie(receiver, START + number << 32, address=f"10.7.7.{number}", now=town.now)
    assert len(receiver.host.engine.state.sequences) == PEERS_PER_SENDER_MAX
    sender.commit(ORDERED, b"after")
    town.wait(3.0)
    assert honest(receiver) == [b"before", b"after"]


@pytest.mark.spec("MS-MQDMPR 3.1.1.5", "E136")
def test_what_is_dropped_is_counted_and_told_but_not_line_by_line() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"before")
    town.wait(3.0)
    liar = RawSession.connect(receiver, THREE, GUIDS[ONE], town.now).establish(town.now)
    receiver.exchange.take_told()
    for number in range(20):
        liar.say(in_sequence(GUIDS[ONE], 7, 1, b"old", ordinal=number), town.now)
    told = [facts for text, facts in receiver.exchange.take_told() if "dropped" in text]
    assert [(each["peer"], each["sender"], each["count"]) for each in told] == [
        (THREE, GUIDS[ONE], 1)
    ]
    assert "merq queue forget-senders" in str(told[0]["reason"])
    (known,) = receiver.host.engine.state.sequences.all()
    assert known.dropped == 20
    town.wait(DROPPED_TOLD_S + 1, step=10.0)
    liar.say(in_sequence(GUIDS[ONE], 7, 1, b"old", ordinal=99), town.now)
    told = [facts for text, facts in receiver.exchange.take_told() if "dropped" in text]
    assert [each["count"] for each in told] == [20]


# Honest senders that look like liars.


def moved(town: Town, sender: Manager, address: str) -> None:
    """A computer comes back with another address."""
    town.cut()
    del town.managers[sender.address]
    sender.address = address
    town.managers[address] = sender


@pytest.mark.parametrize("is_acknowledged", [False, True])
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_a_laptop_that_comes_back_with_another_address_goes_on(
    *, is_acknowledged: bool, is_restarted: bool
) -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a", b"b")
    town.wait(3.0 if is_acknowledged else 0.2)
    assert receiver.bodies(TX) == [b"a", b"b"]
    moved(town, sender, "10.0.0.77")
    if is_restarted:
        town.restart(sender)
    sender.commit(ORDERED, b"c")
    town.wait(10.0)
    moved(town, sender, ONE)
    sender.commit(ORDERED, b"d")
    town.wait(10.0)
    assert receiver.bodies(TX) == [b"a", b"b", b"c", b"d"], "once, and in order"
    assert sender.waiting(ORDERED) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_a_peer_behind_a_nat_that_changes_with_every_connection_goes_on() -> None:
    town, sender, receiver = pair()
    for number in range(2 * PEERS_PER_SENDER_MAX):
        sender.commit(ORDERED, b"%d" % number)
        town.wait(0.2)
        moved(town, sender, f"192.0.2.{number + 1}")
        town.wait(8.0)
    assert receiver.bodies(TX) == [b"%d" % number for number in range(2 * PEERS_PER_SENDER_MAX)]
    assert sender.waiting(ORDERED) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E78", "E136")
def test_a_sender_restored_from_a_backup_goes_on_where_its_clock_is_right() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a")
    town.wait(3.0)
    backup = sender.disk.snapshot()
    sender.commit(ORDERED, b"b")
    town.wait(3.0)
    sender.host.close()
    sender.disk = backup
    sender.start(town.now)
    moved(town, sender, "10.0.0.77")
    sender.commit(ORDERED, b"c")
    town.wait(10.0)
    assert receiver.bodies(TX) == [b"a", b"b", b"c"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "E136")
def test_a_sender_restored_with_an_older_clock_waits_until_somebody_resets_its_sequence() -> None:
    # What was restored may have arrived before: only people can know.
    receiver = manager(TWO)
    receiver.create("q")
    receiver.create("tx", transactional=True)
    sender = RawSession.connect(receiver, ONE, GUIDS[ONE]).establish()
    sender.say(in_sequence(GUIDS[ONE], START << 32, 1, b"a"))
    older = START - 7 * 24 * 3600 << 32
    sender.say(in_sequence(GUIDS[ONE], older, 1, b"b", ordinal=78))
    assert receiver.bodies(TX) == [b"a"], "nothing is taken"
    told = dict(receiver.exchange.take_told())
    assert told["transactional messages were dropped"]["sequence"] == f"{older:016x}"
    arrivals, state = receiver.host.engine.arrivals, receiver.host.engine.state
    arrivals.reset(receiver.request(), state.sequences.all())
    receiver.turn(0.0)
    sender.say(in_sequence(GUIDS[ONE], older, 1, b"b", ordinal=78))
    sender.say(in_sequence(GUIDS[ONE], older, 2, b"c", previous=1, ordinal=79))
    assert receiver.bodies(TX) == [b"a", b"b", b"c"]
    sender.say(in_sequence(GUIDS[ONE], START << 32, 1, b"a"))
    assert receiver.bodies(TX) == [b"a", b"b", b"c"], "what was here is known in spite of that"
    Town(receiver).restart(receiver)
    sender = RawSession.connect(receiver, ONE, GUIDS[ONE]).establish()
    sender.say(in_sequence(GUIDS[ONE], older, 2, b"c", previous=0, ordinal=79))
    assert receiver.bodies(TX) == [b"a", b"b", b"c"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQMQ 2.2.18.1.2", "E136")
def test_a_sender_whose_clock_was_ten_years_ahead_once_goes_on() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a")
    town.wait(3.0)
    sender.host.engine.state.last_sequence_id = START + 10 * YEAR_S << 32
    sender.commit(ORDERED, b"b")
    town.wait(3.0)
    town.restart(sender)
    sender.commit(ORDERED, b"c")
    town.wait(8.0)
    assert receiver.bodies(TX) == [b"a", b"b", b"c"]
    assert sender.waiting(ORDERED) == []


@pytest.mark.spec("MS-MQMQ 2.2.18.1.2", "E136")
def test_a_peer_whose_identifiers_are_no_times_is_welcome() -> None:
    for first in (1, 0xFFFFFFFF << 32):
        receiver = manager(TWO)
        receiver.create("q")
        receiver.create("tx", transactional=True)
        sender = RawSession.connect(receiver, ONE, GUIDS[ONE]).establish()
        for number in range(3):
            sender.say(in_sequence(GUIDS[ONE], first + number, 1, b"%d" % number, ordinal=number))
        assert receiver.bodies(TX) == [b"0", b"1", b"2"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.6")
def test_a_sender_whose_disk_was_replaced_has_a_new_identifier_and_begins_anew() -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a")
    town.wait(3.0)
    town.cut()
    fresh = Manager(name="m1", address=ONE, guid=UUID(int=0xAAAA0009))
    town.managers[ONE] = fresh
    fresh.commit(ORDERED, b"b")
    town.wait(8.0)
    assert receiver.bodies(TX) == [b"a", b"b"]
    assert fresh.waiting(ORDERED) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.6")
def test_two_senders_behind_one_address_do_not_touch_each_other() -> None:
    receiver = manager(TWO)
    receiver.create("q")
    receiver.create("tx", transactional=True)
    guids = [UUID(int=0xC1), UUID(int=0xC2)]
    sessions = [RawSession.connect(receiver, ONE, guid).establish() for guid in guids]
    for number in range(1, 4):
        for at, (session, guid) in enumerate(zip(sessions, guids, strict=True)):
            sequence = START + 1000 * at << 32
            body = b"%d.%d" % (at, number)
            session.say(
                in_sequence(guid, sequence, number, body, previous=number - 1, ordinal=number)
            )
    assert sorted(receiver.bodies(TX)) == [b"0.1", b"0.2", b"0.3", b"1.1", b"1.2", b"1.3"]


@pytest.mark.parametrize("changes_router", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.8.6", "MS-MQQB 3.1.7.17", "E136")
def test_a_sender_behind_routers_goes_on_through_either(*, changes_router: bool) -> None:
    routers = [UUID(int=0xD1), UUID(int=0xD2)]
    receiver = manager(TWO)
    receiver.create("q")
    receiver.create("tx", transactional=True)
    sessions = [
        RawSession.connect(receiver, f"10.0.1.{number}", guid).establish()
        for number, guid in enumerate(routers)
    ]
    for number in range(6):
        place = packets.Transaction(START + number // 2 << 32, number % 2 + 1, number % 2)
        packet = packets.message(
            GUIDS[ONE].bytes_le,
            number + 1,
            TX,
            address=GUIDS[TWO].bytes_le,
            body=b"%d" % number,
            transaction=place,
        )
        session = sessions[number % 2 if changes_router else 0]
        session.say(packet)
        session.say(packet)
    assert receiver.bodies(TX) == [b"%d" % number for number in range(6)]
    names = [each.properties.path_name for each in receiver.host.engine.outgoing_queues()]
    assert not any(str(GUIDS[ONE]) in each for each in names)


@pytest.mark.spec("MS-MQQB 3.1.7.17", "E137")
def test_acknowledgments_go_back_through_the_router_that_the_messages_came_through() -> None:
    router = UUID(int=0xD1)
    receiver = manager(TWO, changed(order_ack_s=0.5))
    receiver.create("q")
    receiver.create("tx", transactional=True)
    session = RawSession.connect(receiver, THREE, router).establish()
    place = packets.Transaction(START << 32, 1, 0)
    session.say(
        packets.message(
            GUIDS[ONE].bytes_le, 1, TX, address=GUIDS[TWO].bytes_le, body=b"a", transaction=place
        )
    )
    receiver.exchange.tick(1.0)
    session.settle(1.0)
    (told,) = session.messages()
    assert told[32:48] == GUIDS[ONE].bytes_le, "it says whom it is for"
    assert receiver.exchange.take_dialing() == []


# Over sockets.


def test_a_service_is_not_poisoned_over_a_socket(tmp_path: Path) -> None:
    guid = UUID(int=0x5E11)
    with Station(tmp_path / "office") as office, office.connect() as owner:
        queue = owner.create_queue(r".\private$\bookings", transactional=True)
        name = office.direct("bookings").removeprefix("DIRECT=")

        def message(sequence: int, number: int, body: bytes) -> bytes:
            place = packets.Transaction(sequence, number, number - 1)
            return packets.message(guid.bytes_le, number, name, body=body, transaction=place)

        with Stranger(office.address, "127.32.1.1", guid=guid) as own:
            own.open().say(message(1 << 33, 1, b"a"))
            own.hear_acknowledged(1)
            with Stranger(office.address, "127.32.1.2", guid=guid) as liar:
                liar.open().say(message(MAX_64, 1, b"lie"))
                liar.hear_acknowledged(1)
            own.say(message(1 << 33, 2, b"b"))
            own.hear_acknowledged(2)
        assert [each.body for each in queue.peek_all()] == [b"a", b"b"]
        (told,) = queue.sequences()
        assert (told.sender, told.address, told.dropped) == (guid, "127.32.1.1", 1)
        assert queue.forget_senders(guid) == 1
        assert queue.sequences() == []
        wait_until(lambda: "senders were forgotten" in office.output, "the log tells of it")
    assert "transactional messages were dropped" in office.output
