"""Merq and a strict peer in the simulated network, in calm weather."""

from __future__ import annotations

import pytest

from merq.engine.notices import DEAD_XACT_NUMBER
from merq.exchange import ExchangeSettings
from merq.model.names import parse_direct_name
from merq.model.queue import QueueSettings
from merq.model.selecting import First
from merq.testing.managers import SimulatedMachine, SimulatedManagers
from merq.testing.strict_machine import SimulatedStrictPeer
from merq.testing.strict_peer import Readings, UserMessage, direct
from merq.testing.strict_peer.packets import NOBODY
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

SAFE, PLAIN = r"private$\t", r"private$\p"


class Pair:
    """A Merq and a strict peer that have a queue of each kind."""

    def __init__(self, settings: ExchangeSettings | None = None, **readings: object) -> None:
        self.net = SimulatedManagers(seed=1)
        self.merq: SimulatedMachine = self.net.add("merq", settings=settings)
        self.peer = SimulatedStrictPeer(
            self.net,
            "strict",
            ("10.0.9.1",),
            Readings(**readings),  # type: ignore[arg-type]
        )
        for at, (path, transactional) in enumerate(((SAFE, True), (PLAIN, False))):
            queue_settings = QueueSettings(transactional=transactional)
            identifier = self.net.new_guid()
            self.merq.ask(
                lambda request, path=path, settings=queue_settings, identifier=identifier: (  # type: ignore[misc]
                    self.merq.engine.create_queue(request, f".\\{path}", settings, identifier)
                )
            )
            self.peer.do(
                lambda peer, path=path, at=at, transactional=transactional: (  # type: ignore[misc]
                    peer.create_queue(path, 20 + at, transactional=transactional)
                )
            )
        self.net.rest()

    def send(self, body: bytes, path: str = SAFE, **outline: object) -> None:
        """Merq sends a message; in a transaction of its own to the transactional queue."""
        engine = self.merq.engine
        name = rf"TCP:10.0.9.1\{path}"
        packet = build_packet(Outline(destination=name, body=body, **outline))  # type: ignore[arg-type]
        copies = [(parse_direct_name(name), packet)]
        transaction = engine.transactions.begin() if path == SAFE else 0
        self.merq.ask(lambda request: engine.send_to(request, copies, transaction))
        self.net.rest()
        if transaction:
            self.merq.ask(lambda request: engine.transactions.commit(request, transaction))
        self.net.rest()

    def came(self, path: str = SAFE) -> list[bytes]:
        """What the strict peer's application receives."""
        found: list[bytes] = []
        while (message := self.peer.do(lambda peer: peer.receive(path, self.net.now))) is not None:
            found.append(message.body)
        return found

    @property
    def waiting(self) -> int:
        """Messages in Merq's outgoing queues."""
        return sum(each.positions.count for each in self.merq.engine.outgoing_queues())

    @property
    def dead(self) -> list[bytes]:
        """What lies among Merq's transactional dead letters."""
        state = self.merq.engine.state
        places = state.queues[DEAD_XACT_NUMBER].positions
        return [MessageView(state.stored(each)[1]).body for each in places]

    def bodies(self, path: str) -> list[bytes]:
        """What lies in a queue of Merq."""
        engine = self.merq.engine
        queue = engine.find_queue(f".\\{path}")
        return [MessageView(engine.state.stored(each)[1]).body for each in queue.positions]


@pytest.mark.spec("MS-MQQB 3.1.1.7.3", "MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7")
def test_messages_go_both_ways_and_neither_side_complains() -> None:
    pair = Pair()
    for at in range(3):
        pair.send(b"%d" % at, positive_journaling=True)
        pair.send(b"%d" % at, PLAIN)
    messages = [
        UserMessage(
            source=NOBODY, destination=direct(rf"TCP:10.0.0.1\{SAFE}"), body=b"back", journal=True
        )
    ]
    pair.peer.do(lambda peer: peer.commit(messages, pair.net.now))
    pair.net.run(60.0)
    assert (pair.came(), pair.came(PLAIN)) == ([b"0", b"1", b"2"], [b"0", b"1", b"2"])
    assert pair.bodies(SAFE) == [b"back"]
    engine = pair.merq.engine
    number = engine.find_queue(f".\\{SAFE}").number
    pair.merq.ask(lambda request: engine.receive(request, number, First(), wait=False))
    pair.net.run(60.0)
    assert not pair.waiting
    assert all(queue.is_empty for queue in pair.peer.peer.outgoing.queues.values())
    assert not pair.peer.complaints


@pytest.mark.spec("MS-MQQB 3.1.5.8.1", "MS-MQMQ 2.2.18.1.3", "E100")
def test_copies_for_two_queues_of_one_computer_both_arrive() -> None:
    pair = Pair()
    pair.peer.do(lambda peer: peer.create_queue(r"private$\q", 30))
    names = [rf"TCP:10.0.9.1\{path}" for path in (PLAIN, r"private$\q")]
    copies = [
        (parse_direct_name(name), build_packet(Outline(destination=name, recoverable=True)))
        for name in names
    ]
    pair.merq.ask(lambda request: pair.merq.engine.send_to(request, copies))
    pair.net.run(10.0)
    assert (len(pair.came(PLAIN)), len(pair.came(r"private$\q"))) == (1, 1)


@pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.7.1.3", "MS-MQMQ 2.2.19.1")
@pytest.mark.spec("E101")
def test_what_a_receiver_ignores_as_late_does_not_block_what_is_behind_it() -> None:
    """It says with every OrderAck that it stands before the late one, which is then given up."""
    pair = Pair(expires_first=True)
    pair.send(b"in time")
    pair.net.run(5.0)
    pair.peer.offset_s = 100.0
    pair.send(b"late", time_to_reach_queue=30, negative_journaling=True)
    pair.send(b"behind it")
    pair.net.run(25.0)
    assert pair.came() == [b"in time"]
    assert pair.waiting == 2, "it is not over here yet, and may have arrived"
    pair.net.run(120.0)
    assert pair.came() == [b"behind it"]
    assert not pair.waiting
    assert pair.dead == [b"late"]
    assert pair.came() == []


@pytest.mark.spec("MS-MQQB 3.1.5.8", "MS-MQQB 3.1.7.1.2", "MS-MQQB 3.1.6.5")
@pytest.mark.spec("E65")
def test_what_a_receiver_ignores_as_late_is_given_up_in_the_end() -> None:
    """It is under way all the time, for it is sent again and again and nobody says a word."""
    pair = Pair(ExchangeSettings(resend_s=(2, 2, 4, 8), in_doubt_s=100), expires_first=True)
    pair.peer.offset_s = 100.0
    pair.send(b"late", time_to_reach_queue=30, negative_journaling=True)
    pair.net.run(120.0)
    assert pair.waiting == 1, "it may have arrived"
    pair.net.run(120.0)
    assert not pair.waiting
    assert pair.dead == [b"late"]
