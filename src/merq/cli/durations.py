"""Times and sizes as people write them: `10m`, `1h30m`, `forever`, `64MB`; and back."""

from __future__ import annotations

import math
import re
from typing import Final

import click
from rich.filesize import decimal

from merq.model.queue import UNLIMITED

_UNITS_S: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_FOREVER: Final = frozenset({"forever", "infinite", "never"})
_TIME_PART: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(ms|s|min|m|h|d|w)", re.ASCII)
_SIZE: Final = re.compile(r"([0-9]{1,12})\s*(k|kb|m|mb|g|gb|)", re.ASCII)
_UNITS_KB: Final = {"": 1, "k": 1, "m": 1024, "g": 1024 * 1024}


def parse_duration(text: str) -> float:
    """Seconds; infinity for `forever`.

    Raises:
        ValueError: The text says what was found and what was expected.
    """
    lowered = text.strip().lower()
    if lowered in _FOREVER:
        return math.inf
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", lowered, re.ASCII):
        return float(lowered)
    parts = _TIME_PART.findall(lowered)
    if not parts or _TIME_PART.sub("", lowered).strip():
        raise ValueError(
            f"{text!r} is no time; write 500ms, 5s, 10m, 1h30m, 2d, a number of seconds, or forever"
        )
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def parse_kilobytes(text: str) -> int:
    """Kilobytes, of 1024 bytes; UNLIMITED for `unlimited`.

    Raises:
        ValueError: The text says what was found and what was expected.
    """
    lowered = text.strip().lower()
    if lowered in {"unlimited", "none"}:
        return UNLIMITED
    found = _SIZE.fullmatch(lowered)
    if found is None:
        raise ValueError(f"{text!r} is no size; write 512KB, 64MB, 2GB, or unlimited")
    number = int(found[1]) * _UNITS_KB[found[2].removesuffix("b")]
    if number >= UNLIMITED:
        raise ValueError(f"{text!r} is more than a quota can be, {UNLIMITED - 1} KB")
    return number


def duration(text: object) -> float:
    """The type of an option that is a time, in seconds."""
    try:
        return parse_duration(str(text))
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from wrong


def kilobytes(text: object) -> int:
    """The type of an option that is a size, in kilobytes."""
    try:
        return parse_kilobytes(str(text))
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from wrong


def age(seconds: float) -> str:
    """How long ago, in the largest unit that says something: `45 s`, `12 min`, `3 h`, `5 d`."""
    whole = max(0, int(seconds))
    for size, unit in ((172_800, "d"), (7_200, "h"), (120, "min")):
        if whole >= size:
            return f"{whole // int(_UNITS_S[unit])} {unit}"
    return f"{whole} s"


def quota(quota_kb: int) -> str:
    """A quota for people."""
    return "unlimited" if quota_kb >= UNLIMITED else f"{quota_kb:,} KB"


def size(number_bytes: int) -> str:
    """A size for people."""
    return decimal(number_bytes).replace(" bytes", " B").replace("1 byte", "1 B")
