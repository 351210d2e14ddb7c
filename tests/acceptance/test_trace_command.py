"""`merq trace`, `outgoing show`, `offline`, `online`, `why`, between real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from acceptance.service_process import ServiceProcess, environment, wait_until
from kit.pages import blocks_of, has_shape, steps_of, terminal_in

GUIDE: Final = Path(__file__).resolve().parents[2] / "docs" / "guide" / "commands.md"
COMMAND_S: Final = 60
"""No command takes longer."""

_NUMBERS = count(2)


def new_address() -> str:
    """An address of this computer that no other test has: the port is the same everywhere."""
    pid = os.getpid()
    return f"127.{30 + (pid >> 8) % 64}.{pid & 0xFF}.{next(_NUMBERS)}"


class Station:
    """A queue manager that others can reach, and its command line."""

    def __init__(self, folder: Path, name: str, **settings: object) -> None:
        self.address = new_address()
        chosen = {"exchange.listen": "true", "exchange.offline": "false", "exchange.retry_s": 1}
        chosen |= {key.replace("__", "."): value for key, value in settings.items()}
        self.service = ServiceProcess(
            folder / name, "--name", name, "--address", self.address, settings=chosen
        )

    def name_of(self, queue: str) -> str:
        return rf"DIRECT=TCP:{self.address}\private$\{queue}"

    def merq(self, *arguments: str, status: int = 0) -> str:
        """Runs a command; gives what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "merq", *arguments, "--data", str(self.service.data)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=COMMAND_S,
            text=True,
            encoding="utf-8",
            env=environment(PYTHONUTF8="1", COLUMNS="200"),
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done.stdout

    def told(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """What a command says with --json."""
        found = json.loads(self.merq(*arguments, "--json", status=status))
        assert isinstance(found, dict)
        return found


@contextmanager
def running(*stations: Station) -> Iterator[None]:
    """They serve until the end of the block; nothing went wrong inside of them."""
    try:
        for each in stations:
            each.service.start()
        yield
        for each in stations:
            if each.service.is_alive:
                assert each.service.stop() == 0, each.service.output
            each.service.check_log()
    finally:
        for each in stations:
            each.service.end()


@pytest.mark.spec("MS-MQQB 3.1.5.8.9", "MS-MQQB 3.1.7.1.7")
def test_a_traced_message_tells_its_way_to_the_next_computer(tmp_path: Path) -> None:
    alpha, beta = Station(tmp_path, "alpha"), Station(tmp_path, "beta")
    with running(alpha, beta):
        beta.merq("queue", "new", "orders")
        found = alpha.told("trace", beta.name_of("orders"))
        assert found["arrived"]
        assert found["class_name"] == "MQMSG_CLASS_ACK_REACH_QUEUE"
        first, second = found["hops"]
        assert first["next_hop"] == second["address"] == beta.address
        assert 0 < first["left"] <= second["arrived"] + 1
        with alpha.service.connect() as here, beta.service.connect() as there:
            managers = [str(here.guid), str(there.guid)]
            assert len(here.queue(r".\private$\merq_trace")) == 0, "reports were received"
            message = there.queue(r".\private$\orders").receive(timeout=0)
        assert [first["queue_manager"], second["queue_manager"]] == managers
        assert (message.id, message.label) == (found["id"], "merq trace")
        shown = alpha.merq("trace", beta.name_of("orders"))
        assert f"● {beta.address}  {managers[1]}" in shown
        assert "It reached its queue, in " in shown


def test_a_transactional_queue_elsewhere_is_found_out(tmp_path: Path) -> None:
    alpha, beta = Station(tmp_path, "alpha"), Station(tmp_path, "beta")
    with running(alpha, beta):
        beta.merq("queue", "new", "safe", "--transactional")
        beta.merq("queue", "new", "plain")
        found = alpha.told("trace", beta.name_of("safe"))
        assert found["arrived"]
        assert found["transactional"]
        refused = alpha.told("trace", beta.name_of("plain"), "--transactional", status=1)
        assert not refused["arrived"]
        assert refused["class_name"] == "MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q"
        (told,) = beta.told("queue", "show", "safe")["sequences"]
        assert (told["number"], told["address"]) == (1, alpha.address)
        assert "sends in order" in beta.merq("queue", "show", "safe")
        beta.merq("queue", "forget-senders", "safe", "--sender", str(UUID(int=7)), "--yes")
        assert beta.told("queue", "show", "safe")["sequences"] == [told], "of somebody else"
        beta.merq("queue", "forget-senders", "safe", status=1)
        assert beta.told("queue", "show", "safe")["sequences"] == [told], "without --yes"
        assert beta.told("queue", "forget-senders", "safe", "--yes")["sequences"] == 1
        assert beta.told("queue", "show", "safe")["sequences"] == []
        wait_until(
            lambda: alpha.told("outgoing", "show", "safe")["transfer"]["unacknowledged"] == 0,
            "an order acknowledgment",
        )
        transfer = alpha.told("outgoing", "show", "safe")["transfer"]
        assert transfer["last_acknowledged"]["number"] == 1
        assert transfer["next_place"]["number"] == 2


def test_a_message_over_two_hops_is_drawn_with_both(tmp_path: Path) -> None:
    """The one in the middle passes it on; reports come back through it too."""
    files = {name: tmp_path / f"{name}.toml" for name in ("alpha", "beta", "gamma")}
    stations = [
        Station(tmp_path, name, exchange__forwards="true", exchange__peers=files[name])
        for name in files
    ]
    alpha, beta, gamma = stations
    # Who has which identifier is known when they have started once.
    for file in files.values():
        file.write_text("")
    with running(*stations):
        guids = []
        for each in stations:
            with each.service.connect() as mq:
                guids.append(str(mq.guid))
        with gamma.service.connect() as mq:
            number = mq.create_queue(r".\private$\far").number
    tables = [f'[[peer]]\nname = "p{at}"\nguid = "{guid}"\n' for at, guid in enumerate(guids)]
    near = [
        f'{table}host = "{each.address}"\n' for table, each in zip(tables, stations, strict=True)
    ]
    files["alpha"].write_text(f'{near[1]}{tables[2]}via = "p1"\n')
    files["beta"].write_text(near[0] + near[2])
    files["gamma"].write_text(f'{near[1]}{tables[0]}via = "p1"\n')
    with running(*stations):
        found = alpha.told("trace", f"PRIVATE={guids[2]}\\{number:08x}")
        assert found["arrived"]
        assert [each["queue_manager"] for each in found["hops"]] == guids
        assert [each["address"] for each in found["hops"]] == ["", beta.address, gamma.address]
        assert [bool(each["left"]) for each in found["hops"]] == [True, True, False]


def test_a_message_that_does_not_arrive_is_said_to_wait_and_why(tmp_path: Path) -> None:
    alpha, nobody = Station(tmp_path, "alpha"), Station(tmp_path, "nobody")
    with running(alpha):
        name = nobody.name_of("orders")
        found = alpha.told("trace", name, "--timeout", "1s", status=3)
        assert not found["arrived"]
        assert found["class"] is None
        waits = " ".join(found["waits"])
        assert "It waits to be sent to" in waits
        assert f"It cannot be reached at {nobody.address} since " in waits
        assert "(SocketConnectFailure)" in waits
        shown = alpha.told("outgoing", "show", nobody.address)
        assert shown["state"] in {"disconnected", "waiting"}
        transfer = shown["transfer"]
        assert transfer["next_hops"] == [nobody.address]
        failures = [each for each in transfer["history"] if each["error"]]
        assert failures[-1]["error_name"] == "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"
        assert transfer["waiting"] == 1
        people = alpha.merq("outgoing", "show", nobody.address)
        assert "SocketConnectFailure" in people
        assert "It cannot be reached" in people
        why = alpha.told("why", found["id"])
        assert any("It cannot be reached" in each for each in why["story"])


def test_offline_nothing_goes_and_status_says_so(tmp_path: Path) -> None:
    alpha, beta = Station(tmp_path, "alpha"), Station(tmp_path, "beta")
    with running(alpha, beta):
        beta.merq("queue", "new", "orders")
        assert alpha.told("trace", beta.name_of("orders"))["arrived"]
        status = alpha.told("status")
        assert (status["online"], status["sessions"]) == (True, 1)
        (link,) = status["links"]
        assert (link["address"], link["ours"], link["open"]) == (beta.address, True, True)
        assert [each.lower() for each in link["queues"]] == [beta.name_of("orders").lower()]
        assert f"  {beta.address}" in alpha.merq("status")
        assert not alpha.told("offline")["online"]
        wait_until(lambda: not beta.told("status")["links"], "the session is closed")
        assert "offline until `merq online`" in alpha.merq("status")
        late = alpha.told("trace", beta.name_of("orders"), "--timeout", "300ms", status=3)
        assert any("offline" in each for each in late["waits"])
        assert alpha.merq("online").startswith("online: ")
        with beta.service.connect() as mq:
            orders = mq.queue(r".\private$\orders")
            wait_until(lambda: len(orders) == 2, "what waited has arrived")
            assert late["id"] in {each.id for each in orders.peek_all()}


def test_many_messages_are_sent_to_another_computer_at_once(tmp_path: Path) -> None:
    alpha, beta = Station(tmp_path, "alpha"), Station(tmp_path, "beta")
    with running(alpha, beta):
        with alpha.service.connect() as here, beta.service.connect() as there:
            orders = there.create_queue(r".\private$\orders")
            safe = there.create_queue(r".\private$\safe", transactional=True)
            ids = here.send_many(beta.name_of("orders"), range(2000), recoverable=True)
            with here.transaction() as tx:
                safe_ids = here.send_many(beta.name_of("safe"), range(2000), tx=tx)
            wait_until(lambda: len(orders) == len(safe) == 2000, "all have arrived")
            assert [each.id for each in orders.peek_all()] == ids
            assert [each.id for each in safe.peek_all()] == safe_ids
        alpha.merq("send", beta.name_of("orders"), "--body", "{n}", "--number", "--repeat", "250")
        with beta.service.connect() as there:
            orders = there.queue(r".\private$\orders")
            wait_until(lambda: len(orders) == 2250, "what the command sent")


def test_a_queue_of_this_computer_is_reached_at_once(tmp_path: Path) -> None:
    alpha = Station(tmp_path, "alpha")
    with running(alpha):
        alpha.merq("queue", "new", "here")
        alpha.merq("queue", "new", "safe", "--transactional")
        for name in ("here", "safe", r"DIRECT=OS:alpha\private$\here"):
            found = alpha.told("trace", name)
            assert found["arrived"], name
            assert len(found["hops"]) == 1
        assert "there is no queue" in json.loads(_failed(alpha, "trace", "none"))["error"]["text"]


def test_a_report_queue_that_takes_no_reports_is_refused(tmp_path: Path) -> None:
    alpha = Station(tmp_path, "alpha")
    with running(alpha):
        alpha.merq("queue", "new", "merq_trace", "--transactional")
        alpha.merq("queue", "new", "here")
        text = json.loads(_failed(alpha, "trace", "here"))["error"]["text"]
        assert "is transactional and takes no reports" in text


def _failed(station: Station, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "merq", *arguments, "--json", "--data", str(station.service.data)],
        capture_output=True,
        check=False,
        timeout=COMMAND_S,
        text=True,
        env=environment(PYTHONUTF8="1"),
    )
    assert done.returncode == 1
    return done.stderr


def test_the_session_in_the_guide_is_what_is_printed(tmp_path: Path) -> None:
    """Its two queue managers have addresses of their own here."""
    alpha, beta = Station(tmp_path, "alpha"), Station(tmp_path, "beta")
    (block,) = blocks_of(GUIDE, "console")
    session = block.text.replace("127.0.0.3", beta.address)
    with running(alpha, beta), terminal_in(tmp_path) as terminal:
        steps = steps_of(session)
        for step, printed in zip(steps, terminal.type(steps), strict=True):
            assert has_shape(printed, step.shown), f"$ {step.command}\nprinted\n{printed}"
