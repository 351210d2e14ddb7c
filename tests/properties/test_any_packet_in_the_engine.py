"""Whatever a packet says, as long as it is one: the engine takes it, loses it and tells of it.

Nothing is raised, and nothing has to be set aside: that is for what nobody has foreseen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.messages import user_messages, wide_text
from merq.engine import spelling
from merq.model.queue import QueueKind
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.message import UserMessage
from merq.wire.properties import AcknowledgmentFlags
from merq.wire.queues import DirectQueueFormatName
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START, World
from unit.engine.foreign_world import THERE, arrive

ROOM_LEFT_MAX = 24
"""A packet so near to the limit that what is told of it has no room."""

HOSTS = (
    "TCP:10.0.0.9",
    "OS:there",
    "OS:.",
    "OS:here",
    "HTTP://x",
    "tcp:fe80::1",
    "OS:" + "h" * 200,
)
QUEUES = (
    r"\private$\orders",
    r"\private$\ledger",
    r"\PRIVATE$\order_queue$",
    r"\private$\orders;sub",
    r"\private$\orders;journal",
    r"\system$;deadletter",
    "\\private$\\" + "q" * 124,
    "\\private$\\" + "q" * 30_000,
    "\\private$\\a\ud800b",
    "",
)
FATES = ("expire", "purge", "receive", "delete", "expire while down")


def names() -> st.SearchStrategy[str]:
    """Direct names that mean something here, or elsewhere, or nothing."""
    made = st.builds(str.__add__, st.sampled_from(HOSTS), st.sampled_from(QUEUES))
    return st.one_of(made, made, wide_text())


@st.composite
def hostile_messages(draw: Any) -> UserMessage:
    """Messages of any form, many of them to queues that are here, some as large as can be."""
    message = draw(user_messages())
    header = message.user_header
    changed: dict[str, Any] = {
        name: DirectQueueFormatName(direct_format_name=draw(names()))
        for name in ("destination_queue", "admin_queue", "response_queue")
        if isinstance(getattr(header, name), DirectQueueFormatName)
    }
    fields = header.fields
    address = draw(st.sampled_from([UUID(int=0), GUID, fields.queue_manager_address]))
    source = draw(st.sampled_from([THERE, fields.source_queue_manager]))
    fields = replace(fields, queue_manager_address=address, source_queue_manager=source)
    base = message.base_header
    properties = message.message_properties_header
    asked = AcknowledgmentFlags.unpack(draw(st.integers(0, 15)))
    message_class = draw(st.sampled_from([0, 0, 1, 0xFF, 0x8000, 0xC000]))
    properties = replace(
        properties,
        fields=replace(properties.fields, flags=asked, message_class=message_class),
    )
    message = replace(
        message,
        base_header=replace(base, flags=replace(base.flags, session_header=False)),
        user_header=replace(header, fields=fields, **changed),
        message_properties_header=properties,
        session_header=None,
    )
    if draw(st.integers(0, 3)) == 0:
        message = _enlarged(message, draw(st.integers(0, ROOM_LEFT_MAX)))
    whole: UserMessage = message.measured()
    return whole


def _enlarged(message: UserMessage, room_left: int) -> UserMessage:
    def with_body(size: int) -> UserMessage:
        properties = message.message_properties_header
        fields = replace(properties.fields, message_size=size, allocation_body_size=size)
        properties = replace(properties, fields=fields, message_body=bytes(size), padding=b"")
        return replace(message, message_properties_header=properties)

    size = PACKET_SIZE_MAX - len(with_body(0).measured().pack()) - room_left
    return with_body(size & ~3)


def meet(world: World, fate: str) -> None:
    """What becomes of the messages in all queues."""
    if fate == "expire while down":
        world.now = 0xFFFFFF00
        world.restart()
    queues = [
        each.number
        for each in world.engine.state.queues.values()
        if each.properties.kind is QueueKind.PRIVATE and each.number >= 16
    ]
    for number in queues:
        if fate == "receive":
            world.receive(number)
        elif fate == "purge":
            world.engine.purge(world.next_request(), number)
        elif fate == "delete":
            world.engine.delete_queue(world.next_request(), number)
        world.perform()
    world.tick(0xFFFFFF00 - world.now)


@pytest.mark.parametrize("forwards", [True, False])
@given(message=hostile_messages(), fate=st.sampled_from(FATES))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_any_packet_comes_and_goes_and_nothing_is_raised(
    message: UserMessage, fate: str, *, forwards: bool
) -> None:
    packet = message.pack()
    MessageView(packet)
    world = World()
    world.create("orders", journaling=True)
    world.create("ledger", transactional=True)
    world.engine.arrivals.forwards = forwards
    world.engine.state.sends_insecure_nacks = True
    arrived = arrive(world, packet)
    assert arrived.taken == 1
    for queue in world.engine.outgoing_queues():
        for view in world.messages(queue.number):
            sent = spelling.for_others(world.engine.state, view.packet, "a-host-with-a-long-name")
            MessageView(sent)
    world.checkpoint()
    world.restart()
    meet(world, fate)
    assert world.engine.state.aside.count == 0, world.engine.state.aside.waiting[0].problem
    assert world.engine.state.now > START
    world.restart()
    assert world.engine.state.aside.count == 0
