"""What the tests of the data source share: one Spark session and one service for all of them.

A session takes seconds to start and hundreds of megabytes. Tests that use it are of the group
`spark`, so that all of them run in one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import merq
from acceptance.service_process import ServiceProcess, serving
from kit.clusters import QUICK_JAVA
from merq.client.manager import Manager
from merq.spark import managers
from merq.spark.session import CHECKPOINTS, LOCAL_CHECKPOINTS, prepare

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, with what makes it start quickly."""
    folder = tmp_path_factory.mktemp("spark")
    path = [str(TESTS), str(Path(merq.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    # As sessions of pipelines have it, and some settings below: it halves the time of the tests.
    prepare("local")
    java = f"{QUICK_JAVA} -Djava.io.tmpdir={folder}"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("merq tests")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.python.daemon.module", "merq.spark.daemon")
        .config(CHECKPOINTS, LOCAL_CHECKPOINTS)
        .config("spark.sql.session.timeZone", "UTC")
        # The server of Spark Connect, which one test starts, is for this machine alone.
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", "0")
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture(scope="session")
def alpha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """The service that most tests use; each has queues of its own there."""
    folder = tmp_path_factory.mktemp("alpha")
    with serving(folder / "data", "--name", "alpha") as service:
        yield service


@pytest.fixture(scope="session")
def manager(alpha: ServiceProcess) -> Iterator[Manager]:
    """A connection to it, beside those of the data source."""
    with alpha.connect() as found:
        yield found


@pytest.fixture(scope="session", autouse=True)
def _no_connections_are_left() -> Iterator[None]:
    yield
    for each in managers._CONNECTIONS.values():
        each.close()
    managers._CONNECTIONS.clear()
