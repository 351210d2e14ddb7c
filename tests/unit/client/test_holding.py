"""Messages that leave their queue only when it is known that they were dealt with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from merq import Manager, MessageQueueError, ReceiveTimeout
from merq import open as open_manager
from merq.hresult import HResult
from merq.model.body import TypedBytes
from merq.model.selecting import ByLookup


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with open_manager(tmp_path / "data") as opened:
        yield opened


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.spec("MS-MQDMPR 3.1.7.1.11", "MS-MQDMPR 3.1.7.1.12")
def test_a_held_message_leaves_when_the_block_ends_well(
    manager: Manager, transactional: bool
) -> None:
    queue = manager.create_queue(r".\private$\q", transactional=transactional)
    with manager.transaction() as tx:
        queue.send_many(["a", "b", "c"], tx=tx if transactional else None)
    with queue.hold(2, timeout=0) as messages:
        assert [each.body for each in messages] == ["a", "b"]
        assert queue.report.locked == 2
        assert queue.peek(timeout=0).body == "c"
    assert len(queue) == 1


def test_a_held_message_goes_back_on_an_exception_and_nothing_is_held_against_it(
    manager: Manager,
) -> None:
    queue = manager.create_queue(r".\private$\q", poison_after=1)
    queue.send_many(["a", "b"])
    with pytest.raises(OSError, match="full"), queue.hold(10, timeout=0):
        raise OSError("full")
    assert [(each.body, each.abort_count) for each in queue.receive_many(5, timeout=0)] == [
        ("a", 0),
        ("b", 0),
    ]


def test_one_certain_message_can_be_held(manager: Manager) -> None:
    queue = manager.create_queue(r".\private$\q")
    queue.send_many(["a", "b"])
    second = list(queue.peek_all())[1]
    with queue.hold(timeout=0, selection=ByLookup(second.lookup_id)) as (message,):
        assert message.body == "b"
    assert queue.peek(timeout=0).body == "a"
    with (
        pytest.raises(MessageQueueError) as wrong,
        queue.hold(timeout=0, selection=ByLookup(second.lookup_id)),
    ):
        pass
    assert wrong.value.code == HResult.MQ_ERROR_MESSAGE_NOT_FOUND


def test_holding_waits_like_receiving_and_has_its_limits(manager: Manager) -> None:
    queue = manager.create_queue(r".\private$\q")
    with pytest.raises(ReceiveTimeout), queue.hold(timeout=0.01):
        pass
    with pytest.raises(MessageQueueError, match="give a number from 1 on"):
        queue.hold(0)
    queue.send_many([b"x" * 1000] * 10)
    with queue.hold(10, timeout=0, most_bytes=3000) as messages:
        assert 0 < len(messages) < 10


def test_a_body_is_sent_with_the_type_that_it_had(manager: Manager) -> None:
    queue = manager.create_queue(r".\private$\q")
    queue.send(TypedBytes(30, b"ansi\0"))
    message = queue.receive(timeout=0)
    assert (message.body_type, message.body_bytes, message.body) == (30, b"ansi\0", "ansi")
