"""Two sessions against each other, on any schedule: what one sends the other has, and both know."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.sessions import acks, give, handle, joined, message, output
from merq.protocol.binary.session import Session
from merq.protocol.binary.settings import SessionSettings

STEPS = 400


@dataclass
class Side:
    """A session, and what a model of it knows."""

    session: Session[int]
    name: str
    sent: list[int] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)
    batches: deque[list[bytes]] = field(default_factory=deque)
    wire: bytearray = field(default_factory=bytearray)

    def body(self, token: int) -> bytes:
        return f"{self.name}{token}".encode()

    def send(self, now: float, *, recoverable: bool) -> None:
        if self.session.room > 0:
            token = len(self.sent)
            self.sent.append(token)
            packet = message(self.body(token), recoverable=recoverable)
            self.session.send(packet, token, now, is_recoverable=recoverable)

    def note(self) -> None:
        self.acknowledged += self.session.acknowledged
        self.session.acknowledged.clear()
        self.wire += output(self.session)


def carry(source: Side, target: Side, count: int, now: float) -> None:
    """So many bytes are on the other side."""
    data = bytes(source.wire[:count])
    del source.wire[:count]
    target.session.receive_data(data, now)


def look(side: Side) -> None:
    """What has come is taken over, to be taken care of later."""
    views = side.session.take_arrived()
    if views:
        side.batches.append([view.body for view in views])


def take(side: Side, count: int, now: float) -> None:
    """So many of the batches that were taken over are taken care of, in order."""
    for _ in range(min(count, len(side.batches))):
        side.received += side.batches.popleft()
        side.session.handled(now)


def check(side: Side, other: Side) -> None:
    """What must hold at any time."""
    assert not side.session.closing, side.session.closing
    assert other.received == [side.body(token) for token in side.sent[: len(other.received)]]
    assert len(side.acknowledged) == len(set(side.acknowledged))
    assert all(token < len(other.received) for token in side.acknowledged), "it is truly there"
    assert side.session.room >= 0
    assert side.session.waiting == len(side.sent) - len(side.acknowledged)


def settle(first: Side, second: Side, now: float) -> float:
    """Everything arrives, is taken care of and acknowledged."""
    for _ in range(50):
        for side, other in ((first, second), (second, first)):
            side.session.tick(now)
            side.note()
            carry(side, other, len(side.wire), now)
            look(other)
            take(other, len(other.batches), now)
            other.note()
        now += 10.0
    return now


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.spec("MS-MQQB 3.1.1.4", "MS-MQQB 3.1.1.6.1", "MS-MQQB 3.1.5.5", "MS-MQQB 3.1.7.1.3")
@pytest.mark.spec("MS-MQQB 3.1.5.5.1#dispatch", "E56")
def test_on_any_schedule_all_arrives_in_order_and_is_acknowledged_once(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same schedules every time
    windows = chance.choice([1, 2, 5, 64]), chance.choice([1, 3, 64])
    # Nobody gives up here: how long to wait is another test's.
    first, second = (
        Side(session, name)
        for session, name in zip(
            joined(
                SessionSettings(
                    window=windows[0], merq_window=windows[0], ack_wait_s=120.0, cleanup_s=1e9
                ),
                SessionSettings(
                    window=windows[1], merq_window=windows[1], ack_wait_s=120.0, cleanup_s=1e9
                ),
            ),
            "ab",
            strict=True,
        )
    )
    now = 0.0
    for _ in range(STEPS):
        side, other = chance.sample([first, second], 2)
        step = chance.randrange(5)
        if step == 0:
            now += chance.choice([0.01, 0.1, 0.4])
            side.session.tick(now)
        elif step == 1:
            if chance.random() < 0.8:
                look(side)
            take(side, chance.randrange(4), now)
        elif step == 2:
            side.note()
            carry(side, other, chance.choice([1, 50, 1000, 10_000]), now)
        else:
            side.send(now, recoverable=chance.random() < 0.5)
        side.note()
        other.note()
        check(first, second)
        check(second, first)
    settle(first, second, now)
    for side, other in ((first, second), (second, first)):
        check(side, other)
        assert sorted(side.acknowledged) == side.sent
        assert len(other.received) == len(side.sent) > 3
        assert side.session.waiting == 0


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQQB 3.1.1.6.1", "MS-MQQB 3.1.7.1")
def test_a_window_of_one_carries_one_message_at_a_time(recoverable: bool) -> None:
    first, second = joined(SessionSettings(window=1, merq_window=1))
    for token in range(100):
        assert first.room == 1
        first.send(message(recoverable=recoverable), token, 0.0, is_recoverable=recoverable)
        assert first.room == 0
        give(second, [output(first)])
        first.receive_data(output(second), 0.0)
        assert first.acknowledged == [token]
        first.acknowledged.clear()


@pytest.mark.spec("MS-MQQB 3.1.1.3.1", "MS-MQQB 3.1.1.4", "MS-MQQB 3.1.5.5.5")
def test_a_session_goes_on_beyond_65536_messages() -> None:
    first, second = joined(SessionSettings(window=1024, merq_window=1024))
    express, kept = message(b"e"), message(b"r", recoverable=True)
    done = came = 0
    batch = 350
    for start in range(0, 70_000, batch):
        for token in range(start, start + batch):
            is_recoverable = token % 5 != 0
            packet = kept if is_recoverable else express
            first.send(packet, token, 0.0, is_recoverable=is_recoverable)
        second.receive_data(output(first), 0.0)
        came += len(handle(second))
        second.tick(float(start))
        first.receive_data(output(second), 0.0)
        done += len(first.acknowledged)
        first.acknowledged.clear()
        assert not first.closing
        assert not second.closing
    second.tick(1e6)
    first.receive_data(output(second), 0.0)
    done += len(first.acknowledged)
    assert came == done == 70_000
    assert first.waiting == 0


@settings(max_examples=50)
@given(
    kinds=st.lists(st.booleans(), min_size=1, max_size=80),
    lots=st.lists(st.integers(1, 40), min_size=1, max_size=20),
)
@pytest.mark.spec("MS-MQQB 3.1.1.6.1", "MS-MQQB 3.1.5.8.7", "MS-MQQB 3.1.6.4")
@pytest.mark.spec("MS-MQQB 3.1.5.8.7#flags")
def test_each_recoverable_message_is_acknowledged_by_exactly_one_bit(
    kinds: list[bool], lots: list[int]
) -> None:
    _, session = joined(SessionSettings(window=1024, merq_window=1024))
    output(session)
    batches = 0
    left, now = kinds, 0.0
    for lot in [*lots, len(kinds)]:
        some, left = left[:lot], left[lot:]
        session.receive_data(b"".join(message(recoverable=kind) for kind in some), now)
        batches += bool(session.take_arrived())
    headers = []
    for _ in range(batches):
        session.handled(now)
        now += 10.0
        session.tick(now)
        headers += acks(session)
    numbers = [
        header.recoverable_msg_ack_seq_number + bit
        for header in headers
        for bit in range(32)
        if header.recoverable_msg_ack_flags >> bit & 1
    ]
    assert numbers == list(range(1, sum(kinds) + 1))
    assert headers[-1].ack_sequence_number == len(kinds)
