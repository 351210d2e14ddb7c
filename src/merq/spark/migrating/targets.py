"""Where messages go: another queue of Merq, a queue of RabbitMQ, or a topic of Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from merq.spark.fleet import Member, Reach, id_of, options_of, read
from merq.spark.flows.running import FlowFailed
from merq.spark.migrating.ledger import Ledger, digest
from merq.spark.migrating.rabbitmq import LEDGER, Broker
from merq.spark.options import BadOption

KAFKA_PACKAGE: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""What Spark needs for Kafka; it is not part of the pip package."""

COLUMNS: Final = (
    *("queue", "message_id", "label", "body", "body_type", "value", "priority", "delivery"),
    *("correlation_id", "sent_time", "response_queue", "app_tag", "extension"),
)
"""What is read of messages that are moved."""

NO_ID, IN_CORRELATION, IN_EXTENSION = "none", "correlation_id", "extension"


class Target(Protocol):
    """Somewhere that messages are moved to.

    Attributes:
        key: The column by which is compared what is there: `message_id` or `digest`.
    """

    @property
    def key(self) -> str: ...  # noqa: D102 - the class says it

    def look(self) -> None:
        """Looks whether it can be reached, before Spark is started; changes nothing."""

    def check(self, spark: SparkSession) -> None:
        """Looks whether Spark has what it needs for it, before anything is moved."""

    def send(self, rows: DataFrame, batch: int, ledger: Ledger) -> None:
        """Moves a batch, and writes it down."""

    def there(self, spark: SparkSession) -> DataFrame:
        """What is there: message_id, digest."""


def with_payload(rows: DataFrame, *, text: bool) -> DataFrame:
    """What is sent of each message, and its digest; texts as UTF-8 if that is wanted."""
    is_text = sql.col("value").isNotNull() if text else sql.lit(col=False)
    payload = sql.when(is_text, sql.encode("value", "utf-8")).otherwise(sql.col("body"))
    return (
        rows.withColumn("is_text", is_text)
        .withColumn("payload", payload)
        .withColumn("digest", digest(sql.col("label"), sql.col("body_type"), sql.col("payload")))
    )


@dataclass(frozen=True, slots=True)
class QueueTarget:
    """A queue of this or another queue manager: each batch is written exactly once.

    Attributes:
        reach: How its queue manager is reached.
        member: Its queue manager.
        queue: Its path name there.
        keep_id: Where a message keeps the id that it had: NO_ID, IN_CORRELATION or IN_EXTENSION.
    """

    reach: Reach
    member: Member
    queue: str
    keep_id: str

    @property
    def key(self) -> str:
        """Messages get new ids; the old ones are there if they were kept."""
        return "digest" if self.keep_id == NO_ID else "message_id"

    def look(self) -> None:
        """Looks whether the queue is there.

        Raises:
            MessageQueueError: It is not.
        """
        self.member.access.manager().queue(self.queue)

    def check(self, _spark: SparkSession) -> None:
        """Spark needs nothing more."""

    def send(self, rows: DataFrame, batch: int, ledger: Ledger) -> None:
        """Moves a batch; if that was done before, nothing is sent."""
        rows = with_payload(rows, text=False)
        correlation, extension = sql.col("correlation_id"), sql.col("extension")
        if self.keep_id == IN_CORRELATION:
            correlation = _id_bytes(sql.col("message_id"))
        elif self.keep_id == IN_EXTENSION:
            extension = sql.encode("message_id", "utf-8")
        sent = rows.select(
            *("body", "body_type", "label", "priority", "response_queue", "app_tag"),
            correlation.alias("correlation_id"),
            extension.alias("extension"),
        )
        sent.write.format("msmq").options(**options_of(self.reach)).options(
            queue=self.queue, writer=ledger.writer, batch=str(batch)
        ).mode("append").save()
        ledger.write(rows.select("message_id", "digest"), batch)

    def there(self, spark: SparkSession) -> DataFrame:
        """What is in the queue, and what was received from it if it keeps a journal."""
        names = {each.lower(): each for each in self.member.queues()}
        journal = names.get(f"{self.queue.lower()};journal")
        queues = [self.queue] if journal is None else [self.queue, journal]
        rows = read(spark, self.reach, self.member, queues, COLUMNS)
        own = sql.col("message_id")
        if self.keep_id == IN_CORRELATION:
            own = id_of(sql.col("correlation_id"))
        elif self.keep_id == IN_EXTENSION:
            own = sql.decode("extension", "utf-8")
        return with_payload(rows, text=False).select(own.alias("message_id"), "digest")


