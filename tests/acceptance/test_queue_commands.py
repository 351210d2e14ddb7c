"""`merq queue`, `merq status`, `merq top`, `merq outgoing` as an administrator runs them."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kit.services import NAME, PATIENCE_S, RunningService, serving
from merq.cli.main import merq


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with serving(tmp_path_factory.mktemp("queues") / "data") as running:
        yield running


def names(service: RunningService, *options: str) -> list[str]:
    return [each["name"] for each in service.lines("queue", "list", *options)]


def test_a_queue_is_made_shown_changed_and_removed(service: RunningService) -> None:
    made = service.merq(
        "queue", "new", "orders", "--transactional", "--label", "Orders", "--journal",
        "--quota", "2MB", "--poison-after", "3", "--privacy", "body", "--base-priority", "-4",
    )  # fmt: skip
    assert made.stdout == "made .\\private$\\orders\n"
    (shown,) = service.lines("queue", "show", "./private$/orders")
    expected = {
        "name": "orders",
        "label": "Orders",
        "transactional": True,
        "journal": True,
        "quota_kb": 2048,
        "journal_quota_kb": None,
        "poison_after": 3,
        "privacy": "body",
        "base_priority": 0,
        "messages": 0,
    }
    assert {name: shown[name] for name in expected} == expected
    service.merq("queue", "set", "orders", "--no-journal", "--label", "Other", "--quota", "none")
    (shown,) = service.lines("queue", "show", f"{NAME}\\private$\\orders")
    assert (shown["journal"], shown["label"], shown["quota_kb"]) == (False, "Other", None)
    assert shown["poison_after"] == 3
    assert service.merq("queue", "remove", "orders").stdout.startswith(
        "removed .\\private$\\orders"
    )
    assert "orders" not in names(service)


@pytest.mark.spec("MS-MQMQ 2.3.1.8", "MS-MQMQ 2.3.1.13", "MS-MQMQ 2.3.12.2")
def test_a_queue_shows_its_properties_by_their_identifiers(service: RunningService) -> None:
    service.merq("queue", "new", "identified", "--transactional", "--label", "Known")
    (shown,) = service.lines("queue", "show", "identified", "--properties")
    expected = {
        "PROPID_Q_PATHNAME": f"{NAME}\\private$\\identified",
        "PROPID_Q_LABEL": "Known",
        "PROPID_Q_TRANSACTION": 1,
        "PROPID_MGMT_QUEUE_FORMATNAME": f"DIRECT=OS:{NAME}\\PRIVATE$\\identified",
        "PROPID_MGMT_QUEUE_STATE": "LOCAL CONNECTION",
        "PROPID_MGMT_QUEUE_SUBQUEUE_NAMES": [],
    }
    assert {name: shown[name] for name in expected} == expected
    table = service.merq("queue", "show", "identified", "--properties").stdout
    assert re.search(r"PROPID_Q_LABEL +108 +VT_LPWSTR +Known", table)
    service.merq("queue", "remove", "identified")


def test_a_queue_that_exists_is_not_made_again(service: RunningService) -> None:
    service.merq("queue", "new", "twice")
    again = service.merq("queue", "new", "twice", status=1)
    assert again.stderr.startswith("merq: MQ_ERROR_QUEUE_EXISTS: ")


def test_a_name_that_is_not_found_is_answered_with_the_nearest(service: RunningService) -> None:
    service.merq("queue", "new", "invoices")
    wrong = service.merq("queue", "show", "invoice", status=1)
    assert wrong.stderr.startswith(
        "merq: MQ_ERROR_QUEUE_NOT_FOUND: there is no queue named .\\private$\\invoice; near it: "
    )
    assert "invoices" in wrong.stderr
    wrong = service.merq("queue", "show", "invoice", "--json", status=1)
    error = json.loads(wrong.stderr)["error"]
    assert (error["code"], error["hresult"]) == ("MQ_ERROR_QUEUE_NOT_FOUND", "0xC00E0003")
    assert wrong.stdout == ""


def test_wrong_usage_is_told_apart_from_failure(service: RunningService) -> None:
    assert "no size" in service.merq("queue", "new", "x", "--quota", "lots", status=2).stderr
    wrong = service.merq("queue", "new", "x", "--quota", "lots", "--json", status=2)
    assert json.loads(wrong.stderr)["error"]["code"] == "usage"
    assert "nothing to change" in service.merq("queue", "set", "x", status=2).stderr
    wrong = service.merq("queue", "list", "--data", "a", "--url", "unix:b", status=2)
    assert "give one of them" in wrong.stderr


def test_what_cannot_be_undone_needs_a_yes_where_nobody_can_be_asked(
    service: RunningService,
) -> None:
    service.merq("queue", "new", "full")
    service.merq("send", "full", "--body", "x", "--repeat", "3")
    for command in ("purge", "remove"):
        refused = service.merq("queue", command, "full", status=1)
        assert "say --yes" in refused.stderr
        assert "3 messages" in refused.stderr
    assert service.lines("queue", "show", "full")[0]["messages"] == 3
    assert service.lines("queue", "purge", "full", "--yes") == [
        {"purged": ".\\private$\\full", "messages": 3}
    ]
    service.merq("queue", "purge", "full")  # nothing is lost: nothing to ask
    service.merq("send", "full", "--body", "x")
    assert service.lines("queue", "remove", "full", "-y")[0]["messages"] == 1


def on_a_terminal(service: RunningService, *arguments: str, typed: bytes) -> tuple[int, bytes]:
    """Runs a command whose standard streams are a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {**service.environment, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "merq", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, typed)
    shown = bytearray()
    try:
        while select.select([ours], [], [], PATIENCE_S)[0] and (chunk := os.read(ours, 65536)):
            shown += chunk
    except OSError as end:
        if end.errno != errno.EIO:  # how Linux says that the other side is closed
            raise
    finally:
        os.close(ours)
    return process.wait(PATIENCE_S), bytes(shown)


