"""`merq decode` as a user runs it: the installed command, files and pipes."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.vectors import frame
from merq.wire.acks import AckEnvelope, FinalAckBody, OrderAckBody, final_ack, order_ack
from merq.wire.headers import TxSequenceID
from unit.capture.building_captures import (
    ACK,
    ETHERNET,
    FIN,
    SYN,
    UDP,
    ethernet,
    ipv4,
    pcap,
    pcapng,
    to_client,
    to_server,
    udp,
)

MERQ = Path(sys.executable).parent / "merq"
PATIENCE_S = 30

KINDS = {
    1: "PingRequest",
    2: "PingResponse",
    3: "EstablishConnection",
    4: "EstablishConnection",
    5: "ConnectionParameters",
    6: "ConnectionParameters",
    7: "UserMessage",
    8: "SessionAck",
}
ALL = b"".join(map(frame, KINDS))

XXD = """\
00000000: 10c0 0b00 4c49 4f52 2000 0000 ffff ffff  ....LIOR .......
00000010: 0000 0300 d805 0000 c0d4 0100 0000 4000  ..............@.
"""
HEXDUMP = """\
00000000  10 c0 0b 00 4c 49 4f 52  3c 02 00 00 ff ff ff ff  |....LIOR<.......|
00000010  00 00 02 00 d1 58 73 55  50 91 95 95 49 97 b6 e6  |.....XsUP...I...|
00000020  11 ea 26 c6 07 89 cd 43  4c 39 11 8f 44 45 90 78  |..&....CL9..DE.x|
00000030  90 9e a0 fc 4e ca de 1d  10 03 00 00 5a 5a 5a 5a  |....N.......ZZZZ|
00000040  5a 5a 5a 5a 5a 5a 5a 5a  5a 5a 5a 5a 5a 5a 5a 5a  |ZZZZZZZZZZZZZZZZ|
*
00000230  5a 5a 5a 5a 5a 5a 5a 5a  5a 5a 5a 5a              |ZZZZZZZZZZZZ|
0000023c
"""
WIRESHARK = """\
0000   10 cd 1b 00 4c 49 4f 52 24 00 00 00 ff ff ff ff   ....LIOR$.......
0010   00 00 01 00 01 00 00 00 00 00 00 00 00 00 00 00   ................
0020   40 00 00 00                                       @...
"""


def environment(**changes: str) -> dict[str, str]:
    """Ours, without what people set to change colours."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "PYTHONIOENCODING"}
    }
    return {**kept, "TERM": "xterm", "PYTHONUTF8": "1", **changes}


