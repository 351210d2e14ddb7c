"""A peer whose messages find no room: its acknowledgments are read, and only its messages wait."""

from __future__ import annotations

from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Manager, Town
from kit.raw_sessions import RawSession
from merq.engine.limits import Limits
from merq.exchange.inbound import THROTTLED_BYTES_MAX
from merq.wire.view import MessageView

HERE, THERE = "10.0.0.9", "10.0.0.1"
PEER = UUID(int=1)
TO_QUEUE = rf"TCP:{HERE}\private$\q"
OUT = rf"DIRECT=TCP:{THERE}\private$\orders"
BODY = bytes(1000)
SMALL = Limits(disk_reserve_bytes=0, machine_quota=100, network_quota_percent=50)


class Filled:
    """A queue manager that takes no more of a peer, which has two sessions with it."""

    def __init__(self, *, dialled: bool = False) -> None:
        self.here = Manager(name="here", address=HERE, guid=UUID(int=9), limits=SMALL)
        self.town = Town(self.here)
        self.queue = self.here.create("q")
        self.ordinal = 0
        if dialled:
            self.here.commit(OUT, b"ours")
            self.other = RawSession.accept(self.here, PEER)
        else:
            self.other = self.connect()
            admin = rf"TCP:{THERE}\private$\told"
            self.other.say(self.message(b"", admin=admin, asked=packets.PA), self.now)
            self.other.messages()
        filler = self.connect()
        while not filler.link.closing:
            filler.say(self.message(), self.now)
        assert self.here.exchange.throttled == (THERE,)
        self.taken = len(self.here.messages(self.queue))

    @property
    def now(self) -> float:
        return self.town.now

    def connect(self) -> RawSession:
        return RawSession.connect(self.here, THERE, PEER, self.now).establish(self.now)

    def message(self, body: bytes = BODY, **what: object) -> bytes:
        self.ordinal += 1
        fields: dict[str, object] = {"recoverable": True, "body": body, **what}
        return packets.message(PEER.bytes_le, self.ordinal, TO_QUEUE, **fields)  # type: ignore[arg-type]

    def make_room(self) -> None:
        while self.here.messages(self.queue):
            self.here.receive(self.queue)
        self.here.turn(self.now)


def order_ack_of(session: RawSession) -> bytes:
    (packet,) = session.messages()
    view = MessageView(packet)
    place = view.tx_sequence_id, view.tx_sequence_number
    return packets.order_ack(PEER.bytes_le, 900, *place, f"TCP:{HERE}")


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.5.6", "E150")
def test_acknowledgments_are_taken_before_and_behind_messages_that_wait(*, is_behind: bool) -> None:
    world = Filled(dialled=True)
    session, here = world.other, world.here
    ack = order_ack_of(session)
    assert here.waiting(OUT) == [b"ours"]
    if is_behind:
        session.say(world.message(), world.now)
        assert not session.link.closing, "it waits, and nobody is cut off for it"
    session.say(ack, world.now)
    assert here.waiting(OUT) == []
    assert len(here.messages(world.queue)) == world.taken


@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "MS-MQQB 3.1.5.5", "E150")
def test_a_session_that_others_made_is_read_too_and_so_are_its_session_acknowledgments() -> None:
    world = Filled()
    session, here = world.other, world.here
    (queue,) = here.host.engine.outgoing_queues()
    assert queue.positions.count == 1, "what it asked for was sent, and is not acknowledged"
    assert not here.exchange.is_paused(session.link)
    session.say(packets.session_ack(1, 1, recoverable=1), world.now)
    assert queue.positions.count == 0


@pytest.mark.limit("merq.exchange.inbound.THROTTLED_BYTES_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.8", "E150")
def test_only_so_much_waits_in_a_session_and_then_it_is_not_read() -> None:
    world = Filled()
    session, here = world.other, world.here
    count = 0
    while not here.exchange.is_paused(session.link):
        session.say(world.message(), world.now)
        count += 1
        assert count < 200
    assert len(BODY) * count <= THROTTLED_BYTES_MAX
    assert len(here.messages(world.queue)) == world.taken
    assert here.exchange.held_bytes < 2 * THROTTLED_BYTES_MAX
    greeting = here.exchange.accepted(THERE, world.now)
    assert greeting is not None
    assert not here.exchange.is_paused(greeting), "it may bring acknowledgments"


@pytest.mark.spec("MS-MQQB 3.1.5.8.7", "E150")
def test_when_there_is_room_everything_comes_in_order_and_once() -> None:
    world = Filled()
    session, here = world.other, world.here
    bodies = [b"%d" % number for number in range(10)]
    for body in bodies:
        session.say(world.message(body), world.now)
    assert len(here.messages(world.queue)) == world.taken
    session.say(packets.order_ack(PEER.bytes_le, 900, 1, 1, f"TCP:{HERE}"), world.now)
    session.say(world.message(b"last"), world.now)
    world.make_room()
    assert here.exchange.throttled == ()
    assert here.bodies(world.queue) == [*bodies, b"last"]
    world.town.wait(1.0)
    session.settle(world.now)
    acks = [each for each in session.written if each[2] & 8]
    assert int.from_bytes(acks[-1][20:22], "little") == 13, "each counts, the acknowledgment too"


def test_what_waits_in_a_session_that_is_lost_is_forgotten() -> None:
    world = Filled()
    session, here = world.other, world.here
    session.say(world.message(), world.now)
    session.hang_up(world.now)
    world.make_room()
    assert here.bodies(world.queue) == []
    assert here.exchange.held_bytes == 0
    assert not here.exchange.inbound.has_more
