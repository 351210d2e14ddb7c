"""`merq demo`, which is what `make run` runs: it proves itself, serves, and ends cleanly."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import merq
from merq import connect

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30
LAST_LINE = "Serving until Ctrl-C."


class Demo:
    """A demo that runs in a folder, without a terminal."""

    def __init__(self, folder: Path, *options: str) -> None:
        kept = {name: each for name, each in os.environ.items() if not name.startswith("MERQ_")}
        self.folder = folder
        self.environment = kept | {"PYTHONUTF8": "1", "PYTHONWARNINGS": "error"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "merq", "demo", "--name", "alpha", *options],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.said = ""

    def read_until(self, words: str) -> None:
        """Reads what it says, up to these words."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while words not in self.said:
                assert selector.select(deadline - time.monotonic()), self.said
                data = os.read(self.process.stdout.fileno(), 1 << 16)
                assert data, self.said
                self.said += data.decode()

    def end(self, signal_number: int) -> int:
        """Ends it; gives its exit status."""
        self.process.send_signal(signal_number)
        rest, _ = self.process.communicate(timeout=PATIENCE_S)
        self.said += rest.decode()
        return self.process.returncode


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[Demo]:
    running = Demo(folder, *options)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def test_it_proves_itself_serves_and_ends_cleanly_twice(tmp_path: Path) -> None:
    with demo(tmp_path) as first:
        first.read_until(LAST_LINE)
        assert first.end(signal.SIGINT) == 0
    assert "It made orders (transactional, with a journal), invoices, admin." in first.said
    with demo(tmp_path) as second:
        second.read_until(LAST_LINE)
        assert second.end(signal.SIGTERM) == 0
    assert "It found orders, invoices, admin, and 2 messages altogether." in second.said
    for said in (first.said, second.said):
        assert "“sample order”: 'two tins of tea'" in said
        assert "the message is in its queue (MQMSG_CLASS_ACK_REACH_QUEUE)" in said
        assert "an application has received the message (MQMSG_CLASS_ACK_RECEIVE)" in said
        assert "its time to be received ran out in the queue" in said
        assert said.rstrip().endswith("Stopped. What was recoverable is in the folder data.")
        assert "Traceback" not in said


def test_every_command_that_it_proposes_works(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.read_until(LAST_LINE)
        proposed = running.said.partition("another terminal:")[2].partition("Serving")[0]
        commands = [line.partition("  #")[0].strip() for line in proposed.strip().splitlines()]
        assert len(commands) > 5
        for command in commands:
            words = shlex.split(command)
            live = ["--interval", "100ms", "--count", "2"] if "top" in words else []
            done = subprocess.run(
                [*words, *live],
                cwd=tmp_path,
                env=running.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
            )
            assert done.returncode == 0, (command, done.stderr)
            assert done.stdout
        assert running.end(signal.SIGINT) == 0


def test_messages_of_others_in_the_sample_queues_stay(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.read_until(LAST_LINE)
        with connect(f"unix:{tmp_path / 'data' / 'merq.sock'}") as mq, mq.transaction() as tx:
            mq.queue(r".\private$\orders").send("mine", tx=tx)
        assert running.end(signal.SIGINT) == 0
    with demo(tmp_path) as running:
        running.read_until(LAST_LINE)
        with connect(f"unix:{tmp_path / 'data' / 'merq.sock'}") as mq:
            assert [each.body for each in mq.queue(r".\private$\orders").peek_all()] == ["mine"]
        assert running.end(signal.SIGINT) == 0


@pytest.mark.parametrize("words", ["An order", "An offer", "its way into a table"])
def test_it_can_be_stopped_before_everything_is_shown(tmp_path: Path, words: str) -> None:
    options = ("--lake", "data/lake") if "table" in words else ()
    with demo(tmp_path, *options) as running:
        running.read_until(words)
        assert running.end(signal.SIGINT) == 0
    assert "Traceback" not in running.said
    assert "Stopped." in running.said


def test_a_second_one_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with demo(tmp_path) as first:
        first.read_until("runs.")
        with demo(tmp_path) as second:
            rest, _ = second.process.communicate(timeout=PATIENCE_S)
            assert second.process.returncode == 1
            assert rest.startswith(b"merq: ")
            assert b"Traceback" not in rest
        first.read_until(LAST_LINE)
        assert first.end(signal.SIGTERM) == 0


def test_a_queue_of_that_name_that_is_another_kind_ends_it_with_a_reason(tmp_path: Path) -> None:
    with merq.open(tmp_path / "data", name="alpha") as mq:
        mq.create_queue(r".\private$\orders")
    with demo(tmp_path) as running:
        rest, _ = running.process.communicate(timeout=PATIENCE_S)
        assert running.process.returncode == 1
        assert b"orders is not transactional" in rest
        assert b"Traceback" not in rest


def test_make_run_is_this_command() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    line = r"^run: setup .*\n\t@\$\(BIN\)/merq demo --data data --lake data/lake$"
    assert re.search(line, text, re.MULTILINE)