def merq(
    *arguments: str | Path, stdin: bytes = b"", **changes: str
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [MERQ, *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        env=environment(**changes),
    )
    assert b"Traceback" not in done.stderr + done.stdout
    return done


def objects(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def kinds(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [found.get("packet", "error") for found in objects(done)]


@contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command with pipes at all ends, as long as the test lasts."""
    # Where SIGINT is ignored, as in a shell's background, a child would ignore it too.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [MERQ, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        bufsize=0,
    ) as process:
        signal.signal(signal.SIGINT, previous)
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
    assert ready, "nothing was shown"
    return process.stdout.readline()


def send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


# What the input may be.


@pytest.mark.spec("MS-MQQB 4.1")
@pytest.mark.parametrize("form", ["hex", "raw", "stdin"])
@pytest.mark.parametrize("number", KINDS)
def test_each_frame_of_the_example_is_shown(number: int, form: str, tmp_path: Path) -> None:
    file = tmp_path / "frame"
    data = frame(number)
    file.write_bytes(data if form == "raw" else data.hex(" ").encode())
    done = merq("decode", "--json", stdin=data) if form == "stdin" else merq("decode", file)
    assert done.returncode == 0
    assert done.stderr == b""
    # A response alone cannot be told from a request.
    kind = "PingRequest" if number == 2 else KINDS[number]
    if form == "stdin":
        assert [(each["packet"], each["size"]) for each in objects(done)] == [(kind, len(data))]
    else:
        assert done.stdout.decode().startswith(f"{kind}  {len(data)} bytes  at 0\n")


@pytest.mark.spec("MS-MQQB 4.1")
def test_all_frames_of_the_example_one_after_the_other_are_shown() -> None:
    for done in (
        merq("decode", "--json", stdin=ALL),
        merq("decode", "--json", "-", stdin=ALL.hex().encode()),
    ):
        assert done.returncode == 0
        assert kinds(done) == list(KINDS.values())


@pytest.mark.parametrize(
    ("dump", "number"),
    [(XXD, 5), (HEXDUMP, 3), (WIRESHARK, 8)],
    ids=["xxd", "hexdump", "wireshark"],
)
def test_dumps_of_other_tools_can_be_pasted(dump: str, number: int) -> None:
    done = merq("decode", "--json", stdin=dump.encode())
    assert done.returncode == 0
    assert done.stdout == merq("decode", "--json", stdin=frame(number)).stdout


def test_the_form_of_the_input_can_be_told(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_text(frame(5).hex(), encoding="ascii")
    assert merq("decode", "--format", "hex", file).returncode == 0
    assert merq("decode", "--format", "raw", file).returncode == 1
    assert merq("decode", "--format", "capture", file).returncode == 1


# Captures.


def conversation() -> list[bytes]:
    """Pings, then frames 3 to 8 in odd segments, some out of order, some twice."""
    frames = [
        ipv4(udp(frame(1), ports=(4057, 3527)), protocol=UDP),
        ipv4(udp(frame(2), ports=(3527, 4057)), protocol=UDP),
        to_server(flags=SYN, seq=99),
        to_client(flags=SYN | ACK, seq=499, ack=100),
    ]
    forth, back = 100, 500
    for asked, answered, size in ((3, 4, 101), (5, 6, 7), (7, 8, 333)):
        there = [
            to_server(frame(asked)[at : at + size], seq=forth + at)
            for at in range(0, len(frame(asked)), size)
        ]
        here = [
            to_client(frame(answered)[at : at + size], seq=back + at)
            for at in range(0, len(frame(answered)), size)
        ]
        forth += len(frame(asked))
        back += len(frame(answered))
        frames += [*there[::-1], there[0], *here[1:], *here[:1]]
    return [*frames, to_server(flags=FIN | ACK, seq=forth), to_client(flags=FIN | ACK, seq=back)]


@pytest.mark.spec("MS-MQQB 2.1.1", "MS-MQQB 2.1.2")
@pytest.mark.parametrize("form", ["pcap", "pcapng", "big-endian on stdin"])
def test_a_captured_conversation_is_put_in_order(form: str, tmp_path: Path) -> None:
    if form == "pcap":
        data = pcap(conversation())
    elif form == "pcapng":
        data = pcapng([ethernet(each) for each in conversation()], link_type=ETHERNET)
    else:
        data = pcapng(conversation(), order=">")
    file = tmp_path / "capture"
    file.write_bytes(data)
    if form == "big-endian on stdin":
        done = merq("decode", "--json", stdin=data)
    else:
        done = merq("decode", "--json", file)
    assert done.returncode == 0
    assert kinds(done) == list(KINDS.values())
    sources = [found["capture"]["source"] for found in objects(done)]
    assert sources[2:] == ["127.0.0.2:49759", "127.0.0.3:1801"] * 3
    assert set(objects(done)[7]["capture"]) == {"frame", "time", "source", "destination"}


def test_after_a_gap_in_a_capture_the_next_packet_is_found(tmp_path: Path) -> None:
    stream = frame(3) + frame(5) + frame(7) + frame(8)
    segments = [to_server(stream[at : at + 500], seq=1 + at) for at in range(0, len(stream), 500)]
    file = tmp_path / "gap.pcap"
    file.write_bytes(pcap([to_server(flags=SYN), *segments[:2], *segments[3:]]))
    done = merq("decode", "--json", file)
    assert done.returncode == 1
    assert kinds(done) == [
        "EstablishConnection",
        "ConnectionParameters",
        "error",
        "error",
        "SessionAck",
    ]
    gap = objects(done)[3]
    assert (gap["error"], gap["offset"]) == ("the capture lacks 500 bytes here", 1000)


def test_other_ports_can_be_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "other.pcap"
    file.write_bytes(pcap([ipv4(udp(frame(1), ports=(9, 4444)), protocol=UDP)]))
    assert kinds(merq("decode", "--json", "--ping-port", "4444", file)) == ["PingRequest"]
    nothing = merq("decode", "--json", file)
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    assert b"nothing of MSMQ in 1 frames" in nothing.stderr
    assert b"--ping-port" in nothing.stderr


# What cannot be read.


def broken(number: int, at: int, value: int) -> bytes:
    data = bytearray(frame(number))
    data[at] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("bad", "offset"),
    [
        pytest.param(broken(5, 18, 7), range(32, 64), id="unknown type"),
        pytest.param(broken(5, 4, 0), range(36, 37), id="wrong signature"),
        pytest.param(broken(7, 0xAA, 0x70), range(32, 2256), id="contradiction inside"),
    ],
)
def test_good_packets_around_a_bad_one_are_shown(bad: bytes, offset: range) -> None:
    data = frame(5) + bad + frame(8)
    done = merq("decode", "--json", stdin=data)
    found = objects(done)
    assert done.returncode == 1
    assert kinds(done) == ["ConnectionParameters", "error", "SessionAck"]
    assert set(found[1]) == {"error", "offset"}
    assert found[1]["offset"] in offset
    tree = merq("decode", stdin=data)
    assert tree.returncode == 1
    assert b"unreadable  at " in tree.stdout


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\n  \n# nothing\n", id="blank text"),
        pytest.param(b"hello, world, this is no packet", id="words"),
        pytest.param(frame(7)[:1650], id="the example as it was printed"),
        pytest.param(frame(5)[:5], id="a few bytes"),
        pytest.param(frame(5).hex().encode()[:-1], id="half a byte"),
        pytest.param(hashlib.shake_128(b"noise").digest(5000), id="noise"),
        pytest.param(pcap(conversation())[:30], id="a capture cut off"),
    ],
)
def test_what_cannot_be_read_gives_an_error_with_its_offset_and_status_1(data: bytes) -> None:
    done = merq("decode", "--json", stdin=data)
    assert done.returncode == 1
    assert [set(each) - {"capture"} for each in objects(done)] == [{"error", "offset"}]
    assert done.stderr == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["decode", "no such file"],
        ["decode", "."],
        ["decode", "--colour"],
        ["decode", "--port", "0"],
        ["decode", "--format", "morse"],
        ["dekode"],
    ],
)
def test_wrong_usage_is_explained_with_status_2(arguments: list[str]) -> None:
    done = merq(*arguments)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"Error: " in done.stderr


# What the output is.


@pytest.mark.spec("MS-MQQB 2.2.4", "MS-MQQB 2.2.5")
def test_every_kind_of_packet_has_its_name_and_its_headers_in_json() -> None:
    envelope = AckEnvelope(
        source_queue_manager=UUID(int=1), destination=UUID(int=2), sent_time=0, message_id=5
    )
    sequence = TxSequenceID(ordinal=7, time_stamp=9)
    order = OrderAckBody(
        tx_sequence_id=sequence, tx_sequence_number=3, tx_previous_sequence_number=2
    )
    final = FinalAckBody(
        tx_sequence_id=sequence,
        tx_sequence_number=3,
        tx_previous_sequence_number=2,
        source_guid=UUID(int=4),
        message_id=12,
    )
    acks = order_ack(envelope, order).pack() + final_ack(envelope, final, 0x4000).pack()
    done = merq("decode", "--json", stdin=ALL + acks)
    user = ["base_header", "user_header", "message_properties_header"]
    internal = ["base_header", "internal_header"]
    assert done.returncode == 0
    assert [(each.pop("packet"), each.pop("size"), list(each)) for each in objects(done)] == [
        ("PingRequest", 24, ["flags", "signature", "cookie", "qm_guid"]),
        ("PingResponse", 24, ["flags", "signature", "cookie", "qm_guid"]),
        ("EstablishConnection", 572, [*internal, "establish_connection_header"]),
        ("EstablishConnection", 572, [*internal, "establish_connection_header"]),
        ("ConnectionParameters", 32, [*internal, "connection_parameters_header"]),
        ("ConnectionParameters", 32, [*internal, "connection_parameters_header"]),
        ("UserMessage", 2224, [*user[:2], "security_header", user[2], "format_names"]),
        ("SessionAck", 36, [*internal, "session_header"]),
        ("OrderAck", len(acks) // 2, [*user, "order_ack_body"]),
        ("FinalAck", len(acks) // 2, [*user, "final_ack_body"]),
    ]


def test_colours_come_and_stay_away_as_told() -> None:
    plain = merq("decode", stdin=ALL)
    assert b"\x1b" not in plain.stdout
    assert merq("decode", "--color", "never", stdin=ALL).stdout == plain.stdout
    always = merq("decode", "--color", "always", stdin=ALL, TERM="dumb", NO_COLOR="1")
    assert b"\x1b[1;36mPingRequest\x1b[0m" in always.stdout
    assert b"\x1b[31" not in always.stdout


def test_letters_that_the_output_cannot_show_are_written_as_escapes() -> None:
    done = merq("decode", stdin=pcap(conversation()), PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert rb"127.0.0.2:49759 \u2192 127.0.0.3:1801" in done.stdout


def test_packets_are_shown_while_the_input_is_still_coming() -> None:
    with running("decode", "--json") as process:
        send(process, frame(5)[:20])
        time.sleep(0.05)
        send(process, frame(5)[20:] + frame(8)[:30])
        assert json.loads(next_line(process))["packet"] == "ConnectionParameters"
        send(process, frame(8)[30:])
        assert json.loads(next_line(process))["packet"] == "SessionAck"
        rest, complaints = process.communicate(timeout=PATIENCE_S)
        assert (rest, complaints, process.returncode) == (b"", b"", 0)


def test_a_capture_is_shown_while_it_is_still_being_written() -> None:
    data = pcap([to_server(frame(5), seq=1), to_server(frame(8), seq=33)])
    first = pcap([to_server(frame(5), seq=1)])
    with running("decode") as process:
        send(process, first)
        assert next_line(process).startswith(b"ConnectionParameters  32 bytes  127.0.0.2:49759")
        rest, complaints = process.communicate(data[len(first) :], timeout=PATIENCE_S)
        assert b"\nSessionAck  36 bytes" in rest
        assert (complaints, process.returncode) == (b"", 0)


def test_hex_lines_are_shown_as_they_are_typed() -> None:
    with running("decode", "--json") as process:
        send(process, frame(5).hex(" ").encode() + b"\n")
        assert json.loads(next_line(process))["packet"] == "ConnectionParameters"
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


@pytest.mark.parametrize("form", [["--json"], []])
def test_a_reader_that_has_seen_enough_causes_no_complaint(form: list[str], tmp_path: Path) -> None:
    file = tmp_path / "long"
    file.write_bytes(ALL * 100)
    with running("decode", *form, file) as process:
        assert b"PingRequest" in next_line(process)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 1
        assert process.stderr.read() == b""


def test_an_interrupt_ends_the_command_with_status_130() -> None:
    with running("decode", "--json") as process:
        send(process, frame(5))
        next_line(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here to write to")
    file = tmp_path / "frame"
    file.write_bytes(frame(5))
    with full.open("wb") as out:
        done = subprocess.run(
            [MERQ, "decode", file],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE_S,
            env=environment(),
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"merq: ")
    assert done.stderr.count(b"\n") == 1


def test_no_standard_input_or_output_at_all_is_survived(tmp_path: Path) -> None:
    file = tmp_path / "frame"
    file.write_bytes(frame(5))
    for line, status in (('"$0" decode "$1" >&-', 0), ('"$0" decode <&-', 2)):
        done = subprocess.run(
            ["/bin/sh", "-c", line, MERQ, file],
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
            env=environment(),
        )
        assert b"Traceback" not in done.stderr
        assert done.returncode == status


# Help.


def test_help_teaches_with_an_example_that_works() -> None:
    shown = merq("decode", "--help").stdout.decode()
    assert "merq decode capture.pcapng" in shown
    begin = shown.index("echo '")
    example = shown[begin : shown.index("| merq decode", begin) + len("| merq decode")]
    done = subprocess.run(
        ["/bin/sh", "-c", example],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        env=environment(PATH=f"{MERQ.parent}{os.pathsep}{os.environ['PATH']}"),
    )
    assert done.returncode == 0
    assert done.stdout.startswith(b"ConnectionParameters  32 bytes")


def test_the_command_tells_what_it_has_and_which_it_is() -> None:
    shown = merq("--help")
    assert shown.returncode == 0
    assert b"merq decode capture.pcapng" in shown.stdout
    assert b"merq names explain" in shown.stdout
    version = merq("--version")
    assert version.returncode == 0
    assert version.stdout.startswith(b"merq, version ")
