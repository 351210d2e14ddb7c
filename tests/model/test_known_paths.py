"""Paths through the engine that were wrong once, taken by the engine and its model together."""

from __future__ import annotations

from merq.model.selecting import First
from model.reference_queue import Read
from model.test_manager_model import Engine


def begun() -> Engine:
    """An engine and its model, with two messages in a transactional queue."""
    both = Engine()
    both.start(small=False, journaling=False, poison_after=0)
    return both


def check(both: Engine) -> None:
    both.every_answer_is_the_models_and_none_is_early()
    both.every_queue_holds_what_the_model_says()
    both.no_quota_is_exceeded()
    both.packets_are_kept_exactly_while_they_are_needed()
    both.prepared_transactions_are_the_models()
    both.what_is_written_is_what_is_known()


def receive_first(both: Engine) -> None:
    both.begin()
    both.read("qb", First(), Read(0, tx=both.model.txs[-1]), wait=False)


def test_what_is_purged_while_its_abort_is_under_way_goes() -> None:
    both = begun()
    receive_first(both)
    both.abort(0)
    both.purge(0)
    both.sync()
    assert not both.model.queues["qb"].sorted("here")
    check(both)
    both.crash()
    check(both)


def test_an_abort_that_could_not_be_written_is_not_counted() -> None:
    both = begun()
    receive_first(both)
    both.prepare(0, 1)
    both.sync()
    both.fill_the_disk()
    both.abort(0)
    both.abort(0)
    both.sync()
    receive_first(both)
    assert [each.message.aborts for each in both.model.txs[-1].work] == [1]
    check(both)


def test_what_a_prepared_transaction_holds_stays_purged_after_a_restart() -> None:
    both = begun()
    receive_first(both)
    both.prepare(0, 1)
    both.purge(0)
    both.sync()
    both.crash()
    check(both)
    both.abort(0)
    both.sync()
    assert not both.model.queues["qb"].sorted("here")
    check(both)


def test_a_subqueue_that_is_being_made_goes_with_its_queue() -> None:
    both = begun()
    both.create_subqueue("qa", ";s")
    both.delete("qa")
    both.sync()
    check(both)
    both.crash()
    check(both)
