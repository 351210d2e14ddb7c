from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import merq
from merq.errors import StoreFailed
from merq.hresult import HResult
from merq.testing import (
    Broken,
    Operation,
    PowerCut,
    SimulatedManager,
    SimulatedWorld,
    WaitsForEver,
    explore,
)
from merq.testing.exploring import CRASHES, Told

ROOT = Path(__file__).resolve().parents[3]
ORDERS = r".\private$\orders"
DEAD = r".\system$;DEADLETTER"


def take_orders(mq: merq.Manager, told: Told) -> None:
    """An application: it knows nothing of simulations."""
    orders = mq.create_queue(ORDERS, transactional=True)
    for number in range(4):
        with mq.transaction() as tx:
            orders.send(f"{number} a", tx=tx)
            orders.send(f"{number} b", tx=tx)
        told.append(number)


def bodies(mq: merq.Manager, path: str = ORDERS) -> list[object]:
    """What is in a queue; nothing if there is no such queue."""
    paths = [queue.path_name for queue in mq.queues()]
    return [message.body for message in mq.queue(path).peek_all()] if path in paths else []


def every_order_is_there(mq: merq.Manager, told: Told) -> None:
    found = bodies(mq)
    assert len(found) % 2 == 0, "half an order"
    assert len(found) >= 2 * len(told), f"{len(told)} orders were taken: {found}"


def test_an_application_written_for_a_real_manager_runs_unchanged() -> None:
    mq = SimulatedWorld().open("shop")
    assert mq.name == "shop"
    told: Told = []
    take_orders(mq, told)
    assert told == [0, 1, 2, 3]
    orders = mq.queue(ORDERS)
    with mq.transaction() as tx:
        assert orders.receive(timeout=5, tx=tx).body == "0 a"
        tx.abort()
    assert len(orders) == 8
    with pytest.raises(merq.MessageQueueError, match="transactional"):
        orders.send("no transaction")


def test_a_receive_that_waits_takes_time_in_the_world_alone() -> None:
    world = SimulatedWorld()
    queue = world.open().create_queue(ORDERS)
    before = world.now
    with pytest.raises(merq.ReceiveTimeout):
        queue.receive(timeout=3600)
    assert world.now == before + 3600


def test_who_waits_is_served_by_what_time_brings() -> None:
    world = SimulatedWorld()
    mq = world.open()
    mq.create_queue(ORDERS).send("late", time_to_be_received=5, dead_letter=True)
    before = world.now
    assert mq.queue(DEAD).receive(timeout=100).body == "late"
    assert world.now == before + 6


def test_a_wait_that_nothing_can_end_is_reported() -> None:
    mq = SimulatedWorld().open()
    queue = mq.create_queue(ORDERS)
    with pytest.raises(WaitsForEver):
        queue.receive()
    queue.send("and it goes on")
    assert queue.receive().body == "and it goes on"


def test_messages_expire_when_the_clock_is_put_on() -> None:
    world = SimulatedWorld()
    queue = world.open().create_queue(ORDERS)
    queue.send("short", time_to_be_received=10)
    world.advance(9)
    assert len(queue) == 1
    world.advance(2)
    assert len(queue) == 0


def test_a_crash_comes_through_the_application_s_call_and_what_was_told_comes_back() -> None:
    world = SimulatedWorld(seed=3)
    mq = world.open()
    world.crash_in(9)
    told: Told = []
    with pytest.raises(PowerCut):
        take_orders(mq, told)
    with pytest.raises(PowerCut, match="off"):
        mq.queues()
    again = world.restart()
    assert again.guid == mq.guid
    every_order_is_there(again, told)
    assert told, "the crash came too early to show anything"


def test_a_crash_is_not_hidden_by_a_block_that_closes() -> None:
    world = SimulatedWorld()
    mq = world.open()
    world.crash_in(3)
    with pytest.raises(PowerCut), mq:
        take_orders(mq, [])


def test_who_was_killed_has_written_more_than_who_lost_power() -> None:
    """What is written and not synced is there after a kill, and may be lost with the power."""
    kept = {"kill": 0, "power": 0}
    for seed in range(10):
        for crash in CRASHES:
            world = SimulatedWorld(seed)
            queue = world.open().create_queue(ORDERS)
            queue.send("safe", recoverable=True)
            world.disk.fail_next(Operation.SYNC)
            with pytest.raises(StoreFailed):
                queue.send("not synced", recoverable=True)
            found = bodies(world.restart(crash))
            assert found[:1] == ["safe"]
            kept[crash] += len(found) - 1
    assert kept["kill"] == 10
    assert kept["power"] < 10


def test_what_was_prepared_waits_for_its_end_after_a_crash() -> None:
    world = SimulatedWorld()
    mq = world.open()
    orders = mq.create_queue(ORDERS, transactional=True)
    tx = mq.transaction()
    orders.send("promised", tx=tx)
    name = tx.prepare()
    mq = world.restart()
    (found,) = mq.prepared_transactions()
    assert found.name == name
    assert bodies(mq) == []
    found.commit()
    assert bodies(world.restart()) == ["promised"]


