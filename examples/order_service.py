r"""Request and reply: an order service answers each customer in a queue of the customer's own.

    python examples/order_service.py

A request names its response queue and has a correlation id; the reply goes to that queue with the
same correlation id. So a customer with several open requests knows which reply is whose, in
whatever order they come. Requests expire: nobody is served an order that is not wanted any more.
"""

from __future__ import annotations

import threading
from uuid import uuid4

from local_service import local_service

import merq

ORDERS = r".\private$\orders"
PRICES = {"tea": 4, "honey": 7}
PATIENCE_S = 10


def serve(url: str, orders_expected: int) -> None:
    """The service: takes orders, and replies to where each wants its reply."""
    with merq.connect(url) as mq:
        orders = mq.queue(ORDERS)
        for _ in range(orders_expected):
            order = orders.receive(timeout=PATIENCE_S)
            article = str(order.body)
            price = PRICES.get(article)
            reply = f"{article} costs {price}" if price else f"there is no {article}"
            mq.send(order.response_queue, reply, correlation_id=order.correlation_id)


def ask(mq: merq.Manager, article: str, replies: str) -> bytes:
    """Sends a request; gives the correlation id under which its reply comes."""
    correlation_id = uuid4().bytes + bytes(4)
    mq.queue(ORDERS).send(
        article,
        label=f"order of {article}",
        response_queue=replies,
        correlation_id=correlation_id,
        time_to_be_received=PATIENCE_S,
    )
    return correlation_id


def main() -> None:
    """One service, one customer, three requests at once."""
    articles = ("tea", "honey", "coal")
    with local_service() as url, merq.connect(url) as mq:
        mq.create_queue(ORDERS, label="Requests")
        replies = mq.create_queue(r".\private$\replies", label="Replies")
        service = threading.Thread(target=serve, args=(url, len(articles)))
        service.start()
        asked = {article: ask(mq, article, replies.path_name) for article in articles}
        for article in reversed(articles):
            reply = replies.receive_by_correlation_id(asked[article], timeout=PATIENCE_S)
            print(f"{article}?", reply.body)
        service.join()


if __name__ == "__main__":
    main()
