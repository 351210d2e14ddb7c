"""Spark Connect: the same source and sink through a session that is elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acceptance.service_process import ServiceProcess
from merq.client.manager import Manager
from spark.driving_readers import new_queue

pytestmark = pytest.mark.xdist_group("spark")

PATIENCE_S = 240.0
PROGRAM = Path(__file__).with_name("connect_program.py")


@pytest.fixture
def server(spark: SparkSession) -> Iterator[str]:
    """Spark Connect's server, beside the session that all tests share."""
    context = spark.sparkContext
    assert context._jvm is not None
    # The one object of a Scala class, as Java sees it.
    package = context._jvm.org.apache.spark.sql.connect.service
    service = getattr(getattr(package, "SparkConnectService$"), "MODULE$")
    service.start(context._jsc.sc())
    yield f"sc://127.0.0.1:{service.localPort()}"
    nothing = context._jvm.scala.Option.empty()
    service.stop(nothing, nothing)


def test_queues_are_read_streamed_and_written_through_spark_connect(
    server: str, alpha: ServiceProcess, manager: Manager, tmp_path: Path
) -> None:
    queue, target = new_queue(manager), new_queue(manager)
    queue.send_many(["a", "b"])
    done = subprocess.run(
        [
            sys.executable,
            str(PROGRAM),
            server,
            alpha.url,
            queue.path_name,
            target.path_name,
            str(tmp_path),
        ],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["kind"] == "pyspark.sql.connect.session"
    assert (told["read"], told["over"]) == (["a", "b"], True)
    assert len(queue) == 0
    assert [each.body for each in target.peek_all()] == ["a", "b", "written"]
