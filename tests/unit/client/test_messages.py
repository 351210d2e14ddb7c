"""Messages as applications see them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import merq
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.body import Value
from merq.model.message_class import MessageClass


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[merq.Queue]:
    with merq.open(tmp_path, name="here") as manager:
        yield manager.create_queue(r".\private$\orders")


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "hello",
        "Grüße, 世界 🎉",
        "ends with\0",
        b"",
        b"\0\xff" * 1000,
        True,
        False,
        0,
        -5,
        1 << 40,
        (1 << 64) - 1,
        3.25,
        UUID(int=12345),
        datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
    ],
    ids=repr,
)
@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.spec("MS-MQMQ 2.2.12")
def test_a_body_arrives_as_it_was_sent(queue: merq.Queue, body: Value, recoverable: bool) -> None:
    queue.send(body, recoverable=recoverable)
    found = queue.receive(timeout=0)
    assert found.body == body
    assert type(found.body) is type(body)
    assert found.recoverable == recoverable


@pytest.mark.parametrize(
    ("properties", "is_told"),
    [
        ({"acknowledge": ACKNOWLEDGE_ARRIVAL}, False),
        ({"admin_queue": r".\private$\told"}, False),
        ({"acknowledge": ACKNOWLEDGE_ARRIVAL, "admin_queue": r".\private$\told"}, True),
    ],
    ids=str,
)
@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQMQ 2.2.19.3")
def test_an_administration_queue_is_named_just_if_an_acknowledgment_is_asked_for(
    tmp_path: Path, properties: dict[str, Any], is_told: bool
) -> None:
    with merq.open(tmp_path, name="here") as manager:
        queue = manager.create_queue(r".\private$\orders")
        queue.send("a", **properties)
        manager.send(r"DIRECT=OS:here\private$\orders", merq.Message(body="b", **properties))
        for _ in range(2):
            found = queue.receive(timeout=0)
            assert (found.acknowledge != 0, found.admin_queue != "") == (is_told, is_told)


@pytest.mark.parametrize(
    "properties", [{"acknowledge": 16}, {"acknowledge": -1}, {"admin_queue": "no name"}], ids=str
)
def test_what_is_left_out_for_want_of_the_other_is_checked_all_the_same(
    queue: merq.Queue, properties: dict[str, Any]
) -> None:
    with pytest.raises(MessageQueueError):
        queue.send("a", **properties)
    assert len(queue) == 0


def test_every_field_of_a_message_arrives(queue: merq.Queue) -> None:
    sent_id = queue.send(
        merq.Message(
            body="x",
            label="a label",
            priority=6,
            recoverable=True,
            time_to_reach_queue=50,
            time_to_be_received=500,
            journal=True,
            dead_letter=True,
            acknowledge=ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE,
            response_queue=r".\private$\answers",
            correlation_id=b"c" * 20,
            app_specific=77,
            extension=b"more",
        )
    )
    found = queue.receive(timeout=0)
    assert found.id == sent_id
    assert (found.label, found.priority, found.recoverable) == ("a label", 6, True)
    assert (found.correlation_id, found.app_specific, found.extension) == (b"c" * 20, 77, b"more")
    assert found.response_queue == r"DIRECT=OS:.\PRIVATE$\answers"
    assert found.message_class == MessageClass.MQMSG_CLASS_NORMAL
    assert not found.transactional
    assert abs(found.sent_at.timestamp() - datetime.now(tz=UTC).timestamp()) < 60
    assert sent_id in repr(found)
    assert found.packet[4:8] == b"LIOR"
    assert found.body_bytes == b"x\0\0\0"


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("label", "x" * 250, HResult.MQ_ERROR_LABEL_TOO_LONG),
        ("label", 5, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("priority", 8, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("priority", -1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("priority", 2.5, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("priority", True, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("priority", "high", HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("recoverable", 7, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("journal", 1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("dead_letter", "no", HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("time_to_be_received", -1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("time_to_be_received", 1.5, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("time_to_reach_queue", 1 << 32, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("acknowledge", 16, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("correlation_id", b"short", HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("correlation_id", "c" * 20, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("app_specific", 1 << 32, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ("extension", "text", HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("admin_queue", "orders", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        ("admin_queue", None, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ("response_queue", "DIRECT=nonsense", HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
    ],
)
def test_a_field_that_cannot_be_is_refused_and_nothing_is_sent(
    queue: merq.Queue, field: str, value: object, code: int
) -> None:
    with pytest.raises(MessageQueueError) as refused:
        queue.send("x", **{field: value})  # type: ignore[arg-type]
    assert refused.value.code == code
    assert len(str(refused.value)) > 10
    assert len(queue) == 0


@pytest.mark.parametrize("body", [[1], {"a": 1}, object(), 1 << 64, bytes(0x400000)], ids=type)
def test_a_body_that_cannot_be_is_refused_and_nothing_is_sent(
    queue: merq.Queue, body: object
) -> None:
    with pytest.raises(MessageQueueError) as refused:
        queue.send(body)  # type: ignore[arg-type]
    assert refused.value.code
    assert len(queue) == 0


def test_the_largest_message_is_sent_and_one_byte_more_is_not(queue: merq.Queue) -> None:
    queue.send(b"")
    room = 0x400000 - len(queue.receive(timeout=0).packet)
    queue.send(bytes(room), recoverable=True)
    with pytest.raises(MessageQueueError, match="4194304"):
        queue.send(bytes(room + 1))
    assert queue.receive(timeout=0).body == bytes(room)
    assert len(queue) == 0


def test_a_message_that_is_given_whole_takes_no_further_fields(queue: merq.Queue) -> None:
    with pytest.raises(TypeError):
        queue.send(merq.Message(body="x"), label="y")
    with pytest.raises(TypeError):
        queue.send("x", colour="red")
    assert len(queue) == 0


def test_an_acknowledgment_names_the_message_it_is_about(tmp_path: Path) -> None:
    with merq.open(tmp_path, name="here") as manager:
        admin = manager.create_queue(r".\private$\admin")
        orders = manager.create_queue(r".\private$\orders")
        orders.send(
            "x",
            acknowledge=ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE,
            admin_queue=r"DIRECT=OS:here\private$\admin",
        )
        message = orders.receive(timeout=0)
        arrived, received = admin.receive(timeout=0), admin.receive(timeout=0)
        assert arrived.message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
        assert received.message_class == MessageClass.MQMSG_CLASS_ACK_RECEIVE
        assert arrived.correlation_id == received.correlation_id == message.id_bytes
