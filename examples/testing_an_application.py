"""A payment service that loses money, and how a simulated world shows it.

    python examples/testing_an_application.py

`explore` cuts the power in every disk operation. The careless service receives an order and books
it afterwards; the careful one does both in one transaction.
"""

from __future__ import annotations

from merq import Manager, MessageQueueError, ReceivedMessage
from merq.testing import Broken, explore
from merq.testing.exploring import Told

ORDERS, BOOKED = r".\private$\orders", r".\private$\booked"


def careful(mq: Manager, told: Told) -> None:
    """Takes orders, and books each in the transaction in which it is received."""
    orders = mq.create_queue(ORDERS, transactional=True)
    booked = mq.create_queue(BOOKED, transactional=True)
    for number in range(3):
        with mq.transaction() as tx:
            orders.send(f"order {number}", tx=tx)
        told.append(f"order {number}")  # the customer has seen it
    while len(orders):
        with mq.transaction() as tx:
            booked.send(orders.receive(timeout=1, tx=tx).body, tx=tx)


def careless(mq: Manager, told: Told) -> None:
    """The same with two transactions: an order can be gone from both queues."""
    orders = mq.create_queue(ORDERS, transactional=True)
    booked = mq.create_queue(BOOKED, transactional=True)
    for number in range(3):
        with mq.transaction() as tx:
            orders.send(f"order {number}", tx=tx)
        told.append(f"order {number}")
    while len(orders):
        with mq.transaction() as tx:
            body = orders.receive(timeout=1, tx=tx).body
        with mq.transaction() as tx:
            booked.send(body, tx=tx)


def check(mq: Manager, told: Told) -> None:
    """Every order that a customer has seen is in one of the queues, once."""
    bodies = [message.body for path in (ORDERS, BOOKED) for message in messages(mq, path)]
    for order in told:
        assert bodies.count(order) == 1, f"{order} is there {bodies.count(order)} times"


def messages(mq: Manager, path: str) -> list[ReceivedMessage]:
    """What is in a queue; the power may have gone before there was one."""
    try:
        return list(mq.queue(path).peek_all())
    except MessageQueueError:
        return []


def main() -> None:
    """Explores both."""
    done = explore(careful, check=check)
    print(f"careful: {done.crashes} crashes, nothing lost")
    try:
        explore(careless, check=check)
    except Broken as broken:
        print(f"careless: {broken}")


if __name__ == "__main__":
    main()
