"""More paths that were wrong once, taken by the engine and its model together."""

from __future__ import annotations

from model.test_known_paths import begun, check, receive_first


def test_a_message_that_was_moved_is_not_purged_with_the_queue_it_left() -> None:
    both = begun()
    both.begin()
    both.move("qb", 0, in_tx=True)
    both.purge(0)
    both.commit(0)
    both.sync()
    both.crash()
    assert len(both.model.queues["qb;s"].sorted("here")) == 1
    check(both)


def test_a_message_goes_to_the_journal_if_there_is_one_when_its_receive_commits() -> None:
    both = begun()
    receive_first(both)
    both.change("qb", journaling=True, poison_after=0)
    both.sync()
    both.commit(0)
    both.sync()
    assert len(both.model.queues["qb;J"].sorted("here")) == 1
    check(both)


def test_numbers_are_not_given_out_twice_when_a_send_and_an_abort_find_the_disk_full() -> None:
    both = begun()
    world = both.world
    world.restart()  # the next who needs a number reserves more
    number = both.number("qa")
    transaction = world.begin()
    world.receive(both.number("qb"), transaction=transaction)
    world.engine.send(world.next_request(), number, [world.packet(number, recoverable=True)])
    world.engine.transactions.abort(world.next_request(), transaction)
    world.full = 2
    world.perform()
    for _ in range(2):
        world.send(number, recoverable=True)
        world.send(number, recoverable=True)
        world.sync()
        world.restart()
    ids = [view.message_id for view in world.messages(number)]
    assert len(set(ids)) == len(ids) == 4
