"""Reports about messages that are traced: who gets them, and what they say."""

from __future__ import annotations

import re
from dataclasses import replace
from uuid import UUID

import pytest

from merq.engine.tracing import report_body, report_label
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName
from merq.wire.headers import DebugFields, DebugFlags, DebugHeader
from merq.wire.message import UserMessage
from merq.wire.view import MessageView
from unit.engine.conftest import Lower
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import (
    ELSEWHERE,
    REMOTE,
    THERE,
    arrive,
    asked_for,
    depart,
    foreign,
    leaving,
    outgoing,
    place,
)

REPORTS = UUID("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")

# [MS-MQQB] 3.1.5.8.9, 3.1.7.1.7, as regular expressions.
GUID_RULE = "[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}"
DATE_RULE = (
    "(Mon|Tue|Wed|Thu|Fri|Sat|Sun),(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) "
    r"\d\d \d\d"
)
LABEL_RULE = re.compile(
    rf"[0-9A-F]{{4}}:[0-9A-F]{{8}}:[0-9A-F]{{2}} received by {GUID_RULE} at "
    rf"\d\d:\d\d(:\d\d)? (AM|PM) {DATE_RULE}"
)


def traced(packet: bytes, queue: UUID | None = REPORTS) -> bytes:
    """The message with a DebugHeader and the wish to be traced."""
    message = UserMessage.parse(packet)
    flags = replace(message.base_header.flags, debug_header=True, traced=True)
    kind = 0 if queue is None else 1
    header = DebugHeader(
        fields=DebugFields(flags=DebugFlags(queue_type=kind)), queue_identifier=queue
    )
    base = replace(message.base_header, flags=flags)
    return replace(message, base_header=base, debug_header=header).measured().pack()


def reports(world: World, queue: UUID = REPORTS) -> list[MessageView]:
    return leaving(world).get(asked_for(f"public={queue}"), [])


@pytest.mark.spec("MS-MQQB 3.1.5.8.9", "MS-MQMQ 2.2.20.8")
@pytest.mark.spec("MS-MQQB 3.1.5.8.9#report", "MS-MQQB 3.1.5.8.9#label", "MS-MQQB 3.1.5.8.9#body")
def test_a_traced_message_that_arrives_is_reported(world: World) -> None:
    world.create("q")
    packet = traced(foreign("q", 0x8EE, body=b"a"))
    arrive(world, packet)
    (view,) = reports(world)
    assert view.message_class == MessageClass.MQMSG_CLASS_REPORT
    assert view.destination == REPORTS.bytes_le
    assert view.delivery_mode == 0
    assert view.correlation_id == MessageView(packet).message_id
    assert view.source_queue_manager == GUID
    assert not view.traced
    assert LABEL_RULE.fullmatch(view.label)
    assert view.label == (
        "9999:000008EE:00 received by 99999999-8888-7777-6666-555555555555 "
        "at 01:46:40 AM Sun,Sep 09 01"
    )
    assert view.body.decode("utf-16-le") == (
        "<MESSAGE ID>000008EE</MESSAGE ID>\r\n"
        r"<TARGET QUEUE>DIRECT=TCP:10.0.0.1\PRIVATE$\q</TARGET QUEUE>" + "\r\n"
    )
    arrive(world, packet)
    assert len(reports(world)) == 1, "a duplicate did not arrive"


@pytest.mark.spec("MS-MQQB 3.1.7.1.7")
@pytest.mark.spec("MS-MQQB 3.1.7.1.7#report", "MS-MQQB 3.1.7.1.7#body")
def test_a_traced_message_that_leaves_is_reported_with_its_next_hop(world: World) -> None:
    world.engine.arrivals.forwards = True
    name = PrivateName(computer=ELSEWHERE, number=0x10)
    arrive(world, traced(foreign(name, 0x12, body=b"a")))
    assert len(reports(world)) == 1, "it has been here"
    (departure,) = depart(world, str(name))
    assert departure.is_traced
    world.engine.departures.trace([departure.packet], "10.0.0.7")
    world.perform()
    _, view = reports(world)
    assert LABEL_RULE.fullmatch(view.label)
    assert view.label.startswith("9999:00000012:01 received by ")
    assert view.body.decode("utf-16-le") == (
        "<MESSAGE ID>00000012</MESSAGE ID>\r\n"
        f"<TARGET QUEUE>{name}</TARGET QUEUE>\r\n"
        "<NEXT HOP>10.0.0.7</NEXT HOP>\r\n"
        "<HOP COUNT>01 </HOP COUNT>\r\n"
    )


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (0, "12:00:00 AM Thu,Jan 01 70"),
        (START, "01:46:40 AM Sun,Sep 09 01"),
        (1_767_225_599 - 43_200 + 1, "12:00:00 PM Wed,Dec 31 25"),
        (0xFFFFFFFF, "06:28:15 AM Sun,Feb 07 06"),
    ],
)
@pytest.mark.spec("MS-MQQB 3.1.5.8.9")
@pytest.mark.spec("MS-MQQB 3.1.5.8.9#label")
def test_a_label_has_the_time_as_the_document_wants_it(now: int, expected: str) -> None:
    label = report_label(MessageView(foreign("q")), now)
    assert label.endswith(f" at {expected}")
    assert LABEL_RULE.fullmatch(label)


