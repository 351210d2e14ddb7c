"""A coverage-guided fuzz target for the codec: `make fuzz SECONDS=600`.

    python fuzz/fuzz_packets.py [libFuzzer options] [corpus folder]

Any bytes must be a value or a WireError; what was read must be written again byte for byte; the
view must agree with the full parser; a stream must give the same packets however it is cut. The
first corpus is the published example session. A finding is written to a file named crash-…, which
the same command takes as an argument to show it again. Without atheris (Linux on x86-64 has it)
nothing can be run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["merq"]):
    from merq.errors import MerqError, NameSyntaxError, WireError
    from merq.model.names import parse_format_name, parse_path_name
    from merq.wire.extension import MessagePacket
    from merq.wire.keys import PublicKeyBlob, SimpleBlob
    from merq.wire.message import UserMessage
    from merq.wire.packet import parse_packet
    from merq.wire.ping import Ping
    from merq.wire.stream import PacketSplitter
    from merq.wire.view import MessageView

VECTORS = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "MS-MQQB"
PARSERS = (parse_packet, MessagePacket.parse, Ping.parse, PublicKeyBlob.parse, SimpleBlob.parse)


class Disagreement(Exception):
    """Two ways to read the same bytes did not come to the same result."""


def one_input(data: bytes) -> None:
    """Everything that must hold for these bytes."""
    for parse in PARSERS:
        try:
            value = parse(data)
        except WireError:
            continue
        if value.pack() != data:
            raise Disagreement(f"{parse.__qualname__} writes other bytes than it read")
    agree_on_the_message(data)
    agree_on_the_stream(data)
    names(data)


def agree_on_the_message(data: bytes) -> None:
    """The view accepts what the full parser accepts, and nothing else."""
    try:
        UserMessage.parse(data)
        accepted = True
    except WireError:
        accepted = False
    try:
        MessageView(data)
        viewed = True
    except WireError:
        viewed = False
    if accepted != viewed:
        raise Disagreement(f"parser accepts: {accepted}, view accepts: {viewed}")


def agree_on_the_stream(data: bytes) -> None:
    """A cut in the middle changes nothing."""
    outcomes = []
    for chunks in ([data], [data[: len(data) // 2], data[len(data) // 2 :]]):
        splitter = PacketSplitter()
        packets = [packet for chunk in chunks for packet in splitter.feed(chunk)]
        outcomes.append((packets, str(splitter.finish())))
    if outcomes[0] != outcomes[1]:
        raise Disagreement("a cut changes what the splitter gives")


def names(data: bytes) -> None:
    """Text is a name or a NameSyntaxError, and a name prints as something that reads the same."""
    text = data[:200].decode("utf-8", "replace")
    for parse in (parse_format_name, parse_path_name):
        try:
            name = parse(text)
        except NameSyntaxError:
            continue
        if parse(str(name)) != name:
            raise Disagreement(f"{name} reads as another name")


def main() -> None:
    """Runs libFuzzer with the example session as its first corpus."""
    assert issubclass(WireError, MerqError)
    with tempfile.TemporaryDirectory(prefix="merq-corpus-") as folder:
        for path in VECTORS.glob("*.hex"):
            data = bytes.fromhex(path.read_text(encoding="ascii"))
            (Path(folder) / path.stem).write_bytes(data)
        # A file to show again is run alone; a folder of the user's own comes before the seeds.
        again = any(Path(argument).is_file() for argument in sys.argv[1:])
        atheris.Setup(sys.argv if again else [*sys.argv, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
