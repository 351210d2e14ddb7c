"""`merq send`, `receive`, `peek`, `move` and `why` as people and scripts run them."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from kit.services import NAME, PATIENCE_S, RunningService, serving

FILE_BYTES_MAX = 20_000
_numbers = count(1)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with serving(tmp_path_factory.mktemp("messages") / "data") as running:
        yield running


@pytest.fixture
def queue(service: RunningService) -> str:
    name = f"queue-{next(_numbers)}"
    with service.connect() as manager:
        manager.create_queue(f".\\private$\\{name}")
    return name


@pytest.fixture
def transactional(service: RunningService) -> str:
    name = f"queue-{next(_numbers)}"
    with service.connect() as manager:
        manager.create_queue(f".\\private$\\{name}", transactional=True)
    return name


def waiting(service: RunningService, name: str) -> int:
    with service.connect() as manager:
        return len(manager.queue(f".\\private$\\{name}"))


def fill(service: RunningService, name: str, number: int, body: str = "message") -> None:
    with service.connect() as manager:
        manager.queue(f".\\private$\\{name}").send_many(
            [f"{body} {each}" for each in range(number)], recoverable=True
        )


# Sending.


def test_a_message_has_what_was_asked_for(
    service: RunningService, queue: str, tmp_path: Path
) -> None:
    (tmp_path / "extension").write_bytes(b"\x00ext")
    sent = service.merq(
        "send", queue, "--body", "hello", "--label", "first", "--priority", "6", "--recoverable",
        "--reach-within", "10m", "--receive-within", "1h30m", "--journal", "--dead-letter",
        "--ack", "arrival,receive", "--admin-queue", "admins", "--response-queue",
        "server2/private$/replies", "--correlation-id", "00ff" * 10, "--app-specific", "77",
        "--extension-file", tmp_path / "extension",
    )  # fmt: skip
    (message,) = service.lines("receive", queue)
    assert sent.stdout == message["id"] + "\n"
    expected = {
        "label": "first",
        "priority": 6,
        "recoverable": True,
        "time_to_reach_queue_s": 600,
        "time_to_be_received_s": 5400,
        "journal": True,
        "dead_letter": True,
        "acknowledge": 0x0F,
        "admin_queue": "DIRECT=OS:.\\PRIVATE$\\admins",
        "response_queue": "DIRECT=OS:server2\\PRIVATE$\\replies",
        "correlation_id": "00ff" * 10,
        "app_specific": 77,
        "extension": "AGV4dA==",
        "text": "hello",
    }
    assert {name: message[name] for name in expected} == expected


def test_bodies_come_from_options_files_and_standard_input_as_they_are(
    service: RunningService, queue: str, tmp_path: Path
) -> None:
    data = bytes(range(256))
    (tmp_path / "body").write_bytes(data)
    service.merq("send", queue, "--file", tmp_path / "body")
    service.merq("receive", queue, "--output", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == data
    service.merq("send", queue, given="zwei\nZeilen, größer\n")
    assert service.merq("receive", queue, "--raw").stdout == "zwei\nZeilen, größer\n"
    refused = service.merq("send", queue, given=b"\xff\xfe", status=1)
    assert "--as bytes" in refused.stderr
    refused = service.merq("send", queue, "--as", "json", given="{", status=1)
    assert "not JSON" in refused.stderr
    service.merq("send", queue, "--body", "x", "--file", tmp_path / "body", status=2)
    assert waiting(service, queue) == 0


def test_every_line_of_standard_input_is_a_message(service: RunningService, queue: str) -> None:
    sent = service.merq("send", queue, "--lines", given="one\ntwo\r\n\nlast")
    assert len(sent.stdout.splitlines()) == 4
    texts = [each["text"] for each in service.lines("receive", queue, "--all")]
    assert texts == ["one", "two", "", "last"]


def test_lines_are_sent_when_they_come(service: RunningService, queue: str) -> None:
    sending = subprocess.Popen(
        [sys.executable, "-m", "merq", "send", queue, "--lines"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=service.environment,
    )
    assert sending.stdin is not None
    assert sending.stdout is not None
    sending.stdin.write(b"first\n")
    sending.stdin.flush()
    assert sending.stdout.readline().startswith(b"{")  # it was sent before the input ended
    sending.communicate(b"second\n", PATIENCE_S)
    assert waiting(service, queue) == 2


def test_messages_are_numbered_only_if_asked(service: RunningService, queue: str) -> None:
    service.merq("send", queue, "--body", "no {n}", "--label", "{n}", "--repeat", "2", "--number")
    service.merq("send", queue, "--body", "no {n}", "-q")
    found = [(each["text"], each["label"]) for each in service.lines("receive", queue, "--all")]
    assert found == [("no 1", "1"), ("no 2", "2"), ("no {n}", "")]


def test_a_rate_is_kept(service: RunningService, queue: str) -> None:
    began = time.monotonic()
    service.merq("send", queue, "--body", "x", "--repeat", "41", "--rate", "40", "-q")
    assert time.monotonic() - began >= 1
    assert waiting(service, queue) == 41


def test_ctrl_c_in_a_repeat_says_how_many_were_sent(service: RunningService, queue: str) -> None:
    sending = service.start("send", queue, "--body", "x", "--repeat", "100000", "--rate", "200")
    assert sending.stdout is not None
    for _ in range(10):
        sending.stdout.readline()
    sending.send_signal(signal.SIGINT)
    _, errors = sending.communicate(timeout=PATIENCE_S)
    assert sending.returncode == 130
    assert f"stopped: {waiting(service, queue)} messages sent" in errors.decode()


def test_a_transactional_queue_gets_its_transaction_unasked(
    service: RunningService, transactional: str
) -> None:
    service.merq("send", transactional, "--body", "x", "--repeat", "3")
    assert {each["transactional"] for each in service.lines("peek", transactional, "--all")} == {
        True
    }


def test_a_format_name_of_this_computer_leads_to_its_queue(
    service: RunningService, queue: str, transactional: str
) -> None:
    service.merq("send", f"DIRECT=OS:{NAME}\\private$\\{queue}", "--body", "x")
    assert waiting(service, queue) == 1
    name = f"DIRECT=OS:{NAME}\\private$\\{transactional}"
    service.merq("send", name, "--body", "x", "--transactional")
    assert waiting(service, transactional) == 1


def test_bad_input_is_refused_with_its_code(service: RunningService, queue: str) -> None:
    assert "MQ_ERROR_ILLEGAL" in service.merq("send", "a\\b\\c\\d", "--body", "", status=1).stderr
    service.merq("send", queue, "--body", "x", "--priority", "9", status=2)
    service.merq("send", queue, "--body", "x", "--ack", "sometimes", status=2)
    alone = service.merq("send", queue, "--body", "x", "--ack", "arrival", status=2)
    assert "--ack without --admin-queue" in alone.stderr
    alone = service.merq("send", queue, "--body", "x", "--admin-queue", "admins", status=2)
    assert "--admin-queue without --ack" in alone.stderr
    service.merq("send", queue, "--body", "x", "--correlation-id", "zz", status=2)
    service.merq("send", queue, "--body", "x", "--ttbr", "soon", status=2)
    wrong = service.merq("send", "nobody", "--body", "x", "--json", status=1)
    assert json.loads(wrong.stderr)["error"]["code"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert waiting(service, queue) == 0


# Receiving.


def test_a_message_is_shown_to_people(service: RunningService, queue: str) -> None:
    service.merq("send", queue, "--body", "hello\x1b[31m", "--label", "greeting")
    shown = service.merq("receive", queue).stdout
    assert "greeting" in shown
    assert "hello\\x1b[31m" in shown
    assert "\x1b" not in shown
    service.merq("send", queue, "--as", "bytes", given=bytes(range(40)))
    assert "00000010  10 11 12 13" in service.merq("receive", queue).stdout


def test_nothing_in_time_is_exit_status_3(service: RunningService, queue: str) -> None:
    for command in (["receive"], ["peek"], ["receive", "--all"], ["receive", "--timeout", "100ms"]):
        empty = service.merq(*command[:1], queue, *command[1:], status=3)
        assert empty.stdout == ""
        assert empty.stderr.startswith("merq: MQ_ERROR_IO_TIMEOUT: no message in")
    fill(service, queue, 2)
    few = service.merq("receive", queue, "--count", "5", "--json", status=3)
    assert len(few.stdout.splitlines()) == 2
    assert json.loads(few.stderr)["error"]["hresult"] == "0xC00E001B"


def test_receive_waits_for_what_comes_in_time(service: RunningService, queue: str) -> None:
    receiving = service.start("receive", queue, "--timeout", "20s", "--raw")
    time.sleep(0.6)
    service.merq("send", queue, "--body", "late")
    assert receiving.communicate(timeout=PATIENCE_S)[0] == b"late"
    assert receiving.returncode == 0


@pytest.mark.parametrize("verb", ["receive", "peek"])
def test_following_goes_on_until_it_is_stopped(
    service: RunningService, queue: str, verb: str
) -> None:
    fill(service, queue, 1)
    following = service.start(verb, queue, "--follow", "--json")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["text"] == "message 0"
    service.merq("send", queue, "--body", "another")
    assert json.loads(following.stdout.readline())["text"] == "another"
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 130
    assert waiting(service, queue) == (0 if verb == "receive" else 2)


def test_a_message_is_selected_by_any_of_its_ids(service: RunningService, queue: str) -> None:
    fill(service, queue, 4)
    first, second, third, _ = service.lines("peek", queue, "--all")
    (found,) = service.lines("receive", queue, "--by-lookup-id", str(second["lookup_id"]))
    assert found["id"] == second["id"]
    (found,) = service.lines("receive", queue, "--by-id", third["id"].replace("\\", ""))
    assert found["id"] == third["id"]
    service.merq("send", queue, "--body", "reply", "--correlation-id", first["id"])
    (found,) = service.lines("receive", queue, "--by-correlation-id", first["id"])
    assert found["text"] == "reply"
    assert waiting(service, queue) == 2
    gone = service.merq("receive", queue, "--by-id", third["id"], status=1)
    assert "MQ_ERROR_MESSAGE_NOT_FOUND" in gone.stderr
    service.merq("receive", queue, "--by-id", "nonsense", status=2)
    service.merq("receive", queue, "--by-id", third["id"], "--all", status=2)


def test_a_transaction_takes_all_or_none(service: RunningService, transactional: str) -> None:
    service.merq("send", transactional, "--body", "x", "--repeat", "3", "-q")
    failed = subprocess.run(
        [sys.executable, "-m", "merq", "receive", transactional, "--all", "--transaction"],
        stdout=os.open("/dev/full", os.O_WRONLY),
        stderr=subprocess.PIPE,
        check=False,
        timeout=PATIENCE_S,
        env=service.environment,
    )
    assert failed.returncode == 1
    assert waiting(service, transactional) == 3
    taken = service.lines("receive", transactional, "--all", "--transaction")
    assert [each["abort_count"] for each in taken] == [1, 1, 1]
    assert waiting(service, transactional) == 0


@pytest.mark.parametrize("options", [[], ["--json"], ["--raw"], ["--output", "/dev/full"]])
def test_a_message_that_cannot_be_written_stays(
    service: RunningService, queue: str, options: list[str]
) -> None:
    fill(service, queue, 3)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        failed = subprocess.run(
            [sys.executable, "-m", "merq", "receive", queue, "--all", *options],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE_S,
            env=service.environment,
        )
    finally:
        os.close(full)
    assert failed.returncode == 1
    assert b"No space left" in failed.stderr
    assert waiting(service, queue) == 3
    assert [each["abort_count"] for each in service.lines("receive", queue, "--all")] == [0, 0, 0]


@pytest.mark.parametrize("options", [[], ["--json"], ["--raw"]])
def test_a_message_for_a_closed_pipe_stays(
    service: RunningService, queue: str, options: list[str]
) -> None:
    fill(service, queue, 3)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        failed = subprocess.run(
            [sys.executable, "-m", "merq", "receive", queue, "--all", *options],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE_S,
            env=service.environment,
        )
    finally:
        os.close(writing)
    assert failed.returncode == 1
    assert b"Traceback" not in failed.stderr
    assert waiting(service, queue) == 3


def test_a_file_that_fills_up_has_what_left_the_queue(
    service: RunningService, queue: str, tmp_path: Path
) -> None:
    fill(service, queue, 400, body="b" * 100)

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))

    target = tmp_path / "out"
    failed = subprocess.run(
        [sys.executable, "-m", "merq", "receive", queue, "--all", "--raw", "--output", str(target)],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        env=service.environment,
        preexec_fn=limited,
    )
    assert failed.returncode == 1
    written = target.read_bytes()
    left = {each["text"] for each in service.lines("peek", queue, "--all")}
    assert 0 < len(left) < 400
    for number in range(400):
        text = f"{'b' * 100} {number}"
        assert text in left or text.encode() in written


def test_what_a_killed_command_was_writing_goes_back(service: RunningService, queue: str) -> None:
    fill(service, queue, 5, body="b" * 100_000)
    stuck = service.start("receive", queue, "--all", "--raw")  # nobody reads the pipe
    deadline = time.monotonic() + PATIENCE_S
    with service.connect() as manager:
        found = manager.queue(f".\\private$\\{queue}")
        while not found.report.locked and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found.report.locked == 5
        stuck.kill()
        stuck.communicate()
        while found.report.locked and time.monotonic() < deadline:
            time.sleep(0.05)
        report = found.report
    assert (report.messages, report.locked) == (5, 0)


def test_two_who_receive_at_once_get_different_messages(
    service: RunningService, queue: str
) -> None:
    fill(service, queue, 500)
    both = [service.start("receive", queue, "--all", "--json") for _ in range(2)]
    texts: list[str] = []
    for each in both:
        output, _ = each.communicate(timeout=PATIENCE_S)
        texts += [json.loads(line)["text"] for line in output.splitlines()]
    assert sorted(texts) == sorted(f"message {number}" for number in range(500))


def test_ctrl_c_ends_a_command_that_waits_for_a_line(service: RunningService, queue: str) -> None:
    reading, writing = os.pipe()
    sending = subprocess.Popen(
        [sys.executable, "-m", "merq", "send", queue, "--lines"],
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=service.environment,
    )
    os.close(reading)
    assert sending.stdout is not None
    os.write(writing, b"one\n")
    sending.stdout.readline()
    sending.send_signal(signal.SIGINT)
    _, errors = sending.communicate(timeout=PATIENCE_S)
    os.close(writing)
    assert sending.returncode == 130
    assert b"stopped: 1 message sent" in errors


# Moving.


def test_messages_move_to_a_subqueue_and_back(service: RunningService, queue: str) -> None:
    for label in ("backup 1", "order", "backup 2"):
        service.merq("send", queue, "--body", label, "--label", label)
    moved = service.merq("move", queue, "later", "--where-label", "backup*")
    assert moved.stdout == f"moved 2 messages to .\\private$\\{queue};later\n"
    assert [each["label"] for each in service.lines("peek", f"{queue};later", "--all")] == [
        "backup 1",
        "backup 2",
    ]
    first = service.lines("peek", f"{queue};later")[0]
    service.merq("move", f"{queue};later", queue, "--id", first["id"])
    assert service.lines("move", f"{queue};later", f"{queue};other", "--all")[0]["moved"] == 1
    there = service.lines("peek", queue, "--all")
    assert [(each["label"], each["move_count"]) for each in there] == [
        ("backup 1", 2),
        ("order", 0),
    ]
    assert "moved 2 times" in service.merq("peek", queue).stdout
    gone = service.merq("move", queue, "new", "--lookup-id", "12345", status=1)
    assert "MQ_ERROR_MESSAGE_NOT_FOUND" in gone.stderr
    unmade = service.merq("peek", f"{queue};new", status=1)
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in unmade.stderr
    service.merq("move", queue, "later", status=2)
    refused = service.merq("move", queue, "elsewhere;later", "--all", status=1)
    assert "belongs to another queue" in refused.stderr


# Why.


def test_why_tells_where_a_message_waits_and_how_to_get_it(
    service: RunningService, queue: str
) -> None:
    sent = service.merq("send", queue, "--body", "x", "--label", "lost one").stdout.strip()
    told = service.merq("why", sent).stdout
    assert "“lost one” was sent to DIRECT=OS:alpha" in told
    assert f"It waits in {queue} to be received, since 20" in told
    lookup_id = service.lines("peek", queue)[0]["lookup_id"]
    assert f"merq receive {queue} --by-lookup-id {lookup_id}" in told
    (found,) = service.lines("why", sent)
    assert [each["whereabouts"] for each in found["sightings"]] == ["waiting"]


def test_why_tells_how_a_message_ended(service: RunningService, queue: str) -> None:
    service.merq("queue", "new", f"{queue}-admin")
    sent = service.merq(
        "send", queue, "--body", "x", "--dead-letter", "--ack", "receive", "--admin-queue",
        f"{queue}-admin",
    ).stdout.strip()  # fmt: skip
    service.merq("queue", "purge", queue, "-y")
    told = service.merq("why", sent).stdout
    assert "in the dead-letter queue deadletter, since" in told
    assert "the queue was purged first (MQMSG_CLASS_NACK_Q_PURGED)" in told
    assert f"An acknowledgment in {queue}-admin" in told
    (advice,) = (line for line in told.splitlines() if "sends it again" in line)
    command = advice.removeprefix("→ ").removesuffix("  sends it again")
    runnable = command.replace("merq ", f"{sys.executable} -m merq ")
    subprocess.run(["/bin/sh", "-c", runnable], check=True, env=service.environment)
    assert waiting(service, queue) == 1


def test_why_tells_of_the_journal(service: RunningService, queue: str) -> None:
    service.merq("queue", "set", queue, "--journal")
    sent = service.merq("send", queue, "--body", "x").stdout.strip()
    service.merq("receive", queue)
    assert (
        f"It was received from {queue}: a copy is in its journal"
        in service.merq("why", sent).stdout
    )


def test_why_tells_how_a_message_can_be_nowhere(service: RunningService, queue: str) -> None:
    sent = service.merq("send", queue, "--body", "x").stdout.strip()
    service.merq("receive", queue)
    told = service.merq("why", sent).stdout
    assert "Its id is of this queue manager" in told
    assert "merq queue set QUEUE --journal" in told
    foreign = "{00000000-1111-2222-3333-444444444444}/5"
    assert (
        "Its id is of another queue manager, 00000000-1111" in service.merq("why", foreign).stdout
    )
    service.merq("why", "nonsense", status=2)
