"""Messages to RabbitMQ, and what is in a queue there.

AMQP 0-9-1 has no way to publish something once and only once: a task that fails after the broker
confirmed some of its messages is done again, and they are published again. Every message carries
its id of before in the property `message_id`, the same each time: a consumer that remembers the ids
it has seen, and drops those that it sees again, gets each message once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from merq.spark.flows.running import FlowFailed

PERSISTENT: Final = 2
"""The delivery mode of messages that survive a restart of the broker."""

PRIORITY_MAX: Final = 7
READ_ROWS: Final = 1_000
"""Messages that are handed to Spark at once."""

LEDGER: Final = "message_id string, digest string"
_LEDGER: Final = pa.schema([("message_id", pa.string()), ("digest", pa.string())])
_NO_CORRELATION: Final = bytes(20)


def client() -> Any:
    """The module `pika`, which is needed only here.

    Raises:
        FlowFailed: It is not installed.
    """
    try:
        return import_module("pika")
    except ImportError as wrong:
        raise FlowFailed(
            "RabbitMQ is reached by the package pika, which is not installed: pip install pika, on "
            "every computer of the cluster"
        ) from wrong


def digest_of(label: str, body_type: int, payload: bytes) -> str:
    """As `merq.spark.migrating.ledger.digest`."""
    text = f"{label}\0{body_type}\0".encode("utf-8", "replace")
    return hashlib.sha256(text + payload).hexdigest()


@dataclass(frozen=True, slots=True)
class Broker:
    """A queue of a broker.

    Attributes:
        url: `amqp://user:password@host:port/vhost`.
        exchange: Through which messages go; empty for the one that leads to queues by their names.
        queue: The queue, or the routing key.
    """

    url: str
    exchange: str
    queue: str

    def check(self) -> int:
        """Looks whether the broker and the queue are there; gives how many messages wait.

        Raises:
            FlowFailed: One of them is not.
        """
        with _Channel(self) as channel:
            found = channel.queue_declare(self.queue, passive=True)
            return int(found.method.message_count)

    def publish(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sends rows, each confirmed before the next; gives what the ledger has of them."""
        with _Channel(self) as channel:
            channel.confirm_delivery()
            for batch in batches:
                done = []
                for row in batch.to_pylist():
                    # Refused or unroutable messages raise.
                    channel.basic_publish(
                        self.exchange,
                        self.queue,
                        row["payload"] or b"",
                        _properties(row),
                        mandatory=True,
                    )
                    done.append({"message_id": row["message_id"], "digest": row["digest"]})
                yield pa.RecordBatch.from_pylist(done, _LEDGER)

    def look(self, _batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is in the queue, as the ledger has it; it goes back when the channel is closed."""
        with _Channel(self) as channel:
            rows = self._rows(channel)
            while some := list(islice(rows, READ_ROWS)):
                yield pa.RecordBatch.from_pylist(some, _LEDGER)

    def _rows(self, channel: Any) -> Iterator[dict[str, str]]:
        waiting = int(channel.queue_declare(self.queue, passive=True).method.message_count)
        for _ in range(waiting):
            method, properties, body = channel.basic_get(self.queue, auto_ack=False)
            if method is None:
                return
            headers = properties.headers or {}
            label, kind = str(headers.get("label", "")), int(headers.get("body_type", 0))
            yield {
                "message_id": properties.message_id or "",
                "digest": digest_of(label, kind, body),
            }


class _Channel:
    """A channel of a connection of its own, for a `with` block."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._pika = client()
        self._connection: Any = None

    def __enter__(self) -> Any:
        try:
            self._connection = self._pika.BlockingConnection(
                self._pika.URLParameters(self._broker.url)
            )
            return self._connection.channel()
        except (self._pika.exceptions.AMQPError, OSError) as wrong:
            raise FlowFailed(
                f"{self._told(wrong)}: is it running there, and are port, user and password right?"
            ) from wrong

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._connection is not None and self._connection.is_open:
            self._connection.close()
        if isinstance(error, self._pika.exceptions.AMQPError):
            raise FlowFailed(self._told(error)) from error

    def _told(self, wrong: BaseException) -> str:
        """What is wrong, without the password that is in the URL."""
        place = self._broker.url.rpartition("@")[2].removeprefix("amqp://")
        words = str(wrong) or type(wrong).__name__
        return f"RabbitMQ at {place}, queue {self._broker.queue}: {words}"


def _properties(row: dict[str, Any]) -> Any:
    headers = {
        "label": (row["label"] or "").encode("utf-8", "replace").decode(),
        "body_type": row["body_type"],
        "app_tag": row["app_tag"],
        "response_queue": row["response_queue"] or "",
        "source_queue": row["queue"],
    }
    correlation: bytes | None = row["correlation_id"]
    sent: datetime | None = row["sent_time"]
    return client().BasicProperties(
        message_id=row["message_id"],
        headers=headers,
        delivery_mode=PERSISTENT,
        priority=min(row["priority"] or 0, PRIORITY_MAX),
        content_type="text/plain" if row["is_text"] else "application/octet-stream",
        content_encoding="utf-8" if row["is_text"] else None,
        correlation_id=correlation.hex()
        if correlation and correlation != _NO_CORRELATION
        else None,
        timestamp=None if sent is None else int(sent.timestamp()),
    )
