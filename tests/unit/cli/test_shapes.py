"""Decoded packets as JSON objects and as trees."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from rich.console import Console

from kit.vectors import frame
from merq.capture.packets import (
    Decoded,
    Finding,
    Origin,
    PacketStream,
    PingRoles,
    Undecoded,
    decode_packet,
)
from merq.cli.shapes import as_json, as_text, as_tree
from merq.wire.acks import (
    AckEnvelope,
    FinalAckBody,
    OrderAckBody,
    final_ack,
    order_ack,
)
from merq.wire.headers import BaseFlags, BaseHeader, TxSequenceID
from merq.wire.message import UserMessage
from merq.wire.multiqueue import (
    ADMIN_ID,
    DESTINATION_ID,
    RESPONSE_ID,
    MQFAddressHeader,
    MQFDirectQueueFormatName,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from merq.wire.properties import MessagePropertiesHeader, PropertiesFields
from merq.wire.queues import DIRECT, DirectQueueFormatName
from merq.wire.reader import TraceNode
from merq.wire.user import UserFields, UserFlags, UserHeader

CLIENT = "557358d1-9150-9595-4997-b6e611ea26c6"
SERVER = "43cd8907-394c-8f11-4445-9078909ea0fc"
ENVELOPE = AckEnvelope(
    source_queue_manager=UUID(SERVER),
    destination=r"TCP:10.0.0.1\PRIVATE$\order_queue$",
    sent_time=0,
    message_id=5,
)
SEQUENCE = TxSequenceID(ordinal=7, time_stamp=9)


def decoded(data: bytes) -> Decoded:
    finding = decode_packet(data, 0, PingRoles())
    assert isinstance(finding, Decoded)
    return finding


def object_of(finding: Finding) -> dict[str, Any]:
    line = as_json(finding)
    assert "\n" not in line
    value = json.loads(line)
    assert isinstance(value, dict)
    return value


def lines_of(finding: Finding) -> list[str]:
    """What people see, without colours."""
    out = StringIO()
    shown = as_tree(finding) if isinstance(finding, Decoded) else as_text(finding)
    Console(file=out, width=1000, color_system=None, highlight=False).print(shown)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def message(label: str) -> UserMessage:
    elements = tuple(
        MQFFormatNameElement(format_name=MQFDirectQueueFormatName(direct_format_name=name))
        for name in (r"OS:a\q", r"OS:b\q")
    )
    flags = UserFlags(
        delivery_mode=1, destination_queue_type=DIRECT, multi_queue_format_header=True
    )
    return UserMessage(
        base_header=BaseHeader(flags=BaseFlags(priority=3), packet_size=BaseHeader.SIZE),
        user_header=UserHeader(
            fields=UserFields(
                source_queue_manager=UUID(CLIENT),
                queue_manager_address=UUID(int=0),
                sent_time=0,
                message_id=1,
                flags=flags,
            ),
            destination_queue=DirectQueueFormatName(direct_format_name=r"OS:a\q"),
        ),
        message_properties_header=MessagePropertiesHeader(
            fields=PropertiesFields(
                label_length=len(label) + 1,
                message_class=0,
                message_size=3,
                allocation_body_size=3,
            ),
            label=label,
            message_body=b"\x01\x02\x03",
        ),
        multi_queue_format_header=MultiQueueFormatHeader(
            destination=MQFAddressHeader(header_id=DESTINATION_ID, format_name_list=elements),
            administration=MQFAddressHeader(header_id=ADMIN_ID),
            response=MQFAddressHeader(header_id=RESPONSE_ID),
        ),
    ).measured()


# JSON.


@pytest.mark.spec("MS-MQQB 2.2.7", "MS-MQQB 4.1.1")
def test_a_ping_is_an_object_of_its_fields() -> None:
    assert object_of(decoded(frame(1))) == {
        "packet": "PingRequest",
        "size": 24,
        "flags": {"value": 0x7D01, "not_server_class": True, "refused": False, "reserved": 0x7D00},
        "signature": 0x5548,
        "cookie": 4,
        "qm_guid": CLIENT,
    }


@pytest.mark.spec("MS-MQQB 2.2.3", "MS-MQQB 4.1.3")
def test_an_establish_connection_packet_is_an_object_of_its_headers() -> None:
    assert object_of(decoded(frame(3))) == {
        "packet": "EstablishConnection",
        "size": 572,
        "base_header": {
            "version_number": 16,
            "reserved": 0xC0,
            "flags": {
                "value": 0x000B,
                "priority": 3,
                "internal": True,
                "session_header": False,
                "debug_header": False,
                "traced": False,
                "reserved": 0,
            },
            "signature": 0x524F494C,
            "packet_size": 572,
            "time_to_reach_queue": 0xFFFFFFFF,
        },
        "internal_header": {
            "reserved": 0,
            "flags": {"value": 2, "packet_type": 2, "refused": False, "reserved": 0},
        },
        "establish_connection_header": {
            "client_guid": CLIENT,
            "server_guid": SERVER,
            "time_stamp": 0x1DDECA4E,
            "operating_system": {
                "value": 0x0310,
                "fixed": 16,
                "without_ping": True,
                "server_class": True,
                "quality_of_service": False,
                "reserved": 0,
            },
            "reserved": 0,
            "padding": "5a" * 512,
        },
    }


@pytest.mark.spec("MS-MQQB 2.2.2", "MS-MQQB 4.1.5")
def test_connection_parameters_are_an_object_of_their_headers() -> None:
    shown = object_of(decoded(frame(5)))
    assert shown["packet"] == "ConnectionParameters"
    assert list(shown)[2:] == ["base_header", "internal_header", "connection_parameters_header"]
    assert shown["connection_parameters_header"] == {
        "recoverable_ack_timeout": 1496,
        "ack_timeout": 120000,
        "reserved": 0,
        "window_size": 64,
    }


@pytest.mark.spec("MS-MQQB 2.2.6", "MS-MQQB 4.1.8")
def test_a_session_acknowledgment_is_an_object_of_its_headers() -> None:
    shown = object_of(decoded(frame(8)))
    assert shown["packet"] == "SessionAck"
    assert list(shown)[2:] == ["base_header", "internal_header", "session_header"]
    assert shown["session_header"] == {
        "ack_sequence_number": 1,
        "recoverable_msg_ack_seq_number": 0,
        "recoverable_msg_ack_flags": 0,
        "user_msg_sequence_number": 0,
        "recoverable_msg_seq_number": 0,
        "window_size": 64,
        "reserved": 0,
    }


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQQB 4.1.7")
def test_a_user_message_is_an_object_of_its_headers() -> None:
    shown = object_of(decoded(frame(7)))
    assert list(shown) == [
        "packet",
        "size",
        "base_header",
        "user_header",
        "security_header",
        "message_properties_header",
        "format_names",
    ]
    assert (shown["packet"], shown["size"]) == ("UserMessage", 2224)
    assert shown["format_names"] == {"destination_queue": r"DIRECT=OS:a04bm02\q"}
    user = shown["user_header"]
    assert user["source_queue_manager"] == CLIENT
    assert user["flags"]["destination_queue_type"] == 7
    assert user["flags"]["security_header"] is True
    assert user["destination_queue"] == {"count": 26, "direct_format_name": r"OS:a04bm02\q"}
    properties = shown["message_properties_header"]
    assert properties["flags"] == {
        "value": 15,
        "positive_arrival": True,
        "positive_receive": True,
        "negative_arrival": True,
        "negative_receive": True,
        "reserved": 0,
    }
    assert properties["label"] == "mqsender label"
    assert properties["correlation_id"] == "00" * 20
    assert properties["message_body"] == "6100" * 1000


@pytest.mark.spec("MS-MQQB 2.2.4", "MS-MQQB 2.2.4.1")
def test_an_order_acknowledgment_shows_its_body_as_a_structure() -> None:
    body = OrderAckBody(
        tx_sequence_id=SEQUENCE, tx_sequence_number=3, tx_previous_sequence_number=2
    )
    shown = object_of(decoded(order_ack(ENVELOPE, body).pack()))
    assert shown["packet"] == "OrderAck"
    assert shown["message_properties_header"]["message_body"] == body.pack().hex()
    assert shown["order_ack_body"] == {
        "tx_sequence_id": {"ordinal": 7, "time_stamp": 9},
        "tx_sequence_number": 3,
        "tx_previous_sequence_number": 2,
        "reserved": "00" * 20,
    }


@pytest.mark.spec("MS-MQQB 2.2.5", "MS-MQQB 2.2.5.1")
def test_a_final_acknowledgment_shows_its_body_as_a_structure() -> None:
    body = FinalAckBody(
        tx_sequence_id=SEQUENCE,
        tx_sequence_number=3,
        tx_previous_sequence_number=2,
        source_guid=UUID(CLIENT),
        message_id=12,
    )
    shown = object_of(decoded(final_ack(ENVELOPE, body, 0x4000).pack()))
    assert shown["packet"] == "FinalAck"
    assert shown["final_ack_body"]["source_guid"] == CLIENT
    assert shown["final_ack_body"]["message_id"] == 12


@pytest.mark.spec("MS-MQMQ 2.2.20.1", "MS-MQMQ 2.2.20.2")
def test_the_elements_of_a_list_are_an_array() -> None:
    shown = object_of(decoded(message("two").pack()))
    assert shown["multi_queue_format_header"]["destination"]["format_name_list"] == [
        {"format_type": 3, "direct_format_name": r"OS:a\q"},
        {"format_type": 3, "direct_format_name": r"OS:b\q"},
    ]


def test_fields_that_come_twice_are_both_there() -> None:
    tree = TraceNode("packet", 0, 12)
    for at, value in ((0, b"\x01"), (4, b"\x02"), (8, b"\x03")):
        tree.children.append(TraceNode("padding", at, 1, value))
    shown = object_of(Decoded(offset=0, size=12, kind="UserMessage", tree=tree))
    assert shown == {
        "packet": "UserMessage",
        "size": 12,
        "padding": "01",
        "padding_2": "02",
        "padding_3": "03",
    }


def test_text_that_is_half_a_character_is_still_json() -> None:
    shown = object_of(decoded(message("\ud800x").pack()))
    assert shown["message_properties_header"]["label"] == "\ud800x"


def test_an_error_is_an_object_with_its_offset() -> None:
    assert object_of(Undecoded(offset=7, reason="why")) == {"error": "why", "offset": 7}


def test_what_comes_from_a_capture_says_from_where() -> None:
    origin = Origin(frame=3, time_ns=1_500_000_123_456, source="a:1", destination="b:1801")
    expected = {
        "frame": 3,
        "time": "1970-01-01T00:25:00.000123Z",
        "source": "a:1",
        "destination": "b:1801",
    }
    assert object_of(Undecoded(offset=0, reason="why", origin=origin))["capture"] == expected
    (finding,) = PacketStream().feed(frame(5), origin)
    assert object_of(finding)["capture"] == expected


def test_a_frame_without_a_time_has_none() -> None:
    origin = Origin(frame=3, time_ns=None, source="a:1", destination="b:1801")
    assert object_of(Undecoded(offset=0, reason="w", origin=origin))["capture"]["time"] is None


# Trees.


def test_a_line_has_offset_field_value_and_meaning() -> None:
    lines = lines_of(decoded(frame(5)))
    assert lines[0] == "ConnectionParameters  32 bytes  at 0"
    assert "│   ├── 0x0004 signature = 1380927820 (0x524f494c)  LIOR" in lines
    assert "│   └── 0x000c time_to_reach_queue = 4294967295 (0xffffffff)  never runs out" in lines
    assert "├── 0x0010 internal_header  4 bytes" in lines
    assert "    ├── 0x0018 ack_timeout = 120000 (0x1d4c0)  120 s" in lines


def test_flags_have_a_line_each_with_the_code_of_the_documents() -> None:
    lines = lines_of(decoded(frame(5)))
    assert "│   ├── 0x0002 flags = 0x000b" in lines
    assert "│   │   ├── PR priority = 3" in lines
    assert "│   │   ├── IN internal = 1" in lines
    assert any("packet_type = 3  ConnectionParameters" in line for line in lines)


def test_bits_that_are_reserved_are_shown_if_set() -> None:
    assert any("reserved = 0x7d00" in line for line in lines_of(decoded(frame(1))))


def test_bytes_are_shown_short_and_runs_are_counted() -> None:
    assert any(line.endswith("padding = 5a 512 times") for line in lines_of(decoded(frame(3))))
    lines = lines_of(decoded(frame(7)))
    assert any("message_body = 6100 6100" in line for line in lines)
    assert any(line.endswith("… 1968 bytes more") for line in lines)


def test_control_characters_of_a_label_do_not_reach_the_terminal() -> None:
    (line,) = [
        line for line in lines_of(decoded(message("a\x1b[31m\n").pack())) if "label =" in line
    ]
    assert line.endswith(r'label = "a\u001b[31m\n"')


def test_markup_in_a_label_is_text() -> None:
    lines = lines_of(decoded(message("[red]x[/red]").pack()))
    assert any(line.endswith('label = "[red]x[/red]"') for line in lines)


def test_an_error_is_one_line_with_its_offset() -> None:
    origin = Origin(frame=3, time_ns=None, source="a:1", destination="b:1801")
    assert lines_of(Undecoded(offset=7, reason="why")) == ["unreadable  at 7: why"]
    assert lines_of(Undecoded(offset=7, reason="why", origin=origin)) == [
        "unreadable  at 7: why  a:1 → b:1801, frame 3"
    ]