def test_on_a_terminal_somebody_is_asked(service: RunningService) -> None:
    service.merq("queue", "new", "asked")
    status, shown = on_a_terminal(service, "queue", "remove", "asked", typed=b"n\n")
    assert status == 1
    assert b"Remove .\\private$\\asked and 0 messages in it? [y/N]" in shown
    assert "asked" in names(service)
    status, _ = on_a_terminal(service, "queue", "remove", "asked", typed=b"y\n")
    assert status == 0
    assert "asked" not in names(service)


def test_the_families_of_queues_are_listed_apart(service: RunningService) -> None:
    service.merq("queue", "new", "private-one")
    service.merq("send", "DIRECT=OS:far\\private$\\q", "--body", "x")
    assert "private-one" in names(service)
    assert not {"deadletter", "private-one;JOURNAL"} & set(names(service))
    assert {"deadletter", "deadxact", "journal"} <= set(names(service, "--system"))
    assert names(service, "--outgoing") == ["DIRECT=OS:far\\PRIVATE$\\q"]
    assert {"private-one", "private-one;JOURNAL", "deadletter"} <= set(names(service, "--all"))


def test_tables_fit_a_terminal_of_80_columns(service: RunningService) -> None:
    service.merq("queue", "new", "a-queue-with-a-long-name", "--label", "And a label " * 6)
    for command in (["queue", "list"], ["top", "--once"], ["outgoing", "list"]):
        status, shown = on_a_terminal(service, *command, typed=b"")
        assert status == 0
        lines = shown.decode().replace("\r", "").splitlines()
        assert max(map(len, map(plain, lines))) <= 80, lines


def plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line)


def test_outgoing_queues_are_shown_paused_and_resumed(service: RunningService) -> None:
    service.merq("send", "far\\private$\\orders", "--body", "x", "--recoverable")
    found = {each["path_name"]: each for each in service.lines("outgoing", "list")}
    assert found["DIRECT=OS:far\\PRIVATE$\\orders"]["messages"] == 1
    service.merq("outgoing", "pause", "far/private$/orders")
    (shown,) = service.lines("outgoing", "show", "direct=os:far\\private$\\orders")
    assert (shown["state"], shown["messages"]) == ("on hold", 1)
    service.merq("outgoing", "resume", "far/private$/orders")
    assert service.lines("outgoing", "show", "far/private$/orders")[0]["state"] != "on hold"
    text = service.merq("outgoing", "show", "far/private$/orders").stdout
    assert "1 message" in text
    wrong = service.merq("outgoing", "show", "near", status=1)
    assert "no outgoing queue goes to near" in wrong.stderr


def test_status_is_a_few_lines_or_an_object(service: RunningService) -> None:
    text = service.merq("status").stdout
    assert text.startswith(f"{NAME}\n")
    assert "running" in text
    (status,) = service.lines("status")
    assert (status["name"], status["refuses_messages"]) == (NAME, False)
    assert status["connections"] == 1


def test_without_a_service_it_is_said_what_was_tried_and_how_to_start_one(
    service: RunningService, tmp_path: Path
) -> None:
    nowhere = tmp_path / "nowhere"
    wrong = service.merq("status", "--data", nowhere, status=1)
    assert wrong.stderr.startswith("merq: MQ_ERROR_SERVICE_NOT_AVAILABLE: ")
    assert f"unix:{nowhere}/merq.sock" in wrong.stderr
    assert f"`merq serve --data {nowhere}`" in wrong.stderr
    wrong = service.merq("queue", "list", "--url", "http://x", "--json", status=1)
    assert json.loads(wrong.stderr)["error"]["code"] == "MQ_ERROR_INVALID_PARAMETER"


