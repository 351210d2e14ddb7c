"""The archive of a queue, and what is in it by day and label."""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

spark = SparkSession.active()


@dp.table(comment="Every message that was in the queue, once.")
def archive() -> DataFrame:
    """Messages leave the queue when they are in the table."""
    messages = (
        spark.readStream.format("msmq")
        .option("url", spark.conf.get("spark.merq.url"))
        .option("queue", spark.conf.get("spark.merq.queue"))
        .option("readMode", "receive")
        .option("consumerGroup", "pipeline")
        .load()
    )
    return messages.withColumn("day", sql.to_date("arrived_time"))


@dp.materialized_view(comment="Messages by day and label.")
def messages_by_label() -> DataFrame:
    """It is computed anew each time."""
    rows = spark.read.table("archive")
    return rows.groupBy("day", "label").agg(
        sql.count("*").alias("messages"), sql.sum(sql.length("body")).alias("body_bytes")
    )
