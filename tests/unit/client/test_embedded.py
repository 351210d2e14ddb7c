"""The queue manager in-process, as applications use it: blocking, from threads, and in time."""

from __future__ import annotations

import pickle
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import merq
from merq.client.embedded import Driver
from merq.client.manager import Manager
from merq.engine.limits import Limits
from merq.errors import MessageQueueError, StoreInUse
from merq.hresult import HResult
from merq.model.selecting import Seek
from merq.testing.disk import SimulatedDisk
from unit.client.using_managers import ORDERS, SMALL, driver_of, refused, waiting_at


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with merq.open(tmp_path / "data", name="here") as opened:
        yield opened


# As the pages tell it.


def test_the_example_of_the_pages(tmp_path: Path) -> None:
    with merq.open(tmp_path) as mq:
        orders = mq.create_queue(ORDERS)
        orders.send("hello", label="first", recoverable=True)
        assert orders.receive(timeout=5).body == "hello"
        with pytest.raises(merq.ReceiveTimeout):
            orders.receive(timeout=0.01)


def test_what_is_recoverable_is_there_after_opening_again(tmp_path: Path) -> None:
    with merq.open(tmp_path) as mq:
        orders = mq.create_queue(ORDERS, label="all", transactional=True, journal=True)
        with mq.transaction() as tx:
            for body in ("a", "b"):
                orders.send(body, tx=tx)
        guid = mq.guid
        plain = mq.create_queue(r".\private$\plain")
        plain.send("express")
        plain.send("safe", recoverable=True)
    with merq.open(tmp_path) as mq:
        assert mq.guid == guid
        orders = mq.queue(ORDERS)
        assert [message.body for message in orders.peek_all()] == ["a", "b"]
        assert orders.properties.label == "all"
        plain = mq.queue(r".\private$\plain")
        assert [message.body for message in plain.peek_all()] == ["safe"]
        assert {queue.path_name for queue in mq.queues()} == {ORDERS, r".\private$\plain"}


def test_a_transaction_block_commits_or_aborts(manager: Manager) -> None:
    source = manager.create_queue(r".\private$\source", transactional=True)
    target = manager.create_queue(r".\private$\target", transactional=True)
    with manager.transaction() as tx:
        source.send("work", tx=tx)

    def fail() -> None:
        with manager.transaction() as tx:
            assert source.receive(timeout=0, tx=tx).body == "work"
            target.send("half done", tx=tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (len(source), len(target)) == (1, 0)
    with manager.transaction() as tx:
        target.send(source.receive(timeout=0, tx=tx).body, tx=tx)
    assert (len(source), target.receive(timeout=0).body) == (0, "work")


def test_a_transaction_that_ended_inside_its_block_is_left_in_peace(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS, transactional=True)
    with manager.transaction() as tx:
        queue.send("x", tx=tx)
        tx.commit()
    with manager.transaction() as tx:
        queue.receive(timeout=0, tx=tx)
        tx.abort()
    assert len(queue) == 1
    refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, tx.commit)


def test_a_block_whose_commit_is_refused_gives_everything_back(manager: Manager) -> None:
    kept = manager.create_queue(r".\private$\kept", transactional=True)
    deleted = manager.create_queue(r".\private$\deleted", transactional=True)
    with manager.transaction() as tx:
        kept.send("x", tx=tx)

    def work() -> None:
        with manager.transaction() as tx:
            kept.receive(timeout=0, tx=tx)
            deleted.send("y", tx=tx)
            deleted.delete()

    refused(HResult.MQ_ERROR_QUEUE_DELETED, work)
    assert kept.receive(timeout=0).body == "x"


def test_a_failed_abort_does_not_hide_why_the_block_failed(manager: Manager) -> None:
    def fail() -> None:
        with manager.transaction():
            manager.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    assert "closed" in "".join(caught.value.__notes__)


def test_messages_are_found_by_id_correlation_and_lookup_identifier(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    ids = [queue.send(body, correlation_id=body.encode() * 20) for body in "abc"]
    assert queue.peek_by_id(ids[1]).body == "b"
    first = queue.peek(timeout=0)
    assert queue.peek_by_lookup_id(first.lookup_id, Seek.NEXT).body == "b"
    assert queue.peek_by_lookup_id(0, Seek.LAST).body == "c"
    assert queue.receive_by_lookup_id(first.lookup_id).body == "a"
    assert queue.receive_by_correlation_id(b"c" * 20).body == "c"
    assert queue.receive_by_id(ids[1]).body == "b"
    for ask in (
        lambda: queue.receive_by_id(ids[1]),
        lambda: queue.receive_by_correlation_id(b"c" * 20),
        lambda: queue.receive_by_lookup_id(first.lookup_id),
    ):
        refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, ask)
    with pytest.raises(merq.ReceiveTimeout):
        queue.receive_by_correlation_id(b"c" * 20, timeout=0.01)