def test_a_full_disk_refuses_and_goes_on_when_there_is_room() -> None:
    world = SimulatedWorld(limits=merq.Limits(disk_reserve_bytes=0))
    mq = world.open()
    queue = mq.create_queue(ORDERS)
    world.disk.capacity = world.disk.used
    with pytest.raises(merq.MessageQueueError) as refused:
        queue.send(bytes(20_000), recoverable=True)
    assert refused.value.code == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    mq.checkpoint()  # room for tidying up is kept
    world.disk.capacity = None
    queue.send("fits", recoverable=True)
    assert bodies(world.restart()) == ["fits"]


def test_a_disk_that_failed_is_not_trusted_before_it_is_opened_anew() -> None:
    world = SimulatedWorld()
    mq = world.open()
    queue = mq.create_queue(ORDERS)
    world.disk.fail_next(Operation.SYNC)
    with pytest.raises(StoreFailed):
        queue.send("perhaps", recoverable=True)
    with pytest.raises(StoreFailed, match="opened anew"):
        len(queue)
    mq.close()
    world.open().queue(ORDERS).send("again", recoverable=True)


def test_short_runs_meet_new_segments_checkpoints_and_copies() -> None:
    world = SimulatedWorld()
    mq = world.open()
    queue = mq.create_queue(ORDERS)
    keep = queue.send("kept", recoverable=True)
    for _ in range(300):
        queue.send(bytes(2000), recoverable=True)
        queue.receive_by_lookup_id(0, merq.Seek.LAST)
    files = world.disk.files()
    assert any(name.startswith("checkpoints/") for name in files)
    assert "log/0000000000000001.segment" not in files
    found = world.restart().queue(ORDERS)
    assert found.peek_by_id(keep).body == "kept"
    assert len(found) == 1


def test_a_closed_manager_says_so_and_can_be_opened_again() -> None:
    world = SimulatedWorld()
    mq = world.open()
    take_orders(mq, [])
    mq.close()
    with pytest.raises(merq.MessageQueueError, match="closed"):
        mq.queues()
    assert len(bodies(world.open())) == 8


def test_the_same_seed_gives_the_same_world() -> None:
    def outcomes(seed: int) -> list[int]:
        found = []
        for at in range(12, 32):
            world = SimulatedWorld(seed)
            world.crash_in(at)
            try:
                take_orders(world.open(), [])
            except PowerCut:
                found.append(len(bodies(world.restart())))
        return found

    assert outcomes(5) == outcomes(5)
    assert len({tuple(outcomes(seed)) for seed in range(6)}) > 1


def test_exploring_crashes_everywhere_and_is_content_with_what_is_right() -> None:
    done = explore(take_orders, check=every_order_is_there, seeds=range(2))
    assert done.crashes > 60
    assert done.worlds == done.crashes + 2
    some = explore(take_orders, check=every_order_is_there, seeds=range(2), every=5)
    assert some.crashes < done.crashes / 4


def express(mq: merq.Manager, told: Told) -> None:
    queue = mq.create_queue(ORDERS)
    queue.send("gone with the power")
    told.append("gone with the power")
    queue.send("second", recoverable=True)


def what_was_told_is_there(mq: merq.Manager, told: Told) -> None:
    assert set(told) <= set(bodies(mq))


def test_exploring_finds_what_is_wrong_and_how_to_see_it_again() -> None:
    with pytest.raises(Broken) as first:
        explore(express, check=what_was_told_is_there)
    assert first.value.point is None, "not even without a crash does express mail survive"
    with pytest.raises(Broken, match="again with explore") as crashed:
        explore(express, check=what_was_told_is_there, points=range(100))
    found = crashed.value
    with pytest.raises(Broken) as again:
        explore(
            express,
            check=what_was_told_is_there,
            seeds=[found.seed],
            points=[found.point],
            crashes=[found.crash],
        )
    assert str(again.value) == str(found)
    assert isinstance(again.value.__cause__, AssertionError)


def test_an_application_that_fails_by_itself_is_found_too() -> None:
    def wrong(mq: merq.Manager, told: Told) -> None:
        mq.queue(ORDERS)

    with pytest.raises(Broken, match="MessageQueueError: there is no queue"):
        explore(wrong, check=what_was_told_is_there)


def test_what_an_application_does_when_it_is_started_again_is_explored() -> None:
    started: list[int] = []

    def go_on(mq: SimulatedManager, told: Told) -> None:
        started.append(len(told))
        if not bodies(mq):
            with mq.transaction() as tx:
                queue = mq.create_queue(ORDERS, transactional=True) if no_queue(mq) else None
                (queue or mq.queue(ORDERS)).send("a", tx=tx)
                (queue or mq.queue(ORDERS)).send("b", tx=tx)

    def no_queue(mq: merq.Manager) -> bool:
        return not mq.queues()

    def something_is_there(mq: merq.Manager, told: Told) -> None:
        every_order_is_there(mq, told)
        assert bodies(mq)

    done = explore(take_orders, resume=go_on, check=something_is_there, seeds=[1])
    assert len(started) == done.crashes


def test_the_guide_s_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "guide" / "testing.md").read_text("utf-8")
    first, *others = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(first, names)  # noqa: S102 - our own page
    assert capsys.readouterr().out.startswith("nothing lost in ")
    for code in others:
        exec(code, names)  # noqa: S102 - our own page


def test_the_example_finds_the_careless_service(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "testing_an_application.py"), run_name="__main__")
    careful, careless = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"careful: \d+ crashes, nothing lost", careful)
    assert "order 0 is there 0 times" in careless
