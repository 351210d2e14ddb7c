"""`merq decode`: packets to people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from merq.capture import PING_UDP_PORT, SESSION_TCP_PORT, is_capture
from merq.capture.captured import CapturedPackets
from merq.capture.packets import Decoded, Finding, Undecoded
from merq.cli.packets import PROBE_SIZE, from_hex, from_raw, looks_like_text
from merq.cli.shapes import as_json, as_text, as_tree
from merq.cli.terminal import terminal

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PORT = click.IntRange(1, 65535)


@click.command()
@click.argument("source", default="-", metavar="[FILE]")
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a packet, one a line.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "capture", "hex", "raw"]),
    default="auto",
    show_default=True,
    help="What FILE holds; auto looks at its first bytes.",
)
@click.option(
    "--port",
    type=_PORT,
    default=SESSION_TCP_PORT,
    show_default=True,
    help="TCP port of sessions in a capture.",
)
@click.option(
    "--ping-port",
    type=_PORT,
    default=PING_UDP_PORT,
    show_default=True,
    help="UDP port of pings in a capture.",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Whether the tree is coloured; auto asks the terminal.",
)
def decode(
    source: str, form: str, port: int, ping_port: int, color: str, *, as_lines: bool
) -> None:
    """Shows the packets in FILE, or in standard input, field by field.

    FILE is a pcap or pcapng capture (TCP 1801 is put in order both ways, UDP 3527 holds pings), hex
    text as you would paste it, or raw bytes. Each line of the tree has the offset in the packet,
    the field, its value and what that means. The exit status is 1 if something could not be read.

    \b
    merq decode capture.pcapng
    tcpdump -U -w - port 1801 | merq decode --json
    echo '10 C0 0B 00 4C 49 4F 52 20 00 00 00 FF FF FF FF
          00 00 03 00 D8 05 00 00 C0 D4 01 00 00 00 40 00' | merq decode
    merq decode --json capture.pcap | jq 'select(.packet == "UserMessage") | .user_header'
    """
    with _opened(source) as raw:
        head = raw.read(PROBE_SIZE)
        file = cast("BufferedReader", BufferedReader(Rejoined(head, raw)))
        form = form_of(head) if form == "auto" or not head else form
        packets = _findings(file, form, port, ping_port)
        unreadable = _print_lines(packets) if as_lines else _print_trees(packets, color)
    raise click.exceptions.Exit(1 if unreadable else 0)


def _opened(source: str) -> BufferedReader:
    if source == "-":
        # A process may be started without one.
        if sys.stdin is None:
            raise click.UsageError("there is no standard input, and no FILE was named")
        if sys.stdin.isatty():
            click.echo("reading from the terminal: paste hex text, end it with Ctrl-D", err=True)
        # Closing it must leave the process its standard input.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    try:
        return Path(source).open("rb")
    except OSError as wrong:
        raise click.BadParameter(f"{source}: {wrong.strerror}", param_hint="FILE") from None


class Rejoined(RawIOBase):
    """A file whose first bytes were read already, to see what it holds."""

    def __init__(self, head: bytes, rest: BufferedReader) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """What was read already, then what is there, without waiting for more."""
        target = memoryview(buffer)
        data = self._head or self._rest.read1(len(target))
        size = min(len(data), len(target))
        target[:size] = data[:size]
        self._head = self._head[size:]
        return size


def form_of(head: bytes) -> str:
    """What the input holds, by its first bytes."""
    if not head:
        return "empty"
    return "capture" if is_capture(head) else "hex" if looks_like_text(head) else "raw"


def _findings(file: BufferedReader, form: str, port: int, ping_port: int) -> Iterator[Finding]:
    if form == "empty":
        yield Undecoded(offset=0, reason="the input is empty")
        return
    if form != "capture":
        yield from (from_hex if form == "hex" else from_raw)(file)
        return
    capture = CapturedPackets(file, tcp_port=port, udp_port=ping_port)
    found = False
    for finding in capture.findings():
        found = True
        yield finding
    if not found:
        click.echo(
            f"nothing of MSMQ in {capture.summary()}: TCP port {port} (--port) and UDP port "
            f"{ping_port} (--ping-port) were looked at",
            err=True,
        )


def _print_lines(packets: Iterator[Finding]) -> bool:
    unreadable = False
    for finding in packets:
        unreadable |= not isinstance(finding, Decoded)
        click.echo(as_json(finding))
    return unreadable


def _print_trees(packets: Iterator[Finding], color: str) -> bool:
    console = terminal(color)
    unreadable = False
    for finding in packets:
        if isinstance(finding, Decoded):
            console.print(as_tree(finding))
        else:
            unreadable = True
            console.print(as_text(finding))
    return unreadable
