"""Mistakes in what a pipeline is told: found before Spark is started, and nothing is changed.

There is no Java for these tests: a pipeline that is started ends with the sentence about that.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from acceptance.service_process import ServiceProcess, serving
from merq.cli.main import merq
from merq.errors import MerqError
from merq.spark import managers
from merq.spark.java import NoJava

NOBODY = "no queue manager answers at unix:nobody.sock"
NO_QUEUE = r"there is no queue named .\private$\nope"


@pytest.fixture(scope="module")
def alpha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    flags = ("--name", "alpha", "--tcp-port", "0", "--insecure-tcp")
    with serving(tmp_path_factory.mktemp("alpha") / "data", *flags) as service:
        with service.connect() as manager:
            manager.create_queue(r".\private$\orders")
        yield service


@pytest.fixture(autouse=True)
def _folder_without_java(
    alpha: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is looked at lies in the folder of the test, as lakes, lists and checkpoints do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("JAVA_HOME", "MERQ_TOKEN", "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MERQ_URL", alpha.url)
    columns = {"message_id": "string", "queue": "string"}
    for name, kind in (("lake", "parquet"), ("deltas", "delta")):
        Path(name).mkdir()
        described = {"version": 1, "format": kind, "columns": columns}
        Path(name, "archive.json").write_text(json.dumps(described))
    Path("lake/_replays/used").mkdir(parents=True)
    begun = {"writer": "w", "identity": {"where": "a", "queue": "orders", "keep_id": "none"}}
    Path("lake/_replays/used/replay.json").write_text(json.dumps(begun))
    for place in ("lake/_checkpoints/archive", "moved/checkpoint"):
        Path(place, "offsets").mkdir(parents=True)
        for batch in (9, 10):
            offsets = json.dumps({r"alpha\private$\orders": batch * 1000})
            Path(place, "offsets", str(batch)).write_text(f"v1\n{{}}\n{offsets}")
        Path(place, "offsets", ".10.crc").write_bytes(b"crc")
    Path("other.csv").write_text("a,b\n1,2\n")


def files() -> list[str]:
    return sorted(str(each) for each in Path().rglob("*"))


def refused(*words: str, token: str | None = None) -> tuple[MerqError, Result]:
    """What a pipeline is refused with; it has made nothing, and has left nothing open."""
    before = files()
    variables = {} if token is None else {"MERQ_TOKEN": token}
    done = CliRunner(env=variables).invoke(merq, ["pipeline", "run", *words])
    assert isinstance(done.exception, MerqError), (done.exception, done.output)
    assert files() == before
    assert not managers._CONNECTIONS
    return done.exception, done


ARCHIVE = ("archive", "--queue", "orders", "--lake")
REPLAY = ("replay", "--lake", "lake", "--where", "true", "--queue", "orders", "--name")
MIGRATE = ("migrate", "--queue", "orders", "--output", "out", "--target")
TWO = ("--url", "unix:nobody.sock", "--url", "unix:none.sock")

MISTAKES = [
    (("archive", "--queue", "nope", "--lake", "new"), NO_QUEUE),
    ((*ARCHIVE, "new", "--url", "unix:nobody.sock"), NOBODY),
    (("archive", "--lake", "new"), "give --queue or --pattern"),
    ((*ARCHIVE, "new", "--name", "a/b"), "--name 'a/b'"),
    ((*ARCHIVE, "new", "--max-messages", "0"), "--max-messages 0"),
    ((*ARCHIVE, "new", "--columns", "labl"), "'labl' is not a column"),
    ((*ARCHIVE, "new", "--partitions", "0"), "option minPartitions: '0' was found"),
    ((*ARCHIVE, "new", "--format", "iceberg", "--compact"), "PyIceberg cannot rewrite files"),
    ((*ARCHIVE, "nope://x/y"), "the file system of nope://x/y cannot be reached"),
    ((*ARCHIVE, "deltas", "--format", "parquet"), "is in the format delta, and parquet was asked"),
    ((*ARCHIVE, "lake"), "behind 10000, and the queue manager is at 0: the queue manager was set"),
    (("archive", "--lake", "none", "--compact"), "there is no archive in"),
    ((*REPLAY, "../up"), "--name '../up'"),
    ((*REPLAY, "new", "--rate", "-1"), "--rate -1"),
    ((*REPLAY, "new", "--queue", "nope"), NO_QUEUE),
    ((*REPLAY, "new", "--lake", "none"), "there is no archive in"),
    ((*REPLAY, "new", "--url", "unix:nobody.sock"), NOBODY),
    ((*REPLAY, "used", "--send"), "the replay 'used' was begun with {'where': 'a'"),
    (("deadletters", *TWO), NOBODY),
    (("deadletters", "--queue", "nope"), NO_QUEUE),
    (("deadletters", "--since", "yesterday"), "since: 'yesterday' was found; milliseconds since"),
    (("deadletters", "--output", "hdfs://x/y"), "say by report where the page is written"),
    (("deadletters", "--requeue", "none.csv"), "requeue: none.csv is not there"),
    (("deadletters", "--requeue", "other.csv"), "lookup_id, message_id, class, destination, "),
    (("reconcile", *TWO), NOBODY),
    (("reconcile", "--partitions", "0"), "option minPartitions: '0' was found"),
    (("reconcile", "--lake", "none"), "lake: none is not there"),
    (("reconcile", "--lake", "lake"), "lake has no column lookup_id; it has message_id, queue"),
    (("reconcile", "--expected", "none.csv"), "expected: none.csv is not there"),
    (("reconcile", "--expected", "other.csv"), "expected: other.csv has no column message_id"),
    (("trace", *TWO), NOBODY),
    (("trace", "--queue", "nope"), "queue is nope: none of alpha has such a queue"),
    (("trace", "--since", "yesterday"), "since: 'yesterday' was found"),
    (("capture", "--input", "none"), "input: none is not there"),
    (("capture", "--input", "deltas"), "deltas has no files that end in .pcap"),
    ((*MIGRATE, "goal", "--queue", "nope"), NO_QUEUE),
    ((*MIGRATE, "nope"), NO_QUEUE),
    ((*MIGRATE, "orders"), "target: orders is the queue that messages come from"),
    ((*MIGRATE, r"ALPHA\private$\orders"), "is the queue that messages come from"),
    ((*MIGRATE, "x", "--to", "rabbitmq", "--target-url", "http://user:secret@host"),
     "target_url is host; amqp://user:password@host"),
    ((*MIGRATE, "nope", "--target-url", "unix:nobody.sock"), NOBODY),
    ((*MIGRATE, "goal", "--most", "0"), "option maxMessagesPerTrigger: '0' was found"),
    ((*MIGRATE, "goal", "--group", ""), "consumerGroup is not set"),
    ((*MIGRATE, "goal", "--to", "kafka"), "target_url is empty; Kafka's servers belong there"),
    ((*MIGRATE, "goal", "--to", "kafka", "--target-url", "h:1", "--copy", "--output", "moved"),
     "the queue manager was set back"),
    (("trace", "--master", "local[x]"), "--master local[x]: local, local[2], local[*]"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "text"), MISTAKES)
def test_a_mistake_is_told_before_spark_is_started(words: tuple[str, ...], text: str) -> None:
    wrong, done = refused(*words)
    assert text in str(wrong)
    assert "\n" not in str(wrong)
    assert done.output == ""


def test_what_does_not_let_us_in_is_told_before_spark_is_started(alpha: ServiceProcess) -> None:
    url = f"tcp://127.0.0.1:{alpha.tcp_port}"
    for words in ((*ARCHIVE, "new"), (*REPLAY, "new"), ("deadletters",), (*MIGRATE, "goal")):
        wrong, _ = refused(*words, "--url", url, token="wrong")  # noqa: S106 - nobody's
        assert "does not let this client in" in str(wrong)


def test_messages_are_moved_from_one_queue_manager_only(
    alpha: ServiceProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with serving(tmp_path_factory.mktemp("beta") / "data", "--name", "beta") as beta:
        wrong, _ = refused(*MIGRATE, "goal", "--url", f"{alpha.url},{beta.url}")
    assert str(wrong) == (
        f"option url: {alpha.url}, {beta.url} was found; one queue manager belongs there"
    )


def test_a_broker_that_is_not_there_is_told_without_its_password() -> None:
    # Nobody listens on a port that is kept from listening.
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        url = f"amqp://user:secret@127.0.0.1:{kept.getsockname()[1]}/"
        wrong, _ = refused(*MIGRATE, "goal", "--to", "rabbitmq", "--target-url", url)
    assert "is it running there" in str(wrong)
    assert "secret" not in str(wrong)


@pytest.mark.parametrize(
    "words",
    [
        (*ARCHIVE, "new"),
        (*ARCHIVE, "lake", "--name", "another"),
        # Receiving goes by what is reserved, not by numbers.
        (*ARCHIVE, "lake", "--read-mode", "receive"),
        ("archive", "--lake", "lake", "--compact"),
        (*REPLAY, "new", "--send"),
        # Nothing is sent by that, whatever was begun under the name.
        (*REPLAY, "used"),
        ("deadletters",),
        ("reconcile",),
        ("trace", "--queue", "orders"),
        (*MIGRATE, "goal", "--to", "kafka", "--target-url", "h:1"),
    ],
)
def test_what_is_right_is_refused_only_for_want_of_a_java(words: tuple[str, ...]) -> None:
    wrong, done = refused(*words)
    assert isinstance(wrong, NoJava)
    assert done.output == "", "nothing is said to start that does not"


def test_both_programs_tell_it_alone_with_the_status_of_a_failure(alpha: ServiceProcess) -> None:
    for program in (("merq", "pipeline", "run"), ("merq.spark.flows",)):
        done = subprocess.run(
            [sys.executable, "-m", *program, "archive", "--queue", "nope", "--lake", "new"],
            env=os.environ | {"MERQ_URL": alpha.url},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("merq: ")
        assert done.stderr.endswith(f"{NO_QUEUE}\n")
        assert not Path("new").exists()
