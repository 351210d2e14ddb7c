"""Takes the hex dumps of [MS-MQQB] 4.1 out of the published document, as test vectors.

    python tools/vectors.py [--specs ../shared/specs]

Writes one file a frame to tests/vectors/MS-MQQB, and all of them with captions to
examples/first_session.hex. The dump of frame 7 ends after 1650 of the 2224
bytes that its PacketSize announces; its body of 2000 bytes is the letter a over and over, so the
rest is filled in: the body, and two zeros up to the 4-byte boundary.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAME = re.compile(r"^### (4\.1\.(\d)) FRAME \d: (.+)$")
HEX_LINE = re.compile(r"^(?:[0-9A-F]{2} )*[0-9A-F]{2}$")
TRUNCATED_FRAME = 7
BODY_LETTER = b"a\0"
BODY_END = 2222
PACKET_END = 2224
EXAMPLE_HEAD = """\
# Two queue managers meet and exchange one express message: the packets of [MS-MQQB] 4.1.
#
#     merq decode examples/first_session.hex
"""


def frames(document: str) -> dict[str, bytes]:
    """The bytes of each frame, by a name such as `frame_1_ping_request`."""
    found: dict[str, bytearray] = {}
    name = ""
    dumping = False
    for line in document.splitlines():
        if heading := FRAME.match(line):
            name = f"frame_{heading[2]}_" + heading[3].lower().replace(" ", "_")
            found[name] = bytearray()
            dumping = False
        elif line.startswith("#"):
            name, dumping = "", False
        elif line == "Hex Dump:":
            dumping = bool(name)
        elif dumping and HEX_LINE.match(line):
            found[name] += bytes.fromhex(line)
    return {name: completed(name, bytes(data)) for name, data in found.items()}


def completed(name: str, data: bytes) -> bytes:
    """Frame 7 filled up to its PacketSize; the others as they are."""
    if not name.startswith(f"frame_{TRUNCATED_FRAME}_"):
        return data
    if len(data) % 2:
        raise ValueError(f"{name} stops inside a character")
    data += BODY_LETTER * ((BODY_END - len(data)) // 2)
    return data + bytes(PACKET_END - len(data))


def hex_text(data: bytes) -> str:
    """16 bytes a line."""
    return "".join(f"{data[at : at + 16].hex(' ')}\n" for at in range(0, len(data), 16))


def main() -> int:
    """Writes the vectors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--specs", type=Path, default=ROOT.parent / "shared" / "specs")
    source = parser.parse_args().specs / "MS-MQQB" / "MS-MQQB.md"
    if not source.is_file():
        print(f"{source} is not there: name the documents' folder with --specs", file=sys.stderr)
        return 1
    target = ROOT / "tests" / "vectors" / "MS-MQQB"
    target.mkdir(parents=True, exist_ok=True)
    example = [EXAMPLE_HEAD]
    for name, data in frames(source.read_text(encoding="utf-8")).items():
        (target / f"{name}.hex").write_text(hex_text(data), encoding="ascii")
        example.append(f"\n# {name.replace('_', ' ')}\n{hex_text(data)}")
        print(f"{name}: {len(data)} bytes")
    (ROOT / "examples" / "first_session.hex").write_text("".join(example), encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
