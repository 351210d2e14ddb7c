from __future__ import annotations

from random import Random

import pytest

import merq
from merq.errors import InDoubt
from merq.model.selecting import First
from merq.protocol.application.requests import AskStatus, Read
from merq.testing import SimulatedService, WaitsForEver, Weather
from merq.testing.clients import Errand
from merq.testing.network import SimulatedNetwork, Stream

PATH = r".\private$\orders"
STORM = Weather(cut=0.05, refused=0.2, torn=0.5)


def test_programs_written_for_a_real_service_run_unchanged() -> None:
    service = SimulatedService(seed=3, weather=STORM)
    sender, receiver = service.connect("sender"), service.connect("receiver")
    queue = sender.create_queue(PATH)
    for number in range(30):
        queue.send(f"order {number}", recoverable=True)
    there = receiver.queue(PATH)
    bodies = [there.receive(timeout=5).body for _ in range(30)]
    assert bodies == [f"order {number}" for number in range(30)]
    assert service.network.cuts > 10
    with pytest.raises(merq.ReceiveTimeout):
        there.receive(timeout=5)


def test_the_same_seed_gives_the_same_world() -> None:
    def run(seed: int) -> tuple[int, int]:
        service = SimulatedService(seed, weather=STORM)
        queue = service.connect().create_queue(PATH)
        for number in range(10):
            queue.send(str(number))
        return service.network.cuts, service.disk.operations

    assert run(5) == run(5)
    assert len({run(seed)[0] for seed in range(6)}) > 1


def test_what_is_recoverable_survives_the_service() -> None:
    service = SimulatedService(seed=1)
    mq = service.connect()
    queue = mq.create_queue(PATH)
    queue.send("kept", recoverable=True)
    queue.send("gone")
    service.crash("power")
    assert not service.is_up
    assert [each.body for each in mq.queue(PATH).peek_all()] == ["kept"]
    assert service.lives == 2


def test_a_crash_in_the_middle_of_a_send_is_a_doubt_or_nothing() -> None:
    doubts = 0
    for at in range(12):
        service = SimulatedService(seed=at)
        mq = service.connect()
        queue = mq.create_queue(PATH)
        service.crash_in(at % 4)
        try:
            queue.send("perhaps", recoverable=True)
        except InDoubt:
            doubts += 1
            assert len(mq.queue(PATH)) <= 1
        else:
            assert len(mq.queue(PATH)) == 1
    assert doubts


def test_a_transaction_ends_with_its_line() -> None:
    service = SimulatedService(seed=2)
    mq = service.connect()
    queue = mq.create_queue(PATH, transactional=True)
    tx = mq.transaction()
    queue.send("lost", tx=tx)
    service.network.cut_one()
    with pytest.raises(merq.MessageQueueError, match="connection was lost"):
        tx.commit()
    assert len(queue) == 0


def test_who_can_wait_for_ever_is_told_so() -> None:
    service = SimulatedService()
    mq = service.connect()
    queue = mq.create_queue(PATH)
    with pytest.raises(WaitsForEver):
        queue.receive(timeout=None)
    service.rest()
    assert not service.host.engine.find_queue(PATH).waiting


def test_time_goes_by_for_messages_too() -> None:
    service = SimulatedService()
    queue = service.connect().create_queue(PATH)
    queue.send("short", time_to_be_received=10)
    service.advance(30)
    assert len(queue) == 0


def test_errands_of_many_programs_go_on_at_once() -> None:
    service = SimulatedService(seed=4, weather=STORM)
    mq = service.connect("sender")
    queue = mq.create_queue(PATH)
    got: list[object] = []

    def receiving() -> Errand:
        got.append((yield Read(queue.number, First(), wait=True, held=True)))
        yield AskStatus()

    doings = [service.client().do(receiving()) for _ in range(5)]
    for _ in range(5):
        queue.send("x")
    service.network.weather = Weather()
    service.rest()
    assert all(each.is_over for each in doings)
    assert len(got) == 5


def test_who_is_closed_leaves_nothing_and_asks_for_nothing() -> None:
    service = SimulatedService()
    mq = service.connect()
    mq.close()
    service.rest()
    assert len(service.reception) == 0
    assert not service.network.lines
    with pytest.raises(merq.MessageQueueError, match="closed"):
        mq.create_queue(PATH)


def test_who_gives_up_is_told_so() -> None:
    service = SimulatedService()
    client = service.client()
    told: list[object] = []

    def asking_in_vain() -> Errand:
        try:
            yield AskStatus()
        except merq.MessageQueueError as wrong:
            told.append(str(wrong))

    client.do(asking_in_vain())
    client.give_up()
    assert told == ["nobody answers"]


def test_a_service_that_goes_on_and_on_is_noticed() -> None:
    service = SimulatedService(weather=Weather(refused=1.0))
    service.client().session.ask(AskStatus())
    with pytest.raises(WaitsForEver, match="after 50 steps"):
        service.rest(steps_max=50)


def test_a_stream_delivers_what_was_written_in_any_pieces() -> None:
    chance = Random(1)  # noqa: S311
    stream = Stream()
    written = b""
    for length in range(20):
        written += bytes([length]) * length
        stream.write(bytes([length]) * length)
    found = b""
    while stream.size:
        found += stream.take(chance, 0.7)
    assert found == written
    assert stream.take(chance, 0.7) == b""


def test_a_line_that_is_cut_delivers_some_of_it_and_then_its_end() -> None:
    kept = set()
    for seed in range(40):
        network = SimulatedNetwork(Random(seed))  # noqa: S311
        line = network.connect()
        assert line is not None
        line.up.write(b"0123456789")
        network.cut_one()
        line.up.write(b"too late")
        data = b""
        while line.up.size:
            data += network.arriving(line.up)
        assert b"0123456789".startswith(data)
        assert line.up.has_ended
        assert line.down.has_ended
        kept.add(len(data))
    assert {0, 10} < kept


def test_a_line_that_both_ends_left_is_gone() -> None:
    network = SimulatedNetwork(Random(1))  # noqa: S311
    line = network.connect()
    assert line is not None
    line.hang_up()
    network.tidy(line)
    assert line in network.lines
    line.leave(network.chance)
    network.tidy(line)
    assert line not in network.lines


@pytest.mark.limit("merq.testing.service.STEPS_MAX")
def test_a_world_that_never_comes_to_rest_fails_the_test() -> None:
    service = SimulatedService()
    service.connect().create_queue(PATH)
    with pytest.raises(WaitsForEver, match="after 0 steps"):
        service.rest(steps_max=0)