def test_over_tcp_the_token_decides(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(tmp_path / "data", "--tcp-port", str(port), "--insecure-tcp") as remote:
        good, bad = tmp_path / "good", tmp_path / "bad"
        for file in (good, bad):
            file.touch(mode=0o600)
        good.write_text(remote.merq("token", "new", "me").stdout)
        bad.write_text("wrong")
        url = f"tcp://127.0.0.1:{port}"
        assert remote.lines("status", "--url", url, "--token-file", good)[0]["name"] == NAME
        refused = remote.merq("queue", "list", "--url", url, "--token-file", bad, status=1)
        assert refused.stderr.startswith("merq: MQ_ERROR_ACCESS_DENIED: ")
        assert refused.stdout == ""
        typed = remote.merq("status", "--url", url, "--token", "merq_secret", status=2)
        assert "MERQ_TOKEN" in typed.stderr
        assert "merq_secret" not in typed.stderr


def test_top_tells_rates_from_what_came_and_went(service: RunningService) -> None:
    service.merq("queue", "new", "busy")
    top = service.start("top", "--count", "8", "--interval", "250ms", "--sort", "in", "--json")
    assert top.stdout is not None
    first = json.loads(top.stdout.readline())
    assert {each["in_per_s"] for each in first["queues"]} == {None}
    with service.connect() as manager:
        manager.queue(".\\private$\\busy").send_many(["x"] * 500)
    output, errors = top.communicate(timeout=PATIENCE_S)
    assert (top.returncode, errors) == (0, b"")
    looks = [json.loads(line) for line in output.splitlines()]
    assert len(looks) == 7
    rates = [
        each["in_per_s"] for look in looks for each in look["queues"] if each["name"] == "busy"
    ]
    assert max(rates) > 500
    assert looks[-1]["queues"][0]["messages"] >= 0


def test_top_prints_one_table_where_there_is_no_terminal(service: RunningService) -> None:
    lines = service.merq("top").stdout.splitlines()
    assert lines[0].startswith(NAME)
    assert lines[1].split()[:2] == ["name", "messages"]


def test_top_is_ended_by_q_and_leaves_the_terminal_as_it_was(service: RunningService) -> None:
    status, shown = on_a_terminal(service, "top", "--interval", "10s", typed=b"q")
    assert status == 0
    assert shown.count(b"\x1b[?1049h") == shown.count(b"\x1b[?1049l") == 1
    assert b"Traceback" not in shown


def test_every_command_teaches_by_examples() -> None:
    groups = {"queue": ["new", "list", "show", "set", "remove", "purge"],
              "outgoing": ["list", "show", "pause", "resume"],
              "reservations": ["list", "release"], "stages": ["list", "drop"]}  # fmt: skip
    commands = [[group, each] for group, members in groups.items() for each in members]
    commands += [
        [each]
        for each in ("send", "receive", "peek", "move", "export", "import", "status", "top", "why")
    ]
    commands += [["trace"], ["offline"], ["online"]]
    for command in commands:
        text = CliRunner().invoke(merq, [*command, "--help"], prog_name="merq").output
        examples = [line for line in text.splitlines() if f"merq {' '.join(command)}" in line]
        assert len(examples) >= 3, command  # one is the usage
        assert "--json" in text, command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_completes(service: RunningService, shell: str) -> None:
    assert "_MERQ_COMPLETE" in service.merq("completion", shell).stdout


def completions(service: RunningService, line: str, **variables: str) -> list[str]:
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, "-m", "merq"],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        encoding="utf-8",
        env={
            **service.environment,
            **variables,
            "_MERQ_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        },
    )
    assert done.stderr == ""
    return [each.partition(",")[2] for each in done.stdout.split()]


def test_commands_options_and_queue_names_are_completed(
    service: RunningService, tmp_path: Path
) -> None:
    service.merq("queue", "new", "completed-one")
    service.merq("queue", "new", "completed-two")
    assert completions(service, "merq rec") == ["receive"]
    assert "--by-lookup-id" in completions(service, "merq receive --by")
    assert completions(service, "merq receive compl") == ["completed-one", "completed-two"]
    assert completions(service, "merq receive compl", MERQ_DATA=str(tmp_path)) == []


@pytest.mark.spec("MS-MQMQ 2.1.1")
def test_names_with_spaces_go_through_every_command(service: RunningService) -> None:
    service.merq("queue", "new", "my orders")
    service.merq("send", "my orders", "--body", "one", "--response-queue", "my answers")
    service.merq("send", r"DIRECT=OS:.\private$\My Orders", "--body", "two", "--recoverable")
    assert "my orders" in service.merq("queue", "list").stdout
    first, second = service.lines("peek", "my orders", "--all")
    assert (first["text"], second["text"]) == ("one", "two")
    assert first["response_queue"] == r"DIRECT=OS:.\PRIVATE$\my answers"
    said = service.merq("why", first["id"]).stdout
    assert "merq peek 'my orders' --by-lookup-id" in said
    exported = service.merq("export", "my orders", "-").stdout
    service.merq("import", "-", "my orders", given=exported)
    service.merq("move", "my orders", "to do", "--lookup-id", str(first["lookup_id"]))
    assert [each["text"] for each in service.lines("receive", "my orders;to do")] == ["one"]
    assert len(service.lines("receive", "my orders", "--all")) == 3
    told = service.merq("queue", "new", "orders ", status=None)
    assert told.returncode != 0
    assert "a queue name does not end with a space" in told.stderr
    explained = service.merq("names", "explain", r".\private$\my orders;to do").stdout
    assert "my orders" in explained
    assert "to do" in explained
    service.merq("queue", "remove", "my orders", "--yes")
