"""Spark looks for data sources in packages of this name: `format("msmq")` works by that."""

from merq.spark.source import MsmqSource as DefaultSource

__all__ = ["DefaultSource"]