@pytest.mark.spec("MS-MQQB 3.1.5.8.9")
def test_a_name_that_cannot_be_read_is_left_out() -> None:
    body = report_body(MessageView(foreign("NO:name", 1)), "")
    assert body == "<MESSAGE ID>00000001</MESSAGE ID>\r\n<TARGET QUEUE></TARGET QUEUE>\r\n"


@pytest.mark.spec("MS-MQQB 3.1.5.8.9")
def test_reports_come_into_a_report_queue_that_is_here(world: World) -> None:
    world.create("q")
    number = world.create("reports")
    identifier = world.engine.queue(number).properties.identifier
    arrive(world, traced(foreign("q"), identifier))
    (view,) = world.messages(number)
    assert view.message_class == MessageClass.MQMSG_CLASS_REPORT
    assert leaving(world) == {}


@pytest.mark.spec("MS-MQQB 3.1.5.8.9")
def test_a_report_that_has_no_place_to_go_is_dropped(world: World) -> None:
    world.create("q")
    tx = world.create("tx", transactional=True)
    journal = world.engine.queue(world.create("j", journaling=True)).journal
    assert journal is not None
    arrive(world, traced(foreign("q", 1), None))
    for ordinal, queue in enumerate((world.engine.queue(tx), journal), start=2):
        arrive(world, traced(foreign("q", ordinal), queue.properties.identifier))
    assert leaving(world) == {}
    assert world.messages(tx) == world.messages(journal.number) == []


@pytest.mark.spec("MS-MQQB 3.1.5.8.9")
def test_reports_are_not_reported_on(world: World) -> None:
    world.create("q")
    report = foreign("q", message_class=MessageClass.MQMSG_CLASS_REPORT)
    arrive(world, traced(report))
    assert leaving(world) == {}


@pytest.mark.limit("merq.engine.tracing.PLACES_MAX")
@pytest.mark.spec("MS-MQQB 3.1.5.8.9")
def test_only_so_many_report_queues_are_remembered(world: World, lower: Lower) -> None:
    lower("merq.engine.tracing", "PLACES_MAX", 2)
    world.create("q")
    for ordinal in range(5):
        arrive(world, traced(foreign("q", ordinal), UUID(int=1000 + ordinal)))
    assert len(leaving(world)) == 2
    assert set(world.engine.state.known_places.values()) == {THERE}


@pytest.mark.spec("MS-MQQB 3.1.5.8.9#report", "MS-MQQB 3.1.7.1.7#report", "E144")
def test_only_so_many_reports_wait_for_who_wants_them(world: World, lower: Lower) -> None:
    lower("merq.engine.order_acks", "ACKS_WAITING_MAX", 3)
    world.create("q")
    for ordinal in range(5):
        arrive(world, traced(foreign("q", ordinal)))
        world.engine.departures.trace([traced(foreign("q", ordinal))], "10.0.0.7")
        world.perform()
    assert len(reports(world)) == 3
    assert world.messages(world.find(r".\private$\q")), "the messages themselves are taken"


@pytest.mark.spec("MS-MQQB 3.1.7.1.7")
@pytest.mark.spec("MS-MQQB 3.1.7.1.7#report")
def test_what_is_not_traced_is_not_reported(world: World) -> None:
    world.create("tx", transactional=True)
    arrive(world, foreign("tx", transaction=place(1)))
    assert leaving(world) == {}
    world.send_to(REMOTE, body=b"a")
    (departure,) = depart(world)
    assert not departure.is_traced
    assert outgoing(world).positions.count == 1


@pytest.mark.spec("MS-MQMQ 2.2.20.8", "MS-MQMQ note 23")
def test_nothing_is_reported_where_reports_are_switched_off(world: World) -> None:
    world.engine.state.sends_reports = False
    number = world.create("q")
    packet = traced(foreign("q", body=b"a"))
    arrive(world, packet)
    assert reports(world) == []
    assert [view.packet for view in world.messages(number)] == [packet], "it is passed on as it is"
    world.send_to(REMOTE, body=b"b", report_queue=REPORTS)
    (going,) = depart(world)
    world.engine.departures.trace([going.packet], "10.0.0.9")
    world.perform()
    assert reports(world) == []
    world.engine.state.sends_reports = True
    arrive(world, traced(foreign("q", 2)))
    assert len(reports(world)) == 1


@pytest.mark.spec("MS-MQQB 3.1.7.1.7#hops", "MS-MQQB 3.1.5.8.9#label")
def test_hops_are_written_in_hexadecimal() -> None:
    packet = foreign("q", 1)
    view = MessageView(packet[:60] + bytes([packet[60] & 0xE0 | 27]) + packet[61:])
    assert view.hop_count == 27
    assert "<HOP COUNT>1B </HOP COUNT>" in report_body(view, "10.0.0.7")
    assert report_label(view, START).split()[0].endswith(":1B")
