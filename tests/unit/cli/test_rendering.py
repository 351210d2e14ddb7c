"""How messages, tables and failures look to people."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from merq import Message, MessageQueueError, ReceiveTimeout
from merq import open as open_manager
from merq.cli.bodies import numbered, shaped
from merq.cli.failing import Asked, as_object, as_text, status_of, tell
from merq.cli.hex_text import HexText
from merq.cli.message_ids import normal_id
from merq.cli.rendering import (
    acknowledgments,
    correlation,
    hex_dump,
    printable,
    raw_body,
    readable,
    rendered,
)
from merq.errors import StoreInUse
from merq.hresult import HResult

MESSAGE_ID = "{2f6d6a9c-31a5-4a8e-9d3b-6e3f9f0c7a11}\\4097"


def shown(message: Message, tmp_path: Path) -> str:
    console = Console(width=100, record=True, file=(tmp_path / "shown").open("w"))
    with console.file, open_manager(tmp_path / "data", name="alpha") as manager:
        queue = manager.create_queue(r".\private$\q")
        queue.send(message)
        console.print(rendered(queue.peek(timeout=0)))
    return console.export_text()


def test_a_message_is_shown_with_what_is_not_usual(tmp_path: Path) -> None:
    message = Message(
        body="line one\nline two",
        label="[bold]label[/bold]",
        admin_queue="DIRECT=OS:far\\private$\\a",
        acknowledge=5,
        time_to_be_received=60,
        dead_letter=True,
    )
    text = shown(message, tmp_path)
    assert "[bold]label[/bold]" in text
    assert "  line one\n  line two\n" in text
    assert "DIRECT=OS:far\\PRIVATE$\\a (arrival)" in text
    assert "60 s after it was sent" in text
    assert "a dead letter if it fails" in text
    assert "response queue" not in text
    assert "class" not in text


def test_a_large_body_is_cut_and_says_so(tmp_path: Path) -> None:
    assert "more; --raw gives all" in shown(Message(body=b"\0" * 10_000), tmp_path)


def test_bytes_that_are_text_are_shown_as_text() -> None:
    assert readable(b"plain\ttext\n") == "plain\ttext\n"
    assert readable(b"\x1b[2J") == b"\x1b[2J"
    assert readable(b"\xff") == b"\xff"
    assert (readable(None), readable(5), readable(True)) == ("", "5", "True")


@given(st.text())
def test_nothing_that_is_shown_moves_the_cursor(text: str) -> None:
    assert all(each.isprintable() or each in "\n\t" for each in printable(text))
    assert printable(text, lines=False).isprintable()


@given(st.binary(max_size=100))
def test_a_hex_dump_can_be_decoded_again(data: bytes) -> None:
    text = HexText()
    again = b"".join(text.feed(line) for line in hex_dump(data).splitlines())
    assert again == data


@pytest.mark.parametrize(
    ("body", "raw"),
    [("größe", "größe".encode()), (b"\0\xff", b"\0\xff"), (None, b""), (7, b"7"), (True, b"True")],
)
def test_a_raw_body_is_what_was_sent(body: object, raw: bytes, tmp_path: Path) -> None:
    with open_manager(tmp_path / "data") as manager:
        queue = manager.create_queue(r".\private$\q")
        queue.send(body)  # type: ignore[arg-type]
        assert raw_body(queue.peek(timeout=0)) == raw


def test_acknowledgments_and_correlations_are_told_by_name() -> None:
    assert [acknowledgments(each) for each in (0, 5, 14, 15, 1)] == [
        "",
        "arrival",
        "receive",
        "arrival, receive",
        "0x01",
    ]
    assert correlation(bytes(20)) == ""
    assert correlation(bytes(16) + b"\5\0\0\0").endswith("}\\5")


@pytest.mark.parametrize(
    "typed",
    [MESSAGE_ID, MESSAGE_ID.replace("\\", "/"), MESSAGE_ID.replace("\\", ""), MESSAGE_ID.upper()],
)
def test_a_message_id_survives_the_shell(typed: str) -> None:
    assert normal_id(typed) == MESSAGE_ID


def test_a_body_is_what_it_is_said_to_be() -> None:
    assert shaped(b"text", "text") == "text"
    assert shaped("text", "bytes") == b"text"
    assert shaped(b'{"a": 1}', "json") == '{"a": 1}'
    with pytest.raises(click.ClickException, match="not JSON"):
        shaped("{", "json")
    with pytest.raises(click.ClickException, match="--as bytes"):
        shaped(b"\xff", "text")
    assert (numbered("a{n}", 3), numbered(b"{n}b", 4), numbered(None, 5)) == ("a3", b"4b", None)


# Failures.


def test_a_failure_has_its_code_its_text_and_what_to_do() -> None:
    wrong = MessageQueueError(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, "nobody is there")
    wrong.add_note("start it")
    text = as_text(wrong)
    assert text.startswith("MQ_ERROR_SERVICE_NOT_AVAILABLE: nobody is there; start it\n")
    assert HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE.advice in text
    assert as_text(StoreInUse("taken")) == "taken"
    assert as_text(MessageQueueError(0xC00E7777, "odd")) == "0xC00E7777: odd"


@pytest.mark.parametrize(
    ("wrong", "status", "code", "hresult"),
    [
        (ReceiveTimeout("late"), 3, "MQ_ERROR_IO_TIMEOUT", "0xC00E001B"),
        (MessageQueueError(0xC00E0003, "x"), 1, "MQ_ERROR_QUEUE_NOT_FOUND", "0xC00E0003"),
        (StoreInUse("x"), 1, "StoreInUse", None),
        (OSError(28, "full"), 1, "system", None),
        (click.UsageError("x"), 2, "usage", None),
        (click.ClickException("x"), 1, "refused", None),
    ],
)
def test_every_failure_has_a_status_and_an_object(
    wrong: Exception, status: int, code: str, hresult: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert status_of(wrong) == status
    told = as_object(wrong)
    assert (told["code"], told["hresult"]) == (code, hresult)
    assert tell(wrong, Asked(json=True)) == status
    assert capsys.readouterr().err.startswith('{"error": {')
