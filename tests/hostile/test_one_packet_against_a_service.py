"""The largest message that can be, over a socket to a real service, which lives on."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptance.service_process import wait_until
from hostile import stranger_packets as packets
from hostile.strangers import Stranger
from kit.stations import Station, end_cleanly

ADMIN = r"TCP:127.31.9.9\private$\admin"
LIFETIME_S = 2


def _largest(stranger: Stranger, number: int, **what: object) -> bytes:
    def made(body: bytes) -> bytes:
        return packets.message(
            stranger.guid.bytes_le,
            1,
            number,
            address=stranger.theirs.bytes_le,
            admin=ADMIN,
            asked=packets.NA | packets.NR,
            recoverable=True,
            body=body,
            **what,  # type: ignore[arg-type]
        )

    return made(bytes(packets.PACKET_BYTES_MAX - len(made(b""))))


@pytest.mark.spec("MS-MQQB 3.1.7.15", "E130")
def test_a_service_lives_on_after_the_largest_message_expired_and_starts_again(
    tmp_path: Path,
) -> None:
    """Each start and each lifetime takes seconds."""
    with Station(tmp_path / "fort") as station:
        with station.connect() as manager:
            number = manager.create_queue(r".\private$\orders").number
            now = manager.status().now
        with Stranger(station.address, "127.31.9.9") as stranger:
            stranger.open()
            packet = _largest(stranger, number, time_to_receive=LIFETIME_S, sent_time=now)
            assert len(packet) == packets.PACKET_BYTES_MAX
            stranger.say(packet)
            stranger.hear_acknowledged(1)
        assert station.stop() == 0
        station.start()
        with station.connect() as manager:
            orders = manager.queue(r".\private$\orders")
            wait_until(lambda: not len(orders), "the message has expired")
            orders.send("served", recoverable=True)
            assert orders.receive().body == "served"
            assert manager.status().set_aside == 0
        end_cleanly([station])
