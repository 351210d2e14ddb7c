"""Measures the codec: `make bench`, or `python bench/codec.py [--rounds N] [--json]`.

Each round runs the plain and the compiled build in fresh processes, one after the other, and every
figure is the median of the rounds. Only ratios of one run mean anything: a machine is never as
quiet as the next. The yardstick is one bare `struct.unpack_from` of the same packet's fixed fields.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
COMPILED = ROOT / ".build" / "compiled"

BODY_PACKET = 1024
STREAM_PACKET = 64 * 1024
STREAM_BYTES = 128 * 1024 * 1024
SOCKET_READ = 250_000
CALLS = 100_000
GOALS = {"view": 400_000.0, "splitter": 1e9}


def user_message(size: int, *, with_sid: bool) -> bytes:
    """An express message to a direct name, with a label, of exactly `size` bytes."""
    from uuid import UUID  # noqa: PLC0415 - only the measured process needs the codec

    from merq.wire.headers import BaseFlags, BaseHeader  # noqa: PLC0415
    from merq.wire.message import UserMessage  # noqa: PLC0415
    from merq.wire.properties import MessagePropertiesHeader, PropertiesFields  # noqa: PLC0415
    from merq.wire.queues import DIRECT, DirectQueueFormatName  # noqa: PLC0415
    from merq.wire.security import (  # noqa: PLC0415
        SENDER_SID,
        SecurityFields,
        SecurityFlags,
        SecurityHeader,
    )
    from merq.wire.user import UserFields, UserFlags, UserHeader  # noqa: PLC0415

    sid = bytes.fromhex("010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000")
    security = SecurityHeader(
        fields=SecurityFields(
            flags=SecurityFlags(sender_id_type=SENDER_SID),
            sender_id_size=len(sid),
            encryption_key_size=0,
            signature_size=0,
            sender_cert_size=0,
            provider_info_size=0,
        ),
        security_id=sid,
    )

    def build(body: bytes) -> UserMessage:
        return UserMessage(
            base_header=BaseHeader(flags=BaseFlags(), packet_size=BaseHeader.SIZE),
            user_header=UserHeader(
                fields=UserFields(
                    source_queue_manager=UUID(int=0x1234567890),
                    sent_time=1_700_000_000,
                    message_id=42,
                    flags=UserFlags(destination_queue_type=DIRECT, security_header=with_sid),
                ),
                destination_queue=DirectQueueFormatName(
                    direct_format_name=r"OS:warehouse\private$\orders"
                ),
            ),
            security_header=security if with_sid else None,
            message_properties_header=MessagePropertiesHeader(
                fields=PropertiesFields(
                    label_length=6, message_size=len(body), allocation_body_size=len(body)
                ),
                label="order",
                message_body=body,
            ),
        ).measured()

    overhead = len(build(b"").pack())
    packet = build((b"0123456789abcdef" * (size // 16 + 1))[: size - overhead]).pack()
    assert len(packet) == size, (len(packet), size)
    return packet


def per_second(run: Callable[[], None], calls: int) -> float:
    """Calls a second, the best of five."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return calls / best


def view_rate(packet: bytes) -> float:
    """Packets a second: validated, viewed, and four fields read."""
    from merq.wire.view import MessageView  # noqa: PLC0415

    def run() -> None:
        for _ in range(CALLS):
            view = MessageView(packet)
            view.destination  # noqa: B018
            view.priority  # noqa: B018
            view.delivery_mode  # noqa: B018
            view.message_id  # noqa: B018

    return per_second(run, CALLS)


def struct_rate(packet: bytes) -> float:
    """Packets a second: one bare unpack of BaseHeader's and UserHeader's fixed fields."""
    fixed = struct.Struct("<BBHIII16s16sIIII")

    def run() -> None:
        for _ in range(CALLS):
            fixed.unpack_from(packet)

    return per_second(run, CALLS)


