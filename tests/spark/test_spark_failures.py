"""When the queue manager is away, or does not let Spark in."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from acceptance.service_process import ServiceProcess, serving
from kit.certificates import Authority
from merq.errors import MessageQueueError
from merq.hresult import HResult
from spark.driving_readers import Query, read_batch, values_of
from spark.running_queries import Collected, running, stream_of, wait_for

pytestmark = pytest.mark.xdist_group("spark")

PAUSE_S = 1.5
"""How long the service is stopped in the middle of a query."""


@pytest.fixture
def beta(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service that may be killed."""
    with serving(tmp_path / "beta", "--name", "beta") as service:
        yield service


def options_of(beta: ServiceProcess) -> dict[str, str]:
    return {"url": beta.url, "queue": "q", "readMode": "receive", "consumerGroup": "g"}


def test_a_query_goes_on_when_the_queue_manager_stopped_or_was_killed_and_is_back(
    spark: SparkSession, beta: ServiceProcess, tmp_path: Path
) -> None:
    with beta.connect() as manager:
        queue = manager.create_queue(r".\private$\q")
        target = manager.create_queue(r".\private$\t")
        sink = {"url": beta.url, "queue": "t"}
        frame = stream_of(spark, options_of(beta))
        with running(frame, sink, tmp_path / "checkpoint") as query:
            queue.send("a", recoverable=True)
            wait_for(query, lambda: len(target) == 1, "a is there")
            beta.signal(signal.SIGSTOP)
            time.sleep(PAUSE_S)
            beta.signal(signal.SIGCONT)
            queue.send("b", recoverable=True)
            wait_for(query, lambda: len(target) == 2, "b is there")
            beta.kill()
            beta.start()
            with beta.connect() as again:
                again.queue(r".\private$\q").send("c", recoverable=True)
            wait_for(query, lambda: len(target) == 3, "c is there")
            wait_for(query, lambda: len(queue) == 0, "all are removed")
        assert [each.body for each in target.peek_all()] == ["a", "b", "c"]
        assert manager.bulk.stages() == []


def test_a_reservation_outlives_the_queue_manager(beta: ServiceProcess) -> None:
    with beta.connect() as manager:
        queue = manager.create_queue(r".\private$\q")
        queue.send_many(["a", "b"], recoverable=True)
    query = Query(options_of(beta), "value", "sequence")
    assert query.plan()
    rows = query.rows()
    beta.kill()
    beta.start()
    assert query.rows() == rows
    with beta.connect() as manager:
        assert [each.messages for each in manager.bulk.claims()] == [2]
        query.commit()
        assert not query.plan()
        assert len(manager.queue(r".\private$\q")) == 0


def test_a_query_fails_with_the_reason_if_its_queue_is_deleted(
    spark: SparkSession, beta: ServiceProcess, tmp_path: Path
) -> None:
    with beta.connect() as manager:
        queue = manager.create_queue(r".\private$\q")
        queue.send("a")
        collected = Collected()
        frame = stream_of(spark, options_of(beta))
        with running(frame, collected, tmp_path / "checkpoint") as query:
            wait_for(query, lambda: len(queue) == 0, "a is removed")
            queue.delete()
            with pytest.raises(StreamingQueryException, match=r"MQ_ERROR_QUEUE|deleted|no queue"):
                wait_for(query, lambda: False, "the query fails")


def test_who_has_no_token_reads_nothing(tmp_path: Path) -> None:
    authority = Authority.made(tmp_path / "ca")
    pair = authority.issue("server", "localhost")
    flags = ["--tcp-port", "0", "--tls-cert", str(pair.cert), "--tls-key", str(pair.key)]
    with serving(tmp_path / "data", "--name", "gamma", *flags) as service:
        with service.connect() as manager:
            manager.create_queue(r".\private$\q").send("secret")
        url = f"tls://localhost:{service.tcp_port}"
        options = {"url": url, "queue": "q", "tlsCa": str(authority.ca_file)}
        for wrong in ({}, {"token": "guessed"}):
            with pytest.raises(MessageQueueError) as refused:
                read_batch(options | wrong, "value")
            assert refused.value.code == HResult.MQ_ERROR_ACCESS_DENIED
            assert "guessed" not in str(refused.value)
        token = service.new_token("spark")
        with pytest.raises(MessageQueueError, match="certificate"):
            read_batch({"url": url, "queue": "q", "token": token}, "value")
        assert values_of(read_batch(options | {"token": token}, "value")) == ["secret"]


def test_a_queue_manager_that_is_not_there_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(MessageQueueError, match="nobody") as wrong:
        read_batch({"url": f"unix:{tmp_path}/nobody.sock", "queue": "q"}, "value")
    assert wrong.value.code == HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE
