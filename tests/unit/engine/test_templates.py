"""Rows that have most in common become the messages that their packets would become."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.row_batches import batch_of, packets_of
from merq.engine.sending import MESSAGES_AT_ONCE_MAX
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.names import PrivateName
from merq.model.queue import PrivacyLevel
from merq.model.row_batch import TEMPLATES_MAX, RowBatch
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.headers import INFINITE, PACKET_SIZE_MAX
from merq.wire.view import MessageView
from unit.engine.bulk_world import BulkWorld

OUTLINE = Outline(destination=r"OS:here\private$\q", recoverable=True)
TEMPLATE = build_packet(OUTLINE)
TEXT = st.text(st.sampled_from("ab\u0100\U0001f600"), max_size=5)
OUTLINES = st.builds(
    Outline,
    destination=st.sampled_from([r"OS:a\private$\q", PrivateName(computer=UUID(int=5), number=3)]),
    label=TEXT,
    priority=st.integers(0, 7),
    recoverable=st.booleans(),
    admin_queue=st.sampled_from(["", r"OS:here\private$\admin"]),
    response_queue=st.sampled_from(["", r"OS:b\private$\reply"]),
    acknowledgments=st.integers(0, 15),
    positive_journaling=st.booleans(),
    negative_journaling=st.booleans(),
    time_to_be_received=st.sampled_from([INFINITE, 60]),
    correlation_id=st.binary(min_size=20, max_size=20),
    application_tag=st.integers(0, 2**32 - 1),
    extension=st.binary(max_size=5),
)


@st.composite
def batches(draw: st.DrawFn) -> RowBatch:
    """Any batch that is in order."""
    outlines = draw(st.lists(OUTLINES, min_size=1, max_size=3))
    count = draw(st.integers(1, 5))
    kinds = draw(st.lists(st.integers(0, len(outlines) - 1), min_size=count, max_size=count))
    bodies = draw(st.lists(st.binary(max_size=9), min_size=count, max_size=count))
    tags = draw(st.binary(min_size=28 * count, max_size=28 * count))
    labels = b""
    sizes = b""
    if draw(st.booleans()):
        outlines = [replace(each, label="") for each in outlines]
        texts = draw(st.lists(TEXT, min_size=count, max_size=count))
        encoded = [each.encode("utf-16-le") for each in texts]
        labels, sizes = b"".join(encoded), bytes(len(each) // 2 for each in encoded)
    return RowBatch(
        count=count,
        templates=tuple(build_packet(each) for each in outlines),
        kinds=bytes(kinds) if len(outlines) > 1 else b"",
        tags=draw(st.sampled_from([b"", tags])),
        label_sizes=sizes,
        labels=labels,
        body_sizes=struct.pack(f"<{count}I", *map(len, bodies)),
        bodies=b"".join(bodies),
    )


def rows(*bodies: bytes, template: bytes = TEMPLATE) -> RowBatch:
    return RowBatch(
        count=len(bodies),
        templates=(template,),
        kinds=b"",
        tags=b"",
        label_sizes=b"",
        labels=b"",
        body_sizes=struct.pack(f"<{len(bodies)}I", *map(len, bodies)),
        bodies=b"".join(bodies),
    )


def send(world: BulkWorld, stage: int, batch: RowBatch) -> int:
    request = world.next_request()
    world.engine.stages.send_rows(request, world.engine.stage(stage), batch)
    world.perform()
    return request


def refusal(world: BulkWorld, stage: int, batch: RowBatch) -> MessageQueueError:
    with pytest.raises(MessageQueueError) as caught:
        send(world, stage, batch)
    return caught.value


def left_by(
    batch: RowBatch, write: Callable[[BulkWorld, int], int], *, transactional: bool
) -> object:
    """What a way of writing leaves behind, twice and published: log, places and answers."""
    world = BulkWorld()
    admin = world.create("admin")
    number = world.create("q", transactional=transactional)
    stage = world.stage(number)
    answers = [world.answers[write(world, stage)] for _ in range(2)]
    staged = list(world.queue(stage).positions)
    answers.append(world.answers[world.publish(stage)])
    log = [[(each.kind, each.whole) for each in frame.entries] for frame in world.log]
    places = [list(world.queue(each).positions) for each in (number, admin)]
    assert answers == [batch.count, batch.count, 2 * batch.count]
    return log, staged, places, world.engine.state.taken_bytes


# Writing.


@pytest.mark.parametrize("transactional", [False, True])
@settings(max_examples=30)
@given(batch=batches())
def test_rows_leave_what_their_packets_would_leave(batch: RowBatch, transactional: bool) -> None:
    def as_packets(world: BulkWorld, stage: int) -> int:
        request = world.next_request()
        world.engine.send(request, stage, packets_of(batch))
        world.perform()
        return request

    by_rows = left_by(
        batch, lambda world, stage: send(world, stage, batch), transactional=transactional
    )
    assert by_rows == left_by(batch, as_packets, transactional=transactional)


@settings(max_examples=30)
@given(batch=batches())
def test_what_rows_become_is_found_to_be_in_order(batch: RowBatch) -> None:
    world = BulkWorld()
    number = world.create("q")
    stage = world.stage(number)
    send(world, stage, batch)
    world.publish(stage)
    assert sorted(world.bodies(number)) == sorted(
        MessageView(each).body for each in packets_of(batch)
    )


@pytest.mark.parametrize("checkpoint", [False, True])
def test_rows_survive_a_restart(checkpoint: bool) -> None:
    world = BulkWorld()
    number = world.create("q")
    stage = world.stage(number)
    send(world, stage, rows(b"a", b"bb"))
    world.come_back(checkpoint=checkpoint)
    send(world, stage, rows(b"c"))
    world.publish(stage)
    world.come_back(checkpoint=checkpoint)
    assert world.bodies(number) == [b"a", b"bb", b"c"]


def test_rows_that_find_the_disk_full_leave_nothing() -> None:
    world = BulkWorld()
    stage = world.stage(world.create("q"))
    before = world.engine.state.taken_bytes
    world.full = 1
    assert world.code(send(world, stage, rows(b"a"))) == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED
    assert (world.queue(stage).positions.count, world.queue(stage).staged_bytes) == (0, 0)
    assert world.engine.state.taken_bytes == before
    assert world.answers[send(world, stage, rows(b"a"))] == 1


def test_rows_on_their_way_are_counted_in_their_transaction() -> None:
    world = BulkWorld()
    number = world.create("q", transactional=True)
    stage = world.stage(number)
    world.durable_at_once = False
    send(world, stage, rows(b"a", b"b"))
    send(world, stage, rows(b"c"))
    world.sync()
    assert [each.tx_place[1:] for each in world.messages(stage)] == [(1, 0), (2, 1), (3, 2)]


# What is refused.


def wrong_batches() -> dict[str, tuple[RowBatch, str]]:
    good = rows(b"a", b"bc")
    signed = TEMPLATE[:60] + struct.pack("<I", 1 << 19 | 1 << 21 | 7 << 10) + TEMPLATE[64:]
    session = TEMPLATE[:2] + struct.pack("<H", 0x13) + TEMPLATE[4:] + bytes(12) + b"\1\0\0\0"
    flagged = TEMPLATE[:2] + struct.pack("<H", 0x43) + TEMPLATE[4:]
    labelled = build_packet(replace(OUTLINE, label="own"))
    place = TransactionPlace(1, 1, 0)
    traced = build_packet(replace(OUTLINE, report_queue=UUID(int=1)))
    several = build_packet(replace(OUTLINE, destinations=("OS:a\\q", "OS:b\\q")))
    own = "has a body, security, or headers"
    return {
        "no rows": (replace(good, count=0, body_sizes=b"", bodies=b""), "0 bodies for 0 rows"),
        "fewer sizes": (replace(good, body_sizes=b"\1\0\0\0"), "1 bodies for 2 rows"),
        "more bodies": (replace(good, bodies=b"abcd"), "3 bytes, but 4 are there"),
        "fewer bodies": (replace(good, bodies=b"a"), "3 bytes, but 1 are there"),
        "no template": (replace(good, templates=()), "0 templates; from 1 to 256"),
        "templates": (replace(good, templates=(TEMPLATE,) * 257), "257 templates"),
        "no kinds": (replace(good, templates=(TEMPLATE,) * 2), "no row says which"),
        "few kinds": (replace(good, kinds=b"\0"), "kinds has 1 bytes for 2 rows of 1"),
        "kind": (replace(good, kinds=b"\0\1"), "template 1, counted from 0, of 1"),
        "tags": (replace(good, tags=bytes(55)), "tags has 55 bytes for 2 rows of 28"),
        "label sizes": (replace(good, label_sizes=b"\0"), "label_sizes has 1 bytes"),
        "no label sizes": (replace(good, labels=b"a\0"), "but not their sizes"),
        "labels": (replace(good, label_sizes=b"\1\1", labels=b"a\0"), "4 bytes, but 2 are there"),
        "both labels": (
            replace(good, templates=(labelled,), label_sizes=b"\0\0"),
            "rows have labels of their own",
        ),
        "long label": (
            replace(good, label_sizes=b"\0\xfa", labels=b"a\0" * 250),
            "the label of row 1 has 250 characters, at most 249 fit",
        ),
        "null": (
            replace(good, label_sizes=b"\1\2", labels=b"a\0\0\1\0\0"),
            "a null character stands inside that of row 1",
        ),
        "no packet": (rows(b"a", template=b"no packet"), ""),
        "cut": (rows(b"a", template=TEMPLATE[:-4]), ""),
        "body": (rows(b"a", template=build_packet(replace(OUTLINE, body=b"x"))), own),
        "secured": (rows(b"a", template=signed), ""),
        "session": (rows(b"a", template=session), own),
        "flags": (rows(b"a", template=flagged), own),
        "transaction": (
            rows(b"a", template=build_packet(replace(OUTLINE, transaction=place))),
            own,
        ),
        "traced": (rows(b"a", template=traced), own),
        "several queues": (rows(b"a", template=several), own),
        "large": (
            rows(b"a", bytes(PACKET_SIZE_MAX)),
            f"the packet of row 1 would have {len(TEMPLATE) + PACKET_SIZE_MAX} bytes",
        ),
        "many": (rows(*[b""] * (MESSAGES_AT_ONCE_MAX + 1)), "messages at once"),
    }


WRONG = wrong_batches()


@pytest.mark.parametrize("what", WRONG)
def test_a_batch_that_is_not_in_order_is_refused_and_leaves_nothing(what: str) -> None:
    world = BulkWorld()
    stage = world.stage(world.create("q"))
    batch, text = WRONG[what]
    before = len(world.log), world.engine.state.numbers.reserved()
    error = refusal(world, stage, batch)
    assert text in error.text
    assert (len(world.log), world.engine.state.numbers.reserved()) == before
    assert world.queue(stage).staged_bytes == 0


def test_a_label_with_zeros_that_are_no_null_character_is_taken() -> None:
    world = BulkWorld()
    number = world.create("q")
    stage = world.stage(number)
    text = "a\u0100\u0100"
    send(world, stage, replace(rows(b"x"), label_sizes=b"\3", labels=text.encode("utf-16-le")))
    world.publish(stage)
    assert [each.label for each in world.messages(number)] == [text]


@pytest.mark.limit("merq.model.row_batch.TEMPLATES_MAX")
def test_as_many_templates_as_a_batch_may_have_are_taken() -> None:
    world = BulkWorld()
    number = world.create("q")
    stage = world.stage(number)
    packets = [
        build_packet(replace(OUTLINE, application_tag=each, body=b"%d" % each))
        for each in range(TEMPLATES_MAX)
    ]
    send(world, stage, batch_of(packets))
    world.publish(stage)
    assert world.bodies(number) == [b"%d" % each for each in range(TEMPLATES_MAX)]


def test_rows_keep_to_the_quota_of_their_queue_as_packets_do() -> None:
    world = BulkWorld()
    stage = world.stage(world.create("q", quota=1))
    error = refusal(world, stage, rows(*[bytes(100)] * 10))
    assert error.code == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    size = sum(map(len, packets_of(rows(*[bytes(100)] * 10))))
    assert f"10 messages of {size} bytes would exceed the quota of 1 KB" in error.text


def test_a_queue_that_wants_encrypted_bodies_refuses_rows() -> None:
    world = BulkWorld()
    stage = world.stage(world.create("q", privacy_level=PrivacyLevel.BODY))
    error = refusal(world, stage, rows(b"a"))
    assert error.code == HResult.MQ_ERROR_ACCESS_DENIED
