"""A queue to another place: a queue of this or another queue manager, RabbitMQ, or Kafka.

Messages are read in micro-batches and sent by `foreachBatch`; the checkpoint says which are done. A
migration that was interrupted goes on where it was when it is started again with the same output.
What each batch had is written into a ledger, and at the end that is compared with what is there.

To a queue of Merq, messages go exactly once. To RabbitMQ and Kafka they go at least once: a batch
that fails in the middle is sent again. Every message has the id that it had here, so that consumers
can drop those that they have seen: in RabbitMQ the property `message_id`, in Kafka the key and the
header `message_id`.

By default messages leave the queue that they come from once they are where they go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from merq.spark.checkpoints import check_checkpoint
from merq.spark.columns import ddl
from merq.spark.fleet import only_member, options_of
from merq.spark.flows.running import Progress, Summary, awaited, failing
from merq.spark.lake.folder import Folder
from merq.spark.managers import places
from merq.spark.migrating.ledger import CHECKPOINT, Comparison, Ledger, checkpoint_of, compare
from merq.spark.migrating.rabbitmq import Broker
from merq.spark.migrating.targets import (
    COLUMNS,
    KafkaTarget,
    QueueTarget,
    RabbitTarget,
    Target,
)
from merq.spark.options import BadOption, read_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "migrate"
SUMMARY: Final = "Moves a queue to another queue, to RabbitMQ or to Kafka, and checks what came."


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """From where, to where, and how.

    Attributes:
        url: The queue manager that messages come from, unix:PATH or tls://HOST:PORT; that of this
            computer by default.
        token: For a queue manager that asks for one; also for the target if that is a queue.
        tls_ca: Certificates to trust.
        tls_cert: The client's own certificate.
        tls_key: The key of that.
        queue: The queue that messages come from.
        to: What they go to.
        target: The queue, the routing key or the topic that they go to.
        target_url: Where that is: a queue manager (the same one if it is empty),
            amqp://user:password@host:port/vhost, or Kafka's servers.
        exchange: For RabbitMQ: the exchange; empty leads to the queue that target names.
        keep_id: For queues: where messages keep the id that they had.
        text: For RabbitMQ and Kafka: bodies that are text are sent as UTF-8, not as they are.
        copy: Messages stay where they are.
        group: The name under which messages are reserved while they are moved.
        continuous: Go on with what comes, until it is stopped.
        most: Messages of one micro-batch.
        partitions: Into how many parts a batch is split; with one, messages stay in order.
        verify: Compare afterwards what was moved with what is there.
        output: The folder for the checkpoint and the ledger.
    """

    url: str = ""
    token: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    queue: str
    to: Literal["queue", "rabbitmq", "kafka"] = "queue"
    target: str
    target_url: str = ""
    exchange: str = ""
    keep_id: Literal["none", "correlation_id", "extension"] = "none"
    text: bool = True
    copy: bool = False
    group: str = "migrate"
    continuous: bool = False
    most: int = 100_000
    partitions: int = 1
    verify: bool = True
    output: str = "migration"

    def source_options(self) -> dict[str, str]:
        """What the source is told."""
        given = {
            **options_of(self),
            "queue": self.queue,
            "minPartitions": str(self.partitions),
            "maxMessagesPerTrigger": str(self.most),
            "readMode": "peek" if self.copy else "receive",
        }
        return given if self.copy else {**given, "consumerGroup": self.group}


def look(settings: Settings) -> None:
    """Looks whether it can be done; nothing is changed.

    Raises:
        BadOption: The settings do not fit together.
        DataLoss: The checkpoint is one of another queue manager.
        FlowFailed: The target does not answer.
        MessageQueueError: A queue manager does not answer, or has no such queue.
    """
    _ready(settings)


def _ready(settings: Settings) -> Target:
    """Where messages go, if they can come from where they are and go there."""
    options = read_options(settings.source_options())
    only_member(settings)
    queues = places(options)
    target = target_of(settings)
    target.look()
    if settings.copy and "://" not in settings.output:
        check_checkpoint(Folder(settings.output), CHECKPOINT, queues)
    return target


def run(spark: SparkSession, settings: Settings, progress: Progress) -> Summary:
    """Moves a queue to another queue, to RabbitMQ or to Kafka, and checks what came.

    To a queue messages go exactly once; to RabbitMQ and Kafka at least once, with their ids, so
    that consumers can drop what they have seen. Started again with the same --output it goes on
    where it was. A ledger there has the ids of all messages that were moved. With --check the exit
    status is 1 if what is there afterwards is not what was moved.

    merq pipeline run migrate --queue orders --target orders2 --target-url unix:b/merq.sock
    merq pipeline run migrate --queue orders --to rabbitmq --target orders

    Raises:
        BadOption: The settings do not fit together.
        DataLoss: The checkpoint is one of another queue manager.
        FlowFailed: Spark, or the target, could not do it.
        MessageQueueError: A queue manager does not answer, or has no such queue.
    """
    target = _ready(settings)
    target.check(spark)
    with failing("migrate"):
        ledger = Ledger.at(spark, settings.output)
        progress.say(f"moving {settings.queue} to {settings.target} ({settings.to})")
        ended = _stream(spark, settings, target, ledger, progress)
        moved = ledger.read(spark)
        if not settings.verify:
            total = moved.count()
            return Summary(figures={"moved": total}, lines=(f"{total:,} messages moved",))
        progress.say("comparing what was moved with what is there")
        found = compare(moved, target.there(spark), target.key)
    return _summary(found, settings, ended=ended)


def target_of(settings: Settings) -> Target:
    """Where messages go.

    Raises:
        BadOption: It is not said.
    """
    if settings.to == "rabbitmq":
        if not settings.target_url.lower().startswith(("amqp://", "amqps://")):
            raise BadOption(
                f"target_url is {settings.target_url.rpartition('@')[2] or 'empty'}; "
                "amqp://user:password@host:port/vhost belongs there"
            )
        broker = Broker(settings.target_url, settings.exchange, settings.target)
        return RabbitTarget(broker, settings.text)
    if settings.to == "kafka":
        return KafkaTarget(settings.target_url, settings.target, settings.text)
    reach = replace(settings, url=settings.target_url or settings.url)
    member, source = only_member(reach), only_member(settings)
    path = member.path_of(settings.target)
    if member.guid == source.guid and path.lower() == source.path_of(settings.queue).lower():
        raise BadOption(f"target: {settings.target} is the queue that messages come from")
    return QueueTarget(reach, member, path, settings.keep_id)


def _stream(
    spark: SparkSession, settings: Settings, target: Target, ledger: Ledger, progress: Progress
) -> bool:
    """Moves what is there, and what comes if that is wanted; says whether it ended by itself."""
    reader = (
        spark.readStream.format("msmq").options(**settings.source_options()).schema(ddl(COLUMNS))
    )

    def send(rows: DataFrame, batch: int) -> None:
        target.send(rows, batch, ledger)

    writer = reader.load().writeStream.foreachBatch(send)
    writer = writer.option("checkpointLocation", checkpoint_of(settings.output))
    if not settings.continuous:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    last: dict[str, Any] = {"batch": -1, "done": 0}

    def look() -> None:
        told = query.lastProgress
        if told is not None and told["batchId"] != last["batch"]:
            last["batch"] = told["batchId"]
            last["done"] += int(told["numInputRows"])
            progress.step("messages read", last["done"], None)

    return awaited(query, look)


def _summary(found: Comparison, settings: Settings, *, ended: bool) -> Summary:
    verdict = "everything is there, and nothing twice" if found.is_exact else "they differ"
    lines = [f"{found.moved:,} messages moved to {settings.target}; {verdict}"]
    lines.append(
        f"{found.found:,} are there, {found.missing:,} are not, {found.doubled:,} are there too "
        f"often, {found.strange:,} others are there"
    )
    if found.missing:
        lines.append("What is not there was received meanwhile, or lost; the ledger has all ids.")
    if not ended:
        lines.append("It was stopped; start it again with the same output to go on.")
    figures = {
        "moved": found.moved,
        "found": found.found,
        "missing": found.missing,
        "doubled": found.doubled,
        "strange": found.strange,
        "exact": found.is_exact,
    }
    finding = ""
    if not found.is_exact:
        finding = (
            f"of {found.moved:,} messages that were moved {found.missing:,} are not in "
            f"{settings.target}, and {found.doubled:,} are there too often"
        )
    return Summary(figures=figures, lines=(*lines, *found.names), finding=finding)
