"""What is measured, with a session that is warm."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bench.spark.sending import sending

import merq

BODY_BYTES = 1024
BATCH = 2000
BATCHES_KEPT = 10
"""So many different batches there are; then they come again, too far apart to be compressed."""

SETTLED_S_MAX = 60.0
LOOKING_S = 0.5
IDLE_SHARE = 0.1
"""A queue manager that takes no more of a processor has nothing to tidy up any more."""

QUIET_S = 2.0
QUEUE, TARGET, LATENCY, BESIDE = (
    rf".\private$\{name}" for name in ("rows", "target", "latency", "beside")
)

Figures = dict[str, float]


def filled(manager: merq.Manager, count: int) -> None:
    """The queues, one of them with so many messages."""
    queue = manager.create_queue(QUEUE)
    for name in (TARGET, LATENCY, BESIDE):
        manager.create_queue(name)
    fill(queue, count)


def bodies(seed: int) -> list[bytes]:
    """Bodies, all different, that shrink to half of it if they are compressed, as texts do."""
    source = random.Random(seed)  # noqa: S311 - no secrets
    return [source.randbytes(BODY_BYTES // 2).hex().encode() for _ in range(BATCH)]


def fill(queue: merq.Queue, count: int) -> None:
    """Puts messages into a queue."""
    batches = [bodies(seed) for seed in range(BATCHES_KEPT)]
    for number in range(count // BATCH):
        queue.send_many(batches[number % BATCHES_KEPT], recoverable=True)


def processor_s(process: int) -> float:
    """What a process has taken of processors so far, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(count: int, work: Callable[[], object]) -> float:
    """Rows a second."""
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


class Session:
    """One Spark session and one queue manager."""

    def __init__(self, spark: Any, url: str, process: int, folder: Path, count: int) -> None:
        self._spark = spark
        self._url = url
        self._process = process
        self._folder = folder
        self._count = count

    def _source(self, reader: Any, queue: str = QUEUE, **options: object) -> Any:
        found = reader.format("msmq").option("url", self._url).option("queue", queue)
        for name, value in options.items():
            found = found.option(name, str(value))
        return found.load()

    def _ended(self, stream: Any, checkpoint: str) -> None:
        """Runs a stream to its end."""
        place = self._folder / checkpoint
        shutil.rmtree(place, ignore_errors=True)
        stream.option("checkpointLocation", str(place)).trigger(
            availableNow=True
        ).start().awaitTermination()

    def _sending(self) -> AbstractContextManager[list[float]]:
        return sending(self._url, BESIDE)

    def _settled(self) -> None:
        """Waits until the queue manager has tidied up what was received or purged before.

        That takes as long as writing, and would be measured as such.
        """
        time.sleep(QUIET_S)  # it begins when it has had nothing to do for a second or two
        end = time.monotonic() + SETTLED_S_MAX
        before = processor_s(self._process)
        while time.monotonic() < end:
            time.sleep(LOOKING_S)
            now = processor_s(self._process)
            if now - before <= IDLE_SHARE * LOOKING_S:
                return
            before = now

    def read(self) -> Figures:
        """Batches and streams, read."""
        count, spark = self._count, self._spark
        parquet = str(self._folder / "rows.parquet")
        found: Figures = {}
        if not Path(parquet).exists():
            self._source(spark.read).write.parquet(parquet)

        def noop(frame: Any) -> Callable[[], object]:
            return lambda: frame.write.format("noop").mode("overwrite").save()

        found["parquet, batch"] = rate(count, noop(spark.read.parquet(parquet)))
        for parts in (1, 2):
            frame = self._source(spark.read, minPartitions=parts)
            found[f"batch, {parts}"] = rate(count, noop(frame))
        schema = spark.read.parquet(parquet).schema
        stream = spark.readStream.schema(schema).parquet(parquet)
        found["parquet, stream"] = rate(
            count, lambda: self._ended(stream.writeStream.format("noop"), "c0")
        )
        for parts in (1, 2):
            stream = self._source(spark.readStream, minPartitions=parts)
            writing = stream.writeStream.format("noop")
            found[f"stream, {parts}"] = rate(count, lambda each=writing: self._ended(each, "c1"))  # type: ignore[misc]
        return found

    def write(self, manager: merq.Manager) -> Figures:
        """Batches, written, and a stream from a queue to another."""
        count, spark = self._count, self._spark
        rows = spark.read.parquet(str(self._folder / "rows.parquet"))
        target = manager.queue(TARGET)
        found: Figures = {}
        self._settled()
        copy = str(self._folder / "copy.parquet")
        found["parquet, write"] = rate(count, lambda: rows.write.mode("overwrite").parquet(copy))
        sink = rows.select("body").write.format("msmq").option("url", self._url)
        found["write"] = rate(count, lambda: sink.option("queue", TARGET).mode("append").save())
        target.purge()
        self._settled()
        stream = self._source(
            spark.readStream, readMode="receive", consumerGroup=f"bench {time.time()}"
        )
        writing = stream.writeStream.format("msmq").option("url", self._url)
        found["queue to queue"] = rate(
            count, lambda: self._ended(writing.option("queue", TARGET), "c2")
        )
        target.purge()
        fill(manager.queue(QUEUE), count)
        return found

    def latency(self, manager: merq.Manager, count: int) -> Figures:
        """From the send of one message until a batch function has it."""
        arrived: dict[str, float] = {}
        there = threading.Event()

        def take(batch: Any, _: int) -> None:
            now = time.perf_counter()
            for row in batch.collect():
                arrived[row["value"]] = now
            there.set()

        queue = manager.queue(LATENCY)
        stream = self._source(
            self._spark.readStream, LATENCY, readMode="receive", consumerGroup="latency"
        ).select("value")
        place = self._folder / "c3"
        shutil.rmtree(place, ignore_errors=True)
        query = (
            stream.writeStream.foreachBatch(take).option("checkpointLocation", str(place)).start()
        )
        took = []
        try:
            for number in range(count + 3):
                there.clear()
                start = time.perf_counter()
                queue.send(str(number))
                if not there.wait(SETTLED_S_MAX):
                    raise TimeoutError("a message did not come through the stream")
                took.append(arrived[str(number)] - start)
        finally:
            query.stop()
        best = sorted(took[3:])
        return {"latency, least": best[0], "latency, p50": statistics.median(best)}

    def disturbance(self, manager: merq.Manager) -> Figures:
        """What a client that sends meanwhile notices."""
        found = {}
        with self._sending() as took:
            time.sleep(QUIET_S)
        found["send, alone"] = _p99(took)
        rows = self._spark.read.parquet(str(self._folder / "rows.parquet"))
        # The same work of Spark's on the same cores, of which the queue manager knows nothing.
        with self._sending() as took:
            for _ in range(2):
                rows.write.format("noop").mode("overwrite").save()
                rows.write.mode("overwrite").parquet(str(self._folder / "copy.parquet"))
        found["send, beside Parquet"] = _p99(took)
        with self._sending() as took:
            for _ in range(2):
                self._source(self._spark.read).write.format("noop").mode("overwrite").save()
        found["send, beside reading"] = _p99(took)
        sink = rows.select("body").write.format("msmq").option("url", self._url)
        self._settled()
        with self._sending() as took:
            sink.option("queue", TARGET).mode("append").save()
        found["send, beside writing"] = _p99(took)
        manager.queue(TARGET).purge()
        manager.queue(BESIDE).purge()
        return found


def _p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)]
