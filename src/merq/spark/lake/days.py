"""What an archive adds to messages: the day on which they came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merq.spark.lake.description import DAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DAY: Final = "date_from_unix_date(cast(floor(unix_micros(arrived_time) / 86400000000) as int))"
"""The day of a moment in UTC, whatever the session's time zone is."""


def with_day(rows: DataFrame) -> DataFrame:
    """Messages with their day behind their columns."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark takes long to import

    return rows.withColumn(DAY, f.expr(_DAY))
