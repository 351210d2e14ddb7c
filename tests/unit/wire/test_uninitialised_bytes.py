"""Windows leaves whatever was in its memory where a packet is filled up: nobody looks at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from merq.wire.build import Outline, build_packet
from merq.wire.message import UserMessage
from merq.wire.multiqueue import (
    MQFAddressHeader,
    MQFDirectQueueFormatName,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from merq.wire.queues import PublicQueueFormatName
from merq.wire.reader import TraceNode
from merq.wire.view import MessageView

RUBBISH = b"\xcd\xab\xef"
PLACES = {
    "user_header/destination_queue",  # [MS-MQMQ] 2.2.18.1.5.2
    *(
        f"multi_queue_format_header/{each}/format_name_list"  # 2.2.18.1.4
        for each in ("destination", "administration", "response")
    ),
    "multi_queue_format_header/destination",  # 2.2.20.1, 2.2.20.2
    "multi_queue_format_header/administration",
    "multi_queue_format_header/response",
    "multi_queue_format_header/signature",
    "message_properties_header",  # 2.2.19.3
}


def fillings(node: TraceNode, path: str = "") -> Iterator[tuple[str, int, int]]:
    """Where a packet is filled up: structure, offset and size."""
    for child in node.children:
        if child.name == "padding" and child.size:
            yield path, child.offset, child.size
        name = re.sub(r"\[\d+\]", "", child.name)
        yield from fillings(child, f"{path}/{name}".strip("/"))


def spoilt(packet: bytes) -> tuple[bytes, set[str]]:
    """The packet with rubbish wherever it is filled up, and the structures where that is."""
    root = TraceNode("packet", 0)
    UserMessage.parse(packet, trace=root)
    changed = bytearray(packet)
    found = set()
    for path, offset, size in fillings(root):
        found.add(path)
        changed[offset : offset + size] = (RUBBISH * size)[:size]
    return bytes(changed), found


def sample(*, is_counted: bool) -> UserMessage:
    """A message that is filled up wherever one can be."""
    queue = r"TCP:10.0.0.1\private$\order"
    message = UserMessage.parse(build_packet(Outline(destination=queue, label="l", body=b"b")))
    flags = replace(message.user_header.fields.flags, multi_queue_format_header=True)
    fields = replace(message.user_header.fields, flags=flags)
    header = MultiQueueFormatHeader(
        destination=names(0x64, is_counted=is_counted),
        administration=names(0xC8, is_counted=is_counted),
        response=names(0x12C, is_counted=is_counted),
        signature=b"s",
    )
    user = replace(message.user_header, fields=fields)
    return replace(message, user_header=user, multi_queue_format_header=header).measured()


def names(header_id: int, *, is_counted: bool) -> MQFAddressHeader:
    public = PublicQueueFormatName(public_queue_identifier=UUID(int=7))
    direct = MQFDirectQueueFormatName(direct_format_name=r"TCP:10.0.0.1\private$\o")
    elements = tuple(MQFFormatNameElement(format_name=each) for each in (public, direct))
    counted = None if is_counted else b""
    return MQFAddressHeader(header_id=header_id, format_name_list=elements, counted_padding=counted)


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.spec("MS-MQMQ note 1", "MS-MQMQ note 2", "MS-MQMQ note 8", "MS-MQMQ note 10")
@pytest.mark.spec("MS-MQMQ note 11", "MS-MQMQ note 12", "MS-MQMQ note 13")
def test_a_packet_says_the_same_whatever_it_is_filled_up_with(is_counted: bool) -> None:
    clean = sample(is_counted=is_counted).pack()
    packet, places = spoilt(clean)
    assert places == PLACES
    assert packet != clean
    found = UserMessage.parse(packet)
    assert found == UserMessage.parse(clean)
    assert found.pack() == packet, "what came is passed on as it came"
    view, before = MessageView(packet), MessageView(clean)
    assert (view.body, view.label) == (b"b", "l")
    assert (view.destination, view.message_id) == (before.destination, before.message_id)


@pytest.mark.spec("MS-MQMQ 2.2.19.3", "MS-MQMQ note 7")
def test_our_own_messages_name_sha_512_as_windows_does_since_windows_7() -> None:
    packet = build_packet(Outline(destination=r"TCP:10.0.0.1\private$\q"))
    fields = UserMessage.parse(packet).message_properties_header.fields
    assert fields.hash_algorithm == 0x800E
