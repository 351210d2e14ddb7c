"""`merq export` and `merq import`: messages to files and back."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.services import PATIENCE_S, RunningService, serving
from merq import Message
from merq.model.body import TypedBytes

FILE_BYTES_MAX = 100_000
WAS = {"id", "lookup_id", "sent", "arrived", "destination", "source_machine"}
_numbers = count(1)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with serving(tmp_path_factory.mktemp("exports") / "data") as running:
        yield running


def new_queue(service: RunningService, *, transactional: bool = False) -> str:
    name = f"queue-{next(_numbers)}"
    with service.connect() as manager:
        manager.create_queue(f".\\private$\\{name}", transactional=transactional)
    return name


def waiting(service: RunningService, name: str) -> int:
    with service.connect() as manager:
        return len(manager.queue(f".\\private$\\{name}"))


def fill(service: RunningService, name: str, number: int) -> None:
    with service.connect() as manager:
        manager.queue(f".\\private$\\{name}").send_many([f"message {n}" for n in range(number)])


def told(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_what_was_exported_is_imported_as_it_was(service: RunningService, tmp_path: Path) -> None:
    source, target = new_queue(service), new_queue(service)
    bodies = ["text ☃", b"\0\xff", None, 7, 2.5, True, UUID(int=5), TypedBytes(30, b"ansi\0"),
              TypedBytes(8, "bstr".encode("utf-16-le"))]  # fmt: skip
    with service.connect() as manager:
        queue = manager.queue(f".\\private$\\{source}")
        for body in bodies:
            queue.send(
                Message(
                    body=body,
                    label="ünï",
                    priority=5,
                    recoverable=True,
                    time_to_reach_queue=100,
                    time_to_be_received=5000,
                    journal=True,
                    dead_letter=True,
                    acknowledge=5,
                    admin_queue="DIRECT=OS:far\\private$\\a",
                    response_queue="DIRECT=TCP:10.0.0.1\\private$\\r",
                    correlation_id=bytes(range(20)),
                    app_specific=9,
                    extension=b"\1\2",
                )
            )
    done = service.merq("export", source, tmp_path / "out.jsonl")
    assert done.stdout == f"9 messages in {tmp_path / 'out.jsonl'}\n"
    assert waiting(service, source) == 9
    service.merq("import", tmp_path / "out.jsonl", target)
    service.merq("export", target, tmp_path / "again.jsonl")
    once, again = told(tmp_path / "out.jsonl"), told(tmp_path / "again.jsonl")
    assert [{k: v for k, v in each.items() if k not in WAS} for each in once] == [
        {k: v for k, v in each.items() if k not in WAS} for each in again
    ]


def test_an_export_through_a_pipe_can_be_imported(service: RunningService) -> None:
    source, target = new_queue(service), new_queue(service, transactional=True)
    fill(service, source, 150)
    exported = service.merq("export", source, "-")
    assert "150 messages in -" in exported.stderr
    done = service.merq("import", "-", target, "--json", given=exported.stdout)
    assert json.loads(done.stdout) == {"checked": 150, "skipped": 0, "sent": 150}
    texts = [each["text"] for each in service.lines("receive", target, "--all")]
    assert texts == [f"message {n}" for n in range(150)]


def test_removing_takes_out_what_is_in_the_file(service: RunningService, tmp_path: Path) -> None:
    source = new_queue(service)
    fill(service, source, 120)
    (done,) = service.lines("export", source, tmp_path / "out", "--remove")
    assert (done["exported"], done["removed"]) == (120, 120)
    assert waiting(service, source) == 0
    assert [each["text"] for each in told(tmp_path / "out")] == [f"message {n}" for n in range(120)]
    fill(service, source, 1)
    refused = service.merq("export", source, tmp_path / "out", "--remove", status=1)
    assert "is there already" in refused.stderr
    assert waiting(service, source) == 1
    service.merq("export", source, tmp_path / "out", "--remove", "--append")
    assert len(told(tmp_path / "out")) == 121


def test_a_file_that_fills_up_holds_whole_lines_and_the_rest_stays(
    service: RunningService, tmp_path: Path
) -> None:
    source = new_queue(service)
    fill(service, source, 300)

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))

    failed = subprocess.run(
        [sys.executable, "-m", "merq", "export", source, str(tmp_path / "out"), "--remove"],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        env=service.environment,
        preexec_fn=limited,
    )
    assert failed.returncode == 1
    written = [each["text"] for each in told(tmp_path / "out")]
    assert f"{len(written)} messages were written before that".encode() in failed.stderr
    left = [each["text"] for each in service.lines("peek", source, "--all")]
    assert sorted(written + left) == sorted(f"message {n}" for n in range(300))
    assert written
    assert left


def test_a_full_disk_on_standard_output_removes_nothing(service: RunningService) -> None:
    source = new_queue(service)
    fill(service, source, 2)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        failed = subprocess.run(
            [sys.executable, "-m", "merq", "export", source, "-", "--remove"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE_S,
            env=service.environment,
        )
    finally:
        os.close(full)
    assert failed.returncode == 1
    assert waiting(service, source) == 2


def test_the_whole_file_is_checked_before_the_first_message_is_sent(
    service: RunningService, tmp_path: Path
) -> None:
    target = new_queue(service)
    lines = ['{"text": "good"}'] * 250 + ["", '{"text": "good", "priority": 9}']
    (tmp_path / "in").write_text("\n".join(lines), encoding="utf-8")
    refused = service.merq("import", tmp_path / "in", target, status=1)
    assert f"{tmp_path / 'in'}, line 252: " in refused.stderr
    assert "nothing was sent" in refused.stderr
    assert waiting(service, target) == 0


def test_an_import_goes_on_where_it_stopped(service: RunningService, tmp_path: Path) -> None:
    target = new_queue(service)
    service.merq("queue", "set", target, "--quota", "40KB")
    lines = [json.dumps({"text": f"{n} " + "x" * 100}) for n in range(250)]
    (tmp_path / "in").write_text("\n".join(lines), encoding="utf-8")
    stopped = service.merq("import", tmp_path / "in", target, status=1)
    assert "MQ_ERROR_INSUFFICIENT_RESOURCES" in stopped.stderr or "quota" in stopped.stderr.lower()
    sent = waiting(service, target)
    assert 0 < sent < 250
    assert sent % 100 == 0, "a batch is sent whole or not at all"
    assert f"go on with --skip {sent}" in stopped.stderr
    service.merq("queue", "set", target, "--quota", "unlimited")
    service.merq("import", tmp_path / "in", target, "--skip", str(sent))
    texts = [each["text"].split()[0] for each in service.lines("peek", target, "--all")]
    assert texts == [str(n) for n in range(250)]
    service.merq("import", tmp_path / "in", target, "--skip", "251", status=2)
    done = service.merq("import", tmp_path / "in", target, "--dry-run")
    assert done.stdout == "250 messages checked, 0 sent\n"
    assert waiting(service, target) == 250
