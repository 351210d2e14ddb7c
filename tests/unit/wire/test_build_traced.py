"""Packets of messages that are traced say so, and where reports about them go."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.wire.build import (
    Outline,
    Template,
    TransactionPlace,
    build_packet,
    in_transaction,
    transaction_header,
)
from merq.wire.view import MessageView

REPORTS = UUID("0b0d4a8f-5a0e-4f0a-9b0c-6f4d2f3e1a77")
OTHERS = (r"OS:a\private$\q", r"OS:b\private$\q")
TRACED = Outline(destination=r"OS:h\private$\q", report_queue=REPORTS, priority=5)
PLACE = TransactionPlace(sequence_id=1, sequence_number=1, previous_sequence_number=0)


def report_queue(packet: bytes) -> UUID | None:
    """The queue that a packet names for reports, if it is whole and traced."""
    decoded = MessageView(packet).decode()
    assert decoded.pack() == packet
    assert decoded.base_header.flags.traced == MessageView(packet).traced
    header = decoded.debug_header
    return None if header is None else header.queue_identifier


@pytest.mark.spec("MS-MQMQ 2.2.20.8", "MS-MQMQ 2.2.19.1")
@given(st.binary(max_size=9), st.sampled_from([(), OTHERS]), st.sampled_from(["", "label"]))
def test_a_traced_message_names_the_queue_for_reports(
    body: bytes, destinations: tuple[str, ...], label: str
) -> None:
    packet = build_packet(replace(TRACED, body=body, destinations=destinations, label=label))
    assert report_queue(packet) == REPORTS
    view = MessageView(packet)
    assert view.traced
    assert (view.body, view.label, view.priority) == (body, label, 5)


def test_a_message_that_is_not_traced_has_no_debug_header() -> None:
    packet = build_packet(replace(TRACED, report_queue=None))
    assert report_queue(packet) is None
    assert not MessageView(packet).traced


@given(st.binary(max_size=40), st.sampled_from([(), OTHERS]))
def test_a_template_makes_what_building_each_anew_makes(
    body: bytes, destinations: tuple[str, ...]
) -> None:
    outline = replace(TRACED, destinations=destinations)
    whole = build_packet(replace(outline, body=body, body_type=8))
    assert Template(outline).fill(body, 8) == whole


def test_a_traced_message_stays_so_in_a_transaction() -> None:
    view = MessageView(build_packet(replace(TRACED, body=b"abc", recoverable=True)))
    packet = in_transaction(view, transaction_header(PLACE), 60, bytes(16), 1, 2)
    assert report_queue(packet) == REPORTS
    assert MessageView(packet).transactional
