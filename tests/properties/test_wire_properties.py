"""What holds for every value and for any bytes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.layouts import all_bit_fields, all_layouts, bit_fields, layouts
from kit.messages import internal_packets, message_packets, packets, user_messages
from kit.vectors import frame, session
from merq.errors import WireError
from merq.wire.extension import MessagePacket
from merq.wire.keys import (
    PublicKeyBlob,
    PublicKeyFields,
    SimpleBlob,
    SimpleBlobFields,
)
from merq.wire.layout import BitField, Layout
from merq.wire.message import UserMessage
from merq.wire.packet import parse_packet
from merq.wire.stream import PacketSplitter
from merq.wire.view import MessageView

ROUNDS = settings(max_examples=120, deadline=None)
THOROUGH = settings(max_examples=250, deadline=None)


@pytest.mark.parametrize("form", all_layouts(), ids=lambda form: form.__name__)
def test_a_layout_is_the_same_after_packing_and_unpacking(form: type[Layout]) -> None:
    @given(layouts(form))
    @settings(max_examples=60, deadline=None)
    def holds(value: Layout) -> None:
        data = value.pack()
        assert len(data) == form.SIZE
        assert form.parse(data) == value
        assert form.parse(data).pack() == data

    holds()


@pytest.mark.parametrize("form", all_layouts(), ids=lambda form: form.__name__)
def test_any_bytes_are_a_layout_or_a_wire_error(form: type[Layout]) -> None:
    @given(st.binary(min_size=form.SIZE, max_size=form.SIZE) | st.binary(max_size=64))
    @settings(max_examples=60, deadline=None)
    def holds(data: bytes) -> None:
        result = outcome(form.parse, data)
        if not isinstance(result, tuple):
            assert result.pack() == data

    holds()


@pytest.mark.parametrize("form", all_bit_fields(), ids=lambda form: form.__name__)
def test_a_bit_field_keeps_every_bit(form: type[BitField]) -> None:
    @given(bit_fields(form))
    @settings(max_examples=60, deadline=None)
    def holds(value: BitField) -> None:
        number = value.pack()
        assert form.unpack(number) == value
        assert form.unpack(number).pack() == number

    holds()


@pytest.mark.spec("MS-MQMQ 2.2.20", "MS-MQQB 3.1.5.1.1")
@given(packets())
@THOROUGH
def test_a_packet_is_the_same_after_packing_and_parsing(packet: Any) -> None:
    data = packet.pack()
    parsed = parse_packet(data)
    assert parsed == packet
    assert type(parsed) is type(packet)
    assert parsed.pack() == data


@pytest.mark.spec("MS-MQRR 2.2.5")
@given(message_packets())
@ROUNDS
def test_a_message_packet_is_the_same_after_packing_and_parsing(packet: MessagePacket) -> None:
    data = packet.pack()
    assert MessagePacket.parse(data) == packet
    assert MessagePacket.parse(data).pack() == data


@pytest.mark.spec("MS-MQQB 2.4.1")
@given(st.binary(min_size=1, max_size=64), st.integers(0, 0xFFFFFFFF))
@ROUNDS
def test_a_public_key_is_the_same_after_packing_and_parsing(modulus: bytes, e: int) -> None:
    fields = PublicKeyFields(key_type=0xA400, bit_len=len(modulus) * 8, pub_exp=e)
    blob = PublicKeyBlob(fields=fields, modulus=modulus)
    assert PublicKeyBlob.parse(blob.pack()) == blob
    assert blob.n == int.from_bytes(modulus, "little")


@pytest.mark.spec("MS-MQQB 2.4.2")
@given(layouts(SimpleBlobFields), st.binary(min_size=1, max_size=256))
@ROUNDS
def test_a_session_key_is_the_same_after_packing_and_parsing(
    fields: SimpleBlobFields, key: bytes
) -> None:
    blob = SimpleBlob(fields=fields, encrypted_key=key)
    assert SimpleBlob.parse(blob.pack()) == blob


@st.composite
def damaged(draw: Any, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of a packet with some of them changed, cut off, doubled or inserted."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        change = draw(st.sampled_from(["set", "flip", "cut", "insert", "word"]))
        if change == "set" and at < len(data):
            data[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        elif change == "flip" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif change == "word" and at + 4 <= len(data):
            data[at : at + 4] = draw(st.sampled_from([b"\0\0\0\0", b"\xff\xff\xff\xff"]))
        elif change == "cut":
            del data[at : at + draw(st.integers(1, 8))]
        elif change == "insert":
            data[at:at] = draw(st.binary(max_size=8))
    return bytes(data)


any_bytes = st.one_of(
    st.binary(max_size=300),
    damaged(packets().map(lambda packet: bytes(packet.pack()))),
    damaged(st.sampled_from([frame(number) for number in range(3, 9)])),
)


def outcome(parse: Any, data: bytes) -> Any:
    """The value, or the error's text and place."""
    try:
        return parse(data)
    except WireError as wrong:
        failure = wrong
    assert failure.offset is not None
    assert 0 <= failure.offset <= len(data)
    return (str(failure), failure.offset)


