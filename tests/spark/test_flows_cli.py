"""Pipelines from the command line: options made of settings, the session, and Java."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from merq.cli.demo_lake import DemoLake
from merq.cli.main import merq
from merq.spark.flows.commands import (
    LINE_S,
    Terminal,
    command_of,
    descriptions_of,
    main,
    options_of,
    run_flow,
    tell,
)
from merq.spark.flows.running import (
    Flow,
    FlowFailed,
    Progress,
    Summary,
    awaited,
    flow_named,
    flow_names,
    hearing,
    reason_of,
)
from merq.spark.java import Java, NoJava, find_java, version_in
from merq.spark.session import DEFAULT_PROFILE, is_local, log_settings_file, session_settings

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What a sample is told.

    Attributes:
        lake: Where it goes; this text has
            two lines.
        count: How many.
        share: A part.
        fast: Without care.
        queue: A queue; again and again.
        kind: Of which kind.
        file: A file.
        perhaps: One of two, or none.
    """

    lake: str
    count: int = 3
    share: float = 0.5
    fast: bool = False
    queue: tuple[str, ...] = ()
    kind: Literal["a", "b"] = "a"
    file: Path | None = None
    perhaps: Literal["x", "y"] | None = None


def run_sample(spark: Any, settings: Sample, progress: Progress) -> Summary:
    """Does nothing.

    merq pipeline run sample --lake L
    merq pipeline run sample --lake M

    Args:
        spark: None.
        settings: Some.
        progress: None.

    Raises:
        AssertionError: Somebody runs it.
    """
    raise AssertionError("nobody runs it")


def look_at_sample(settings: Sample) -> None:
    """Finds something wrong with one lake."""
    if settings.lake == "wrong":
        raise FlowFailed("the lake is wrong")


SAMPLE = Flow("sample", "A sample.", Sample, look_at_sample, run_sample)


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """What the options of the sample are, by their words."""
    found: dict[str, Any] = {}
    command = click.Command("sample", params=options_of(Sample), callback=found.update)
    done = CliRunner().invoke(command, list(words))
    assert done.exit_code == 0, done.output
    return found


def test_settings_become_options_of_their_types() -> None:
    assert Sample(**parsed(["--lake", "L"])) == Sample(lake="L")
    words = (
        "--lake L --count 5 --share .25 --fast --queue a --queue b --kind b --file f --perhaps y"
    )
    assert Sample(**parsed(words.split())) == Sample(
        lake="L",
        count=5,
        share=0.25,
        fast=True,
        queue=("a", "b"),
        kind="b",
        file=Path("f"),
        perhaps="y",
    )


def test_what_the_docstring_says_is_the_help() -> None:
    assert descriptions_of(Sample)["lake"] == "Where it goes; this text has two lines."
    done = CliRunner().invoke(command_of(SAMPLE), ["--help"])
    assert "How many.  [default: 3]" in done.output
    assert "Args:" not in done.output
    assert "Raises:" not in done.output
    assert "A queue; again and again. May be given again." in done.output
    assert "  merq pipeline run sample --lake L\n  merq pipeline run sample --lake M" in done.output


@pytest.mark.parametrize("name", flow_names())
def test_every_setting_of_every_flow_is_explained(name: str) -> None:
    flow = flow_named(name)
    assert flow.name == name
    assert flow.summary.endswith(".")
    assert set(descriptions_of(flow.settings)) == set(flow.settings.__dataclass_fields__)
    done = CliRunner().invoke(merq, ["pipeline", "run", name, "--help"])
    assert done.exit_code == 0, done.output
    assert "--master" in done.output
    assert "--check" in done.output
    assert f"merq pipeline run {name} --" in done.output, "an example teaches best"
    assert "Raises:" not in done.output
    assert ("[MERQ_URL]" in done.output) == ("url" in flow.settings.__dataclass_fields__)


def test_the_list_has_all_of_them() -> None:
    done = CliRunner().invoke(merq, ["pipeline", "list"])
    assert done.exit_code == 0
    assert {"archive", "replay"} <= {line.split()[0] for line in done.output.splitlines()}
    done = CliRunner().invoke(merq, ["pipeline", "list", "--json"])
    assert '{"name": "archive", "summary": "' in done.output


def test_an_unknown_flow_is_refused() -> None:
    with pytest.raises(FlowFailed, match="there is no flow 'nothing'; there are archive, "):
        flow_named("nothing")
    assert CliRunner().invoke(merq, ["pipeline", "run", "nothing"]).exit_code == 2


