"""Hex as people have it: plain digits, and the dumps of xxd, hexdump -C and Wireshark.

`10 C0 0B 00`, `10c00b00`, `0x10, 0xC0`, `10:c0`; after `#` comes a comment. A line that starts with
an offset is a dump's, and the characters that a dump prints beside the bytes are left out. A dump's
`*` stands for lines like the one before it, up to the next offset.
"""

from __future__ import annotations

import re

from merq.errors import WireError

REPEATED_BYTES_MAX = 1 << 22
"""How much one `*` may stand for: the largest packet."""

_XXD = re.compile(
    r"^\s*([0-9A-Fa-f]{4,16}):\s+"
    r"((?:[0-9A-Fa-f]{2})+(?: (?:[0-9A-Fa-f]{2})+)*)(?:\s{2,}|$)"
)
_HEXDUMP = re.compile(
    r"^\s*([0-9A-Fa-f]{4,16})\s{2,}"
    # hexdump puts two spaces between the halves of a line; a shorter line has more after it.
    r"((?:[0-9A-Fa-f]{2} ){8} [0-9A-Fa-f]{2}(?: [0-9A-Fa-f]{2}){0,7}"
    r"|[0-9A-Fa-f]{2}(?: [0-9A-Fa-f]{2})*)(?:\s{2,}|\s*\||$)"
)
_OFFSET = re.compile(r"^\s*([0-9A-Fa-f]{4,16}):?$")
_SEPARATORS = re.compile(r"0[xX]|\\x|[\s,:;-]")
_DIGITS = re.compile(r"[0-9A-Fa-f]*")


class HexText:
    """Lines of text in, bytes out.

    Attributes:
        byte_count: How many came out so far.
    """

    def __init__(self) -> None:
        self.byte_count = 0
        self._half = ""
        self._line_count = 0
        # Of the dump that was read last: where its next byte is, and its last line.
        self._dump_end: int | None = None
        self._dump_line = b""
        self._repeating = False

    def feed(self, line: str) -> bytes:
        """The bytes of the next line; a digit without its pair waits for the next line."""
        self._line_count += 1
        line = line.split("#", 1)[0].rstrip()
        dump = _XXD.match(line) or _HEXDUMP.match(line)
        if dump is not None:
            start, found = int(dump[1], 16), bytes.fromhex(dump[2])
            data = self._repeated(start) + found
            self._dump_end, self._dump_line = start + len(found), found
        elif self._dump_end is not None and line.strip() == "*":
            self._repeating = True
            data = b""
        elif (last := self._last_offset(line)) is not None:
            data = self._repeated(last)
        else:
            data = self._plain(line)
        self.byte_count += len(data)
        return data

    def finish(self) -> None:
        """The text ends here, and must not end inside a byte, or with something left open."""
        if self._half:
            raise self._wrong(
                f"the text ends with half a byte, {self._half!r}: digits come in pairs"
            )
        if self._repeating:
            raise self._wrong("the dump ends with '*', and no offset tells how much that is")

    def _plain(self, line: str) -> bytes:
        digits = self._half + _SEPARATORS.sub("", line)
        self._half = ""
        good = _DIGITS.match(digits)
        assert good is not None
        if good.end() != len(digits):
            odd = digits[good.end()]
            raise self._wrong(
                f"line {self._line_count}: {odd!r} is neither a hex digit nor raw bytes"
            )
        if len(digits) % 2:
            self._half, digits = digits[-1], digits[:-1]
        return bytes.fromhex(digits)

    def _last_offset(self, line: str) -> int | None:
        """The offset alone that ends a dump: it is where the dump's next byte would be."""
        found = _OFFSET.match(line)
        if found is None or self._dump_end is None:
            return None
        offset = int(found[1], 16)
        return offset if self._repeating or offset == self._dump_end else None

    def _repeated(self, offset: int) -> bytes:
        """What the `*` before this offset stands for."""
        if not self._repeating:
            return b""
        assert self._dump_end is not None
        self._repeating = False
        missing = offset - self._dump_end
        count, odd = divmod(missing, len(self._dump_line))
        if odd or not 0 <= missing <= REPEATED_BYTES_MAX:
            raise self._wrong(
                f"line {self._line_count}: after '*' the dump goes on at {offset:#x}, which is no "
                f"number of lines of {len(self._dump_line)} bytes after {self._dump_end:#x}"
            )
        self._dump_end = offset
        return self._dump_line * count

    def _wrong(self, reason: str) -> WireError:
        return WireError(reason, offset=self.byte_count)
