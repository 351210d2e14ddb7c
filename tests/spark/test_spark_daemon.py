from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

PATIENCE_S = 60

STARTED = """
import sys, threading
from merq.spark import daemon
{before}
sys.argv = ["daemon", "pyspark.worker"]
daemon.main()
"""


def command_of(before: str) -> str:
    """What a daemon is, by its command, when it says that it is ready to fork."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTED.format(before=before)],
        env=os.environ | {"PYTHON_WORKER_FACTORY_SECRET": "secret"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.read(1), "it tells its port"
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode().split("\0")
        process.stdin.close()  # Spark ends it so
        process.wait(PATIENCE_S)
    return " ".join(words[1:3])


def test_processes_of_spark_find_everything_imported(spark: SparkSession) -> None:
    def missing(_: int) -> list[str]:
        import sys

        from merq.spark.daemon import SHARED

        return [name for name in SHARED if name not in sys.modules]

    assert spark.sparkContext.parallelize([0], 1).map(missing).collect() == [[]]


def test_what_is_imported_starts_no_threads() -> None:
    assert command_of("").startswith("-c")


def test_where_there_are_threads_spark_s_own_way_is_taken() -> None:
    before = "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    assert command_of(before) == "-m pyspark.daemon"


def test_a_process_knows_that_it_has_one_thread_only() -> None:
    script = "import sys; from merq.spark import daemon; sys.exit(not daemon.is_alone())"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
