"""`merq reservations` and `merq stages` as an administrator runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.services import RunningService, serving
from merq import Manager, Queue
from merq.client.bulk import Stage
from merq.wire.build import Outline, build_packet

GROUP = "nightly archive"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("batches")
    settings = '[bulk]\nlease_s = "60 s"\n[exchange]\nlisten = false\noffline = true\n'
    (folder / "merq.toml").write_text(settings)
    with serving(folder / "data", "--config", str(folder / "merq.toml")) as running:
        yield running


@pytest.fixture
def manager(service: RunningService) -> Iterator[Manager]:
    with service.connect() as opened:
        yield opened


@pytest.fixture
def queue(manager: Manager) -> Iterator[Queue]:
    made = manager.create_queue(r".\private$\orders")
    made.send_many(["a", "b", "c"], recoverable=True)
    yield made
    made.delete()


def written(manager: Manager, queue: Queue, writer: str, *bodies: bytes) -> Stage:
    stage = manager.bulk.stage(queue, writer, 0, "task 0")
    stage.send([build_packet(Outline(destination=r"OS:.\private$\q", body=b)) for b in bodies])
    return stage


def test_groups_are_listed(service: RunningService, manager: Manager, queue: Queue) -> None:
    empty = service.merq("reservations", "list")
    assert (empty.stdout, empty.stderr) == ("", "no group of consumers reads here\n")
    found = manager.bulk.reserve(queue, GROUP, "me", 0, most=2)
    table = service.merq("reservations", "list").stdout.splitlines()
    assert table[0].split() == ["queue", "group", "acknowledged", "reserved", "ranges", "reader"]
    assert table[1].split() == ["orders", "nightly", "archive", "0", "2", "1", "at", "work"]
    (listed,) = service.lines("reservations", "list")
    assert listed == {
        "queue": r".\private$\orders",
        "name": "orders",
        "group": GROUP,
        "acknowledged": 0,
        "reserved_up_to": found.end,
        "ranges": 1,
        "messages": 2,
        "owner": "me",
        "lease_s": listed["lease_s"],
    }
    assert 40 < listed["lease_s"] <= 60, "as it is set"
    manager.bulk.leave(queue, GROUP, "me")
    assert service.merq("reservations", "list").stdout.split()[-1] == "silent"


def test_a_queue_shows_its_groups(service: RunningService, manager: Manager, queue: Queue) -> None:
    manager.bulk.reserve(queue, GROUP, "me", 0, most=2)
    (shown,) = service.lines("queue", "show", "orders")
    assert [(each["group"], each["messages"]) for each in shown["groups"]] == [(GROUP, 2)]
    text = service.merq("queue", "show", "orders").stdout
    assert "nightly archive" in text
    assert "3 messages" in text


def test_why_says_that_a_group_has_a_message(
    service: RunningService, manager: Manager, queue: Queue
) -> None:
    message_id = queue.peek(timeout=0).id
    manager.bulk.reserve(queue, GROUP, "me", 0)
    told = service.merq("why", message_id).stdout
    assert "a group of consumers has reserved it" in told
    assert "→ merq reservations release orders GROUP" in told


def test_what_a_group_has_reserved_is_released(
    service: RunningService, manager: Manager, queue: Queue
) -> None:
    manager.bulk.reserve(queue, GROUP, "me", 0, most=2)
    asked = service.merq("reservations", "release", "orders", GROUP, status=1)
    assert (
        "Give back 2 messages of .\\private$\\orders that nightly archive reserved" in asked.stderr
    )
    assert "though a reader is at work? Nothing was released: there is no terminal" in asked.stderr
    done = service.merq("reservations", "release", "orders", GROUP, "--yes")
    assert done.stdout == "released 2 messages of .\\private$\\orders\n"
    assert queue.receive(timeout=0).body == "a"
    (left,) = service.lines("reservations", "list")
    assert (left["messages"], left["ranges"]) == (0, 0)
    (told,) = service.lines("reservations", "release", "orders", GROUP, "--forget")
    expected = {"queue": r".\private$\orders", "group": GROUP, "messages": 0, "forgotten": True}
    assert told == expected
    assert service.lines("reservations", "list") == []


def test_a_group_that_is_not_there_is_answered_with_those_that_are(
    service: RunningService, manager: Manager, queue: Queue
) -> None:
    wrong = service.merq("reservations", "release", "orders", "x", "--yes", status=1)
    assert "no group x reads .\\private$\\orders; no group does" in wrong.stderr
    manager.bulk.reserve(queue, GROUP, "me", 0)
    wrong = service.merq("reservations", "release", "orders", "x", "--yes", status=1)
    assert f"these do: {GROUP}" in wrong.stderr


def test_stages_are_listed_and_dropped(
    service: RunningService, manager: Manager, queue: Queue
) -> None:
    empty = service.merq("stages", "list")
    assert (empty.stdout, empty.stderr) == ("", "nothing waits to be published\n")
    one = written(manager, queue, "replay", b"x", b"y")
    written(manager, queue, "etl", b"z")
    written(manager, queue, "etl")
    (first, *_) = service.lines("stages", "list")
    assert (first["stage"], first["name"], first["writer"]) == (one.number, "orders", "replay")
    assert (first["batch"], first["part"], first["messages"]) == (0, "task 0", 2)
    table = service.merq("stages", "list").stdout.splitlines()
    columns = ["stage", "queue", "writer", "batch", "part", "messages", "size", "age"]
    assert table[0].split() == columns
    assert len(table) == 4
    asked = service.merq("stages", "drop", str(one.number), status=1)
    assert "Drop 1 stage with 2 messages? Nothing was dropped" in asked.stderr
    done = service.merq("stages", "drop", str(one.number), "--yes")
    assert done.stdout == "dropped 1 stage with 2 messages\n"
    (told,) = service.lines("stages", "drop", "--writer", "etl", "--yes")
    assert told == {"stages": 2, "messages": 1}
    assert service.lines("stages", "list") == []


def test_it_has_to_be_said_which_stage(service: RunningService) -> None:
    for arguments in ([], ["7", "--writer", "etl"]):
        wrong = service.merq("stages", "drop", *arguments, status=2)
        assert "say which: a STAGE that `merq stages list` shows" in wrong.stderr
    gone = service.merq("stages", "drop", "7", "--yes", status=1)
    assert "there is no stage 7" in gone.stderr
    gone = service.merq("stages", "drop", "--writer", "nobody", "--yes", status=1)
    assert "there is no stage of the writer nobody" in gone.stderr


def test_why_says_that_a_message_is_not_published(
    service: RunningService, manager: Manager, queue: Queue
) -> None:
    before = {each.id for each in queue.peek_all()}
    stage = written(manager, queue, "replay", b"x")
    last = max(int(each.rpartition("\\")[2]) for each in before)
    message_id = next(iter(before)).rpartition("\\")[0] + f"\\{last + 1}"
    told = service.merq("why", message_id).stdout
    assert "It is to go to orders: it was written into a stage" in told
    assert "→ merq stages list" in told
    manager.bulk.publish("replay", 0, [stage.number])
    assert "It waits in orders to be received" in service.merq("why", message_id).stdout
