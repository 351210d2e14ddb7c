"""A program that uses queues through Spark Connect; it says what it found as JSON.

A process has either a classic session or one of these, so the tests start it as a process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(server: str, url: str, source: str, target: str, folder: Path) -> None:
    """Reads a queue, streams it into another, and writes to that as well."""
    spark = SparkSession.builder.remote(server).getOrCreate()
    try:
        frame = spark.read.format("msmq").option("url", url).load(source)
        read = [row["value"] for row in frame.collect()]
        stream = (
            spark.readStream.format("msmq")
            .options(url=url, queue=source, readMode="receive", consumerGroup="connect")
            .load()
        )
        query = (
            stream.writeStream.format("msmq")
            .options(url=url, queue=target, checkpointLocation=str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        is_over = query.awaitTermination(120)
        more = spark.range(1).selectExpr("'written' as value")
        more.write.format("msmq").options(url=url, queue=target).mode("append").save()
        print(json.dumps({"kind": type(spark).__module__, "read": read, "over": is_over}))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], Path(sys.argv[5]))
