"""[MS-MQQB] 3.1.2.5: messages that are taken care of late are acknowledged all the same."""

from __future__ import annotations

from uuid import uuid4

import pytest

from kit.raw_peers import establish, parameters
from merq.protocol.binary.session import Session
from merq.protocol.binary.settings import SessionSettings
from merq.wire.build import Outline, build_packet


@pytest.mark.spec("MS-MQQB 3.1.6.4")
def test_what_comes_between_the_disk_and_an_acknowledgment_has_one_of_its_own() -> None:
    session: Session[int] = Session(uuid4(), SessionSettings(), 0.0, is_initiator=False)
    other = uuid4()
    session.receive_data(establish(other) + parameters(), 0.0)
    session.take_output()

    def message(ordinal: int, *, recoverable: bool) -> bytes:
        return build_packet(
            Outline(
                destination=r"TCP:10.0.0.1\private$\orders",
                source_queue_manager=other.bytes_le,
                message_ordinal=ordinal,
                recoverable=recoverable,
            )
        )

    session.receive_data(message(1, recoverable=True), 0.0)
    session.take_arrived()
    session.handled(0.1)
    session.receive_data(message(2, recoverable=False), 0.4)
    session.take_arrived()
    session.tick(0.5)  # the first is acknowledged, the second is not taken care of yet
    assert len(session.take_output()) == 1
    session.handled(0.6)
    session.tick(12.0)
    assert len(session.take_output()) == 1