def parse_rate(packet: bytes) -> float:
    """Packets a second through the full parser, which builds every value."""
    from merq.wire.message import UserMessage  # noqa: PLC0415

    calls = 2_000

    def run() -> None:
        for _ in range(calls):
            UserMessage.parse(packet)

    return per_second(run, calls)


def splitter_rate(packet: bytes, read: int) -> float:
    """Bytes a second through the splitter, fed in pieces as a socket would give them."""
    from merq.wire.stream import PacketSplitter  # noqa: PLC0415

    count = STREAM_BYTES // len(packet)
    stream = packet * count
    chunks = [stream[at : at + read] for at in range(0, len(stream), read)]

    def run() -> None:
        splitter = PacketSplitter()
        found = sum(len(splitter.feed(chunk)) for chunk in chunks)
        assert found == count, (found, count)

    return per_second(run, len(stream))


def measure() -> dict[str, float]:
    """Everything once, in this process."""
    plain, signed = (user_message(BODY_PACKET, with_sid=sid) for sid in (False, True))
    large = user_message(STREAM_PACKET, with_sid=True)
    return {
        "view": view_rate(plain),
        "view_sid": view_rate(signed),
        "struct": struct_rate(plain),
        "parse": parse_rate(plain),
        "splitter": splitter_rate(large, SOCKET_READ),
        "splitter_small": splitter_rate(plain, SOCKET_READ),
    }


def measure_build(path: Path | None) -> dict[str, float]:
    """Everything once, in a process of its own with the build at `path`, or the plain one."""
    environment = {**os.environ, "PYTHONPATH": str(path or ROOT / "src")}
    done = subprocess.run(
        [sys.executable, __file__, "--measure"],
        check=True,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def report(results: dict[str, dict[str, float]]) -> None:
    """A table for people."""
    print(f"{'':34}" + "".join(f"{build:>22}" for build in results))
    rows = (
        ("validate and view, 1 KiB", "view", 1e3, "k packets/s"),
        ("the same with a sender's SID", "view_sid", 1e3, "k packets/s"),
        ("bare struct.unpack, fixed fields", "struct", 1e3, "k packets/s"),
        ("full parse to values, 1 KiB", "parse", 1e3, "k packets/s"),
        ("splitter, 64 KiB packets", "splitter", 1e9, "GB/s"),
        ("splitter, 1 KiB packets", "splitter_small", 1e9, "GB/s"),
    )
    for title, key, unit, name in rows:
        cells = "".join(f"{found[key] / unit:>10.2f} {name:<11}" for found in results.values())
        print(f"{title:34}{cells}")
    ratios = "".join(
        f"{found['struct'] / found['view']:>10.1f} {'times':<11}" for found in results.values()
    )
    print(f"{'a view costs, in bare unpacks':34}{ratios}")
    for key, goal in GOALS.items():
        best = max(results, key=lambda build: results[build][key])
        verdict = "reached" if results[best][key] >= goal else "MISSED"
        print(f"goal {key} ≥ {goal:,.0f}/s: {verdict} ({best}: {results[best][key]:,.0f}/s)")


def main() -> int:
    """Measures both builds in turn and prints medians."""
    parser = argparse.ArgumentParser(description="Measures the codec, plain and compiled.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each build is measured")
    parser.add_argument("--json", action="store_true", help="print the medians as JSON")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure()))
        return 0
    builds: dict[str, Path | None] = {"plain": None}
    if COMPILED.is_dir():
        builds["compiled"] = COMPILED
    else:
        print("no compiled build: python tools/compiled.py build", file=sys.stderr)
    runs: dict[str, list[dict[str, float]]] = {build: [] for build in builds}
    for number in range(options.rounds):
        for build, path in builds.items():
            print(f"round {number + 1} of {options.rounds}, {build}", file=sys.stderr)
            runs[build].append(measure_build(path))
    results = {
        build: {key: median(run[key] for run in found) for key in found[0]}
        for build, found in runs.items()
    }
    if options.json:
        print(json.dumps(results))
    else:
        report(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
