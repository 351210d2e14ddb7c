"""Where a transactional packet says its place, read without looking at all of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from merq.model.names import PrivateName, PublicName
from merq.wire.build import Destination, Outline, TransactionPlace, build_packet, with_previous
from merq.wire.view import MessageView, sequence_place

GUID = UUID("3f1b8c52-9d0e-4a67-8b21-5c7e90d4a1f6")
NAMES: list[Destination] = [
    "OS:a\\private$\\b",
    "OS:ab\\private$\\b",
    "TCP:10.0.0.2\\private$\\orders",
    PrivateName(computer=GUID, number=7),
    PublicName(queue=GUID),
]


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
@pytest.mark.parametrize("others", [{}, {"admin_queue": NAMES[1]}, {"response_queue": NAMES[3]}])
@pytest.mark.parametrize("name", NAMES, ids=str)
def test_it_is_where_the_view_finds_it(name: Destination, others: dict[str, Any]) -> None:
    place = TransactionPlace(sequence_id=1 << 40, sequence_number=9, previous_sequence_number=8)
    packet = build_packet(
        Outline(destination=name, recoverable=True, transaction=place, body=b"abc", **others)
    )
    view = MessageView(packet)
    assert sequence_place(packet) == (view.user_header_end, 1 << 40, 9, 8)
    changed = MessageView(with_previous(packet, view.user_header_end, 3))
    assert changed.tx_place == (1 << 40, 9, 3)
    assert changed.body == b"abc"
