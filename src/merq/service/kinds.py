"""Kinds of settings: what may be written for each, how it is read, and how it is shown.

A kind takes what a TOML file, a variable or a flag holds and gives a typed value, or raises a
`WrongValue`. Its `form` is the sentence that tells people what belongs there. Not in here: which
settings there are (`sections`), and where they come from (`settings`).
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar, Final

from merq.errors import NameSyntaxError
from merq.model.names import parse_path_name

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

SIZE_UNITS: Final = {
    "B": 1,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": 1 << 40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
"""Units of sizes, in bytes. Letters count in any case."""

TIME_UNITS: Final = {
    "ms": 0.001,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
"""Units of times, in seconds."""

TEXT_LENGTH_MAX: Final = 4096
"""No setting is longer than this."""

DIGITS_MAX: Final = 20
"""No number has more digits."""

HOST_LENGTH_MAX: Final = 253
"""No host name is longer."""

PORT_MAX: Final = 65535
MODE_MAX: Final = 0o777

_QUANTITY = re.compile(rf"([0-9]{{1,{DIGITS_MAX}}}(?:\.[0-9]{{1,{DIGITS_MAX}}})?)\s*([A-Za-z]*)")
_HOST_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{DIGITS_MAX}}}")
_OCTAL = re.compile(r"(?:0o?)?[0-7]{3}")
_SWITCHES = {"true": True, "yes": True, "on": True, "1": True}
_SWITCHES |= {"false": False, "no": False, "off": False, "0": False}


class WrongValue(ValueError):
    """What was written does not belong there; the kind's `form` says what does."""


@dataclass(frozen=True, slots=True)
class Kind(ABC):
    """What may be written for a setting."""

    type_name: ClassVar[str]

    @property
    @abstractmethod
    def form(self) -> str:
        """What belongs there, as the subject of a sentence."""

    @property
    def extent(self) -> str:
        """The range, as short as a table wants it; empty if there is none."""
        return ""

    @abstractmethod
    def read(self, written: object) -> object:
        """The value of what was written, or of text from a variable or a flag.

        Raises:
            WrongValue: It is no such value.
        """

    def allows(self, value: object) -> bool:
        """Whether a value that is already typed may stand there."""
        try:
            return self.read(value) == value
        except WrongValue:
            return False

    def show(self, value: object) -> str:
        """The value as TOML has it, so that it can be read again."""
        return toml_text(str(value)) if not isinstance(value, bool | int) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """A name or a sentence."""

    type_name: ClassVar[str] = "text"

    @property
    def form(self) -> str:
        """What belongs there."""
        return f"text of 1 to {TEXT_LENGTH_MAX} printable characters"

    def read(self, written: object) -> object:
        """The text."""
        if not isinstance(written, str) or not 0 < len(written) <= TEXT_LENGTH_MAX:
            raise WrongValue
        if not written.isprintable():
            raise WrongValue
        return written


@dataclass(frozen=True, slots=True)
class Computer(Text):
    """A computer's name, as path names have it."""

    type_name: ClassVar[str] = "computer name"

    @property
    def form(self) -> str:
        """What belongs there."""
        return "a computer name as it stands in path names, such as alpha,"

    def read(self, written: object) -> object:
        """The name."""
        name = Text.read(self, written)
        try:
            parse_path_name(rf"{name}\private$\q")
        except NameSyntaxError as wrong:
            raise WrongValue from wrong
        if name == ".":
            raise WrongValue
        return name


@dataclass(frozen=True, slots=True)
class ReachableHost(Kind):
    """A host name or an address by which others reach this computer."""

    type_name: ClassVar[str] = "host"

    @property
    def form(self) -> str:
        """What belongs there."""
        return "a host name or an address that others reach, such as mq.example.org or 192.0.2.7,"

    def read(self, written: object) -> object:
        """The name, or the address in its usual spelling."""
        if not isinstance(written, str) or not 0 < len(written) <= HOST_LENGTH_MAX:
            raise WrongValue
        try:
            address = ip_address(written)
        except ValueError:
            labels = written.split(".")
            if not all(map(_HOST_LABEL.fullmatch, labels)) or labels[-1].isdigit():
                raise WrongValue from None
            return written
        if address.is_unspecified or address.is_multicast:
            raise WrongValue
        return str(address)


@dataclass(frozen=True, slots=True)
class File(Kind):
    """A path."""

    type_name: ClassVar[str] = "path"

    @property
    def form(self) -> str:
        """What belongs there."""
        return "a path"

    def read(self, written: object) -> object:
        """The path, as it was written: what is relative is so to the working directory."""
        if isinstance(written, Path):
            return written
        if not isinstance(written, str) or not 0 < len(written) <= TEXT_LENGTH_MAX:
            raise WrongValue
        if "\0" in written:
            raise WrongValue
        return Path(written)


