r"""The programs of a chaos: one feeds two queues, one is the driver of two streams.

The feeder sends each number to both queues in one transaction, and keeps the next number in a queue
of its own in the same transaction: so it knows after any failure how far it is. The driver runs the
flow `archive` and, in the same session, a stream from queue to queue; the last one also the flow
`reconcile` and a job with troubles. Run it with what to do and the file that says the rest.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import merq
from cluster.troubled_job import write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from merq.spark.flows.running import Summary

ARCHIVED: Final = r".\private$\archived"
FORWARDED: Final = r".\private$\forwarded"
TARGET: Final = r".\private$\target"
NUMBERS: Final = r".\private$\numbers"
NEXT: Final = r".\private$\next"
GROUP: Final = "chaos"

SENT: Final = "sent"
"""The file in which the feeder tells how far it is."""
STOP: Final = "stop"
"""The file that tells it to stop."""
TOTAL: Final = "total"
"""The file that tells how many there are, when it has stopped."""
RECONCILED: Final = "reconciled.json"
"""The file with what `reconcile` says at the end."""
BEGUN: Final = "begun"
"""The folder in which tasks of the last job leave files."""
ATTEMPTS: Final = "attempts"
"""The file in which tasks that are tried again, or twice at once, leave a line each."""

RECONNECT_S: Final = 120.0
BACKLOG_MAX: Final = 10_000
"""If so many messages wait for a stream, no more are sent."""

LAST_BATCH_MESSAGES: Final = 100_000
"""Messages of a micro-batch of the last driver."""

EVERY_S: Final = 0.2
"""Between micro-batches."""
DAWDLE_S: Final = 2.0
DAWDLE_CHANCE: Final = 0.1
"""A task that takes so long is started a second time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What both programs are told.

    Attributes:
        url: The queue manager.
        folder: Where everything lies.
        master: The cluster.
        count: The most numbers that are sent,
        rate: so many a second,
        batch: up to so many in a transaction.
        batch_messages: Messages of a micro-batch.
        is_short: Also those of the last driver are no larger.
        seed: What decides how many are in a transaction.
        settings: Settings of Spark's.
    """

    url: str
    folder: str
    master: str
    count: int
    rate: int
    batch: int
    batch_messages: int
    seed: int
    is_short: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Puts it into a file."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Orders:
        """What `write` wrote."""
        return cls(**json.loads(path.read_text()))

    def most(self, *, is_last: bool) -> int:
        """Messages of a micro-batch; there is no need for small ones if nothing is killed."""
        return LAST_BATCH_MESSAGES if is_last and not self.is_short else self.batch_messages

    def place(self, name: str) -> Path:
        """A file or folder of the chaos."""
        return Path(self.folder) / name


def body_of(number: int) -> str:
    """What a message says."""
    return f"number {number:09}"


# The feeder.


def feed(orders: Orders) -> None:
    """Sends numbers, until it is told to stop, and then some more."""
    chance = random.Random(orders.seed)  # noqa: S311 - repeatable on purpose
    with merq.connect(orders.url, reconnect_s=RECONNECT_S) as manager:
        number = _next_number(manager)
        began, first = time.monotonic(), number
        is_last = False
        while not is_last:
            is_last = orders.place(STOP).exists()
            size = chance.randint(1, orders.batch)
            ahead_s = (number - first) / orders.rate - (time.monotonic() - began)
            is_enough = number + size > orders.count or _backlog(manager) > BACKLOG_MAX
            if not is_last and (is_enough or ahead_s > 0):
                time.sleep(0.05)
                continue
            try:
                _send_some(manager, number, size)
            except merq.MessageQueueError as wrong:
                print(f"{number}: {wrong}", flush=True)
                time.sleep(0.05)
            number = _next_number(manager)
            orders.place(SENT).write_text(f"{number}")
    orders.place(TOTAL).write_text(f"{number}")


def _backlog(manager: merq.Manager) -> int:
    return max(len(manager.queue(each)) for each in (ARCHIVED, FORWARDED))


def _next_number(manager: merq.Manager) -> int:
    return int(str(manager.queue(NEXT).peek(timeout=RECONNECT_S).body))


def _send_some(manager: merq.Manager, first: int, count: int) -> None:
    following = manager.queue(NEXT)
    bodies = [body_of(number) for number in range(first, first + count)]
    with manager.transaction() as tx:
        following.receive(timeout=RECONNECT_S, tx=tx)
        for each in (ARCHIVED, FORWARDED):
            manager.queue(each).send_many(bodies, tx=tx)
        following.send(f"{first + count}", tx=tx)


# The driver.


class _Watching:
    """Told how far the archive is; that is also the time to look after the other stream."""

    def __init__(self, other: Any) -> None:
        self._other = other

    def say(self, text: str) -> None:
        """Into the log."""
        print(text, flush=True)

    def step(self, name: str, done: int, total: int | None) -> None:  # noqa: ARG002
        """Fails if the other stream did.

        Raises:
            StreamingQueryException: The reason.
        """
        wrong = self._other.exception()
        if wrong is not None:
            raise wrong


def drive(orders: Orders, *, is_last: bool) -> None:
    """Runs both streams, until they are stopped; the last time until nothing is left."""
    from merq.spark.flows import archive
    from merq.spark.session import spark_session

    spark = spark_session("chaos", master=orders.master, extra=orders.settings)
    other = _forwarding(spark, orders, is_last=is_last)
    settings = archive.Settings(
        lake=str(orders.place("lake")),
        queue=(ARCHIVED,),
        url=(orders.url,),
        mode="once" if is_last else "continuous",
        read_mode="receive",
        name=GROUP,
        max_messages=orders.most(is_last=is_last),
        every_s=EVERY_S,
    )
    watching = _Watching(other)
    print(archive.run(spark, settings, watching), flush=True)
    if is_last:
        other.awaitTermination()
        # Journals prove that everything was received once.
        orders.place(RECONCILED).write_text(_reconciled(spark, orders).as_json())
        write_numbers(spark, orders.url, NUMBERS, orders.place(BEGUN))
    else:
        other.stop()
    spark.stop()


def _reconciled(spark: SparkSession, orders: Orders) -> Summary:
    from merq.spark.flows import reconcile
    from merq.spark.flows.running import Quiet

    settings = reconcile.Settings(url=(orders.url,), output=str(orders.place("verdicts")))
    return reconcile.run(spark, settings, Quiet())


def _forwarding(spark: SparkSession, orders: Orders, *, is_last: bool) -> Any:
    """The stream from queue to queue."""
    options = {
        "url": orders.url,
        "queue": FORWARDED,
        "readMode": "receive",
        "consumerGroup": GROUP,
        "columns": "value",
        "maxMessagesPerTrigger": str(orders.most(is_last=is_last)),
    }
    attempts = str(orders.place(ATTEMPTS))

    def dawdle(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber():
            batch = context.getLocalProperty("streaming.sql.batchId")
            line = f"{batch} {context.partitionId()} {context.attemptNumber()}\n"
            file = os.open(attempts, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, line.encode())
            os.close(file)
        elif random.random() < DAWDLE_CHANCE:  # noqa: S311 - any will do
            time.sleep(DAWDLE_S)
        yield from batches

    rows = spark.readStream.format("msmq").options(**options).load()
    writing = (
        rows.mapInArrow(dawdle, "value string")
        .writeStream.format("msmq")
        .option("url", orders.url)
        .option("queue", TARGET)
        .option("checkpointLocation", str(orders.place("forwarding")))
    )
    if is_last:
        return writing.trigger(availableNow=True).start()
    return writing.trigger(processingTime=f"{int(EVERY_S * 1000)} milliseconds").start()


def main() -> None:
    """Does what the first word says."""
    orders = Orders.read(Path(sys.argv[2]))
    match sys.argv[1]:
        case "feed":
            feed(orders)
        case "drive":
            drive(orders, is_last=False)
        case "drain":
            drive(orders, is_last=True)
        case other:
            sys.exit(f"{other} was found; feed, drive or drain belongs there")


if __name__ == "__main__":
    main()
