"""What is asked of queues, transactions and openings in the wrong state, or of strangers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import merq
from merq.client.queues import OutgoingQueue
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.access import Access, Share
from merq.model.selecting import Seek
from unit.client.bad_input_bench import GUID, PLAIN, REMOTE, SAFE, Bench, check, opened_bench

Ask: TypeAlias = Callable[[Any], object]

ILLEGAL_PATH = HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
UNSUPPORTED = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
SEQUENCE = HResult.MQ_ERROR_TRANSACTION_SEQUENCE
USAGE = HResult.MQ_ERROR_TRANSACTION_USAGE
DENIED = HResult.MQ_ERROR_ACCESS_DENIED
DELETED = HResult.MQ_ERROR_QUEUE_DELETED
HANDLE = HResult.MQ_ERROR_INVALID_HANDLE


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with opened_bench(tmp_path_factory.mktemp("bad")) as made:
        yield made


TRANSACTIONS: list[tuple[str, int, str]] = [
    ("ended", SEQUENCE, "has ended"),
    ("prepared", SEQUENCE, "is prepared"),
    ("foreign_tx", USAGE, "another queue manager"),
    ("any", USAGE, "within a transaction"),
]


@pytest.mark.parametrize(("which", "code", "said"), TRANSACTIONS)
def test_transactions_in_which_nothing_can_be_done(
    bench: Bench, which: str, code: int, said: str
) -> None:
    tx = getattr(bench, which)
    asks: list[Callable[[], object]] = [
        lambda: bench.safe.send("x", tx=tx),
        lambda: bench.safe.send_many(["x", "y"], tx=tx),
    ]
    if tx is not None:
        asks += [
            lambda: bench.mq.send(REMOTE, "x", tx=tx),
            lambda: bench.safe.receive(timeout=0, tx=tx),
            lambda: bench.safe.receive_many(2, timeout=0, tx=tx),
            lambda: bench.safe.receive_by_id(f"{{{GUID}}}\\1", tx=tx),
            lambda: bench.safe.receive_by_lookup_id(0, Seek.FIRST, tx=tx),
            lambda: bench.safe.cursor().receive(tx=tx),
        ]
    for ask in asks:
        check(bench, code, ask, said)


@pytest.mark.parametrize("tx", ["tx", 5, b"x", object(), True])
def test_transactions_that_are_none(bench: Bench, tx: Any) -> None:
    asks: list[Callable[[], object]] = [
        lambda: bench.safe.send("x", tx=tx),
        lambda: bench.safe.receive(timeout=0, tx=tx),
        lambda: bench.mq.send(REMOTE, "x", tx=tx),
        lambda: bench.plain.move(bench.lookup_id, bench.sub, tx=tx),
        lambda: bench.cursor.receive(tx=tx),
    ]
    for ask in asks:
        check(bench, INVALID, ask, "Transaction belongs there")


def test_transactional_and_other_queues_refuse_each_others_messages(bench: Bench) -> None:
    asks: list[tuple[Callable[[], object], str]] = [
        (lambda: bench.plain.send("x", tx=bench.tx), "outside of transactions"),
        (lambda: bench.plain.send_many(["x"], tx=bench.tx), "outside of transactions"),
        (lambda: bench.plain.receive(timeout=0, tx=bench.tx), "outside of transactions"),
        (lambda: bench.plain.move(bench.lookup_id, bench.sub, tx=bench.tx), "outside of"),
        (lambda: bench.safe.send("x"), "within a transaction"),
        (lambda: bench.safe.send("x", recoverable=True), "within a transaction"),
        (lambda: bench.outgoing.receive(timeout=0, tx=bench.tx), "not transactional"),
    ]
    for ask, said in asks:
        check(bench, USAGE, ask, said)


@pytest.mark.parametrize("name", ["name", 5, b"x" * 16])
def test_names_under_which_nothing_is_prepared(bench: Bench, name: Any) -> None:
    check(bench, INVALID, lambda: bench.tx.prepare(name), "UUID belongs there")


def test_a_name_that_is_taken_cannot_be_prepared_again(bench: Bench) -> None:
    check(bench, SEQUENCE, lambda: bench.tx.prepare(bench.prepared.name), str(bench.prepared.name))
    check(bench, SEQUENCE, bench.prepared.prepare, "prepared")
    for ask in (bench.ended.prepare, bench.ended.commit, bench.ended.abort):
        check(bench, SEQUENCE, ask, "has ended")


ON_A_DELETED_QUEUE: list[Ask] = [
    lambda queue: queue.send("x"),
    lambda queue: queue.send_many(["x"]),
    lambda queue: queue.receive(timeout=0),
    lambda queue: queue.receive_many(2, timeout=0),
    lambda queue: queue.peek(timeout=0),
    lambda queue: queue.peek_by_lookup_id(0, Seek.FIRST),
    lambda queue: list(queue.peek_all()),
    lambda queue: queue.cursor(),
    lambda queue: queue.purge(),
    lambda queue: queue.delete(),
    lambda queue: queue.subqueue("x"),
    lambda queue: queue.subqueues(),
    lambda queue: queue.change(label="x"),
    lambda queue: queue.properties,
    len,
]


@pytest.mark.parametrize("at", range(len(ON_A_DELETED_QUEUE)))
def test_a_deleted_queue_does_nothing_more(bench: Bench, at: int) -> None:
    check(bench, DELETED, lambda: ON_A_DELETED_QUEUE[at](bench.gone), "was deleted")
    assert "was deleted" in repr(bench.gone)


def test_messages_move_to_subqueues_of_the_same_queue_only(bench: Bench) -> None:
    for target in (bench.plain, bench.safe, bench.outgoing):
        check(
            bench,
            INVALID,
            partial(bench.plain.move, bench.lookup_id, target),
            target.path_name,
        )
    check(bench, INVALID, lambda: bench.plain.move(bench.lookup_id, bench.foreign), "another")
    check(bench, DELETED, lambda: bench.plain.move(bench.lookup_id, bench.gone), "deleted")
    wrongs: list[Any] = ["sub", None, 5]
    for wrong in wrongs:
        check(
            bench,
            INVALID,
            partial(bench.plain.move, bench.lookup_id, wrong),
            "Queue belongs there",
        )


def test_queues_that_only_the_queue_manager_writes(bench: Bench) -> None:
    for path in (r".\private$\plain;JOURNAL", r".\system$;DEADLETTER", r".\system$;JOURNAL"):
        queue = bench.mq.queue(path)
        check(bench, DENIED, partial(queue.send, "x"), path)
        check(bench, DENIED, queue.delete, path)
        check(bench, DENIED, partial(queue.change, label="x"), path)
    check(bench, UNSUPPORTED, lambda: bench.sub.send("x"), "subqueue")
    check(bench, DENIED, bench.sub.delete, "sub")
    check(bench, DENIED, bench.outgoing.delete, "far")
    check(bench, ILLEGAL_PATH, lambda: bench.outgoing.subqueue("x"), "far")
    check(bench, ILLEGAL_PATH, lambda: bench.sub.subqueue("x"), "sub")


@pytest.mark.parametrize(("access", "share"), [("receive", Share.DENY_NONE), (Access.PEEK, "none")])
def test_openings_of_no_kind(bench: Bench, access: Any, share: Any) -> None:
    check(bench, INVALID, lambda: bench.mq.open_queue(PLAIN, access, share), "belongs there")


def test_an_opening_is_for_what_it_was_opened_for(bench: Bench) -> None:
    with bench.mq.open_queue(PLAIN, Access.PEEK) as peeking:
        check(bench, DENIED, lambda: peeking.receive(timeout=0), "to peek")
        check(bench, DENIED, peeking.purge, "to receive")
        check(bench, DENIED, lambda: peeking.send("x"), "to send")
        check(bench, DENIED, lambda: peeking.move(bench.lookup_id, bench.sub), "to receive")
    with bench.mq.open_queue(PLAIN, Access.SEND) as sending:
        check(bench, DENIED, lambda: sending.receive(timeout=0), "to send")
        check(bench, DENIED, lambda: sending.peek(timeout=0), "to peek")
    check(
        bench,
        HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE,
        lambda: bench.mq.open_queue(PLAIN, Access.PEEK_ADMIN),
        "outgoing",
    )


def test_who_has_a_queue_alone_shuts_others_out(bench: Bench) -> None:
    code = HResult.MQ_ERROR_SHARING_VIOLATION
    with bench.mq.open_queue(PLAIN, Access.RECEIVE, Share.DENY_RECEIVE):
        check(bench, code, lambda: bench.plain.receive(timeout=0), "plain")
        check(bench, code, bench.plain.purge, "plain")
        check(bench, code, lambda: bench.mq.open_queue(PLAIN), "receive")


def test_nothing_can_be_done_through_what_was_closed(bench: Bench) -> None:
    opened = bench.mq.open_queue(PLAIN)
    cursor = opened.cursor()
    opened.close()
    opened.close()
    asks: list[Callable[[], object]] = [
        lambda: opened.receive(timeout=0),
        lambda: opened.peek(timeout=0),
        lambda: opened.send("x"),
        opened.purge,
        opened.cursor,
        cursor.peek,
    ]
    for ask in asks:
        check(bench, HANDLE, ask, "was closed")
    loose = bench.plain.cursor()
    loose.close()
    loose.close()
    for read in (loose.peek, loose.peek_next, loose.receive):
        check(bench, HANDLE, read, "was closed")


def test_a_new_cursor_has_no_next(bench: Bench) -> None:
    code = HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION
    check(bench, code, lambda: bench.plain.cursor().peek_next(), "peek its first")


def test_only_outgoing_queues_can_be_paused(bench: Bench) -> None:
    wrong = OutgoingQueue(bench.mq._driver, bench.plain._number)
    check(bench, INVALID, wrong.pause, "not an outgoing queue")
    check(bench, INVALID, wrong.resume, "not an outgoing queue")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": 5}, "name"),
        ({"name": "a\\b"}, "computer name"),
        ({"name": " "}, "computer name"),
        ({"limits": 5}, "Limits belongs there"),
        ({"settings": "fast"}, "HostSettings belongs there"),
    ],
)
def test_folders_that_are_opened_in_no_way(
    tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(MessageQueueError) as caught:
        merq.open(tmp_path / "new", **arguments)
    assert caught.value.code == INVALID
    assert said in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_a_folder_must_be_a_path() -> None:
    wrong: Any = 5
    with pytest.raises(MessageQueueError, match="path is 5"):
        merq.open(wrong)


def test_a_closed_queue_manager_does_nothing_more(tmp_path: Path) -> None:
    mq = merq.open(tmp_path)
    queue = mq.create_queue(SAFE, transactional=True)
    cursor, tx, open_tx = queue.cursor(), mq.transaction(), mq.transaction()
    queue.send("x", tx=tx)
    tx.commit()
    mq.close()
    mq.close()
    asks: list[Callable[[], object]] = [
        lambda: mq.create_queue(PLAIN),
        lambda: mq.queue(SAFE),
        lambda: mq.open_queue(SAFE),
        mq.queues,
        mq.outgoing_queues,
        lambda: mq.send(REMOTE, "x"),
        mq.transaction,
        mq.prepared_transactions,
        lambda: mq.throttled,
        lambda: queue.send("x", tx=open_tx),
        lambda: queue.receive(timeout=0),
        lambda: queue.peek(timeout=None),
        lambda: list(queue.peek_all()),
        queue.purge,
        queue.delete,
        lambda: queue.change(label="x"),
        lambda: queue.subqueue("x"),
        lambda: len(queue),
        cursor.peek,
        open_tx.commit,
        open_tx.abort,
        open_tx.prepare,
    ]
    for ask in asks:
        with pytest.raises(MessageQueueError) as caught:
            ask()
        assert caught.value.code == HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE
        assert "closed" in str(caught.value)
    with merq.open(tmp_path) as again:
        assert [message.body for message in again.queue(SAFE).peek_all()] == ["x"]


def test_after_all_of_this_everything_works(bench: Bench) -> None:
    assert bench.plain.peek(timeout=0).body == "one"
    with bench.mq.transaction() as tx:
        assert bench.safe.receive(timeout=0, tx=tx).body == "two"
        bench.safe.send("three", tx=tx)
    assert [message.body for message in bench.safe.peek_all()] == ["three"]
    bench.tx.commit()
    bench.prepared.abort()
