"""Names are looked up in threads: those of strangers cannot use up those of applications."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from hostile import stranger_packets as packets
from kit.exchange import Manager
from kit.raw_sessions import RawSession
from merq.net.dialling import LinkingSettings
from merq.net.linking import Linking
from unit.exchange.exchange_world import QUEUE, TWO, changed, manager
from unit.exchange.letter_messages import OTHER

HONEST = r"DIRECT=OS:honest\private$\q"


class Quiet:
    """A log that nobody reads."""

    def info(self, event: str, **fields: Any) -> None:
        pass

    def warning(self, event: str, **fields: Any) -> None:
        pass


def flooded() -> Manager:
    """Somebody whose strangers named many hosts, and whose application sends to one."""
    receiver = manager(TWO, changed())
    assert receiver.create("q") == QUEUE
    session = RawSession.connect(receiver, "10.9.9.9", OTHER).establish()
    for number in range(50):
        admin = rf"OS:stranger{number}\private$\told"
        packet = packets.message(
            OTHER.bytes_le, number + 1, rf"TCP:{TWO}\private$\q", admin=admin, asked=packets.PA
        )
        session.say(packet)
    receiver.send(HONEST, b"a")
    receiver.turn(0.0)
    return receiver


@pytest.mark.parametrize("hanging", ["stranger", "honest"])
def test_a_name_service_that_does_not_answer_holds_up_only_who_asked(
    monkeypatch: pytest.MonkeyPatch, hanging: str
) -> None:
    over = threading.Event()
    asked: list[str] = []

    def answer(host: str, *_: object, **__: object) -> list[Any]:
        asked.append(host)
        if host.startswith(hanging):
            over.wait(10.0)
            raise OSError("nobody answers")
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.33.3.3", 0))]

    async def look_up() -> float:
        receiver = flooded()
        settings = LinkingSettings(host="127.0.0.1", port=1, listens=False, lookup_s=0.2)
        linking = Linking(receiver.exchange, settings, lambda do: do(), Quiet())
        monkeypatch.setattr(socket, "getaddrinfo", answer)
        began = time.monotonic()
        linking.flush()
        while not receiver.history(HONEST):
            assert time.monotonic() < began + 5.0
            await asyncio.sleep(0.01)
        took = time.monotonic() - began
        first = receiver.transfer(HONEST).history[0]
        if hanging == "honest":
            assert first.status == "DnsFailure"
            assert "has not answered within 0.2 s" in first.text
        else:
            assert first.addresses == ("127.33.3.3",)
        over.set()
        await linking.close()
        return took

    assert asyncio.run(look_up()) < 2.0
    assert "honest" in asked
