"""A template, filled with a body, gives exactly what building the packet anew gives."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.errors import WireError
from merq.model.names import PrivateName, PublicName
from merq.wire.build import Outline, Template, build_packet
from merq.wire.headers import PACKET_SIZE_MAX
from merq.wire.message import UserMessage
from merq.wire.view import MessageView

NAME = r"OS:there\private$\orders"
U32 = st.integers(0, 0xFFFFFFFF)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
DIRECT_NAMES = st.sampled_from(
    [NAME, r"OS:x\q", r"TCP:10.0.0.7\private$\a", r"OS:here\private$\bb"]
)
DESTINATIONS = st.one_of(
    DIRECT_NAMES,
    st.builds(PrivateName, computer=st.uuids(), number=st.integers(1, 0x7FFFFFFF)),
    st.builds(PublicName, queue=st.uuids()),
)


@st.composite
def outlines(draw: st.DrawFn) -> Outline:
    several = draw(st.booleans())
    return Outline(
        destination=draw(DESTINATIONS),
        destinations=tuple(draw(st.lists(DESTINATIONS, min_size=2, max_size=4))) if several else (),
        source_queue_manager=draw(st.binary(min_size=16, max_size=16)),
        message_ordinal=draw(U32),
        sent_time=draw(U32),
        label=draw(TEXT),
        priority=draw(st.integers(0, 7)),
        recoverable=draw(st.booleans()),
        admin_queue=draw(st.one_of(st.just(""), DIRECT_NAMES)),
        response_queue=draw(st.one_of(st.just(""), DIRECT_NAMES)),
        acknowledgments=draw(st.integers(0, 15)),
        positive_journaling=draw(st.booleans()),
        negative_journaling=draw(st.booleans()),
        time_to_reach_queue=draw(U32),
        time_to_be_received=draw(U32),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        application_tag=draw(U32),
        message_class=draw(st.integers(0, 0xFFFF)),
        extension=draw(st.binary(max_size=40)),
    )


@given(outline=outlines(), bodies=st.lists(st.tuples(st.binary(max_size=70), U32), max_size=4))
@pytest.mark.spec("MS-MQMQ 2.2.19.3")
def test_a_filled_template_is_the_packet_that_building_gives(
    outline: Outline, bodies: list[tuple[bytes, int]]
) -> None:
    template = Template(outline)
    for body, body_type in bodies:
        packet = template.fill(body, body_type)
        assert packet == build_packet(replace(outline, body=body, body_type=body_type))
        view = MessageView(packet)
        assert (view.body, view.body_type, view.label) == (body, body_type, outline.label)
        assert UserMessage.parse(packet).pack() == packet


@given(outline=outlines(), body=st.binary(max_size=20))
def test_the_outlines_own_body_is_not_in_the_template(outline: Outline, body: bytes) -> None:
    with_body = Template(replace(outline, body=body, body_type=8))
    assert with_body.fill(b"", 0) == build_packet(outline)


@pytest.mark.parametrize("label", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("extension", [b"", b"1", b"12", b"123"])
@pytest.mark.parametrize("length", range(9))
def test_every_padding_is_right(label: str, extension: bytes, length: int) -> None:
    outline = Outline(destination=NAME, label=label, extension=extension)
    several = replace(outline, destinations=(NAME, r"OS:x\q"))
    for each in (outline, several):
        body = bytes(range(1, length + 1))
        packet = Template(each).fill(body, 0x2011)
        assert packet == build_packet(replace(each, body=body, body_type=0x2011))
        assert len(packet) % 4 == 0


@pytest.mark.limit("merq.wire.headers.PACKET_SIZE_MAX")
def test_the_largest_packet_fits_and_the_next_does_not() -> None:
    template = Template(Outline(destination=NAME))
    room = PACKET_SIZE_MAX - len(template.fill(b"", 0))
    packet = template.fill(bytes(room), 0)
    assert len(packet) == PACKET_SIZE_MAX
    with pytest.raises(WireError) as caught:
        template.fill(bytes(room + 1), 0)
    assert caught.value.field == "packet_size"
    assert str(PACKET_SIZE_MAX) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("label", "x" * 300),
        ("label", "a\0b"),
        ("priority", 8),
        ("priority", -1),
        ("correlation_id", b"short"),
        ("application_tag", 1 << 32),
        ("acknowledgments", 16),
        ("time_to_reach_queue", -1),
        ("admin_queue", "a\0b"),
        ("source_queue_manager", b"x"),
    ],
)
def test_what_cannot_be_built_makes_no_template(field: str, value: object) -> None:
    outline = replace(Outline(destination=NAME), **{field: value})  # type: ignore[arg-type]
    with pytest.raises(WireError) as caught:
        Template(outline)
    assert caught.value.field.startswith(field)


def test_a_template_is_not_changed_by_being_filled() -> None:
    template = Template(Outline(destination=PrivateName(computer=UUID(int=1), number=7)))
    first = template.fill(b"abc", 8)
    template.fill(bytes(1000), 9)
    assert template.fill(b"abc", 8) == first
