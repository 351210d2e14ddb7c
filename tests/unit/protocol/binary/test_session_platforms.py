"""What the other side says of its operating system decides nothing."""

from __future__ import annotations

import pytest

from kit.sessions import OURS, THEIRS, acceptor, output, parameters, said
from merq.protocol.binary.session import SessionState
from merq.wire.connection import (
    EstablishConnection,
    EstablishConnectionHeader,
    OperatingSystemFlags,
)


def request(**flags: bool) -> bytes:
    header = EstablishConnectionHeader(
        client_guid=OURS,
        server_guid=THEIRS,
        time_stamp=0,
        operating_system=OperatingSystemFlags(**flags),
    )
    return EstablishConnection.of(header).pack()


@pytest.mark.parametrize("server_class", [True, False])
@pytest.mark.parametrize("quality_of_service", [True, False])
@pytest.mark.spec("MS-MQQB 2.2.3.1", "MS-MQQB note 13", "MS-MQQB note 15")
def test_clients_and_servers_with_or_without_quality_of_service_get_the_same_session(
    server_class: bool, quality_of_service: bool
) -> None:
    session = acceptor()
    flags = {"server_class": server_class, "quality_of_service": quality_of_service}
    session.receive_data(request(**flags), 0.0)
    (answer,) = said(session)
    assert isinstance(answer, EstablishConnection)
    assert not answer.internal_header.flags.refused
    # The answer says what this side is, whatever the other is.
    assert answer.header.operating_system.server_class
    assert not answer.header.operating_system.quality_of_service
    session.receive_data(parameters(), 0.0)
    assert session.state is SessionState.OPEN
    assert output(session)
