"""Settings that stand for values of the Windows registry: each reaches what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

import merq
from merq.exchange import ExchangeSettings
from merq.protocol.binary.session import NULL_GUID
from merq.protocol.binary.settings import SessionSettings
from merq.service.kinds import ReachableHost, WrongValue
from merq.service.settings import load_settings


def exchange(**values: str) -> ExchangeSettings:
    """What the exchange gets if the environment says this."""
    environment = {f"MERQ_EXCHANGE_{name.upper()}": value for name, value in values.items()}
    return load_settings(None, {}, environment).exchange.exchange_settings()


@pytest.mark.spec("MS-MQQB note 24", "MS-MQQB note 30", "MS-MQQB note 31", "MS-MQQB note 32")
@pytest.mark.spec("MS-MQQB note 33")
def test_the_table_of_resend_times_is_made_of_four_settings() -> None:
    assert exchange().resend_s == ExchangeSettings().resend_s
    found = exchange(
        resend_short_s="1 s", resend_medium_s="2 s", resend_long_s="3 s", resend_final_s="4 s"
    )
    assert found.resend_s == (1, 1, 1, 2, 2, 2, 3, 3, 3, 4)


@pytest.mark.spec("MS-MQQB note 3", "MS-MQQB note 12", "MS-MQQB note 25", "MS-MQQB note 28")
@pytest.mark.spec("MS-MQQB note 29", "MS-MQQB note 45", "MS-MQQB note 47", "MS-MQQB note 52")
@pytest.mark.spec("MS-MQMQ note 23", "MS-MQDMPR note 7")
@pytest.mark.parametrize(
    ("name", "written", "default", "changed"),
    [
        ("retry_s", "7 s", 5.0, 7.0),
        ("order_ack_max_s", "7 s", 10.0, 7.0),
        ("history_size", "500", 10_000, 500),
        ("history_s", "60 s", 1800, 60),
        ("insecure_nacks", "true", False, True),
        ("trace_reports", "false", True, False),
        ("hardened", "true", False, True),
        ("ping", "true", False, True),
        ("links_max", "9", 4096, 9),
    ],
)
def test_a_setting_of_the_exchange_has_its_default_and_can_be_changed(
    name: str, written: str, default: object, changed: object
) -> None:
    assert getattr(exchange(), name) == getattr(ExchangeSettings(), name) == default
    assert getattr(exchange(**{name: written}), name) == changed


@pytest.mark.spec("MS-MQQB note 36", "MS-MQQB note 43", "MS-MQQB note 44", "MS-MQQB note 50")
@pytest.mark.spec("MS-MQQB note 51", "MS-MQMQ note 16", "MS-MQMQ note 17")
@pytest.mark.parametrize(
    ("name", "written", "changed"),
    [
        ("window", "10", 10),
        ("initialization_s", "7 s", 7.0),
        ("cleanup_s", "120 s", 120.0),
        ("ack_wait_s", "60 s", 60.0),
    ],
)
def test_a_setting_of_sessions_reaches_them(name: str, written: str, changed: object) -> None:
    assert exchange().session == SessionSettings()
    assert getattr(exchange(**{name: written}).session, name) == changed


@pytest.mark.spec("MS-MQDMPR 3.1.1.12", "MS-MQDMPR note 12")
def test_a_message_has_four_days_to_reach_its_queue_unless_its_sender_says_otherwise(
    tmp_path: Path,
) -> None:
    with merq.open(tmp_path) as manager:
        queue = manager.create_queue(r".\private$\q")
        queue.send("a")
        queue.send("b", time_to_reach_queue=60)
        found = [queue.receive(timeout=1).time_to_reach_queue for _ in range(2)]
    assert found == [4 * 24 * 3600, 60]


@pytest.mark.spec("MS-MQQB 3.1.3.2", "MS-MQQB note 34", "MS-MQQB note 37", "MS-MQQB note 53")
def test_a_queue_manager_makes_its_guid_once_and_keeps_it(tmp_path: Path) -> None:
    guids = []
    for folder in ("one", "one", "other"):
        with merq.open(tmp_path / folder) as manager:
            guids.append(manager.guid)
    assert guids[0] == guids[1] != guids[2]
    assert NULL_GUID not in guids


@pytest.mark.parametrize(
    "host", ["mq.example.org", "alpha", "192.0.2.7", "2001:db8::7", "a-b.c_d.x1"]
)
def test_the_host_that_is_advertised_is_a_name_or_an_address(host: str) -> None:
    assert ReachableHost().read(host) == host


@pytest.mark.parametrize(
    "host",
    [
        "999.1.1.1",
        "127.0.7",
        "0.0.0.0",  # noqa: S104 - it is refused
        "::",
        "a..b",
        "-x",
        "[::1]",
        "a b",
        "224.0.0.1",
        "",
        "x" * 254,
        7,
    ],
)
def test_what_nobody_can_reach_is_not_advertised(host: object) -> None:
    with pytest.raises(WrongValue):
        ReachableHost().read(host)
