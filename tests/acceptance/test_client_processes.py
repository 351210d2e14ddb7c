"""`merq.connect` as programs use it: from threads, after a fork, with Ctrl-C, closed by another.

Also what happens to a client whose connection is cut at the worst moment.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

import merq
from acceptance.service_process import (
    PATIENCE_S,
    RawClient,
    ServiceProcess,
    environment,
    serving,
    wait_until,
)
from merq.client import remote
from merq.errors import MerqError
from merq.hresult import HResult

THREADS: Final = 16
ROUNDS: Final = 25
LARGE_BYTES: Final = 3_000_000
INTERRUPTS: Final = int(os.environ.get("MERQ_INTERRUPTS", "30"))
SEED: Final = int(os.environ.get("MERQ_SEED", "20268"))
TRANSACTIONAL: Final = r".\private$\transactional"
QUEUE: Final = r".\private$\shared"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with serving(tmp_path_factory.mktemp("service") / "data") as running:
        with running.connect() as manager:
            manager.create_queue(QUEUE)
            manager.create_queue(TRANSACTIONAL, transactional=True)
        yield running


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Does it in so many threads at once; fails if one does, or does not end."""
    wrong: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as failed:
            wrong.append(failed)
            raise

    threads = [
        threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    stuck = sum(thread.is_alive() for thread in threads)
    assert not stuck, f"{stuck} threads wait for ever"
    assert not wrong


# Threads.


def test_sixteen_threads_share_a_manager(service: ServiceProcess) -> None:
    with service.connect() as manager:
        queue = manager.queue(QUEUE)
        received: list[str] = []

        def work(number: int) -> None:
            for turn in range(ROUNDS):
                queue.send(f"{number}.{turn}", recoverable=turn % 5 == 0)
                received.append(str(queue.receive(timeout=PATIENCE_S).body))
                with manager.transaction() as tx:
                    box = manager.queue(TRANSACTIONAL)
                    box.send(f"{number}.{turn}", tx=tx)
                    if turn % 2:
                        tx.abort()

        in_threads(THREADS, work)
        assert sorted(received) == sorted(
            f"{number}.{turn}" for number in range(THREADS) for turn in range(ROUNDS)
        )
        assert manager.status().connections == 1
        box = manager.queue(TRANSACTIONAL)
        assert len(box) == THREADS * ((ROUNDS + 1) // 2)
        box.purge()


def test_threads_that_send_and_receive_large_messages_do_not_stop_each_other(
    service: ServiceProcess,
) -> None:
    """The service waits until answers are read, so who reads must not wait until it has written."""
    with service.connect() as manager:
        source = manager.create_queue(r".\private$\large")
        target = manager.create_queue(r".\private$\target")
        source.send(bytes(LARGE_BYTES))

        def work(number: int) -> None:
            for _ in range(4):
                if number % 2:
                    source.peek(timeout=0)
                else:
                    target.send(bytes(LARGE_BYTES))

        in_threads(12, work)
        assert len(target) == 24
        for queue in (source, target):
            queue.delete()


def test_closing_from_another_thread_wakes_who_waits(service: ServiceProcess) -> None:
    manager = service.connect()
    queue = manager.queue(QUEUE)
    told: list[int] = []

    def wait(_number: int) -> None:
        with pytest.raises(merq.MessageQueueError) as closed:
            queue.receive()
        told.append(closed.value.code)

    def close() -> None:
        with service.connect() as other:
            wait_until(lambda: other.queue(QUEUE).report.readers == 4, "all wait")
        manager.close()

    closing = threading.Thread(target=close)
    closing.start()
    in_threads(4, wait)
    closing.join()
    assert told == [HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE] * 4
    with service.connect() as other:
        wait_until(lambda: other.queue(QUEUE).report.readers == 0, "nobody waits there any more")
    with pytest.raises(merq.MessageQueueError, match="closed"):
        queue.send("too late")


# Processes.


def in_child(work: Callable[[], None]) -> None:
    """Does it in a forked child; fails with what the child says."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        # The child never comes back into the tests, whatever happens.
        try:
            os.close(reading)
            work()
            os.write(writing, b"done")
        except BaseException as wrong:  # noqa: BLE001 - told to the parent
            os.write(writing, repr(wrong).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        text = told.read().decode()
    os.waitpid(child, 0)
    assert text == "done", text


def test_a_forked_child_has_a_connection_of_its_own_and_harms_its_parent_not(
    service: ServiceProcess,
) -> None:
    with service.connect() as manager:
        queue = manager.queue(QUEUE)
        queue.send("from the parent")

        def child() -> None:
            assert queue.receive(timeout=0).body == "from the parent"
            assert manager.status().connections == 2
            queue.send("from the child")
            with manager.transaction() as tx:
                manager.queue(TRANSACTIONAL).send("child", tx=tx)
            manager.close()

        in_child(child)
        assert queue.receive(timeout=0).body == "from the child"
        assert len(manager.queue(TRANSACTIONAL)) == 1
        manager.queue(TRANSACTIONAL).purge()
        assert manager.status().connections == 1


def test_a_transaction_does_not_cross_a_fork(service: ServiceProcess) -> None:
    with service.connect() as manager:
        box = manager.queue(TRANSACTIONAL)
        with manager.transaction() as tx:
            box.send("one", tx=tx)

            def child() -> None:
                with pytest.raises(merq.MessageQueueError) as refused:
                    box.send("of the child", tx=tx)
                assert refused.value.code == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
                assert "transaction" in str(refused.value)
                with pytest.raises(merq.MessageQueueError):
                    tx.commit()

            in_child(child)
            box.send("two", tx=tx)
        assert [message.body for message in box.peek_all()] == ["one", "two"]
        box.purge()


def test_a_fork_while_other_threads_work_harms_nobody(service: ServiceProcess) -> None:
    with service.connect() as manager:
        queue = manager.create_queue(r".\private$\forking")
        over = threading.Event()
        turns = [0, 0]

        def work(number: int) -> None:
            while not over.is_set():
                sent = queue.send(f"{number}")
                assert queue.receive_by_id(sent).body == f"{number}"
                turns[number] += 1

        def child() -> None:
            assert queue.receive_by_id(queue.send("child")).body == "child"

        def fork() -> None:
            try:
                for _ in range(10):
                    in_child(child)
            finally:
                over.set()

        forking = threading.Thread(target=fork)
        forking.start()
        in_threads(2, work)
        forking.join()
        assert min(turns) > 0
        queue.delete()


# Ctrl-C.

INTERRUPTED: Final = r"""
import sys, merq
manager = merq.connect(sys.argv[1])
queue = manager.queue(sys.argv[2])
print("ready", flush=True)
while True:
    try:
        print("got", queue.receive().body, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    except merq.MessageQueueError:
        break
"""


def test_ctrl_c_while_it_waits_loses_no_message(service: ServiceProcess) -> None:
    """It goes on after each: what comes between two receives stays for the next."""
    chance = Random(SEED)  # noqa: S311 - repeatable on purpose
    with service.connect() as manager:
        queue = manager.create_queue(r".\private$\interrupted")
        sent = []
        with subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, service.url, queue.path_name],
            stdout=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        ) as program:
            assert program.stdout is not None
            try:
                assert program.stdout.readline() == b"ready\n"
                for turn in range(INTERRUPTS):
                    wait_until(lambda: queue.report.readers == 1, "it waits")
                    program.send_signal(signal.SIGINT)
                    time.sleep(chance.uniform(0, 0.003))
                    queue.send(f"m{turn}")
                    sent.append(f"m{turn}")
                    assert program.stdout.readline() == b"interrupted\n"
                    assert program.stdout.readline() == f"got m{turn}\n".encode()
            finally:
                program.kill()
        assert len(queue) == 0
        queue.delete()


# The worst moment.


class Cutting:
    """A socket in front of the service, which cuts connections when it is told to."""

    def __init__(self, path: Path, service: ServiceProcess) -> None:
        self.url = f"unix:{path}"
        self._service = service
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.is_deaf = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(self._service.socket_path))
            self._pairs.append((near, far))
            for source, target, is_answer in ((near, far, False), (far, near, True)):
                threading.Thread(
                    target=self._carry, args=(source, target, is_answer), daemon=True
                ).start()

    def _carry(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer and self.is_deaf.is_set():
                    continue  # answers go nowhere, until the connection is cut
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Everybody has to connect anew."""
        self.is_deaf.clear()
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()


@pytest.fixture
def cutting(tmp_path: Path, service: ServiceProcess) -> Iterator[Cutting]:
    proxy = Cutting(tmp_path / "proxy.sock", service)
    yield proxy
    proxy.close()


def while_answers_are_lost(cutting: Cutting, act: Callable[[], object]) -> None:
    """The service does what it is asked, and the answer is lost with the connection."""
    cutting.is_deaf.set()
    cut = threading.Timer(0.2, cutting.cut)
    cut.start()
    try:
        act()
    finally:
        cut.join()


def test_a_send_whose_answer_was_lost_is_not_done_twice(
    service: ServiceProcess, cutting: Cutting
) -> None:
    with merq.connect(cutting.url) as manager:
        queue = manager.queue(QUEUE)
        queue.send("before")
        while_answers_are_lost(cutting, lambda: queue.send("once", recoverable=True))
        while_answers_are_lost(cutting, lambda: queue.send_many(["a", "b"]))
        assert [each.body for each in queue.peek_all()] == ["before", "once", "a", "b"]
        while_answers_are_lost(cutting, lambda: queue.receive(timeout=0))
        assert [each.body for each in queue.peek_all()] == ["once", "a", "b"]
        queue.purge()


def test_what_was_sent_in_a_transaction_whose_connection_was_lost_is_not_committed_in_part(
    service: ServiceProcess, cutting: Cutting
) -> None:
    """Its first request was carried out and its answer lost: the transaction has it, or fails."""
    with merq.connect(cutting.url) as manager:
        box = manager.queue(TRANSACTIONAL)
        # The first send asks what the queue is called; later ones go out together with the begin.
        with manager.transaction() as tx:
            box.send("warm", tx=tx)
            tx.abort()
        try:
            with manager.transaction() as tx:
                while_answers_are_lost(cutting, lambda: box.send("first", tx=tx))
                box.send("second", tx=tx)
        except MerqError:
            assert len(box) == 0
        else:
            assert [each.body for each in box.peek_all()] == ["first", "second"]
        box.purge()


def test_a_commit_whose_answer_was_lost_is_told_how_it_ended(
    service: ServiceProcess, cutting: Cutting
) -> None:
    with merq.connect(cutting.url) as manager:
        box = manager.queue(TRANSACTIONAL)
        tx = manager.transaction()
        box.send("committed", tx=tx)
        while_answers_are_lost(cutting, tx.commit)
        assert [each.body for each in box.peek_all()] == ["committed"]
        box.purge()


def test_a_transaction_that_lost_its_connection_is_refused_from_then_on(
    service: ServiceProcess, cutting: Cutting
) -> None:
    with merq.connect(cutting.url) as manager:
        box = manager.queue(TRANSACTIONAL)
        tx = manager.transaction()
        box.send("lost", tx=tx)
        cutting.cut()
        with pytest.raises(merq.MessageQueueError, match="aborted when its connection was lost"):
            box.send("more", tx=tx)
        with pytest.raises(merq.MessageQueueError, match="aborted when its connection was lost"):
            tx.commit()
        assert len(box) == 0


def test_a_service_that_answers_nobody_does_not_keep_a_client_from_closing(
    service: ServiceProcess, tmp_path: Path
) -> None:
    """A stopped service: whoever waits with a time-out comes back once it goes on again."""
    with serving(tmp_path / "data") as own:
        manager = own.connect()
        queue = manager.create_queue(r".\private$\q")
        ended = threading.Event()

        def wait() -> None:
            with suppress(merq.MessageQueueError):
                queue.receive(timeout=0.2)
            ended.set()

        own.signal(signal.SIGSTOP)
        try:
            waiting = threading.Thread(target=wait)
            waiting.start()
            time.sleep(0.4)
            began = time.monotonic()
            manager.close()
            assert time.monotonic() - began < 1
            assert ended.wait(PATIENCE_S)
            waiting.join()
        finally:
            own.signal(signal.SIGCONT)
        with RawClient(own.socket_path) as raw:
            assert raw.greet().session.welcome is not None


def test_a_service_that_hangs_does_not_hang_a_receive_with_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "ANSWER_S", 0.3)
    with serving(tmp_path / "data") as hanging, hanging.connect() as manager:
        queue = manager.create_queue(r".\private$\orders")
        os.kill(hanging.pid, signal.SIGSTOP)
        try:
            with pytest.raises(merq.MessageQueueError, match="does not answer") as refused:
                queue.receive(timeout=0.1)
        finally:
            os.kill(hanging.pid, signal.SIGCONT)
        assert refused.value.code == HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE
        queue.send("late")
        assert queue.receive(timeout=5).body == "late"