@pytest.mark.spec("MS-MQQB 3.1.5.1.3")
@given(any_bytes)
@THOROUGH
def test_any_bytes_are_a_packet_or_a_wire_error(data: bytes) -> None:
    result = outcome(parse_packet, data)
    if not isinstance(result, tuple):
        assert result.pack() == data


@given(any_bytes)
@ROUNDS
def test_any_bytes_are_a_message_packet_or_a_wire_error(data: bytes) -> None:
    result = outcome(MessagePacket.parse, data)
    if not isinstance(result, tuple):
        assert result.pack() == data


@given(any_bytes)
@THOROUGH
def test_the_view_accepts_exactly_what_the_full_parser_accepts(data: bytes) -> None:
    whole = outcome(UserMessage.parse, data)
    viewed = outcome(MessageView, data)
    if isinstance(whole, tuple):
        assert viewed == whole
    else:
        assert_same(viewed, whole)


@given(user_messages())
@THOROUGH
def test_the_view_reads_what_the_full_parser_reads(message: UserMessage) -> None:
    assert_same(MessageView(message.pack()), message)


def assert_same(view: MessageView, message: UserMessage) -> None:
    base, user = message.base_header, message.user_header
    fields, properties = user.fields, message.message_properties_header
    is_transactional = user.fields.flags.transaction_header
    assert view.priority == (0 if is_transactional else base.flags.priority)
    security = message.security_header
    says_encrypted = security is not None and security.fields.flags.body_encrypted
    assert view.is_encrypted == (properties.fields.privacy_level != 0 or says_encrypted)
    assert view.traced == base.flags.traced
    assert view.time_to_reach_queue == base.time_to_reach_queue
    assert view.packet_size == base.packet_size
    assert view.delivery_mode == fields.flags.delivery_mode
    assert view.transactional == fields.flags.transaction_header
    assert view.hop_count == fields.flags.hop_count
    assert view.positive_journaling == fields.flags.positive_journaling
    assert view.negative_journaling == fields.flags.negative_journaling
    assert view.source_queue_manager == fields.source_queue_manager
    assert view.queue_manager_address == fields.queue_manager_address
    assert view.message_ordinal == fields.message_id
    assert view.message_id == fields.source_queue_manager.bytes_le + fields.message_id.to_bytes(
        4, "little"
    )
    assert view.time_to_be_received == fields.time_to_be_received
    assert view.sent_time == fields.sent_time
    for kind, data, queue in (
        (view.destination_type, view.destination, user.destination_queue),
        (view.admin_queue_type, view.admin_queue, user.admin_queue),
        (view.response_queue_type, view.response_queue, user.response_queue),
    ):
        if queue is None:
            assert data == b""
        elif kind == 7:
            name = getattr(queue, "direct_format_name")  # noqa: B009
            assert data == name.encode("utf-16-le", "surrogatepass")
        else:
            assert data == queue.pack()
    known = properties.fields
    assert view.acknowledgments == known.flags.pack() & 0x0F
    assert view.message_class == known.message_class
    assert view.correlation_id == known.correlation_id
    assert view.body_type == known.body_type
    assert view.application_tag == known.application_tag
    assert view.label == (properties.label or "")
    assert view.extension == properties.extension_data
    assert view.body == properties.body
    assert view.body_size == known.message_size
    if message.transaction_header is not None:
        transaction = message.transaction_header.fields
        assert view.tx_sequence_id == int(transaction.tx_sequence_id)
        assert view.tx_sequence_number == transaction.tx_sequence_number
        assert view.previous_tx_sequence_number == transaction.previous_tx_sequence_number
        assert view.final_ack_required == transaction.flags.final_ack_required
    assert view.decode() == message


def split(chunks: list[bytes]) -> tuple[list[bytes], str]:
    splitter = PacketSplitter()
    found = [packet for chunk in chunks for packet in splitter.feed(chunk)]
    return found, str(splitter.finish())


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


streams = st.one_of(
    st.lists(packets().map(lambda packet: bytes(packet.pack())), max_size=4).map(b"".join),
    st.just(session()),
    damaged(st.just(session())),
    st.binary(max_size=100),
)


@given(streams, st.lists(st.integers(0, 10_000), max_size=12))
@ROUNDS
def test_however_a_stream_is_cut_the_same_packets_come_out(data: bytes, places: list[int]) -> None:
    assert split(cut(data, places)) == split([data])


@given(st.lists(internal_packets().map(lambda packet: bytes(packet.pack())), max_size=3))
@settings(max_examples=30, deadline=None)
def test_a_stream_that_arrives_byte_by_byte_gives_the_same_packets(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert split([bytes([byte]) for byte in data]) == (parts, "None")
