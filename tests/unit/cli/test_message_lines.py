"""Messages as JSON lines."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq import Message
from merq import open as open_manager
from merq.cli.importing import AT_ONCE, batches_of
from merq.cli.message_lines import correlation_id_of, line_of, message_of
from merq.model.body import TypedBytes
from merq.wire.headers import INFINITE


def line(**values: Any) -> bytes:
    return json.dumps(values).encode()


def test_a_line_says_everything_that_a_sender_can_set(tmp_path: Path) -> None:
    sent = Message(
        body="snow ☃ \ud800",
        label="ünï",
        priority=6,
        recoverable=True,
        time_to_reach_queue=7,
        journal=True,
        dead_letter=True,
        acknowledge=14,
        admin_queue="DIRECT=OS:far\\PRIVATE$\\a",
        response_queue="DIRECT=OS:far\\PRIVATE$\\r",
        correlation_id=bytes(range(20)),
        app_specific=3,
        extension=b"\0\1",
    )
    with open_manager(tmp_path / "data") as manager:
        queue = manager.create_queue(r".\private$\q")
        queue.send(sent)
        received = queue.peek(timeout=0)
    again = message_of(line_of(received).encode())
    assert isinstance(again.body, TypedBytes)
    assert (again.body.kind, again.body.data) == (received.body_type, received.body_bytes)
    for name in Message.__dataclass_fields__:
        if name != "body":
            assert getattr(again, name) == getattr(sent, name), name


def test_a_line_written_by_hand_needs_only_what_it_wants_to_say() -> None:
    assert message_of(b"{}") == Message()
    assert message_of(line(text="hello", label="x")) == Message(body="hello", label="x")
    assert message_of(line(body="AAE=")) == Message(body=b"\0\1")
    assert message_of(line(time_to_be_received_s=None)).time_to_be_received == INFINITE
    by_id = message_of(line(correlation_id="{00000000-0000-0000-0000-000000000000}\\5"))
    assert by_id.correlation_id == bytes(16) + b"\5\0\0\0"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[1]", "a JSON list; an object was expected"),
        (b"[" * 100_000, "nested too deep|not JSON"),
        (line(lable="x"), "lable: no message has this; known is .*label"),
        (line(merq=2), "version 2"),
        (line(label=5), "label is 5; str belongs there"),
        (line(priority=True), "priority is True; int belongs there"),
        (line(priority=8), "8"),
        (line(body="!"), "body is not base64"),
        (line(body="", body_type=-1), "body_type is -1"),
        (line(body_type=31), "a body_type and no body"),
        (
            line(body=base64.b64encode(b"a").decode(), text="b"),
            "its text is not what is in its body",
        ),
        (line(correlation_id="00"), "40 hex digits"),
        (line(correlation_id="{x}"), "not a message id"),
        (line(admin_queue="DIRECT=nonsense"), "nonsense"),
        (line(text="x" * (5 << 20)), "bytes"),
    ],
)
def test_what_cannot_become_a_message_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        message_of(data)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
_names = st.sampled_from(
    ["label", "priority", "body", "body_type", "text", "extension", "correlation_id", "merq",
     "acknowledge", "time_to_reach_queue_s", "admin_queue", "app_specific", "recoverable"]
)  # fmt: skip


@given(st.dictionaries(_names, _values, max_size=6))
def test_any_values_give_a_message_or_a_reason(values: dict[str, Any]) -> None:
    try:
        assert isinstance(message_of(json.dumps(values).encode()), Message)
    except ValueError as wrong:
        assert str(wrong)  # noqa: PT017


@given(st.binary(max_size=60))
def test_any_bytes_give_a_message_or_a_reason(data: bytes) -> None:
    try:
        assert isinstance(message_of(data), Message)
    except ValueError as wrong:
        assert str(wrong)  # noqa: PT017


def test_a_correlation_id_is_hex_or_a_message_id() -> None:
    assert correlation_id_of("ab" * 20) == b"\xab" * 20
    message_id = "{00000000-0000-0000-0000-000000000001}\\5"
    assert correlation_id_of(message_id)[16:] == b"\5\0\0\0"


def test_batches_end_where_the_dead_letter_queue_changes(tmp_path: Path) -> None:
    lines = [line(text="a")] * (AT_ONCE + 1) + [
        line(text="b", dead_letter=True, dead_letter_queue=r".\private$\d")
    ]
    (tmp_path / "in").write_bytes(b"\n".join(lines))
    with (tmp_path / "in").open("rb") as file:
        assert [len(each) for each in batches_of(file, 0)] == [AT_ONCE, 1, 1]
        assert [len(each) for each in batches_of(file, AT_ONCE - 1)] == [2, 1]