def test_it_says_what_to_install_where_spark_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for words in (["list"], ["run", "archive", "--lake", "L"]):
        done = CliRunner().invoke(merq, ["pipeline", *words])
        assert done.exit_code == 1
        assert "pip install merq[spark]" in done.output


def test_the_program_for_spark_submit_takes_the_same_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["archive"])
    assert ended.value.code == 2
    assert "--lake" in capsys.readouterr().err
    main(["replay", "--help"])
    assert "--where" in capsys.readouterr().out


def test_the_program_does_not_hide_python_s_own_modules(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that is run by its path has its folder first on the path."""
    folder = ROOT / "src" / "merq" / "spark" / "flows"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(sys, "argv", ["flows", "--help"])
    runpy.run_path(str(folder / "__main__.py"), run_name="__main__")
    assert str(folder) not in sys.path
    assert "archive" in capsys.readouterr().out


def test_a_setting_of_spark_s_without_a_value_is_refused() -> None:
    with pytest.raises(FlowFailed, match="NAME=VALUE belongs there"):
        run_flow(SAMPLE, Sample(lake="L"), conf=("spark.x",))


def test_what_a_flow_finds_wrong_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FlowFailed, match="the lake is wrong"):
        run_flow(SAMPLE, Sample(lake="wrong"))
    with pytest.raises(NoJava):
        run_flow(SAMPLE, Sample(lake="right"))


# Failures and signals.


def test_what_could_not_be_done_is_told_behind_the_summary(
    capsys: pytest.CaptureFixture[str],
) -> None:
    summary = Summary({"failed": 1}, ("2 of 3 done",), failure="1 of 3 could not be")
    with pytest.raises(FlowFailed, match="1 of 3 could not be"):
        tell(summary, as_json=False, is_checked=False)
    assert capsys.readouterr().out == "2 of 3 done\n"
    with pytest.raises(FlowFailed, match="1 of 3 could not be"):
        tell(summary, as_json=True, is_checked=False)
    assert capsys.readouterr().out == '{"failed": 1}\n'


def test_what_somebody_should_look_at_is_a_failure_if_it_is_checked() -> None:
    summary = Summary({}, ("3 looked at",), finding="1 is lost")
    tell(summary, as_json=False, is_checked=False)
    with pytest.raises(FlowFailed, match="1 is lost"):
        tell(summary, as_json=False, is_checked=True)
    tell(Summary({}, ("all is well",)), as_json=False, is_checked=True)


def test_the_reason_of_a_failure_is_the_sentence_of_ours_within() -> None:
    text = (
        "[STREAM_FAILED] Query terminated: Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n'
        "merq.errors.MessageQueueError: there is no queue named q\n"
        "\tat org.apache.spark.Some.where(Some.scala:1)\n"
    )
    assert reason_of(Exception(text)) == "there is no queue named q"
    assert reason_of(Exception("[BAD] No such column;\n'Filter x\n")) == "[BAD] No such column"
    other = 'Traceback:\n  File "y"\nValueError: 3 is none\n at java'
    assert reason_of(Exception(other)) == "ValueError: 3 is none"
    bare = '[PYTHON] In the worker: Traceback:\n  File "z"\nAssertionError\n SQLSTATE: 38000\n'
    assert reason_of(Exception(bare)) == "AssertionError"
    java = (
        "An error occurred while calling o1.f.\n: java.lang.IllegalStateException: closed\n\tat x"
    )
    assert reason_of(Exception(java)) == "java.lang.IllegalStateException: closed"


class Query:
    """A stream as Spark has it: it runs until it is stopped, or fails, or ends by itself."""

    def __init__(self, looks: int = 1000, wrong: Exception | None = None) -> None:
        self.looks = looks
        self.wrong = wrong
        self.is_stopped = False

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return self.looks > 0 and not self.is_stopped

    def awaitTermination(self, seconds: float) -> bool:  # noqa: N802 - Spark's name
        time.sleep(seconds / 10)
        self.looks -= 1
        return not self.isActive

    def exception(self) -> Exception | None:
        return None if self.isActive else self.wrong

    def stop(self) -> None:
        self.is_stopped = True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stream_is_stopped_by_signals_and_told_to_have_been(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    query = Query()
    timer = threading.Timer(0.1, os.kill, (os.getpid(), number))
    timer.start()
    assert not awaited(query)
    timer.join()
    assert query.is_stopped
    assert signal.getsignal(number) is before


def test_a_stream_that_ends_is_looked_at_to_the_end() -> None:
    looked: list[int] = []
    assert awaited(Query(looks=3), lambda: looked.append(1))
    assert len(looked) == 4


def test_a_log_is_told_now_and_then_how_far_a_flow_is(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    terminal = Terminal(lambda: now)
    terminal.step("messages", 500_000, None)
    now = LINE_S
    terminal.step("messages", 1_000_000, None)
    terminal.step("messages", 1_500_000, None)
    now = 2 * LINE_S
    terminal.step("messages", 1_500_000, 3_000_000)
    now = 3 * LINE_S
    terminal.step("messages", 1_500_000, 3_000_000)
    assert capsys.readouterr().err == "1,000,000 messages\n1,500,000 of 3,000,000 messages\n"


def test_a_pause_ends_when_somebody_wants_to_stop() -> None:
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with hearing() as stop:
        stop.pause(30)
    timer.join()
    assert stop.is_wanted


# The session, and Java.


def test_a_local_session_is_bound_to_this_machine() -> None:
    local = session_settings(master="local[2]", quick=True, extra={"spark.ui.enabled": "true"})
    assert local["spark.driver.bindAddress"] == local["spark.driver.host"] == "127.0.0.1"
    assert local["spark.sql.session.timeZone"] == "UTC"
    assert "SerialGC" in local["spark.driver.extraJavaOptions"]
    deep = session_settings(master="local[2]")["spark.driver.extraJavaOptions"]
    assert deep.startswith("-Xss"), "a batch that is stopped is told by a deep regular expression"
    assert local["spark.ui.enabled"] == "true"
    far = session_settings(master="spark://host:7077")
    assert "spark.driver.bindAddress" not in far
    assert far["spark.ui.enabled"] == "false"
    assert set(session_settings(master="")) < set(far)
    assert [is_local(each) for each in ("local", "local[*]", "localhost")] == [True, True, False]


def test_spark_says_where_its_log_has_its_settings_from(spark: SparkSession) -> None:
    assert log_settings_file(spark).endswith(DEFAULT_PROFILE)


def java_that_says(folder: Path, text: str, status: int = 0) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'E'\n{text}\nE\nexit {status}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.13" 2024-10-15', 17),
        ('java version "1.8.0_202"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -X\nopenjdk version "22-ea"', 22),
        ("no such thing", None),
    ],
)
def test_the_version_of_a_java_is_read(text: str, version: int | None) -> None:
    assert version_in(text) == version


def test_the_java_of_java_home_is_meant_before_that_on_the_path(tmp_path: Path) -> None:
    home = java_that_says(tmp_path / "home", 'openjdk version "21.0.1"')
    path = java_that_says(tmp_path / "path", 'openjdk version "17.0.1"')
    places = {"PATH": f"{path.parent}:/bin:/usr/bin"}
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), **places}) == Java(home, 21)
    assert find_java(places) == Java(path, 17)


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ('java version "1.8.0_202"', 0, "is version 8"),
        ("Error: could not find libjvm.so", 1, "does not say its version"),
    ],
)
def test_a_java_that_does_not_serve_is_refused_and_it_is_said_what_to_do(
    tmp_path: Path, text: str, status: int, reason: str
) -> None:
    java_that_says(tmp_path, text, status)
    with pytest.raises(NoJava, match=reason) as wrong:
        find_java({"JAVA_HOME": str(tmp_path)})
    assert "apt-get install openjdk-17-jre-headless" in str(wrong.value)


def test_no_java_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match="there is no java on the PATH"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(NoJava, match="or unset it"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_the_tool_takes_the_java_that_is_there_and_fails_clearly_without(tmp_path: Path) -> None:
    java_that_says(tmp_path, 'openjdk version "17.0.1"')
    tool = [sys.executable, str(ROOT / "tools" / "java.py")]
    for path, status, said in (
        (f"{tmp_path}/bin:/bin:/usr/bin", 0, ""),
        (str(tmp_path), 1, "It cannot be installed here: there is no apt-get"),
    ):
        environment = {key: each for key, each in os.environ.items() if key != "JAVA_HOME"}
        done = subprocess.run(
            tool,
            env=environment | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == status, done.stderr
        assert said in done.stderr


def test_the_demo_says_why_there_is_no_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    lake = DemoLake(tmp_path / "lake", tmp_path / "merq.sock")
    assert "JAVA_HOME is" in lake.start()
    lake.stop()
