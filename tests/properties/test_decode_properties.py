"""Whatever comes in, `merq decode` answers with packets and errors, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BufferedReader, BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from click.testing import CliRunner
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kit.messages import packets
from kit.vectors import frame, session
from merq.capture.captured import CapturedPackets
from merq.capture.packets import (
    Decoded,
    Finding,
    PacketStream,
    PingRoles,
    Undecoded,
    decode_packet,
)
from merq.cli.decode import Rejoined, form_of
from merq.cli.main import merq
from merq.cli.packets import PROBE_SIZE, from_hex, from_raw
from merq.cli.shapes import as_json, as_text, as_tree
from merq.cli.terminal import terminal
from merq.wire.reader import TraceNode
from unit.capture.building_captures import SYN, UDP, ipv4, pcap, pcapng, to_client, to_server, udp

FRAMES = [frame(number) for number in range(1, 9)]
ALL = b"".join(FRAMES)
CONVERSATION = [
    ipv4(udp(frame(1)), protocol=UDP),
    ipv4(udp(frame(2), ports=(3527, 4057)), protocol=UDP),
    to_server(flags=SYN),
    *(to_server(frame(5)[at : at + 9], seq=1 + at) for at in range(0, 32, 9)),
    to_client(frame(6) + frame(8), seq=1),
    to_server(frame(3)[:300], seq=33),
    to_server(frame(8), seq=605),
]


@st.composite
def mutations(draw: st.DrawFn, originals: st.SearchStrategy[bytes]) -> bytes:
    """Bytes with some changed, taken out, put in, and perhaps cut off."""
    data = bytearray(draw(originals))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0:
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                del data[at : at + draw(st.integers(1, 40))]
            case 2:
                data[at:at] = draw(st.binary(max_size=20))
            case _:
                data[at : at + 4] = draw(st.sampled_from([b"\xff" * 4, bytes(4), b"LIOR"]))
    return bytes(data[: draw(st.none() | st.integers(0, len(data)))])


def inputs() -> st.SearchStrategy[bytes]:
    """What somebody might feed to the command, and what nobody should."""
    vectors = st.lists(st.sampled_from(FRAMES), max_size=4).map(b"".join)
    captures = st.sampled_from([pcap(CONVERSATION), pcapng(CONVERSATION)])
    texts = st.sampled_from(FRAMES).map(lambda data: data.hex(" ", 1).encode())
    return st.one_of(
        st.binary(max_size=200),
        st.text("0123456789abcdefABCDEFx :,#*|\n\\", max_size=120).map(str.encode),
        mutations(vectors),
        mutations(captures),
        mutations(texts),
    )


def findings_in(data: bytes, form: str) -> list[Finding]:
    """Everything in the data, by the functions that the command puts together."""
    if form == "capture":
        return list(CapturedPackets(BytesIO(data), tcp_port=1801, udp_port=3527).findings())
    whole = cast("BufferedReader", BytesIO(data))
    file = cast("BufferedReader", BufferedReader(Rejoined(data[:PROBE_SIZE], whole)))
    whole.read(PROBE_SIZE)
    return list((from_hex if form == "hex" else from_raw)(file))


def check(finding: Finding) -> None:
    """A finding can be shown both ways; a place is never before the input."""
    shown = json.loads(as_json(finding))
    assert finding.offset >= 0
    if isinstance(finding, Undecoded):
        assert {"error", "offset"} <= set(shown)
        assert shown["error"] == finding.reason != ""
        as_text(finding)
    else:
        assert (shown["packet"], shown["size"]) == (finding.kind, finding.size)
        as_tree(finding)


@settings(max_examples=500, deadline=None)
@given(inputs(), st.sampled_from(["auto", "capture", "hex", "raw"]))
@example(b"\x00\x00HU", "raw")
@example(b"0000  00  ..\n*\nffffffffffffffff\n", "hex")
@example(b"\n\r\r\n", "capture")
def test_any_input_gives_findings_that_can_be_shown(data: bytes, form: str) -> None:
    for finding in findings_in(data, form_of(data[:PROBE_SIZE]) if form == "auto" else form):
        check(finding)


@settings(max_examples=120, deadline=None)
@given(inputs(), st.sampled_from([["--json"], ["--color", "always"], ["--format", "hex"]]))
def test_the_command_ends_with_status_0_or_1_whatever_the_input(
    data: bytes, options: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "input"
        file.write_bytes(data)
        result = CliRunner().invoke(merq, ["decode", *options, str(file)])
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code in {0, 1}
    if "--json" in options:
        found = [json.loads(line) for line in result.stdout.splitlines()]
        errors = [each for each in found if "error" in each]
        assert all(each.keys() >= {"error", "offset"} for each in errors)
        assert all("packet" in each for each in found if each not in errors)
        assert result.exit_code == (1 if errors else 0)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_however_bytes_are_cut_the_findings_are_the_same(data: st.DataObject) -> None:
    whole = data.draw(mutations(st.sampled_from([ALL, session(), session() * 2])))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=12)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    def found(pieces: list[bytes], pings: Callable[[], PingRoles | None]) -> list[str]:
        stream = PacketStream(pings())
        findings = [finding for piece in pieces for finding in stream.feed(piece)]
        findings += stream.finish()
        return [f"{finding.offset} {as_json(finding)}" for finding in findings]

    for pings in (PingRoles, lambda: None):
        assert found(chunks, pings) == found([whole], pings)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(FRAMES[2:]), min_size=1, max_size=5), st.binary(max_size=40))
@example([FRAMES[2]], b"\x10\x00\x00\x00LIOR\x14\x00\x00\x00")
def test_rubbish_before_packets_hides_none_of_them(good: list[bytes], rubbish: bytes) -> None:
    data = b"\x11" + rubbish + b"".join(good)
    assume(not any(_is_packet(data[at:]) for at in range(1 + len(rubbish))))
    stream = PacketStream()
    findings = [*stream.feed(data), *stream.finish()]
    packets_found = [each for each in findings if isinstance(each, Decoded)]
    assert [each.size for each in packets_found[-len(good) :]] == [len(each) for each in good]


@settings(max_examples=80, deadline=None)
@given(packets())
def test_every_packet_is_shown_whole(packet: Any) -> None:
    finding = decode_packet(packet.pack(), 0, None)
    assert isinstance(finding, Decoded)
    assert finding.kind == type(packet).__name__
    check(finding)
    shown = json.loads(as_json(finding))
    del shown["packet"], shown["size"]
    assert shown.pop("format_names", {}) == finding.queues
    assert _values(shown) == _fields(finding.tree)
    console = terminal("never")
    with console.capture() as tree:
        console.print(as_tree(finding))
    assert all(line.isprintable() for line in tree.get().split("\n"))


def _is_packet(data: bytes) -> bool:
    """Whether rubbish, with what follows it, is a packet that nobody can tell from a real one."""
    length = int.from_bytes(data[8:12], "little")
    return isinstance(decode_packet(data[:length], 0, None), Decoded)


def _fields(node: TraceNode) -> int:
    """How many fields were read."""
    return sum(map(_fields, node.children)) + (node.value is not None and not node.children)


def _values(shown: Any) -> int:
    """How many fields are shown; flags are one, and so is an empty list."""
    if isinstance(shown, list):
        return sum(map(_values, shown)) or 1
    if isinstance(shown, dict) and not shown.keys() >= {"value", "reserved"}:
        return sum(map(_values, shown.values()))
    return 1
