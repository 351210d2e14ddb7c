"""Messages that a receiver rejects: what its operator learns of it, and what the sender keeps."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kit.exchange import Manager, Town
from merq.engine.notices import DEAD_LETTER_NUMBER, DEAD_XACT_NUMBER
from merq.exchange.inbound import REJECTIONS_TOLD_MAX
from merq.exchange.repeats import SOURCES_MAX, TOLD_S, Repeats
from unit.exchange.test_network_share import ORDERED, QUEUE, peer, target

NOWHERE = QUEUE + "nowhere"


def rejections(receiver: Manager) -> list[Mapping[str, object]]:
    """What the receiver has told of rejected messages."""
    return [facts for text, facts in receiver.told_facts if text == "messages were rejected"]


@pytest.mark.spec("MS-MQQB 3.1.5.8.2")
def test_a_plain_message_to_a_transactional_queue_is_gone_and_the_receiver_s_log_says_why() -> None:
    receiver, _, ordered = target()
    sender = peer(1)
    town = Town(sender, receiver)
    sender.send(ORDERED, b"a", b"b", recoverable=True, negative_journaling=True)
    town.wait(1.0)
    assert not receiver.messages(ordered)
    assert not sender.waiting(ORDERED)
    # The sender has done its part: "cannot transfer" is what its dead-letter queue is for.
    assert not sender.messages(DEAD_LETTER_NUMBER)
    assert not receiver.messages(DEAD_LETTER_NUMBER)
    (told,) = rejections(receiver)
    assert told["peer"] == "10.0.0.1"
    assert str(told["queue"]).lower() == ORDERED.lower()
    assert told["count"] == 2
    assert "MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG: a message outside" in str(told["reason"])


@pytest.mark.spec("MS-MQQB 3.1.5.8.2", "MS-MQQB 3.1.5.7")
def test_a_transactional_message_to_a_plain_queue_is_a_dead_letter_of_its_sender() -> None:
    receiver, _, _ = target()
    sender = peer(1)
    town = Town(sender, receiver)
    sender.commit(QUEUE, b"a", negative_journaling=True)
    town.wait(1.0)
    assert [each.body for each in sender.messages(DEAD_XACT_NUMBER)] == [b"a"]
    (told,) = rejections(receiver)
    assert "MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q" in str(told["reason"])


def test_rejected_messages_are_told_of_once_a_minute_for_each_peer_with_their_number() -> None:
    receiver, _, _ = target()
    senders = [peer(1), peer(2)]
    town = Town(*senders, receiver)
    for _ in range(5):
        for each in senders:
            each.send(NOWHERE, b"x")
        town.run()
    assert [(each["peer"], each["count"]) for each in rejections(receiver)] == [
        ("10.0.0.1", 1),
        ("10.0.0.2", 1),
    ]
    town.wait(TOLD_S + 1)
    assert [(each["peer"], each["count"]) for each in rejections(receiver)[2:]] == [
        ("10.0.0.1", 4),
        ("10.0.0.2", 4),
    ], "though nothing came since"


def test_what_is_rejected_is_told_by_queue_and_reason() -> None:
    receiver, _, _ = target()
    sender = peer(1)
    town = Town(sender, receiver)
    other = NOWHERE + "2"
    for name in (NOWHERE, other, other, other):
        sender.send(name, b"x")
        town.run()
    town.wait(TOLD_S + 1)
    told = [(str(each["queue"])[-8:], each["count"]) for each in rejections(receiver)]
    assert told == [(NOWHERE[-8:], 1), (other[-8:], 1), (other[-8:], 2)]


@pytest.mark.limit("merq.exchange.inbound.REJECTIONS_TOLD_MAX")
def test_who_names_ever_new_queues_does_not_fill_the_log() -> None:
    receiver, _, _ = target()
    sender = peer(1)
    town = Town(sender, receiver)
    for number in range(5 * REJECTIONS_TOLD_MAX):
        sender.send(f"{NOWHERE}{number}", b"x")
        town.run()
    assert len(rejections(receiver)) == REJECTIONS_TOLD_MAX + 1
    town.wait(TOLD_S + 1)
    told = rejections(receiver)
    assert len(told) == REJECTIONS_TOLD_MAX + 2
    assert sum(int(str(each["count"])) for each in told) == 5 * REJECTIONS_TOLD_MAX


@pytest.mark.limit("merq.exchange.repeats.SOURCES_MAX")
def test_of_too_many_sources_the_first_is_forgotten_and_told_of_again() -> None:
    repeats = Repeats()
    assert repeats.count("first", 1, 0.0) == 1
    for number in range(SOURCES_MAX - 1):
        assert repeats.count(f"s{number}", 1, 0.0) == 1
    assert repeats.count("first", 1, 1.0) == 0
    assert repeats.count("new", 1, 1.0) == 1
    assert len(repeats) == SOURCES_MAX
    assert repeats.count("first", 1, 2.0) == 1
