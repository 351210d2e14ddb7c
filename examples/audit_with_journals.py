r"""Who got what, and what got lost: journals, acknowledgments and dead letters as an audit trail.

    python examples/audit_with_journals.py

Three payments: one is received, one expires, one waits. The sender wants to be told of each, and
keeps copies. Everything that the audit prints comes out of queues, or from `why`, which asks the
queue manager where a message is.
"""

from __future__ import annotations

import time

from local_service import local_service

import merq
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE
from merq.model.message_class import describe_class

PAYMENTS, AUDIT = r".\private$\payments", r".\private$\audit"
PATIENCE_S = 10.0


def pay(queue: merq.Queue, what: str, *, expires_s: int = 3600) -> str:
    """Sends a payment of which every trace is kept; gives its id."""
    return queue.send(
        what,
        label=what,
        recoverable=True,
        journal=True,  # a copy in the system's journal when it is delivered
        dead_letter=True,  # a copy in the dead-letter queue when it is not
        acknowledge=ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE,
        admin_queue=AUDIT,
        time_to_be_received=expires_s,
    )


def wait_for_dead_letters(mq: merq.Manager, number: int) -> None:
    """Returns when there are so many."""
    deadline = time.monotonic() + PATIENCE_S
    while len(mq.queue(r".\system$;DEADLETTER")) < number:
        if time.monotonic() > deadline:
            raise TimeoutError(f"there are no {number} dead letters after {PATIENCE_S} s")
        time.sleep(0.05)


def main() -> None:
    """Pays, and then looks at what is left behind."""
    with local_service() as url, merq.connect(url) as mq:
        payments = mq.create_queue(PAYMENTS, journal=True)  # keeps what is received from it
        audit = mq.create_queue(AUDIT)
        paid = {"5 to the baker": pay(payments, "5 to the baker")}
        payments.receive(timeout=PATIENCE_S)
        paid["6 to nobody"] = pay(payments, "6 to nobody", expires_s=1)
        paid["8 to the miller"] = pay(payments, "8 to the miller")
        wait_for_dead_letters(mq, 1)

        print("told by acknowledgments:")
        for told in audit.peek_all():
            print(f"  {told.label}: {describe_class(told.message_class)}")
        for title, path in (
            ("received, by the queue's journal", f"{PAYMENTS};JOURNAL"),
            ("dead letters", r".\system$;DEADLETTER"),
            ("still waiting", PAYMENTS),
        ):
            print(f"{title}:")
            for message in mq.queue(path).peek_all():
                print(f"  {message.label}")
        print("where each is now:")
        for what, message_id in paid.items():
            places = [seen for seen in mq.why(message_id) if not seen.about]
            print(f"  {what}: {', '.join(sorted({seen.queue for seen in places}))}")


if __name__ == "__main__":
    main()
