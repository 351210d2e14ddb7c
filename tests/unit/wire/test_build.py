"""Packets that are built fast are those that the value would write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.messages import wide_text
from merq.errors import WireError
from merq.wire.build import (
    Outline,
    TransactionPlace,
    build_packet,
    in_transaction,
    stamp,
    transaction_header,
)
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.message import UserMessage
from merq.wire.view import MessageView

SOURCE = UUID("557358d1-9150-9595-4997-b6e611ea26c6").bytes_le
PLAIN = Outline(
    source_queue_manager=SOURCE, message_ordinal=7, sent_time=1, destination=r"OS:h\private$\q"
)
u32 = st.integers(0, 0xFFFFFFFF)
places = st.builds(
    TransactionPlace,
    sequence_id=st.integers(0, (1 << 64) - 1),
    sequence_number=st.integers(1, 0xFFFFFFFF),
    previous_sequence_number=st.integers(0, 0xFFFFFFFE),
    identifier=st.integers(0, (1 << 20) - 1),
    is_first=st.booleans(),
    is_last=st.booleans(),
    final_ack_required=st.booleans(),
)


@st.composite
def outlines(draw: Any) -> Outline:
    transaction = draw(st.none() | places)
    return Outline(
        source_queue_manager=draw(st.binary(min_size=16, max_size=16)),
        message_ordinal=draw(u32),
        sent_time=draw(u32),
        destination=draw(wide_text()),
        body=draw(st.binary(max_size=40)),
        body_type=draw(u32),
        label=draw(wide_text()),
        priority=draw(st.integers(0, 7)),
        recoverable=transaction is not None or draw(st.booleans()),
        admin_queue=draw(wide_text()),
        response_queue=draw(wide_text()),
        acknowledgments=draw(st.integers(0, 15)),
        positive_journaling=draw(st.booleans()),
        negative_journaling=draw(st.booleans()),
        time_to_reach_queue=draw(u32),
        time_to_be_received=draw(u32),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        application_tag=draw(u32),
        message_class=draw(st.integers(0, 0xFFFF)),
        extension=draw(st.binary(max_size=9)),
        transaction=transaction,
    )


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQDMPR 3.1.7.1.32")
@given(outlines())
@settings(max_examples=150)
def test_what_is_built_is_read_as_it_was_meant_and_written_the_same(outline: Outline) -> None:
    packet = build_packet(outline)
    message = UserMessage.parse(packet)
    assert message.pack() == packet
    view = MessageView(packet)
    assert view.destination.decode("utf-16-le", "surrogatepass") == outline.destination
    assert view.admin_queue.decode("utf-16-le", "surrogatepass") == outline.admin_queue
    assert view.response_queue.decode("utf-16-le", "surrogatepass") == outline.response_queue
    assert view.priority == (0 if outline.transaction else outline.priority)
    assert view.transactional == (outline.transaction is not None)
    assert view.delivery_mode == outline.recoverable
    assert view.label == outline.label
    assert view.message_id == outline.source_queue_manager + outline.message_ordinal.to_bytes(
        4, "little"
    )
    for name in (
        "body",
        "body_type",
        "extension",
        "acknowledgments",
        "positive_journaling",
        "negative_journaling",
        "time_to_reach_queue",
        "time_to_be_received",
        "sent_time",
        "correlation_id",
        "application_tag",
        "message_class",
    ):
        assert getattr(view, name) == getattr(outline, name), name
    if outline.transaction is not None:
        assert view.tx_sequence_id == outline.transaction.sequence_id
        assert view.tx_sequence_number == outline.transaction.sequence_number
        assert view.final_ack_required == outline.transaction.final_ack_required


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"priority": 8}, "priority"),
        ({"label": "x" * 250}, "label_length"),
        ({"label": "a\0b"}, "label"),
        ({"destination": "a\0b"}, "destination"),
        ({"destination": "x" * 40_000}, "destination"),
        ({"correlation_id": b"short"}, "correlation_id"),
        ({"source_queue_manager": b"short"}, "source_queue_manager"),
        ({"message_class": 0x10000}, "message_class"),
        ({"time_to_be_received": -1}, "time_to_be_received"),
        ({"body": bytes(PACKET_SIZE_MAX)}, "packet_size"),
        (
            {
                "transaction": TransactionPlace(
                    sequence_id=1, sequence_number=1, previous_sequence_number=0
                )
            },
            "recoverable",
        ),
        (
            {
                "recoverable": True,
                "transaction": TransactionPlace(
                    sequence_id=1, sequence_number=0, previous_sequence_number=0
                ),
            },
            "sequence_number",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused_by_name(change: dict[str, Any], field: str) -> None:
    with pytest.raises(WireError) as caught:
        build_packet(replace(PLAIN, **change))
    assert caught.value.field == field


def test_the_longest_label_and_the_largest_packet_fit() -> None:
    assert MessageView(build_packet(replace(PLAIN, label="x" * 249))).label == "x" * 249
    overhead = len(build_packet(PLAIN))
    packet = build_packet(replace(PLAIN, body=bytes(PACKET_SIZE_MAX - overhead)))
    assert len(packet) == PACKET_SIZE_MAX


@given(outlines(), st.binary(min_size=16, max_size=16), u32, u32)
@settings(max_examples=100)
def test_a_stamp_changes_what_is_the_queue_manager_s_and_nothing_else(
    outline: Outline, source: bytes, sent_time: int, ordinal: int
) -> None:
    meant = replace(
        outline, source_queue_manager=source, sent_time=sent_time, message_ordinal=ordinal
    )
    assert stamp(build_packet(outline), source, sent_time, ordinal) == build_packet(meant)


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
@given(outlines(), places)
@settings(max_examples=100)
def test_a_packet_that_joins_a_transaction_is_the_one_that_would_have_been_built(
    outline: Outline, place: TransactionPlace
) -> None:
    alone = replace(outline, transaction=None)
    joined = in_transaction(
        MessageView(build_packet(alone)), transaction_header(place), 5, SOURCE, 6, 7
    )
    meant = replace(
        alone,
        recoverable=True,
        transaction=place,
        time_to_be_received=5,
        source_queue_manager=SOURCE,
        sent_time=6,
        message_ordinal=7,
    )
    assert joined == build_packet(meant)
    with pytest.raises(WireError, match="already"):
        in_transaction(MessageView(joined), transaction_header(place), 5, SOURCE, 6, 7)


def test_a_packet_that_would_become_too_large_does_not_join_a_transaction() -> None:
    overhead = len(build_packet(PLAIN))
    largest = build_packet(replace(PLAIN, body=bytes(PACKET_SIZE_MAX - overhead)))
    place = TransactionPlace(sequence_id=1, sequence_number=1, previous_sequence_number=0)
    with pytest.raises(WireError, match="may travel"):
        in_transaction(MessageView(largest), transaction_header(place), 5, SOURCE, 6, 7)
