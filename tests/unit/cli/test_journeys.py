"""The way of a traced message, put together from reports in any order."""

from __future__ import annotations

from itertools import permutations
from uuid import UUID

import pytest

from merq.cli.journeys import Hop, Told, hops_of, is_report
from merq.client.messages import ReceivedMessage
from merq.model.delivered import Delivered
from merq.model.message_class import MessageClass
from merq.model.variant import VariantType
from merq.wire.build import Outline, build_packet

A, B, C = UUID(int=1), UUID(int=2), UUID(int=3)
SENT = 1_800_000_000
LABEL = f"0000:0000000A:01 received by {A} at 08:00:01 AM Fri,Jan 15 27"
BODY = "<MESSAGE ID>0000000A</MESSAGE ID>\r\n<TARGET QUEUE>DIRECT=OS:c\\q</TARGET QUEUE>\r\n"
LEFT = f"{BODY}<NEXT HOP>10.0.0.3</NEXT HOP>\r\n<HOP COUNT>01 </HOP COUNT>\r\n"


def report(body: str = BODY, label: str = LABEL, kind: int = 0x10) -> ReceivedMessage:
    packet = build_packet(
        Outline(
            destination="OS:a\\q",
            source_queue_manager=B.bytes_le,
            sent_time=SENT,
            message_class=kind,
            label=label,
            body=body.encode("utf-16-le"),
            body_type=VariantType.VT_LPWSTR,
        )
    )
    return ReceivedMessage(Delivered(packet, 1, SENT, 0))


@pytest.mark.spec("MS-MQQB 3.1.5.8.9", "MS-MQQB 3.1.7.1.7")
def test_a_report_says_who_when_and_where_next() -> None:
    assert Told.of(report(LEFT)) == Told(B, SENT, 1, "10.0.0.3")
    assert Told.of(report()) == Told(B, SENT, 1)
    assert is_report(report(kind=int(MessageClass.MQMSG_CLASS_REPORT)))
    assert not is_report(report(kind=int(MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)))


@pytest.mark.parametrize("label", ["", "hello", "0000:0000000A:zz received", LABEL[:15]])
def test_a_report_with_another_label_still_says_who(label: str) -> None:
    assert Told.of(report(label=label)).queue_manager == B
    assert Told.of(report("no tags", label)).next_hop == ""


def test_the_way_is_the_same_in_whatever_order_reports_come() -> None:
    told = [
        Told(A, SENT, 0, "10.0.0.2"),
        Told(B, SENT, 1),
        Told(B, SENT, 1, "10.0.0.3"),
        Told(C, SENT, 1),
    ]
    for each in permutations(told):
        assert hops_of(each, A, SENT) == [
            Hop(A, "", SENT, SENT, "10.0.0.2"),
            Hop(B, "10.0.0.2", SENT, SENT, "10.0.0.3"),
            Hop(C, "10.0.0.3", SENT, 0, ""),
        ]


def test_a_message_of_which_nothing_was_heard_is_where_it_was_sent() -> None:
    assert hops_of([], A, SENT) == [Hop(A, "", SENT, 0, "")]


def test_a_message_that_is_sent_again_has_left_when_it_did_last() -> None:
    told = [Told(A, SENT, 0, "10.0.0.2"), Told(A, SENT + 30, 0, "10.0.0.9")]
    (hop,) = hops_of(told, A, SENT)
    assert (hop.left, hop.next_hop) == (SENT + 30, "10.0.0.9")
