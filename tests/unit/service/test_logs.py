from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.errors import SettingsError
from merq.service.logs import (
    EVENTS_MAX,
    SECRET_FORM_MAX,
    VALUE_CHARACTERS_MAX,
    Field,
    Log,
    OpenLog,
    open_log,
)
from merq.service.sections import LogSettings

LOG = Log("merq.service.tests")
JSON = LogSettings(format="json", level="debug")
TEXT = LogSettings(format="text", level="debug")


class Watch:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def told(settings: LogSettings, event: str, **fields: Field) -> str:
    """What one event looks like; exactly one line."""
    stream = StringIO()
    with open_log(settings, stream=stream):
        LOG.warning(event, **fields)
    assert stream.getvalue().count("\n") == 1
    return stream.getvalue().rstrip("\n")


def lines(stream: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_time_level_event_and_fields() -> None:
    line = json.loads(told(JSON, "connection refused", peer="10.0.0.7:5", reason="no", tries=3))
    moment = datetime.fromisoformat(line.pop("time"))
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60
    assert moment.utcoffset() is not None
    assert line == {
        "level": "warning",
        "event": "connection refused",
        "logger": "merq.service.tests",
        "peer": "10.0.0.7:5",
        "reason": "no",
        "tries": 3,
    }


def test_a_text_line_is_made_for_reading() -> None:
    line = told(TEXT, "connection refused", peer="10.0.0.7:5", reason="no such token", tries=3)
    moment, rest = line.split(" ", 1)
    assert moment.endswith("Z")
    assert rest == 'warning connection refused peer=10.0.0.7:5 reason="no such token" tries=3'


def test_values_of_every_kind_can_be_told() -> None:
    line = json.loads(
        told(
            JSON,
            "values",
            path=Path("a"),
            guid=UUID(int=5),
            nothing=None,
            yes=True,
            half=0.5,
            endless=float("inf"),
            moment=datetime(2026, 1, 2, tzinfo=UTC),
            error=SettingsError(("wrong",)),
            packet=b"hello",
        )
    )
    assert line["path"] == "a"
    assert line["guid"] == str(UUID(int=5))
    assert (line["nothing"], line["yes"], line["half"]) == (None, True, 0.5)
    assert line["endless"] == "inf"
    assert line["moment"] == "2026-01-02T00:00:00+00:00"
    assert line["error"] == "SettingsError: wrong"
    assert line["packet"] == "5 bytes"


FORGED = 'x"\n2026-01-01T00:00:00.000Z info  all is well\r\x1b[2J\u202e\u2028\x85\x00 a=b\\'


@pytest.mark.parametrize("settings", [JSON, TEXT], ids=["json", "text"])
@given(text=st.text() | st.just(FORGED))
def test_nothing_from_the_network_forges_a_line_or_moves_the_cursor(
    settings: LogSettings, text: str
) -> None:
    line = told(settings, text, peer=text, other="end")
    assert line.isprintable()
    assert line.splitlines() == [line]
    if settings is JSON:
        assert json.loads(line)["peer"] == text


def test_a_value_cannot_look_like_another_field() -> None:
    assert told(TEXT, "event", peer='a" b="c').endswith(r'event peer="a\" b=\"c"')


def test_a_field_cannot_take_the_place_of_time_or_level() -> None:
    line = json.loads(told(JSON, "event", time="never", level="debug", logger="x"))
    assert (line["level"], line["time_"], line["level_"]) == ("warning", "never", "debug")


@pytest.mark.limit("merq.service.logs.VALUE_CHARACTERS_MAX")
def test_long_values_are_cut() -> None:
    line = json.loads(told(JSON, "event", peer="x" * 5000))
    assert line["peer"] == "x" * VALUE_CHARACTERS_MAX + "… of 5000 characters"


TOKEN = "merq_" + "Ab-_" * 10 + "xyz"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize("settings", [JSON, TEXT], ids=["json", "text"])
def test_tokens_keys_and_bodies_do_not_get_into_the_log(settings: LogSettings) -> None:
    for fields in (
        {"token": "anything-secret"},
        {"body": "anything-secret"},
        {"password": "anything-secret"},
        {"reason": f"found {TOKEN} there"},
        {"reason": "x" * (VALUE_CHARACTERS_MAX - 10) + TOKEN},
        {"reason": f"found {KEY} there"},
        {"reason": KEY[:50]},
        {"error": ValueError(TOKEN)},
    ):
        line = told(settings, f"event {TOKEN}", **fields)
        for secret in ("anything-secret", "Ab-_", "MHcCAQEE"):
            assert secret not in line
        assert "[hidden]" in line


@pytest.mark.limit("merq.service.logs.SECRET_FORM_MAX")
@pytest.mark.parametrize("start", ["merq_", "-----BEGIN EC PRIVATE KEY-----\n"])
def test_of_a_secret_that_goes_on_behind_what_is_looked_at_nothing_is_told(start: str) -> None:
    secret = start + "Ab-_" * SECRET_FORM_MAX
    line = told(JSON, "event", reason="x" * (VALUE_CHARACTERS_MAX - 60) + secret)
    assert "Ab-_" not in line
    assert "[hidden]" in line


def test_what_is_less_important_than_the_level_is_not_told() -> None:
    stream = StringIO()
    with open_log(LogSettings(level="warning", format="json"), stream=stream):
        LOG.debug("a")
        LOG.info("b")
        LOG.warning("c")
        LOG.error("d")
    assert [line["event"] for line in lines(stream)] == ["c", "d"]


def test_a_failure_is_told_with_its_trace_in_one_line() -> None:
    stream = StringIO()
    with open_log(JSON, stream=stream):
        try:
            os.environb[b"MERQ_GONE"]
        except KeyError as error:
            LOG.failure("unforeseen", error, peer="x")
    (line,) = lines(stream)
    assert (line["level"], line["error"]) == ("error", "KeyError: b'MERQ_GONE'")
    assert "test_logs.py" in str(line["trace"])


def test_what_asyncio_logs_has_the_same_form() -> None:
    stream = StringIO()
    with open_log(JSON, stream=stream):
        logging.getLogger("asyncio").error("task %s\nfailed", "a")
    (line,) = lines(stream)
    assert (line["logger"], line["event"]) == ("asyncio", "task a\nfailed")


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def stream() -> StringIO:
    return StringIO()


@pytest.fixture
def opened(stream: StringIO, watch: Watch) -> Iterator[OpenLog]:
    with open_log(LogSettings(format="json", repeats_max=3), stream=stream, clock=watch) as opened:
        yield opened


def flood(count: int) -> None:
    for number in range(count):
        LOG.warning("connection refused", peer=f"10.0.0.7:{number}")


@pytest.mark.limit("log.repeats_max")
def test_a_flood_is_told_a_few_times_and_then_counted(
    opened: OpenLog, stream: StringIO, watch: Watch
) -> None:
    flood(1000)
    LOG.info("another")
    assert [line["event"] for line in lines(stream)] == ["connection refused"] * 3 + ["another"]
    watch.now += 0.9
    opened.tell_counts()
    assert len(lines(stream)) == 4
    watch.now += 0.2
    opened.tell_counts()
    last = lines(stream)[-1]
    assert (last["event"], last["repeated"], last["level"]) == (
        "connection refused",
        997,
        "warning",
    )
    opened.tell_counts()
    assert len(lines(stream)) == 5


def test_the_count_is_told_before_the_next_event_too(
    opened: OpenLog, stream: StringIO, watch: Watch
) -> None:
    flood(5)
    watch.now += 1
    flood(5)
    assert [line.get("repeated") for line in lines(stream)] == [None] * 3 + [2] + [None] * 3


def test_what_was_counted_is_told_at_the_end(stream: StringIO, watch: Watch) -> None:
    with open_log(LogSettings(format="json", repeats_max=1), stream=stream, clock=watch):
        flood(8)
    assert [line.get("repeated") for line in lines(stream)] == [None, 7]


@pytest.mark.limit("merq.service.logs.EVENTS_MAX")
def test_events_of_too_many_kinds_are_counted_together(
    opened: OpenLog, stream: StringIO, watch: Watch
) -> None:
    for event in (f"event {number}" for number in range(EVENTS_MAX + 50)):
        LOG.info(event)
    watch.now += 2
    opened.tell_counts()
    assert len(lines(stream)) == EVENTS_MAX + 3 + 1
    assert lines(stream)[-1]["repeated"] == 47


def test_after_closing_the_loggers_are_as_they_were() -> None:
    logger = logging.getLogger("merq")
    before = (logger.level, logger.propagate, list(logger.handlers))
    told(JSON, "event")
    assert (logger.level, logger.propagate, logger.handlers) == before


def test_a_file_is_appended_to_and_closed_to_strangers(tmp_path: Path) -> None:
    path = tmp_path / "merq.log"
    for event in ("first", "second"):
        with open_log(LogSettings(file=path, format="json")):
            LOG.info(event, name="ü\udcff")
    events = [json.loads(line)["event"] for line in path.read_text("utf-8").splitlines()]
    assert events == ["first", "second"]
    assert not stat.S_IMODE(path.stat().st_mode) & 0o027


def test_a_file_that_was_put_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "merq.log"
    with open_log(LogSettings(file=path)):
        LOG.info("before")
        path.rename(tmp_path / "merq.log.1")
        LOG.info("after")
    assert "after" in path.read_text("utf-8")
    assert "before" in (tmp_path / "merq.log.1").read_text("utf-8")


def test_a_file_that_cannot_be_opened_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"log\.file is .*: Is a directory"):
        open_log(LogSettings(file=tmp_path))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is full")
def test_a_log_that_cannot_be_written_is_complained_about_once_and_stops_nobody(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w", buffering=1)
    opened = open_log(TEXT, stream=stream)
    LOG.info("lost")
    LOG.info("lost too")
    opened.close()
    with pytest.raises(OSError, match="No space"):
        stream.close()
    complaints = capsys.readouterr().err.splitlines()
    assert len(complaints) == 1
    assert "No space left" in complaints[0]
