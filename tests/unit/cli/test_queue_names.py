"""Queue names as people type them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from merq import Manager, MessageQueueError, Queue
from merq import open as open_manager
from merq.cli.completing import names_starting
from merq.cli.queue_names import (
    destination_of,
    find_outgoing,
    find_queue,
    is_format_name,
    path_name_of,
    reference_to,
    short_name,
)
from merq.hresult import HResult


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with open_manager(tmp_path / "data", name="alpha") as opened:
        opened.create_queue(r".\private$\orders").subqueue("poison")
        opened.create_queue(r".\private$\journal")
        yield opened


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("orders", r".\private$\orders"),
        ("orders;poison", r".\private$\orders;poison"),
        ("orders;journal", r".\private$\orders;journal"),
        ("deadletter", r".\system$;DEADLETTER"),
        ("DeadXact", r".\system$;DEADXACT"),
        ("journal", r".\system$;JOURNAL"),
        ("./private$/orders", r".\private$\orders"),
        ("private$/orders", r".\private$\orders"),
        (r"server\private$\orders", r"server\private$\orders"),
        ("./system$;deadletter", r".\system$;deadletter"),
    ],
)
def test_a_short_name_means_a_queue_of_this_computer(typed: str, path: str) -> None:
    assert path_name_of(typed) == path


@pytest.mark.parametrize(
    ("path", "short"),
    [
        (r".\private$\orders", "orders"),
        (r".\private$\orders;poison", "orders;poison"),
        (r".\system$;DEADLETTER", "deadletter"),
        (r".\private$\journal", r".\private$\journal"),
        (r".\private$\a/b", r".\private$\a/b"),
        (r"DIRECT=OS:far\PRIVATE$\q", r"DIRECT=OS:far\PRIVATE$\q"),
    ],
)
def test_a_name_is_only_shortened_if_it_means_the_same(path: str, short: str) -> None:
    assert short_name(path) == short


def test_queues_of_every_kind_are_found(manager: Manager) -> None:
    for typed in ("orders", "orders;poison", "orders;journal", "deadletter", "./private$/journal"):
        assert find_queue(manager, typed).path_name
    assert find_queue(manager, "ALPHA/private$/Orders").path_name == r".\private$\orders"


def test_what_is_not_found_is_answered_with_what_is_near(manager: Manager) -> None:
    with pytest.raises(
        MessageQueueError, match=r"no queue named .*ordres; near it: orders"
    ) as wrong:
        find_queue(manager, "ordres")
    assert wrong.value.code == HResult.MQ_ERROR_QUEUE_NOT_FOUND
    with pytest.raises(MessageQueueError, match="eaten the backslashes"):
        find_queue(manager, ".private$orders")
    with pytest.raises(MessageQueueError, match="is on server; this queue manager is alpha"):
        find_queue(manager, "server/private$/orders")


def test_messages_go_to_queues_here_and_to_format_names_elsewhere(manager: Manager) -> None:
    here = destination_of(manager, "ALPHA/private$/orders")
    assert isinstance(here, Queue)
    assert here.path_name == r".\private$\orders"
    assert destination_of(manager, "server/private$/q") == r"DIRECT=OS:server\private$\q"
    assert destination_of(manager, "DIRECT=HTTP://h/msmq/q") == "DIRECT=HTTP://h/msmq/q"
    with pytest.raises(MessageQueueError):
        destination_of(manager, "a\\b\\c\\d")


def test_a_queue_that_a_message_names_means_the_same_everywhere(manager: Manager) -> None:
    assert reference_to(manager, "replies") == r"DIRECT=OS:.\private$\replies"
    assert reference_to(manager, "alpha/private$/replies") == r"DIRECT=OS:.\private$\replies"
    assert reference_to(manager, "server/private$/r") == r"DIRECT=OS:server\private$\r"
    assert reference_to(manager, "DIRECT=TCP:1.2.3.4\\q") == "DIRECT=TCP:1.2.3.4\\q"
    assert reference_to(manager, "") == ""


def test_an_outgoing_queue_is_found_by_a_part_that_only_it_has(manager: Manager) -> None:
    for computer in ("far", "farther"):
        manager.send(rf"DIRECT=OS:{computer}\private$\q", "x", recoverable=True)
    assert find_outgoing(manager, "farther").destination == r"DIRECT=OS:farther\PRIVATE$\q"
    assert find_queue(manager, r"direct=os:far\private$\q").path_name == r"DIRECT=OS:far\PRIVATE$\q"
    with pytest.raises(MessageQueueError, match="is in the names of 2 outgoing queues"):
        find_outgoing(manager, "far")
    with pytest.raises(MessageQueueError, match="no outgoing queue goes to nowhere"):
        find_outgoing(manager, "nowhere")


def test_format_names_are_told_by_their_prefix() -> None:
    assert is_format_name("direct=OS:a\\q")
    assert not is_format_name("a=b")
    assert not is_format_name("orders")


def test_a_shell_is_offered_only_names_that_it_takes_as_they_are(manager: Manager) -> None:
    from merq.protocol.application.requests import Family

    reports = manager.reports(Family.ALL)
    assert [item.value for item in names_starting(reports, "ord")] == ["orders"]
    assert "deadletter" in [item.value for item in names_starting(reports, "")]
