"""Hex as people have it: plain digits, and the dumps of xxd, hexdump -C and Wireshark.

`10 C0 0B 00`, `10c00b00`, `0x10, 0xC0`, `10:c0`; after `#` comes a comment. A line that starts with
an offset is a dump's, and the characters that a dump prints beside the bytes are left out.
"""

from __future__ import annotations

import re

from merq.errors import WireError

DUMP_BYTES_MAX = 16
"""Bytes that a dump puts on one line."""

_DUMP = re.compile(r"^\s*[0-9A-Fa-f]{4,16}(?::\s+|\s{2,})(?=[0-9A-Fa-f]{2})(.*)$")
_LAST_OFFSET = re.compile(r"^[0-9A-Fa-f]{4,16}:?$")
_GROUP = re.compile(r"^(?:[0-9A-Fa-f]{2}){1,16}(?: (?:[0-9A-Fa-f]{2}){1,16})*$")
_SEPARATORS = re.compile(r"0[xX]|\\x|[\s,:;-]")
_DIGITS = re.compile(r"[0-9A-Fa-f]*")


class HexText:
    """Lines of text in, bytes out."""

    def __init__(self) -> None:
        self._half = ""
        self._lines = 0
        self._bytes = 0
        self._in_dump = False

    def feed(self, line: str) -> bytes:
        """The bytes of the next line; a digit without its pair waits for the next line."""
        self._lines += 1
        line = line.split("#", 1)[0].rstrip()
        if dump := _DUMP.match(line):
            self._in_dump = True
            digits = _dump_digits(dump[1])
        elif self._in_dump and _LAST_OFFSET.match(line.strip()):
            digits = ""
        else:
            digits = self._half + _SEPARATORS.sub("", line)
            self._half = ""
        good = _DIGITS.match(digits)
        assert good is not None
        if good.end() != len(digits):
            odd = digits[good.end()]
            raise WireError(
                f"line {self._lines}: {odd!r} is neither a hex digit nor raw bytes",
                offset=self._bytes,
            )
        if len(digits) % 2:
            self._half, digits = digits[-1], digits[:-1]
        self._bytes += len(digits) // 2
        return bytes.fromhex(digits)

    def finish(self) -> None:
        """The text ends here, and must not end inside a byte."""
        if self._half:
            raise WireError(
                f"the text ends with half a byte, {self._half!r}: digits come in pairs",
                offset=self._bytes,
            )


def _dump_digits(rest: str) -> str:
    """The digits of a dump's line without the characters printed beside them."""
    digits = ""
    for group in re.split(r"\s{2,}|\s*\|", rest):
        if not _GROUP.match(group):
            break
        found = group.replace(" ", "")
        beside = digits and " " not in group and len(found) == len(digits) // 2
        if beside or len(digits) + len(found) > 2 * DUMP_BYTES_MAX:
            break
        digits += found
    return digits
