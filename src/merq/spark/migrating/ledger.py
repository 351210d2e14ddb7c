"""What was moved, written down batch by batch, and compared with what is there afterwards.

A batch that is done again writes the same part of the ledger again, so the ledger has each message
once however often something failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

NAMED_MAX: Final = 20
"""So many messages that are missing or doubled are named."""

CHECKPOINT: Final = "checkpoint"
"""The folder of the checkpoint in that of a migration."""

_NOTHING: Final = b"\0"


def digest(label: Column, body_type: Column, payload: Column) -> Column:
    """What tells two messages from each other that have no id in common; `digest_of` is the same.

    Args:
        label: The label.
        body_type: The type of the body.
        payload: The bytes that are sent.
    """
    apart = sql.lit(_NOTHING)
    return sql.sha2(
        sql.concat(
            sql.encode(sql.coalesce(label, sql.lit("")), "utf-8"),
            apart,
            sql.encode(sql.coalesce(body_type, sql.lit(0)).cast("string"), "utf-8"),
            apart,
            sql.coalesce(payload, sql.lit(b"")),
        ),
        256,
    )


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of one checkpoint.

    Attributes:
        folder: Where it is.
        writer: The name of what writes it, made with the checkpoint.
    """

    folder: str
    writer: str

    @classmethod
    def at(cls, spark: SparkSession, output: str) -> Ledger:
        """The ledger for the checkpoint in a folder.

        Its name lies in the checkpoint: with a new checkpoint batches are counted from 0 again, and
        under the old name they would be taken for those that were written before.
        """
        place = f"{checkpoint_of(output)}/merq-writer"
        fresh = spark.createDataFrame([(f"migration {uuid4()}",)], "value string")
        fresh.coalesce(1).write.mode("ignore").text(place)
        (row,) = spark.read.text(place).collect()
        return cls(f"{output}/ledger", str(row["value"]))

    @property
    def _own(self) -> str:
        return f"{self.folder}/{self.writer.replace(' ', '-')}"

    def write(self, rows: DataFrame, batch: int) -> None:
        """Writes down what a batch has: message_id, digest; again if that was done before."""
        rows.write.mode("overwrite").parquet(f"{self._own}/batch={batch}")

    def read(self, spark: SparkSession) -> DataFrame:
        """Everything that was moved."""
        schema = "message_id string, digest string, batch bigint"
        return spark.read.schema(schema).parquet(self._own)


def checkpoint_of(output: str) -> str:
    """Where the checkpoint of a migration is."""
    return f"{output}/{CHECKPOINT}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was moved against what is there.

    Attributes:
        moved: Messages in the ledger.
        found: Those of them that are there, each once.
        missing: Those that are not: lost, or received there meanwhile.
        doubled: How many there are too many of them.
        strange: Messages there that are not of this migration.
        names: Some of those that are missing or doubled.
    """

    moved: int
    found: int
    missing: int
    doubled: int
    strange: int
    names: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether everything is there, and nothing twice."""
        return self.missing == 0 and self.doubled == 0


def compare(moved: DataFrame, there: DataFrame, key: str) -> Comparison:
    """Compares by a column that both have: `message_id`, or `digest`, of which several are alike.

    Args:
        moved: The ledger.
        there: What the target has.
        key: The column.
    """
    ours = moved.groupBy(key).agg(
        sql.count("*").alias("moved"), sql.min("message_id").alias("example")
    )
    theirs = there.groupBy(key).agg(sql.count("*").alias("there"))
    zero = sql.lit(0)
    both = ours.join(theirs, key, "full_outer").select(
        "example",
        sql.coalesce("moved", zero).alias("moved"),
        sql.coalesce("there", zero).alias("there"),
    )
    known = sql.col("moved") > 0
    totals = both.agg(
        sql.sum("moved"),
        sql.sum(sql.least("moved", "there")),
        sql.sum(sql.greatest(sql.col("moved") - sql.col("there"), zero)),
        sql.sum(sql.when(known, sql.greatest(sql.col("there") - sql.col("moved"), zero))),
        sql.sum(sql.when(~known, sql.col("there"))),
    ).first()
    assert totals is not None, "a total is always a row"
    moved_count, found, missing, doubled, strange = (int(each or 0) for each in totals)
    names: tuple[str, ...] = ()
    if missing or doubled:
        wrong = both.where(known & (sql.col("moved") != sql.col("there"))).orderBy("example")
        names = tuple(
            f"{row['example']}: {row['moved']} moved, {row['there']} there"
            for row in wrong.limit(NAMED_MAX).collect()
        )
    return Comparison(moved_count, found, missing, doubled, strange, names)