# Waiting.


def test_a_timeout_of_zero_or_less_does_not_wait(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    for timeout in (0, -1, 0.0, float("nan")):
        with pytest.raises(merq.ReceiveTimeout) as nothing:
            queue.receive(timeout=timeout)
        assert nothing.value.code == HResult.MQ_ERROR_IO_TIMEOUT
    queue.send("x", recoverable=True)
    assert queue.peek(timeout=0).body == queue.receive(timeout=0).body == "x"


def test_a_timeout_is_kept(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    before = time.monotonic()
    with pytest.raises(merq.ReceiveTimeout):
        queue.receive(timeout=0.1)
    assert 0.1 <= time.monotonic() - before < 5
    queue.send("not lost to who has gone")
    assert len(queue) == 1


@pytest.mark.parametrize("timeout", [None, float("inf"), 1e18, 30])
def test_who_waits_is_woken_by_a_message(manager: Manager, timeout: float | None) -> None:
    queue = manager.create_queue(ORDERS)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(queue.receive, timeout=timeout)
        waiting_at(manager, queue, 1)
        queue.send("x", recoverable=True)
        assert waiting.result(10).body == "x"


@pytest.mark.parametrize("how", ["close", "delete"])
def test_who_waits_is_told_when_there_is_nothing_more_to_wait_for(
    manager: Manager, how: str
) -> None:
    queue = manager.create_queue(ORDERS)
    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(queue.receive), pool.submit(queue.peek, timeout=60)]
        waiting_at(manager, queue, 2)
        (manager.close if how == "close" else queue.delete)()
        codes = {
            "close": HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE,
            "delete": HResult.MQ_ERROR_QUEUE_DELETED,
        }
        for reader in readers:
            refused(codes[how], lambda reader=reader: reader.result(10))  # type: ignore[misc]


def test_ctrl_c_while_waiting_costs_no_message_and_leaves_everything_usable(
    manager: Manager,
) -> None:
    queue = manager.create_queue(ORDERS)

    def interrupt() -> None:
        waiting_at(manager, queue, 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        queue.receive(timeout=30)
    thread.join()
    queue.send("x", recoverable=True)
    assert len(queue) == 1
    assert queue.receive(timeout=0).body == "x"
    assert driver_of(manager)._answers == {}
    assert driver_of(manager)._abandoned == set()


# Bad input.


def test_names_that_cannot_be_are_refused_and_make_nothing(manager: Manager) -> None:
    for name in ("", "orders", r".\orders", r".\private$\a;b", r"there\private$\a", "x" * 999):
        refused(
            HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
            lambda name=name: manager.create_queue(name),  # type: ignore[misc]
        )
    refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND, lambda: manager.queue(ORDERS))
    refused(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, lambda: manager.queue("orders"))
    manager.create_queue(ORDERS)
    refused(HResult.MQ_ERROR_QUEUE_EXISTS, lambda: manager.create_queue(ORDERS.upper()))
    assert len(manager.queues()) == 1


@pytest.mark.parametrize("message_id", ["", "x", r"{1}\2", "{%s}" % ("0" * 32), 5, None, b"x"])
def test_an_id_that_is_none_is_refused(manager: Manager, message_id: str) -> None:
    queue = manager.create_queue(ORDERS)
    queue.send("x")
    for ask in (queue.peek_by_id, queue.receive_by_id):
        refused(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            lambda ask=ask: ask(message_id),  # type: ignore[misc]
        )
    refused(
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, lambda: queue.receive_by_correlation_id(b"short")
    )
    assert len(queue) == 1


def test_a_deleted_queue_answers_everything_with_that(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    queue.send("x")
    queue.delete()
    other = manager.create_queue(r".\private$\other")
    for ask in (
        lambda: queue.send("x"),
        lambda: queue.receive(timeout=0),
        queue.receive,
        lambda: queue.peek(timeout=1),
        queue.purge,
        queue.delete,
        lambda: len(queue),
        lambda: queue.path_name,
        lambda: list(queue.peek_all()),
    ):
        refused(HResult.MQ_ERROR_QUEUE_DELETED, ask)
    assert "deleted" in repr(queue)
    assert len(other) == 0


def test_a_closed_manager_answers_everything_with_that(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    transaction = manager.transaction()
    manager.close()
    manager.close()
    for ask in (
        lambda: queue.send("x"),
        queue.receive,
        lambda: manager.create_queue(r".\private$\more"),
        lambda: manager.queue(ORDERS),
        manager.queues,
        manager.transaction,
        transaction.commit,
        transaction.abort,
        lambda: len(queue),
    ):
        refused(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, ask)
    assert "closed" in repr(queue)


def test_a_transaction_of_another_queue_manager_is_refused(
    manager: Manager, tmp_path: Path
) -> None:
    queue = manager.create_queue(ORDERS, transactional=True)
    mine = manager.transaction()
    with merq.open(tmp_path / "other") as other:
        theirs = other.transaction()
        assert theirs.number == mine.number
        refused(HResult.MQ_ERROR_TRANSACTION_USAGE, lambda: queue.send("x", tx=theirs))
        refused(HResult.MQ_ERROR_TRANSACTION_USAGE, lambda: queue.receive(timeout=0, tx=theirs))
    mine.commit()
    assert len(queue) == 0


def test_errors_survive_a_journey_between_processes() -> None:
    for error in (MessageQueueError(5, "five"), merq.ReceiveTimeout("late")):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        assert (type(copy), copy.code, str(copy)) == (type(error), error.code, str(error))


def test_one_folder_is_open_once(tmp_path: Path) -> None:
    with merq.open(tmp_path), pytest.raises(StoreInUse, match="open in another process"):
        merq.open(tmp_path)
    with merq.open(tmp_path):
        pass


# Threads.


def test_many_senders_and_receivers_lose_and_double_nothing(manager: Manager) -> None:
    queue = manager.create_queue(ORDERS)
    threads, each = 4, 50

    def send(sender: int) -> None:
        for number in range(each):
            queue.send(f"{sender}:{number}", recoverable=number % 2 == 0)

    def receive(_: int) -> list[str]:
        return [str(queue.receive(timeout=20).body) for _ in range(each)]

    with ThreadPoolExecutor(2 * threads) as pool:
        receiving = pool.map(receive, range(threads))
        sending = pool.map(send, range(threads))
        list(sending)
        found = list(receiving)
    expected = {f"{sender}:{number}" for sender in range(threads) for number in range(each)}
    assert Counter(body for bodies in found for body in bodies) == Counter(expected)
    for bodies in found:
        for sender in range(threads):
            mine = [int(body.split(":")[1]) for body in bodies if body.startswith(f"{sender}:")]
            assert mine == sorted(mine), "each sender's messages are in their order"
    assert len(queue) == 0


def test_queues_that_are_made_by_many_threads_at_once_are_different_queues(
    manager: Manager,
) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda each: manager.create_queue(rf".\private$\q{each}"), range(24)))
    for each, queue in enumerate(made):
        queue.send(each)
    assert [queue.receive(timeout=0).body for queue in made] == list(range(24))
    assert [queue.path_name for queue in made] == [rf".\private$\q{each}" for each in range(24)]


def test_transactions_in_many_threads_move_every_message_once(manager: Manager) -> None:
    source = manager.create_queue(r".\private$\source", transactional=True)
    target = manager.create_queue(r".\private$\target", transactional=True)
    with manager.transaction() as tx:
        for number in range(60):
            source.send(number, tx=tx)

    def move(_: int) -> None:
        while True:
            transaction = manager.transaction()
            try:
                body = source.receive(timeout=0, tx=transaction).body
            except merq.ReceiveTimeout:
                transaction.abort()
                return
            target.send(body, tx=transaction)
            if isinstance(body, int) and body % 7 == 0 and not tried(body):
                transaction.abort()
            else:
                transaction.commit()

    seen: set[int] = set()

    def tried(body: int) -> bool:
        known = body in seen
        seen.add(body)
        return known

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(move, range(4)))
    move(0)
    assert len(source) == 0
    assert Counter(message.body for message in target.peek_all()) == Counter(range(60))


# Time.


def test_what_expires_goes_to_the_dead_letter_queue_even_if_nobody_asks(tmp_path: Path) -> None:
    now = [1_000_000_000.0]
    driver = Driver(SimulatedDisk(), "here", Limits(), SMALL, clock=lambda: now[0])
    with Manager(driver) as manager:
        queue = manager.create_queue(ORDERS)
        queue.send("x", recoverable=True, dead_letter=True, time_to_be_received=5)
        now[0] += 6
        with pytest.raises(merq.ReceiveTimeout):
            queue.receive(timeout=0)
        dead = manager.queue(r".\system$;DEADLETTER")
        deadline = time.monotonic() + 10
        while not len(dead) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert dead.peek(timeout=0).body == "x"
