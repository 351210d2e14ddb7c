"""Two services without a name service: acknowledgments and answers find their way back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acceptance.service_process import environment
from kit.stations import Station, end_cleanly, wait_until_sent
from merq import ACKNOWLEDGE_RECEIVE, Message
from merq.model.message_class import MessageClass

MERQ = Path(sys.executable).parent / "merq"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Station, Station]]:
    """A shop that asks, and an office that is asked; neither knows the other's name or GUID."""
    with Station(tmp_path / "shop") as shop, Station(tmp_path / "office") as office:
        with shop.connect() as manager:
            manager.create_queue(r".\private$\told")
        with office.connect() as manager:
            manager.create_queue(r".\private$\orders")
        yield shop, office
        end_cleanly([shop, office])


@pytest.mark.parametrize("name", [r".\private$\told", r"DIRECT=OS:.\private$\told", "told"])
@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQQB 3.1.7.15")
def test_acknowledgments_and_answers_come_back_after_both_were_restarted(
    both: tuple[Station, Station], name: str
) -> None:
    shop, office = both
    if name == "told":
        send = (
            "send",
            office.direct("orders"),
            "--body",
            "one",
            "--recoverable",
            "--ack",
            "receive",
        )
        subprocess.run(
            [str(MERQ), *send, "--admin-queue", name, "--response-queue", name],
            check=True,
            timeout=30,
            env=environment(MERQ_URL=shop.url),
        )
    else:
        with shop.connect() as manager:
            asked = Message(
                body="one",
                recoverable=True,
                acknowledge=ACKNOWLEDGE_RECEIVE,
                admin_queue=name,
                response_queue=name,
            )
            manager.send(office.direct("orders"), asked)
    with shop.connect() as manager:
        wait_until_sent(manager)
    shop.restart()
    office.restart()
    with office.connect() as manager:
        order = manager.queue(r".\private$\orders").receive(timeout=20)
        assert order.response_queue == order.admin_queue
        assert order.response_queue.lower() == shop.direct("told").lower()
        manager.send(order.response_queue, "answer", recoverable=True)
    with shop.connect() as manager:
        queue = manager.queue(r".\private$\told")
        found = [queue.receive(timeout=20) for _ in range(2)]
    assert {int(each.message_class) for each in found} == {
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
        MessageClass.MQMSG_CLASS_NORMAL,
    }


@pytest.mark.spec("MS-MQQB 3.1.7.15")
def test_the_host_that_is_advertised_is_what_others_are_told(tmp_path: Path) -> None:
    with Station(tmp_path / "shop") as shop, Station(tmp_path / "office") as office:
        shop.restart({"exchange.advertised_host": "shop.example"})
        with office.connect() as manager:
            manager.create_queue(r".\private$\orders")
        with shop.connect() as manager:
            manager.send(office.direct("orders"), "one", response_queue=r".\private$\told")
        with office.connect() as manager:
            order = manager.queue(r".\private$\orders").receive(timeout=20)
        assert order.response_queue == r"DIRECT=OS:shop.example\PRIVATE$\told"
        end_cleanly([shop, office])