def _id_bytes(message_id: Column) -> Column:
    r"""The 20 bytes of `{guid}\number`, as a correlation id wants them."""
    guid = sql.replace(sql.substring(message_id, 2, 36), sql.lit("-"), sql.lit(""))
    number = sql.lpad(sql.hex(sql.substring_index(message_id, "\\", -1).cast("bigint")), 8, "0")

    def backwards(digits: Column, first: int, last: int) -> list[Column]:
        return [sql.substring(digits, 2 * each + 1, 2) for each in range(last, first - 1, -1)]

    return sql.unhex(
        sql.concat(
            *backwards(guid, 0, 3),
            *backwards(guid, 4, 5),
            *backwards(guid, 6, 7),
            sql.substring(guid, 17, 16),
            *backwards(number, 0, 3),
        )
    )


@dataclass(frozen=True, slots=True)
class RabbitTarget:
    """A queue of RabbitMQ: each message at least once, with its id so that doubles can be told.

    Attributes:
        broker: The broker and the queue.
        text: Bodies that are text are sent as UTF-8.
    """

    broker: Broker
    text: bool

    @property
    def key(self) -> str:
        """Messages keep their ids."""
        return "message_id"

    def check(self, _spark: SparkSession) -> None:
        """Spark needs nothing more."""

    def look(self) -> None:
        """Looks whether the broker answers and has the queue.

        Raises:
            FlowFailed: It does not.
        """
        if not self.broker.exchange:
            self.broker.check()

    def send(self, rows: DataFrame, batch: int, ledger: Ledger) -> None:
        """Moves a batch; what its tasks have sent goes into the ledger."""
        ledger.write(
            with_payload(rows, text=self.text).mapInArrow(self.broker.publish, LEDGER), batch
        )

    def there(self, spark: SparkSession) -> DataFrame:
        """What is in the queue now: all of it is taken and given back."""
        return spark.range(0, 1, 1, numPartitions=1).mapInArrow(self.broker.look, LEDGER)


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """A topic of Kafka, by Spark's own sink: each message at least once, its id as a header.

    Attributes:
        servers: `host:port`, separated by commas.
        topic: The topic.
        text: Bodies that are text are sent as UTF-8.
    """

    servers: str
    topic: str
    text: bool

    @property
    def key(self) -> str:
        """Messages keep their ids."""
        return "message_id"

    def look(self) -> None:
        """Looks whether servers are named; only Spark has somebody who can ask them.

        Raises:
            BadOption: None are.
        """
        self._options()

    def check(self, spark: SparkSession) -> None:
        """Looks whether Spark has its connector for Kafka.

        Raises:
            FlowFailed: It has not; the text says what is needed.
        """
        try:
            self.there(spark)
        except AnalysisException as wrong:
            raise FlowFailed(
                f"this Spark has no connector for Kafka: start it with --conf spark.jars.packages="
                f"{KAFKA_PACKAGE}:{spark.version}, or put that jar and what it needs into its "
                "folder jars"
            ) from wrong

    def send(self, rows: DataFrame, batch: int, ledger: Ledger) -> None:
        """Moves a batch."""
        rows = with_payload(rows, text=self.text)
        names = ("message_id", "label", "body_type", "correlation_id", "app_tag", "queue")
        header = sql.array(
            *(
                sql.struct(sql.lit(name).alias("key"), sql.col(name).cast("binary").alias("value"))
                if name == "correlation_id"
                else sql.struct(
                    sql.lit(name).alias("key"),
                    sql.encode(sql.col(name).cast("string"), "utf-8").alias("value"),
                )
                for name in names
            )
        )
        rows.select(
            sql.encode("message_id", "utf-8").alias("key"),
            sql.col("payload").alias("value"),
            header.alias("headers"),
        ).write.format("kafka").options(**self._options()).option("topic", self.topic).option(
            "includeHeaders", "true"
        ).save()
        ledger.write(rows.select("message_id", "digest"), batch)

    def there(self, spark: SparkSession) -> DataFrame:
        """What is in the topic."""
        reader = spark.read.format("kafka").options(**self._options())
        rows = reader.option("subscribe", self.topic).option("includeHeaders", "true").load()
        headers = sql.map_from_entries("headers")
        return rows.select(
            sql.decode("key", "utf-8").alias("message_id"),
            digest(
                sql.decode(headers["label"], "utf-8"),
                sql.decode(headers["body_type"], "utf-8").cast("int"),
                sql.col("value"),
            ).alias("digest"),
        )

    def _options(self) -> dict[str, str]:
        if not self.servers:
            raise BadOption("target_url is empty; Kafka's servers belong there: host:port")
        return {"kafka.bootstrap.servers": self.servers}
