"""How messages and tables look to people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from merq.cli.durations import size
from merq.client.asking import id_text
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE, ReceivedMessage
from merq.model.body import VT_ARRAY_OF_BYTES, Value
from merq.model.message_class import MessageClass, describe_class
from merq.model.variant import describe as describe_type
from merq.wire.headers import INFINITE

HEX_BYTES_SHOWN_MAX: Final = 512
"""Bytes of a body that is no text that are shown; `--raw` gives all of them."""

TEXT_SHOWN_MAX: Final = 20_000
"""Characters of a body that are shown; `--raw` gives all of them."""

_HEX_COLUMNS: Final = 16
_UNSET: Final = bytes(20)


def rendered(message: ReceivedMessage) -> RenderableType:
    """A message for people: what it is, then its body."""
    head = Text.assemble((message.id, "bold cyan"))
    if message.label:
        head.append(f"  {printable(message.label, lines=False)}", "bold")
    grid = table_of_facts([(name, value) for name, value in _facts(message) if value])
    return Group(head, grid, Padding(_shown_body(message), (0, 0, 1, 2), expand=False))


def _facts(message: ReceivedMessage) -> list[tuple[str, str]]:
    traits = [f"priority {message.priority}", "recoverable" if message.recoverable else "express"]
    traits += ["transactional"] if message.transactional else []
    traits += [f"received and aborted {message.abort_count} times"] if message.abort_count else []
    traits += [f"moved {message.move_count} times"] if message.move_count else []
    odd_class = message.message_class != MessageClass.MQMSG_CLASS_NORMAL
    return [
        ("is", ", ".join(traits)),
        ("class", describe_class(message.message_class) if odd_class else ""),
        ("sent", f"{date(message.sent_at)}, arrived {date(message.arrived_at)}"),
        ("lookup id", str(message.lookup_id)),
        ("sent to", message.destination_queue),
        ("sender", message.sender),
        ("response queue", message.response_queue),
        ("admin queue", _admin(message)),
        ("correlation id", correlation(message.correlation_id)),
        ("app specific", str(message.app_specific) if message.app_specific else ""),
        ("extension", f"{size(len(message.extension))}" if message.extension else ""),
        ("keeps", _kept(message)),
        ("received within", _within(message)),
        ("body", _body_kind(message)),
    ]


def _admin(message: ReceivedMessage) -> str:
    if not message.admin_queue:
        return ""
    return f"{message.admin_queue} ({acknowledgments(message.acknowledge) or 'asks for nothing'})"


def acknowledgments(wanted: int) -> str:
    """Which acknowledgments a sender asked for."""
    names = [
        name
        for name, bits in (("arrival", ACKNOWLEDGE_ARRIVAL), ("receive", ACKNOWLEDGE_RECEIVE))
        if wanted & bits == bits
    ]
    return ", ".join(names) if names or not wanted else f"{wanted:#04x}"


def _kept(message: ReceivedMessage) -> str:
    kept = ["a copy in the journal"] if message.journal else []
    kept += ["a dead letter if it fails"] if message.dead_letter else []
    return ", ".join(kept)


def _within(message: ReceivedMessage) -> str:
    if message.time_to_be_received == INFINITE:
        return ""
    return f"{message.time_to_be_received} s after it was sent"


def _body_kind(message: ReceivedMessage) -> str:
    if not message.body_bytes:
        return "empty"
    kind = message.body_type
    name = "bytes" if kind == VT_ARRAY_OF_BYTES else describe_type(kind)
    return f"{name}, {size(len(message.body_bytes))}"


def correlation(value: bytes) -> str:
    r"""A correlation id as a message id, which it mostly is; empty if there is none."""
    if value == _UNSET:
        return ""
    return id_text(value)


def _shown_body(message: ReceivedMessage) -> Text:
    body = readable(message.body)
    if isinstance(body, bytes):
        return Text(hex_dump(body[:HEX_BYTES_SHOWN_MAX]) + _rest(len(body), HEX_BYTES_SHOWN_MAX))
    return Text(printable(body[:TEXT_SHOWN_MAX]) + _rest(len(body), TEXT_SHOWN_MAX))


def _rest(total: int, shown: int) -> str:
    return "" if total <= shown else f"\n… {total - shown:,} more; --raw gives all"


def readable(body: Value) -> str | bytes:
    """A body as text if it can be: text, numbers, and bytes that are UTF-8 without controls."""
    if not isinstance(body, bytes):
        return "" if body is None else str(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return body
    return text if text == printable(text) else body


def printable(text: str, *, lines: bool = True) -> str:
    """Text that does nothing to a terminal: controls as escapes, but for line ends and tabs."""
    kept = "\n\t" if lines else ""
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or each in kept
        else each.encode("unicode_escape", "surrogatepass").decode("ascii")
        for each in text
    )


def hex_dump(data: bytes) -> str:
    """Offset, bytes and characters, 16 a line; `merq decode` reads it again."""
    lines = []
    for offset in range(0, len(data), _HEX_COLUMNS):
        row = data[offset : offset + _HEX_COLUMNS]
        left, right = row[:8].hex(" "), row[8:].hex(" ")
        shown = "".join(chr(each) if 32 <= each < 127 else "." for each in row)
        lines.append(f"{offset:08x}  {left:<23}  {right:<23}  |{shown}|")
    return "\n".join(lines)


def raw_body(message: ReceivedMessage) -> bytes:
    """A body as it is: text as UTF-8, bytes as bytes, other values as they are written."""
    body = message.body
    if isinstance(body, bytes):
        return body
    return b"" if body is None else str(body).encode("utf-8", "surrogatepass")


def table_of_facts(facts: list[tuple[str, str]]) -> Table:
    """Names and values below each other."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(f"  {name}", Text(printable(value, lines=False)))
    return table


def table_of(*columns: str, numbers: frozenset[str] = frozenset(), name: str = "name") -> Table:
    """A table without lines; a long name is folded, not cut, so that it can be copied."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in numbers else "left",
            overflow="fold" if column == name else "ellipsis",
            no_wrap=column != name,
        )
    return table


def date(moment: datetime) -> str:
    """A moment, to the second, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def date_of(seconds: int) -> str:
    """A moment given in seconds since 1970."""
    return date(datetime.fromtimestamp(seconds, UTC))


def count(number: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
