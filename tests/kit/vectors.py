"""The frames of [MS-MQQB] 4.1, by number."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "vectors" / "MS-MQQB"


def frame(number: int) -> bytes:
    """The bytes of one frame."""
    (path,) = FOLDER.glob(f"frame_{number}_*.hex")
    return bytes.fromhex(path.read_text(encoding="ascii"))


def session() -> bytes:
    """Frames 3 to 8, as if one side had said all of it."""
    return b"".join(map(frame, range(3, 9)))
