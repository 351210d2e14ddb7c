"""Somebody says that it is this queue manager, or that a message was sent by it."""

from __future__ import annotations

from struct import unpack_from

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Town
from kit.raw_sessions import RawSession
from merq.engine.notices import DEAD_LETTER_NUMBER, JOURNAL_NUMBER
from merq.exchange import Peer
from unit.exchange.exchange_world import GUIDS, ONE, QUEUE, THREE, TWO, changed, manager
from unit.exchange.letter_messages import OTHER

OURS = GUIDS[TWO]
TO_QUEUE = rf"TCP:{TWO}\private$\q"


@pytest.mark.spec("MS-MQQB 3.1.5.3.1", "MS-MQQB 3.1.5.3.1#CS", "E143")
def test_a_session_under_our_own_identifier_is_refused_with_an_answer() -> None:
    receiver = manager(TWO)
    session = RawSession.connect(receiver, THREE, OURS)
    session.say(packets.establish(OURS.bytes_le))
    (answer,) = session.written
    assert unpack_from("<H", answer, 18)[0] == 0x12, "EstablishConnection, CS = 1"
    assert "says that it is this queue manager" in session.link.closing
    assert session.link.is_lost


@pytest.mark.spec("MS-MQQB 3.1.5.8", "E143")
def test_what_says_that_we_sent_it_is_dropped_and_written_nowhere() -> None:
    town = Town(receiver := manager(TWO))
    assert receiver.create("q") == QUEUE
    session = RawSession.connect(receiver, THREE, OTHER).establish()
    for ordinal in (1, 2, 3):
        session.say(
            packets.message(
                OURS.bytes_le,
                ordinal,
                TO_QUEUE if ordinal < 3 else r"TCP:10.0.0.2\private$\nowhere",
                journal=True,
                dead_letter=True,
                admin=r"OS:.\private$\q",
                asked=packets.PA | packets.NA,
                recoverable=True,
                time_to_reach=0 if ordinal == 2 else packets.FOREVER,
            )
        )
    town.run()
    for number in (QUEUE, JOURNAL_NUMBER, DEAD_LETTER_NUMBER):
        assert receiver.bodies(number) == []
    assert receiver.host.engine.outgoing_queues() == []
    assert receiver.host.engine.arrivals.impostors == 3
    assert "messages under our own identifier were dropped" in receiver.told
    session.say(packets.message(OTHER.bytes_le, 9, TO_QUEUE, body=b"honest"))
    assert receiver.bodies(QUEUE) == [b"honest"], "the session goes on"


def test_a_message_that_routes_lead_back_to_its_sender_does_not_go_round_and_round() -> None:
    # Each believes that the way to three is by the other.
    three = Peer(name="three", guid=GUIDS[THREE], via="next")
    routers = [
        manager(
            here,
            changed(forwards=True),
            peers=(three, Peer(name="next", guid=GUIDS[there], host=there)),
        )
        for here, there in ((ONE, TWO), (TWO, ONE))
    ]
    town = Town(*routers)
    routers[0].send(f"PRIVATE={GUIDS[THREE]}\\00000010", b"a", recoverable=True)
    town.wait(30.0, step=1.0)
    assert routers[0].host.engine.arrivals.impostors == 1
    assert "messages under our own identifier were dropped" in routers[0].told
    routers[0].commit(f"PRIVATE={GUIDS[THREE]}\\00000010", b"b")
    town.wait(30.0, step=1.0)
    waiting = routers[0].waiting(f"PRIVATE={GUIDS[THREE]}\\00000010")
    assert waiting == [b"b"], "what is transactional stays with its sender"


def test_forwarding_does_not_lead_to_any_address_that_a_message_names() -> None:
    router = manager(TWO, changed(forwards=True))
    town = Town(router)
    session = RawSession.connect(router, THREE, OTHER).establish()
    session.say(
        packets.message(OTHER.bytes_le, 1, r"TCP:10.7.7.7\private$\q", address=GUIDS[ONE].bytes_le)
    )
    town.run()
    assert town.dialled == []
    assert router.host.engine.outgoing_queues() == []


def test_what_a_router_has_to_tell_goes_to_known_places_only() -> None:
    peer = Peer(name="one", guid=GUIDS[ONE], host=ONE)
    router = manager(TWO, changed(forwards=True), peers=(peer,))
    town = Town(router)
    town.down.add(ONE)
    session = RawSession.connect(router, THREE, OTHER).establish()
    session.say(
        packets.message(
            OTHER.bytes_le,
            1,
            0x10,
            address=GUIDS[ONE].bytes_le,
            admin=r"TCP:10.7.7.7\private$\told",
            asked=packets.NA,
            time_to_reach=10,
            sent_time=1_000_000_000,
        )
    )
    town.wait(60.0, step=1.0)
    assert set(town.dialled) <= {ONE}
