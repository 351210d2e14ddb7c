"""Whatever a packet says, as long as it is one: the engine takes it, loses it and tells of it.

Nothing is raised, and nothing has to be set aside: that is for what nobody has foreseen.
Packets of 4 MiB take some seconds.
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
from merq.model.names import PrivateName
from merq.model.queue import QueueKind
from merq.wire.build import Outline, TransactionPlace, build_packet
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


@st.composite
def large_messages(draw: Any) -> UserMessage:
    """Messages as large as can be, of which somebody wants to know what became."""
    by_number = st.sampled_from([16, 18, 4, 999]).map(
        lambda number: PrivateName(computer=GUID, number=number)
    )
    direct = st.sampled_from([r"TCP:10.0.0.9\private$\told", r"OS:there\private$\told"])
    by_identifier = st.just(PrivateName(computer=THERE, number=3))
    transaction = draw(
        st.none() | st.just(TransactionPlace(5 << 32, 1, 0, final_ack_required=True))
    )
    outline = Outline(
        destination=draw(by_number | st.sampled_from([r"OS:here\private$\orders"])),
        source_queue_manager=THERE.bytes_le,
        message_ordinal=1,
        sent_time=START,
        admin_queue=draw(direct | by_identifier),
        acknowledgments=draw(st.sampled_from([4, 8, 12, 15])),
        negative_journaling=draw(st.booleans()),
        label=draw(st.sampled_from(["", "a label", "l" * 249])),
        recoverable=True,
        time_to_be_received=draw(st.sampled_from([10, 100_000])),
        transaction=transaction,
    )
    room_left = draw(st.sampled_from([0, 0, 4, 12, ROOM_LEFT_MAX]))
    whole = _enlarged(UserMessage.parse(build_packet(outline)), room_left)
    return whole.measured()


def _enlarged(message: UserMessage, room_left: int) -> UserMessage:
    def with_body(size: int) -> UserMessage:
        properties = message.message_properties_header
        fields = replace(properties.fields, message_size=size, allocation_body_size=size)
        properties = replace(properties, fields=fields, message_body=bytes(size), padding=b"")
        return replace(message, message_properties_header=properties)

    size = PACKET_SIZE_MAX - len(with_body(0).measured().pack()) - room_left
    return with_body(size & ~3)


def nothing_is_set_aside(world: World) -> None:
    """Since the last start; the first problem is what is wrong otherwise."""
    assert [each.problem for each in world.engine.state.aside.waiting] == []


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
@given(
    message=st.one_of(hostile_messages(), large_messages(), large_messages()),
    fate=st.sampled_from(FATES),
)
@settings(
    max_examples=40,
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
    nothing_is_set_aside(world)
    for queue in world.engine.outgoing_queues():
        for view in world.messages(queue.number):
            sent = spelling.for_others(world.engine.state, view.packet, "a-host-with-a-long-name")
            MessageView(sent)
    world.checkpoint()
    world.restart()
    meet(world, fate)
    nothing_is_set_aside(world)
    world.restart()
    nothing_is_set_aside(world)
