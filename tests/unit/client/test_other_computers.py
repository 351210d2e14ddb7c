"""The public API for queues on other computers, over a queue manager in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import merq
from merq.client.manager import Manager
from merq.hresult import HResult
from merq.model.names import PrivateName
from merq.wire.queues import PRIVATE_ELSEWHERE, PUBLIC
from merq.wire.view import MessageView
from unit.client.using_managers import ORDERS, refused

FAR = r"DIRECT=OS:far\PRIVATE$\orders"
REPORTS = UUID("0b0d4a8f-5a0e-4f0a-9b0c-6f4d2f3e1a77")


@pytest.fixture
def mq(tmp_path: Path) -> Iterator[Manager]:
    with merq.open(tmp_path / "data", name="here") as opened:
        yield opened


def outgoing(mq: Manager) -> merq.OutgoingQueue:
    (only,) = mq.outgoing_queues()
    return only


# Many at once.


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.27")
def test_many_messages_to_another_computer_wait_in_their_order(mq: Manager) -> None:
    ids = mq.send_many(FAR, range(1000), recoverable=True, label="l")
    assert len(set(ids)) == 1000
    found = list(outgoing(mq).peek_all())
    assert [each.id for each in found] == ids
    assert [each.body for each in found] == list(range(1000))
    assert {(each.label, each.recoverable) for each in found} == {("l", True)}
    assert outgoing(mq).destination == FAR


def test_many_messages_survive_a_restart(tmp_path: Path) -> None:
    with merq.open(tmp_path, name="here") as mq:
        ids = mq.send_many(FAR, ["a", "b"], recoverable=True)
    with merq.open(tmp_path, name="here") as mq:
        assert [each.id for each in outgoing(mq).peek_all()] == ids


def test_many_messages_to_a_name_of_this_computer_are_in_its_queue(mq: Manager) -> None:
    orders = mq.create_queue(ORDERS)
    ids = mq.send_many(
        r"DIRECT=OS:here\private$\orders", [b"a", merq.Message(body="b", priority=7)]
    )
    assert [(each.id, each.body) for each in orders.peek_all()] == [(ids[1], "b"), (ids[0], b"a")]
    assert mq.outgoing_queues() == []


def test_many_messages_in_a_transaction_are_sent_with_it_or_not_at_all(mq: Manager) -> None:
    with mq.transaction() as tx:
        ids = mq.send_many(FAR, ["a", "b"], tx=tx)
        assert not any(map(len, mq.outgoing_queues()))
    assert [each.id for each in outgoing(mq).peek_all()] == ids
    aborted = mq.transaction()
    mq.send_many(FAR, ["c"], tx=aborted)
    aborted.abort()
    assert len(outgoing(mq)) == 2


def test_no_messages_are_no_request(mq: Manager) -> None:
    assert mq.send_many(FAR, []) == []
    assert mq.outgoing_queues() == []


@pytest.mark.parametrize(
    ("name", "bodies", "code"),
    [
        (f"{FAR},{FAR}2", ["a"], HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        ("nonsense", ["a"], HResult.MQ_ERROR_ILLEGAL_FORMATNAME),
        (FAR, "text", HResult.MQ_ERROR_INVALID_PARAMETER),
        (FAR, 7, HResult.MQ_ERROR_INVALID_PARAMETER),
        (FAR, [object()], HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
    ],
)
def test_what_cannot_be_sent_is_refused_whole(
    mq: Manager, name: str, bodies: Any, code: HResult
) -> None:
    refused(code, lambda: mq.send_many(name, bodies))
    assert mq.outgoing_queues() == []


def test_a_format_name_is_text(mq: Manager) -> None:
    wrong: Any = 7
    refused(HResult.MQ_ERROR_INVALID_PARAMETER, lambda: mq.send_many(wrong, ["a"]))


# The way there.


@pytest.mark.spec("MS-MQDMPR 3.1.1.4")
def test_an_outgoing_queue_tells_how_far_it_is(mq: Manager) -> None:
    mq.send_many(FAR, ["a", "b"])
    told = outgoing(mq).transfer()
    assert isinstance(told, merq.TransferReport)
    assert (told.state, told.waiting, told.under_way) == (merq.OutgoingState.INACTIVE, 2, 0)
    assert (told.next_hops, told.history) == ((), ())
    assert told.next_place == merq.SequencePlace()


def test_a_queue_manager_in_process_has_no_sessions(mq: Manager) -> None:
    assert mq.links() == []
    assert mq.status().sessions == 0
    assert mq.create_queue(ORDERS).sequences() == []


@pytest.mark.spec("MS-MQDMPR 3.1.4.12", "MS-MQDMPR 3.1.4.13")
def test_a_queue_manager_is_taken_offline_and_brought_online(mq: Manager) -> None:
    assert mq.status().online
    mq.take_offline()
    assert not mq.status().online
    mq.send(FAR, "waits")
    mq.bring_online()
    assert mq.status().online


# What a message names.


@pytest.mark.spec("MS-MQMQ 2.2.20.8")
def test_a_traced_message_names_its_report_queue(mq: Manager) -> None:
    orders = mq.create_queue(ORDERS)
    orders.send("a", report_queue=REPORTS)
    orders.send("b")
    assert [each.report_queue for each in orders.peek_all()] == [REPORTS, None]
    wrong: Any = str(REPORTS)
    refused(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT, lambda: orders.send("c", report_queue=wrong))


@pytest.mark.spec("MS-MQMQ 2.2.19.2")
def test_other_queues_can_be_named_by_identifiers(mq: Manager) -> None:
    orders = mq.create_queue(ORDERS)
    private = PrivateName(computer=mq.guid, number=orders.number)
    orders.send("a", acknowledge=1, admin_queue=str(private), response_queue=f"PUBLIC={REPORTS}")
    view = MessageView(orders.peek(timeout=0).packet)
    assert view.admin_queue_type == PRIVATE_ELSEWHERE
    assert view.admin_queue == mq.guid.bytes_le + orders.number.to_bytes(4, "little")
    assert (view.response_queue_type, view.response_queue) == (PUBLIC, REPORTS.bytes_le)


@pytest.mark.parametrize(
    "name", [f"PRIVATE={REPORTS}", f"PUBLIC={REPORTS};JOURNAL", f"PUBLIC={REPORTS},{FAR}"]
)
def test_a_name_by_identifiers_that_is_none_is_refused(mq: Manager, name: str) -> None:
    orders = mq.create_queue(ORDERS)
    with pytest.raises(merq.MessageQueueError):
        orders.send("a", admin_queue=name)
    assert len(orders) == 0


def test_an_acknowledgment_finds_a_queue_that_is_named_by_identifiers(mq: Manager) -> None:
    orders, admin = mq.create_queue(ORDERS), mq.create_queue(r".\private$\admin")
    name = str(PrivateName(computer=mq.guid, number=admin.number))
    sent = orders.send("a", admin_queue=name, acknowledge=merq.ACKNOWLEDGE_ARRIVAL)
    told = admin.receive_by_correlation_id(sent)
    assert told.message_class == 2
