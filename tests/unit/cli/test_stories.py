"""What `merq why` says, and the rates of `merq top`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from merq import open as open_manager
from merq.cli.top import line_of, ordered
from merq.cli.why import Story, story_of
from merq.model.message_class import MessageClass
from merq.protocol.application.reports import QueueReport, Sighting, Whereabouts

OWN = UUID(int=7)
MESSAGE_ID = f"{{{OWN}}}\\5"
NOW = 1_800_000_100
SEEN = Sighting(
    queue=r".\private$\orders",
    whereabouts=Whereabouts.WAITING,
    lookup_id=99,
    arrived=1_800_000_000,
    sent=1_799_999_990,
    label="",
    destination=r"DIRECT=OS:alpha\private$\orders",
    message_class=0,
    aborts=0,
    about=False,
)


def story(*sightings: Sighting) -> Story:
    return story_of(MESSAGE_ID, list(sightings), OWN, NOW)


@pytest.mark.parametrize("where", Whereabouts)
def test_every_place_has_its_sentence(where: Whereabouts) -> None:
    told = story(replace(SEEN, whereabouts=where))
    assert len(told.sentences) >= 2
    assert all(sentence.endswith(".") for sentence in told.sentences[1:])
    assert "2027-01-15 08:00:00 UTC" in " ".join(told.sentences) or where is Whereabouts.LEAVING


def test_a_poisoned_message_can_be_put_back() -> None:
    told = story(replace(SEEN, queue=r".\private$\orders;poison", aborts=3))
    assert "aborted, 3 times." in told.sentences[-1]
    assert told.advice[0].startswith("merq move 'orders;poison' orders --lookup-id 99")


def test_a_dead_letter_says_for_what_reason() -> None:
    reason = MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
    dead = replace(
        SEEN,
        queue=r".\system$;DEADXACT",
        whereabouts=Whereabouts.DEAD_LETTER,
        message_class=int(reason),
    )
    told = story(dead)
    assert reason.meaning in told.sentences[-1]
    assert any("--transactional  sends it again" in each for each in told.advice)
    unknown = story(replace(dead, message_class=0))
    assert "for a reason that was not kept" in unknown.sentences[-1]


def test_acknowledgments_come_last_and_do_not_pass_for_the_message() -> None:
    about = replace(
        SEEN, about=True, message_class=int(MessageClass.MQMSG_CLASS_ACK_RECEIVE), arrived=1
    )
    told = story(about, SEEN)
    assert "It waits in orders" in told.sentences[1]
    assert "An acknowledgment in orders" in told.sentences[-1]
    alone = story(about)
    assert "are nowhere on this queue manager" in alone.sentences[-1]


def test_a_message_that_is_nowhere_gets_reasons_and_a_foreign_one_is_told_so() -> None:
    assert "of this queue manager" in story().sentences[0]
    foreign = story_of(f"{{{UUID(int=8)}}}\\5", [], OWN, NOW)
    assert re.search(
        f"another queue manager, {UUID(int=8)}; this one is {OWN}", foreign.sentences[0]
    )
    assert foreign.advice == story().advice


@pytest.fixture
def report(tmp_path: Path) -> QueueReport:
    with open_manager(tmp_path / "data") as manager:
        return manager.create_queue(r".\private$\q").report


def test_rates_are_differences_over_time(report: QueueReport) -> None:
    now = replace(report, arrived=30, left=10)
    before = replace(report, arrived=10, left=5)
    line = line_of(now, before, 2.0)
    assert (line.came, line.went) == (10, 2.5)
    assert line_of(now, None, 2.0).came is None
    restarted = line_of(before, now, 2.0)
    assert restarted.came is None


def test_queues_are_ordered_by_what_was_asked(report: QueueReport) -> None:
    def named(name: str, messages: int, came: float) -> QueueReport:
        properties = replace(report.properties, path_name=name)
        return replace(report, properties=properties, messages=messages, arrived=int(came))

    start = replace(report, arrived=0)
    lines = tuple(line_of(named(*each), start, 1.0) for each in (("b", 1, 9), ("a", 2, 3)))
    for by, names in (("name", "ab"), ("messages", "ab"), ("in", "ba"), ("size", "ab")):
        found = [each.report.properties.path_name for each in ordered(lines, by)]
        assert found == list(names), by