@dataclass(frozen=True, slots=True)
class Address(Kind):
    """An address of this machine."""

    type_name: ClassVar[str] = "address"

    @property
    def form(self) -> str:
        """What belongs there."""
        return "an IPv4 or IPv6 address, such as 127.0.0.2,"

    def read(self, written: object) -> object:
        """The address in its usual spelling."""
        if not isinstance(written, str):
            raise WrongValue
        try:
            return str(ip_address(written))
        except ValueError as wrong:
            raise WrongValue from wrong


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of a few words."""

    type_name: ClassVar[str] = "word"
    words: tuple[str, ...]

    @property
    def form(self) -> str:
        """What belongs there."""
        return f"one of {', '.join(self.words)}"

    @property
    def extent(self) -> str:
        """The words."""
        return ", ".join(self.words)

    def read(self, written: object) -> object:
        """The word."""
        if not isinstance(written, str) or written.lower() not in self.words:
            raise WrongValue
        return written.lower()


@dataclass(frozen=True, slots=True)
class Switch(Kind):
    """On or off."""

    type_name: ClassVar[str] = "true or false"

    @property
    def form(self) -> str:
        """What belongs there."""
        return "true or false"

    def read(self, written: object) -> object:
        """Whether it is on."""
        if isinstance(written, bool):
            return written
        if not isinstance(written, str) or written.lower() not in _SWITCHES:
            raise WrongValue
        return _SWITCHES[written.lower()]


@dataclass(frozen=True, slots=True)
class Count(Kind):
    """A whole number."""

    type_name: ClassVar[str] = "number"
    low: int
    high: int

    @property
    def form(self) -> str:
        """What belongs there."""
        return f"a whole number from {self.low} to {self.high}"

    @property
    def extent(self) -> str:
        """From the least to the most."""
        return f"{self.low} to {self.high}"

    def read(self, written: object) -> object:
        """The number."""
        if isinstance(written, str) and _WHOLE.fullmatch(written.strip()):
            written = int(written)
        if not isinstance(written, int) or isinstance(written, bool):
            raise WrongValue
        if not self.low <= written <= self.high:
            raise WrongValue
        return written


@dataclass(frozen=True, slots=True)
class Size(Kind):
    """A number of bytes, or text with a unit."""

    type_name: ClassVar[str] = "size"
    low: int
    high: int

    @property
    def form(self) -> str:
        """What belongs there."""
        return (
            f"a size from {size_text(self.low)} to {size_text(self.high)}, "
            'in bytes or such as "64 MiB",'
        )

    @property
    def extent(self) -> str:
        """From the least to the most."""
        return f"{size_text(self.low)} to {size_text(self.high)}"

    def read(self, written: object) -> object:
        """The size in bytes."""
        if isinstance(written, str):
            size = _quantity(written, SIZE_UNITS.items(), unit_by_default="B")
            if size != int(size):
                raise WrongValue
            written = int(size)
        return Count(self.low, self.high).read(written)

    def show(self, value: object) -> str:
        """The size with its unit."""
        return toml_text(size_text(value) if isinstance(value, int) else str(value))


@dataclass(frozen=True, slots=True)
class Seconds(Kind):
    """A number of seconds, or text with a unit."""

    type_name: ClassVar[str] = "time"
    low: float
    high: float

    @property
    def form(self) -> str:
        """What belongs there."""
        return (
            f"a time from {time_text(self.low)} to {time_text(self.high)}, "
            'in seconds or such as "30 s",'
        )

    @property
    def extent(self) -> str:
        """From the least to the most."""
        return f"{time_text(self.low)} to {time_text(self.high)}"

    def read(self, written: object) -> object:
        """The time in seconds."""
        if isinstance(written, str):
            written = _quantity(written, TIME_UNITS.items(), unit_by_default="s")
        if not isinstance(written, int | float) or isinstance(written, bool):
            raise WrongValue
        # The comparison refuses what is not a number too.
        if not self.low <= written <= self.high:
            raise WrongValue
        return float(written)

    def show(self, value: object) -> str:
        """The time with its unit."""
        return toml_text(time_text(value) if isinstance(value, int | float) else str(value))


@dataclass(frozen=True, slots=True)
class Mode(Kind):
    """Permissions of a file."""

    type_name: ClassVar[str] = "permissions"

    @property
    def form(self) -> str:
        """What belongs there."""
        return 'permissions as text of three octal digits, such as "0600" or "660",'

    @property
    def extent(self) -> str:
        """From none to all."""
        return '"0000" to "0777"'

    def read(self, written: object) -> object:
        """The permissions. A number is refused: 400 would silently not be what 0o400 is."""
        if isinstance(written, str) and _OCTAL.fullmatch(written):
            return int(written.removeprefix("0o"), 8)
        raise WrongValue

    def allows(self, value: object) -> bool:
        """Whether the number is one of permissions."""
        return isinstance(value, int) and 0 <= value <= MODE_MAX

    def show(self, value: object) -> str:
        """The permissions as octal text."""
        return toml_text(f"{value:04o}" if isinstance(value, int) else str(value))


def size_text(size: int) -> str:
    """A size in the largest binary unit that it is a whole number of."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % SIZE_UNITS[unit] == 0:
            return f"{size // SIZE_UNITS[unit]} {unit}"
    return f"{size} B"


def time_text(seconds: float) -> str:
    """A time in the largest unit that it is a whole number of, weeks aside."""
    for unit in ("d", "h", "min"):
        if seconds and seconds % TIME_UNITS[unit] == 0:
            return f"{seconds / TIME_UNITS[unit]:.0f} {unit}"
    return f"{float(seconds)!r} s".replace(".0 ", " ")


def toml_text(text: str) -> str:
    """Text as TOML writes it: as JSON does, but letters stay, and DEL does not."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _quantity(written: str, units: Iterable[tuple[str, float]], *, unit_by_default: str) -> float:
    found = _QUANTITY.fullmatch(written.strip())
    if found is None:
        raise WrongValue
    unit = (found[2] or unit_by_default).lower()
    for name, factor in units:
        if name.lower() == unit:
            # Whole numbers stay exact: a size may have more digits than a float.
            return int(found[1]) * factor if found[1].isdigit() else float(found[1]) * factor
    raise WrongValue
