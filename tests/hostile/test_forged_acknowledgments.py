"""Acknowledgments that a stranger makes up end no message of ours, whoever it says that it is.

An OrderAck or FinalAck counts only if it names a sequence that was transmitted, through a session
with whom it was transmitted to; and nobody else knows the sequence ([ADR 13]).
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from hostile import stranger_packets as packets
from hostile.strangers import Stranger
from kit.exchange import START, Manager
from kit.raw_sessions import RawSession
from kit.stations import Station
from merq.wire.view import MessageView
from unit.exchange.exchange_world import GUIDS, ONE, ORDERED, THREE, TWO, TX, pair

RECEIVED, BAD_QUEUE = 0x4000, 0x8000
KINDS = ["order", "received", "rejected"]
JOURNAL, DEAD_XACT = 0xFFFF0001, 0xFFFF0003
STRANGER = UUID(int=0x57)
HERE = f"TCP:{ONE}"
BOTH = {"positive_journaling": True, "negative_journaling": True}


def forged(kind: str, view: MessageView, sequence: int, by: UUID, sender: UUID) -> bytes:
    """An acknowledgment of a message of `sender`, made up by somebody."""
    number = view.tx_sequence_number
    if kind == "order":
        return packets.order_ack(by.bytes_le, 901, sequence, number, HERE)
    return packets.final_ack(
        by.bytes_le,
        902,
        sequence,
        number,
        HERE,
        of=sender.bytes_le,
        of_ordinal=view.message_ordinal,
        message_class=RECEIVED if kind == "received" else BAD_QUEUE,
    )


def waiting(sender: Manager) -> list[MessageView]:
    return sender.messages(sender.outgoing(ORDERED).number)


def is_unharmed(sender: Manager, *bodies: bytes) -> bool:
    """Whether all is as if nobody had said anything."""
    transfer = sender.transfer(ORDERED)
    kept = sender.bodies(JOURNAL) + sender.bodies(DEAD_XACT)
    return sender.waiting(ORDERED) == list(bodies) and not kept and not transfer.awaiting_final


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("address", [THREE, TWO], ids=["elsewhere", "the same address"])
@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7", "E80")
def test_from_another_session_they_end_nothing(
    kind: str, address: str, *, is_restarted: bool
) -> None:
    town, sender, receiver = pair()
    sender.commit(ORDERED, b"a", **BOTH)
    town.wait(0.3)
    assert receiver.bodies(TX) == [b"a"]
    (view,) = waiting(sender)
    if is_restarted:
        town.restart(sender)
    stranger = RawSession.connect(sender, address, STRANGER, town.now).establish(town.now)
    packet = forged(kind, view, view.tx_sequence_id, GUIDS[TWO], GUIDS[ONE])
    stranger.say(packet, town.now)
    assert is_unharmed(sender, b"a")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.1.5", "E80")
def test_with_the_right_guid_claimed_they_would_have_to_guess_the_sequence(
    kind: str, *, is_restarted: bool
) -> None:
    town, sender, _ = pair()
    sender.host.engine.state.secret = b"chance" * 5
    sender.commit(ORDERED, b"a", **BOTH)
    town.wait(0.3)
    (view,) = waiting(sender)
    if is_restarted:
        town.restart(sender)
    liar = RawSession.connect(sender, THREE, GUIDS[TWO], town.now).establish(town.now)
    right = view.tx_sequence_id
    guesses = [START << 32 | low for low in range(200)]
    guesses += [right ^ 1 << bit for bit in range(64)]
    guesses += [0, 2**64 - 1]
    for guess in guesses:
        assert guess != right
        liar.say(forged(kind, view, guess, GUIDS[TWO], GUIDS[ONE]), town.now)
    assert is_unharmed(sender, b"a")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("knows", ["the sequence", "another sequence"])
@pytest.mark.spec("MS-MQQB 3.1.5.6", "MS-MQQB 3.1.5.7", "E138")
@pytest.mark.spec("MS-MQQB 3.1.5.7#own-session")
def test_what_was_never_transmitted_is_not_ended(kind: str, knows: str) -> None:
    town, sender, _ = pair()
    sender.commit(ORDERED, b"first", **BOTH)
    town.wait(5.0)
    first = waiting(sender)[0]
    town.down.add(TWO)
    town.cut()
    sender.commit(ORDERED, b"a", **BOTH)
    town.run()
    view = waiting(sender)[-1]
    assert view.body == b"a"
    sequence = view.tx_sequence_id if knows == "the sequence" else first.tx_sequence_id
    liar = RawSession.connect(sender, TWO, GUIDS[TWO], town.now)
    sender.exchange.outbound.line(sender.outgoing(ORDERED)).retry_at = town.now + 1e6
    sender.host.engine.pause(sender.outgoing(ORDERED).number)
    liar.establish(town.now)
    liar.say(forged(kind, view, sequence, GUIDS[TWO], GUIDS[ONE]), town.now)
    assert b"a" in sender.waiting(ORDERED)
    assert sender.bodies(JOURNAL) == sender.bodies(DEAD_XACT) == []


@pytest.mark.parametrize("kind", ["received", "rejected"])
@pytest.mark.spec("MS-MQQB 3.1.5.7", "MS-MQQB 3.1.5.7#MessageID", "E138")
def test_what_is_not_transactional_is_not_ended_by_a_final_ack(kind: str) -> None:
    town, sender, _ = pair()
    sender.commit(ORDERED, b"a", **BOTH)
    town.wait(0.3)
    (view,) = waiting(sender)
    town.down.add(TWO)
    town.cut()
    sender.send(ORDERED, b"plain", recoverable=True)
    town.run()
    plain = next(each for each in waiting(sender) if each.body == b"plain")
    liar = RawSession.connect(sender, THREE, GUIDS[TWO], town.now).establish(town.now)
    packet = packets.final_ack(
        GUIDS[TWO].bytes_le,
        903,
        view.tx_sequence_id,
        1,
        HERE,
        of=GUIDS[ONE].bytes_le,
        of_ordinal=plain.message_ordinal,
        message_class=RECEIVED if kind == "received" else BAD_QUEUE,
    )
    liar.say(packet, town.now)
    assert b"plain" in sender.waiting(ORDERED)


@pytest.mark.spec("MS-MQQB 3.1.5.7")
def test_a_final_ack_of_the_receiver_counts_right_after_a_restart() -> None:
    town, sender, _receiver = pair()
    sender.commit(ORDERED, b"a", **BOTH)
    town.wait(0.3)
    (view,) = waiting(sender)
    town.down.add(TWO)
    town.restart(sender)
    other = RawSession.connect(sender, TWO, GUIDS[TWO], town.now).establish(town.now)
    other.say(forged("received", view, view.tx_sequence_id, GUIDS[TWO], GUIDS[ONE]), town.now)
    assert sender.bodies(JOURNAL) == [b"a"], "it is sent once"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.spec("MS-MQQB 3.1.5.6")
def test_they_are_told_to_people_and_end_no_session(kind: str) -> None:
    town, sender, _ = pair()
    sender.commit(ORDERED, b"a", **BOTH)
    town.wait(0.3)
    (view,) = waiting(sender)
    stranger = RawSession.connect(sender, THREE, STRANGER, town.now).establish(town.now)
    sender.exchange.take_told()
    stranger.say(forged(kind, view, view.tx_sequence_id, GUIDS[TWO], GUIDS[ONE]), town.now)
    told = dict(sender.exchange.take_told())
    assert told["acknowledgments were ignored"]["peer"] == THREE
    assert stranger.link.is_open


def test_over_sockets_a_stranger_ends_nothing(tmp_path: Path) -> None:
    with Station(tmp_path / "branch") as branch, branch.connect() as owner:
        address, guid = "127.32.2.9", UUID(int=0x7EC)
        name = rf"DIRECT=TCP:{address}\private$\bookings"
        with owner.transaction() as tx:
            owner.send(name, b"a", tx=tx, journal=True)
        with Stranger(branch.address, "127.32.2.10", guid=guid) as liar:
            liar.open()
            for kind in (RECEIVED, BAD_QUEUE):
                liar.say(
                    packets.final_ack(
                        guid.bytes_le,
                        5,
                        1 << 33,
                        1,
                        f"TCP:{branch.address}",
                        of=liar.theirs.bytes_le,
                        of_ordinal=1,
                        message_class=kind,
                    )
                )
            liar.hear_acknowledged(2)
        (queue,) = owner.outgoing_queues()
        assert queue.report.messages == 1
