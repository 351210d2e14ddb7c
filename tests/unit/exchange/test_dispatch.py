"""Which message goes next through a session that several outgoing queues share."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.exchange import Manager, Town
from merq.exchange import Peer
from merq.model.queue import OutgoingState
from merq.protocol.binary.settings import SessionSettings
from unit.exchange.exchange_world import (
    GUIDS,
    ONE,
    ORDERED,
    PLAIN,
    QUEUE,
    TWO,
    TX,
    changed,
    manager,
    pair,
)

OTHER = r"DIRECT=TCP:10.0.0.2\private$\other"
_ORDER_BITS = (1 << 56) - 1


def shared(window: int = 1000) -> tuple[Town, Manager, Manager, int]:
    """A pair whose receiver has a third queue, and whose line is down."""
    town, sender, receiver = pair(
        changed(session=SessionSettings(window=window, merq_window=window))
    )
    other = receiver.create("other")
    town.down.add(TWO)
    return town, sender, receiver, other


def reconnect(town: Town) -> None:
    town.run()
    town.down.clear()
    town.wait(5.1)


def arrived(receiver: Manager, *numbers: int) -> list[bytes]:
    """Bodies in the order of their arrival: the low bytes of lookup identifiers count it."""
    state = receiver.host.engine.state
    rows = [
        (row.lookup_id & _ORDER_BITS, view.body)
        for number in numbers
        for row, view in zip(state.queues[number].positions, receiver.messages(number), strict=True)
    ]
    return [body for _, body in sorted(rows)]


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.9", "MS-MQDMPR 3.1.7.1.28", "MS-MQDMPR 3.1.1.18")
def test_of_two_queues_the_one_with_the_more_urgent_message_sends_first() -> None:
    town, sender, receiver, other = shared()
    sender.send(PLAIN, *[b"x"] * 100)
    sender.send(OTHER, b"urgent", priority=5)
    reconnect(town)
    assert arrived(receiver, QUEUE, other) == [b"urgent", *[b"x"] * 100]


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.9")
def test_messages_of_several_queues_leave_by_their_priorities_whatever_queue_they_are_in() -> None:
    town, sender, receiver, other = shared()
    for priority in (0, 3, 6, 7):
        sender.send(PLAIN, b"%d" % priority, priority=priority)
    for priority in (1, 4, 5):
        sender.send(OTHER, b"%d" % priority, priority=priority)
    reconnect(town)
    assert arrived(receiver, QUEUE, other) == [b"7", b"6", b"5", b"4", b"3", b"1", b"0"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.9", "MS-MQDMPR 3.1.7.1.29")
def test_an_urgent_message_goes_before_what_waits_for_the_window_in_another_queue() -> None:
    town, sender, receiver, other = shared(window=10)
    reconnect(town)
    sender.send(PLAIN, b"first")
    town.run()
    receiver.host.engine.state.low_on_disk = True
    sender.send(PLAIN, *[b"x"] * 50)
    town.run()
    sender.send(OTHER, b"urgent", priority=4)
    town.run()
    receiver.host.engine.state.low_on_disk = False
    town.wait(30.0, step=0.5)
    order = arrived(receiver, QUEUE, other)
    assert len(order) == 52
    assert order.index(b"urgent") <= 11, "only what was under way is before it"


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.9")
def test_a_queue_that_gets_an_urgent_message_while_it_waits_is_ranked_by_it() -> None:
    town, sender, receiver, other = shared(window=10)
    reconnect(town)
    sender.send(PLAIN, b"first")
    town.run()
    receiver.host.engine.state.low_on_disk = True
    sender.send(PLAIN, *[b"x"] * 50, priority=4)
    sender.send(OTHER, *[b"y"] * 5)
    town.run()
    sender.send(OTHER, b"urgent", priority=7)
    town.run()
    receiver.host.engine.state.low_on_disk = False
    town.wait(30.0, step=0.5)
    order = arrived(receiver, QUEUE, other)
    assert order.index(b"urgent") <= 11
    assert order[-5:] == [b"y"] * 5, "its other messages wait for what is above them"


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.9", "MS-MQDMPR 3.1.7.1.28")
@pytest.mark.spec("E95")
def test_queues_of_one_priority_take_turns_while_a_lower_one_waits() -> None:
    town, sender, receiver, other = shared()
    third = receiver.create("third")
    sender.send(r"DIRECT=TCP:10.0.0.2\private$\third", *[b"z"] * 10, priority=1)
    sender.send(PLAIN, *[b"x"] * 200)
    sender.send(OTHER, *[b"y"] * 200)
    reconnect(town)
    order = arrived(receiver, QUEUE, other, third)
    assert order[-10:] == [b"z"] * 10
    assert set(order[:128]) == {b"x", b"y"}, "a turn is 64 messages"
    assert order[:64] == [order[0]] * 64


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.9", "MS-MQDMPR 3.1.7.1.32")
def test_transactional_messages_have_the_lowest_priority() -> None:
    town, sender, receiver, _ = shared()
    sender.commit(ORDERED, b"tx")
    sender.send(PLAIN, b"low", priority=1)
    sender.send(PLAIN, b"high", priority=7)
    reconnect(town)
    assert arrived(receiver, QUEUE, TX) == [b"high", b"low", b"tx"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.34", "MS-MQDMPR 3.1.7.3.9")
def test_a_queue_on_hold_with_urgent_messages_keeps_nobody_waiting() -> None:
    town, sender, receiver, other = shared()
    sender.send(PLAIN, *[b"x"] * 3)
    sender.send(OTHER, b"urgent", priority=7)
    town.run()
    sender.host.engine.pause(sender.outgoing(OTHER).number)
    reconnect(town)
    assert arrived(receiver, QUEUE, other) == [b"x"] * 3
    assert sender.outgoing(OTHER).state is OutgoingState.ON_HOLD
    sender.host.engine.resume(sender.outgoing(OTHER).number)
    town.run()
    assert receiver.bodies(other) == [b"urgent"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.34")
def test_a_queue_that_was_emptied_while_it_waited_keeps_nobody_waiting() -> None:
    town, sender, receiver, _ = shared(window=10)
    reconnect(town)
    sender.send(PLAIN, b"first")
    town.run()
    receiver.host.engine.state.low_on_disk = True
    sender.send(PLAIN, *[b"x"] * 20)
    sender.send(OTHER, *[b"urgent"] * 5, priority=7)
    town.run()
    waiting = sender.outgoing(OTHER)
    sender.host.engine.purge(sender.request(), waiting.number)
    town.run()
    receiver.host.engine.state.low_on_disk = False
    town.wait(30.0, step=0.5)
    assert receiver.bodies(QUEUE) == [b"first", *[b"x"] * 20]
    assert sender.waiting(PLAIN) == []


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.9", "MS-MQQB 3.1.5.9")
def test_messages_that_only_wait_for_their_final_acknowledgment_keep_nobody_waiting() -> None:
    town, sender, receiver, other = shared()
    sender.commit(ORDERED, b"read later", positive_journaling=True)
    reconnect(town)
    town.wait(2.0)
    assert sender.waiting(ORDERED) == [b"read later"], "its FinalAck has not come"
    town.cut()
    town.wait(10.0, step=0.5)
    sender.commit(ORDERED, b"next")
    sender.send(OTHER, b"other", priority=0)
    town.wait(2.0)
    assert receiver.bodies(TX) == [b"read later", b"next"]
    assert receiver.bodies(other) == [b"other"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.28", "MS-MQMQ 2.3.1.6")
@pytest.mark.spec("E96")
def test_the_base_priority_of_a_public_queue_is_added_to_its_messages_priorities() -> None:
    receiver = manager(TWO)
    numbers = [receiver.create(name) for name in ("q", "calm", "unused", "busy")]
    state = receiver.host.engine.state
    calm, busy = (state.queues[number].properties.identifier for number in numbers[1::2])
    peer = Peer(
        name="two",
        guid=GUIDS[TWO],
        host=TWO,
        public_queues=(calm, busy),
        base_priorities={busy: 10, calm: -3},
    )
    sender = manager(ONE, peers=(peer,))
    town = Town(sender, receiver)
    town.down.add(TWO)
    sender.send(f"PUBLIC={calm}", b"calm 7 - 3", priority=7)
    sender.send(PLAIN, b"plain 5", priority=5)
    sender.send(PLAIN, b"plain 3", priority=3)
    sender.send(f"PUBLIC={busy}", b"busy 0 + 10", priority=0)
    reconnect(town)
    assert arrived(receiver, *numbers) == [b"busy 0 + 10", b"plain 5", b"calm 7 - 3", b"plain 3"]


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.9", "MS-MQDMPR 3.1.7.1.28")
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7)), max_size=40),
    st.sampled_from([1, 3, 1000]),
)
def test_whatever_waits_leaves_by_priority_and_each_queue_in_order(
    messages: list[tuple[int, int]], window: int
) -> None:
    town, sender, receiver, other = shared(window)
    numbers = (QUEUE, other, receiver.create("third"))
    names = (PLAIN, OTHER, r"DIRECT=TCP:10.0.0.2\private$\third")
    sent = [b"%d %d %02d" % (priority, at, count) for count, (at, priority) in enumerate(messages)]
    for body, (at, priority) in zip(sent, messages, strict=True):
        sender.send(names[at], body, priority=priority)
    reconnect(town)
    town.wait(60.0, step=1.0)
    order = arrived(receiver, *numbers)
    assert [body[:1] for body in order] == sorted((body[:1] for body in sent), reverse=True)
    for start in {body[:4] for body in sent}:
        assert [each for each in order if each.startswith(start)] == [
            each for each in sent if each.startswith(start)
        ]
