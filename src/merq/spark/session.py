"""A session of Spark for pipelines: Java found, bound to this machine, and quiet."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from merq.spark.home import PYTHON, use_quick_home
from merq.spark.java import find_java
from merq.spark.options import BadOption
from merq.spark.quieting import start_quietly

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

_LOG_LEVEL: Final = "spark.log.level"
DEFAULT_PROFILE: Final = "log4j2-defaults.properties"
"""The file of Spark's that says what it logs where nobody else says it."""

_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(\s*,\s*\d+)?\])?")
_MASTER: Final = re.compile(r"yarn$|k8s|spark|local")

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


def check_master(master: str) -> None:
    """Refuses what Spark would refuse after it has started.

    Raises:
        BadOption: It is no place where Spark can run.
    """
    if not (_LOCAL.fullmatch(master) if is_local(master) else _MASTER.match(master)):
        raise BadOption(
            f"--master {master}: local, local[2], local[*], spark://host:7077, k8s://https://host "
            "or yarn belongs there"
        )


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
    starting: Callable[[], None] = lambda: None,
) -> SparkSession:
    """A session, or the one that this process has already.

    Args:
        app: What it is called.
        master: Where Spark runs; what `spark-submit` said, or else all cores of this machine.
        quick: Starts in half the time, and works slower: for small jobs.
        extra: More settings, by Spark's names.
        starting: Called once it is known that Spark can be started.

    Raises:
        NoJava: There is no Java that serves; the text says what to do.
    """
    is_submitted = _SUBMITTED in os.environ
    if not is_submitted:
        find_java()
    where = master or ("" if is_submitted else "local[*]")
    prepare(where)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes long, and wants the above

    starting()
    settings = {"spark.app.name": app} | ({"spark.master": where} if where else {})
    settings |= session_settings(master=where, quick=quick, extra=extra)
    if where and is_local(where):
        start_quietly(settings)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    # What is wrong with a predicate is told once, by us; not as a page of Java before that.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).disabled = True
    spark = builder.getOrCreate()
    # Failures are told in a sentence, on a terminal not behind a page of Java's; logs of a cluster
    # have all of it.
    usual = "ERROR"
    if where and is_local(where):
        usual = "" if _is_log_configured(spark) else "OFF"
    wanted = (extra or {}).get(_LOG_LEVEL, usual)
    if wanted:
        spark.sparkContext.setLogLevel(wanted)
    return spark


def _is_log_configured(spark: SparkSession) -> bool:
    """Whether the user has said what is logged: by log4j2's settings, or by Spark's."""
    is_level_said = spark.sparkContext.getConf().contains(_LOG_LEVEL)
    return is_level_said or not log_settings_file(spark).endswith(DEFAULT_PROFILE)


def log_settings_file(spark: SparkSession) -> str:
    """Where log4j2 has its settings from; empty if that is no file."""
    context: Any = spark.sparkContext
    log4j = context._jvm.org.apache.logging.log4j  # noqa: SLF001 - only it knows
    logged = log4j.LogManager.getContext(False)  # noqa: FBT003 - Java has no names for arguments
    return str(logged.getConfiguration().getConfigurationSource().getLocation() or "")
