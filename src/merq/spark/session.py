"""A session of Spark for pipelines: Java found, bound to this machine, and quiet."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from merq.spark.home import PYTHON, use_quick_home
from merq.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK: Final = "127.0.0.1"
ARROW_ROWS: Final = 2048
"""Messages that go between Spark and Python at once; measured: more or fewer are slower."""

_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""`spark-submit` sets it for the program that it starts."""

_JAVA: Final = "-Xss16m"
"""A stream that is stopped within a batch looks for the reason by a regular expression whose depth
grows with the text: with Java's usual stack it ends with pages of StackOverflowError."""

_QUICK_JAVA: Final = f"{_JAVA} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.daemon.module": "merq.spark.daemon",
}
CHECKPOINTS: Final = "spark.sql.streaming.checkpointFileManagerClass"
LOCAL_CHECKPOINTS: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""On a file system of this machine Spark's usual way of writing a checkpoint starts a dozen
processes for each batch, which takes 80 ms; this one starts two, and promises the same there."""

_USUAL: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def is_local(master: str) -> bool:
    """Whether Spark runs within this process."""
    return master.partition("[")[0] == "local"


def session_settings(
    *, master: str, quick: bool = False, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a session is told; `extra` is meant before everything else.

    Args:
        master: Where Spark runs; empty if `spark-submit` has said it.
        quick: Starts in half the time, and works slower.
        extra: More settings, by Spark's names.
    """
    found = dict(_ALWAYS)
    if master:
        found |= _USUAL
    if master and is_local(master):
        found |= {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        }
    if quick or (master and is_local(master)):
        found["spark.driver.extraJavaOptions"] = _QUICK_JAVA if quick else _JAVA
    return found | dict(extra or {})


def prepare(master: str) -> None:
    """Tells a Spark that is started next, by variables, what settings do not tell it."""
    if master and is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        use_quick_home()
    os.environ.setdefault(PYTHON, sys.executable)


def use_local_checkpoints(spark: SparkSession) -> None:
    """Streams that are started next have their checkpoints on a file system of this machine."""
    if spark.conf.get(CHECKPOINTS, None) is None:
        spark.conf.set(CHECKPOINTS, LOCAL_CHECKPOINTS)


def spark_session(
    app: str,
    *,
    master: str | None = None,
    quick: bool = False,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session, or the one that this process has already.

    Args:
        app: What it is called.
        master: Where Spark runs; what `spark-submit` said, or else all cores of this machine.
        quick: Starts in half the time, and works slower: for small jobs.
        extra: More settings, by Spark's names.

    Raises:
        NoJava: There is no Java that serves; the text says what to do.
    """
    is_submitted = _SUBMITTED in os.environ
    if not is_submitted:
        find_java()
    where = master or ("" if is_submitted else "local[*]")
    prepare(where)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes long, and wants the above

    builder = SparkSession.builder.appName(app)
    if where:
        builder = builder.master(where)
    for name, value in session_settings(master=where, quick=quick, extra=extra).items():
        builder = builder.config(name, value)
    # What is wrong with a predicate is told once, by us; not as a page of Java before that.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).disabled = True
    spark = builder.getOrCreate()
    # Failures are told in a sentence, on a terminal not behind a page of Java's; logs of a cluster
    # have all of it.
    usual = "OFF" if where and is_local(where) else "ERROR"
    spark.sparkContext.setLogLevel((extra or {}).get("spark.log.level", usual))
    return spark
