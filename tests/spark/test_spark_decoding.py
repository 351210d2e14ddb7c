"""Messages as columns: exactly what they say when they are read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.layouts import guids
from kit.messages import user_messages, wide_text
from kit.naming_queues import SHOWN, SID, from_sender, naming
from merq.errors import StoreError
from merq.model.body import VT_BSTR, VT_LPSTR, TypedBytes, Value, encode_body
from merq.model.names import PrivateName, PublicName
from merq.model.variant import VariantType
from merq.spark.columns import BY_NAME
from merq.spark.decoding import Frame, MalformedBody
from merq.spark.options import DROPMALFORMED, FAILFAST, PERMISSIVE
from merq.spark.texts import text_of
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.message import UserMessage
from spark.building_frames import QUEUE, Stored, expected, report_of

ALL = tuple(BY_NAME)
TEXT, WIDE, NARROW = int(VariantType.VT_LPWSTR), VT_BSTR, VT_LPSTR
PLAIN = Outline(destination=r"OS:alpha\private$\q", message_ordinal=1)

NAMES = st.one_of(
    st.builds(lambda text: rf"OS:{text}", wide_text()),
    st.builds(PrivateName, computer=guids(), number=st.integers(0, 0xFFFFFFFF)),
    st.builds(PublicName, queue=guids()),
)
PLACES = st.builds(
    TransactionPlace,
    st.integers(0, (1 << 64) - 1),
    st.integers(1, 0xFFFFFFFF),
    st.integers(0, 0xFFFFFFFE),
    st.integers(0, (1 << 20) - 1),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
BODIES: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.text(max_size=9),
    wide_text(),
    st.binary(max_size=9),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.floats(),
    st.uuids(),
)


@st.composite
def outlines(draw: Any) -> Outline:
    """Packets of the forms that are built quickly."""
    kind, body = encode_body(draw(BODIES))
    kind = draw(st.sampled_from([kind, kind, kind, TEXT, WIDE, NARROW, 0xFFFFFFFF]))
    transaction = draw(st.none() | PLACES)
    return Outline(
        destination=draw(NAMES),
        source_queue_manager=draw(st.sampled_from([bytes(16), b"\1" * 16, b"\xfe" * 16])),
        message_ordinal=draw(st.integers(0, 0xFFFFFFFF)),
        sent_time=draw(st.integers(0, 0xFFFFFFFF)),
        body=body,
        body_type=kind,
        label=draw(wide_text()),
        priority=draw(st.integers(0, 7)),
        recoverable=transaction is not None or draw(st.booleans()),
        admin_queue=draw(st.just("") | NAMES),
        response_queue=draw(st.just("") | NAMES),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        application_tag=draw(st.integers(0, 0xFFFFFFFF)),
        message_class=draw(st.sampled_from([0, 2, 0x4000, 0x8001, 0xC004, 0x0155])),
        extension=draw(st.binary(max_size=9)),
        transaction=transaction,
        report_queue=draw(st.none() | st.uuids()),
    )


def stored(packets: st.SearchStrategy[bytes], most: int = 6) -> st.SearchStrategy[list[Stored]]:
    """Some messages in a frame."""
    one = st.builds(
        Stored,
        packets,
        st.integers(0, (8 << 56) - 1),
        st.integers(0, 0xFFFFFFFF),
        st.sampled_from([0, 0, 1, 0xFFFF]),
        st.sampled_from([0, 0, 2, 0xFFFE]),
    )
    return st.lists(one, min_size=1, max_size=most)


def frame_of(*messages: Stored, pieces: int = 0) -> Frame:
    frame = Frame(report_of(messages, pieces), QUEUE)
    frame.verify()
    return frame


def packet(**changes: Any) -> Stored:
    return Stored(build_packet(replace(PLAIN, **changes)))


def check(messages: list[Stored], pieces: int = 0) -> None:
    found = frame_of(*messages, pieces=min(pieces, len(messages))).batch(ALL, PERMISSIVE)
    assert found.schema.names == list(ALL)
    assert found.to_pylist() == [expected(each) for each in messages]


@pytest.mark.spec("MS-MQMQ 2.2.20")
@settings(max_examples=40)
@given(stored(user_messages().map(lambda each: each.pack()), most=1), st.integers(0, 3))
def test_messages_of_every_shape_are_columns_of_what_they_say(
    messages: list[Stored], pieces: int
) -> None:
    # Between others, for where one ends is where the next begins.
    check([packet(label="before"), *messages, packet(label="after")], pieces)


@settings(max_examples=80)
@given(stored(outlines().map(build_packet)), st.integers(0, 3))
def test_messages_as_applications_send_them_are_columns_of_what_they_say(
    messages: list[Stored], pieces: int
) -> None:
    check(messages, pieces)


@given(
    st.lists(st.sampled_from(ALL), unique=True, min_size=1), stored(outlines().map(build_packet))
)
@settings(max_examples=50)
def test_any_columns_in_any_order_are_those_of_all(
    names: list[str], messages: list[Stored]
) -> None:
    found = frame_of(*messages).batch(names, PERMISSIVE)
    assert found.schema.names == names
    assert found.to_pylist() == [
        {name: expected(each)[name] for name in names} for each in messages
    ]


def test_messages_that_are_all_alike_are_columns_too() -> None:
    for changes in (
        {},
        {"label": "same", "body": b"x", "body_type": 0x2011},
        {"transaction": TransactionPlace(1, 1, 0), "recoverable": True},
        {"recoverable": True, "message_class": 0x4000, "priority": 7},
    ):
        check([packet(**changes, message_ordinal=number) for number in range(3)])


@pytest.mark.spec("MS-MQMQ 2.2.20.5")
def test_a_connectors_guid_in_a_transaction_is_passed_over() -> None:
    whole = packet(transaction=TransactionPlace(1, 1, 0), recoverable=True, label="x").packet
    message = UserMessage.parse(whole)
    header = message.transaction_header
    assert header is not None
    flags = replace(header.fields.flags, connector_guid=True)
    header = replace(
        header, fields=replace(header.fields, flags=flags), connector_qm_guid=UUID(int=5)
    )
    changed = replace(message, transaction_header=header).measured().pack()
    check([Stored(changed), packet(), Stored(whole)])


def test_names_with_half_a_pair_of_surrogates_are_shown_as_what_cannot_be_read() -> None:
    odd = "OS:\ud800x"
    mixed = [
        packet(destination=odd, response_queue=odd, admin_queue=odd, label="\ud800x"),
        packet(destination=PublicName(queue=UUID(int=1))),
    ]
    check(mixed)
    check(mixed[:1])
    assert frame_of(*mixed).column("response_queue").to_pylist() == ["DIRECT=OS:\ufffdx", None]


def test_the_types_of_columns_are_what_the_schema_says() -> None:
    kinds = {
        "string": "string",
        "bigint": "int64",
        "binary": "binary",
        "int": "int32",
        "timestamp": "timestamp[us, tz=UTC]",
        "boolean": "bool",
    }
    few = frame_of(packet()).batch(ALL, PERMISSIVE)
    everything = {
        "transaction": TransactionPlace(1, 1, 0),
        "recoverable": True,
        "response_queue": "OS:a",
        "admin_queue": "OS:b",
        "body": b"a\0\0\0",
        "body_type": TEXT,
    }
    many = frame_of(packet(**everything)).batch(ALL, PERMISSIVE)
    for name in ALL:
        for batch in (few, many):
            assert str(batch.schema.field(name).type) == kinds[BY_NAME[name].kind], name


def test_several_senders_in_a_frame_are_told_apart() -> None:
    guids = [UUID(int=1), UUID(int=2), UUID(int=1)]
    messages = [
        packet(source_queue_manager=guid.bytes_le, message_ordinal=number)
        for number, guid in enumerate(guids)
    ]
    frame = frame_of(*messages)
    assert frame.column("source_qm").to_pylist() == [str(guid) for guid in guids]
    assert frame.column("message_id").to_pylist() == [
        f"{{{guid}}}\\{number}" for number, guid in enumerate(guids)
    ]


def test_a_message_that_is_not_as_it_was_written_is_an_error() -> None:
    report = report_of([packet(), packet(body=b"important", body_type=0x2011)])
    whole = bytearray(report.data[0])
    whole[whole.index(b"important")] ^= 1
    frame = Frame(replace(report, data=(bytes(whole),)), QUEUE)
    with pytest.raises(StoreError, match=r"a message of alpha\\private\$\\q is not as it was"):
        frame.verify()


MALFORMED = [
    pytest.param(TEXT, b"odd", id="half a character"),
    pytest.param(TEXT, b"\x00\xd8a\0\0\0", id="half a pair"),
    pytest.param(WIDE, b"x", id="half a character of a BSTR"),
    pytest.param(NARROW, b"\xff\xfe", id="no UTF-8"),
]


@pytest.mark.parametrize(("kind", "body"), MALFORMED)
def test_a_body_that_is_not_the_text_that_it_says_has_no_value_and_keeps_its_bytes(
    kind: int, body: bytes
) -> None:
    found = frame_of(packet(body=body, body_type=kind)).batch(("value", "body"), PERMISSIVE)
    assert found.to_pylist() == [{"value": None, "body": body}]


@pytest.mark.parametrize("names", [("message_id", "value"), ("message_id",)])
@pytest.mark.parametrize(("kind", "body"), MALFORMED)
def test_malformed_messages_are_left_out_if_that_is_wanted(
    kind: int, body: bytes, names: tuple[str, ...]
) -> None:
    messages = [packet(body=b"a\0", body_type=WIDE), packet(body=body, body_type=kind), packet()]
    found = frame_of(*messages).batch(names, DROPMALFORMED)
    wanted = [expected(messages[0]), expected(messages[2])]
    assert found.to_pylist() == [{name: each[name] for name in names} for each in wanted]


@pytest.mark.parametrize(("kind", "body"), MALFORMED)
def test_a_malformed_message_stops_the_query_if_that_is_wanted(kind: int, body: bytes) -> None:
    frame = frame_of(packet(), packet(body=body, body_type=kind, message_ordinal=77))
    with pytest.raises(MalformedBody, match=r"\\77 of .*mode PERMISSIVE to get it as bytes"):
        frame.batch(("body",), FAILFAST)


@pytest.mark.parametrize("mode", [PERMISSIVE, DROPMALFORMED, FAILFAST])
def test_bodies_that_are_no_text_are_never_malformed(mode: str) -> None:
    messages = [packet(body=b"x", body_type=3), packet(body=b"\xff", body_type=0x2011), packet()]
    assert frame_of(*messages).batch(("value",), mode).to_pylist() == [{"value": None}] * 3


ODD: list[Value] = [
    5, -1, 2.5, True, None, UUID(int=7), b"", b"a\0b", b"\xff\xd8", b"\xff", b"\xefx",
    b"\xef\xbb\xbf<a/>", "<ö/>".encode("utf-16"), TypedBytes(3, b"\1"), TypedBytes(999, b"odd"),
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_body_has_the_same_text_whatever_bodies_are_beside_it(odd: Value) -> None:
    for beside in (["höher"], ["ö".encode(), b"a\tb\n"], ["text", b"bytes"]):
        bodies: list[Value] = [*beside, odd]
        found = texts_of_bodies(bodies)
        assert found == [text_of(*encode_body(each)) for each in bodies]


def test_bytes_that_are_texts_and_empty_ones_are_found_together() -> None:
    bodies: list[Value] = [b"one", b"", "zwö".encode()]
    assert texts_of_bodies(bodies) == ["one", None, "zwö"]


def texts_of_bodies(bodies: Sequence[Value]) -> list[str | None]:
    """The column of messages with these bodies, in one frame."""
    stored = []
    for each in bodies:
        kind, data = encode_body(each)
        stored.append(Stored(build_packet(replace(PLAIN, body=data, body_type=kind))))
    found: list[str | None] = Frame(report_of(stored), QUEUE).column("body_text").to_pylist()
    return found


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.32")
def test_the_priority_bits_of_a_transactional_message_are_ignored() -> None:
    place = TransactionPlace(1, 1, 0)
    plain = build_packet(replace(PLAIN, priority=5))
    ordered = build_packet(replace(PLAIN, recoverable=True, transaction=place))
    ordered = ordered[:2] + bytes([ordered[2] | 5]) + ordered[3:]
    frame = Frame(report_of([Stored(plain), Stored(ordered)]), QUEUE)
    assert frame.column("priority").to_pylist() == [5, 0]


@pytest.mark.spec("MS-MQMQ 2.2.19.2", "MS-MQMQ 2.2.20.6")
def test_queues_by_identifiers_and_senders_are_columns_too() -> None:
    packet = build_packet(PLAIN)
    packets = [
        naming(packet, admin=6, response=1),
        from_sender(naming(packet, admin=2, response=5)),
        build_packet(replace(PLAIN, destination=PrivateName(computer=UUID(int=7), number=0x2A))),
    ]
    frame = Frame(report_of([Stored(each) for each in packets]), QUEUE)
    assert frame.column("admin_queue").to_pylist() == [SHOWN[6], SHOWN[2], None]
    assert frame.column("response_queue").to_pylist() == [SHOWN[6], SHOWN[5], None]
    assert frame.column("destination").to_pylist() == [
        r"DIRECT=OS:alpha\private$\q",
        r"DIRECT=OS:alpha\private$\q",
        rf"PRIVATE={UUID(int=7)}\0000002a",
    ]
    assert frame.column("sender_id").to_pylist() == [None, SID, None]
