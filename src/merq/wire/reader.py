"""Reading bytes without ever overrunning them, and writing them with exact alignment.

The reader names every field it takes, so that a failure says which field of which structure was
wrong and where, and so that a trace can show a packet to people. It allocates nothing by a length
that a packet merely claims: what is not there is refused before it is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from merq.errors import WireError

HEADER_ALIGNMENT = 4
"""[MS-MQMQ] 2.2.19.1: headers start on 4-byte boundaries."""

_T = TypeVar("_T")
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")

NULL_WINDOW = 256
"""Bytes in which a null character is looked for at first; each further window is twice as long."""


@dataclass(slots=True)
class TraceNode:
    """One field or structure as it was found: name, place, and value or children."""

    name: str
    offset: int
    size: int = 0
    value: object = None
    children: list[TraceNode] = field(default_factory=list)


class Reader:
    """A position in bytes with an end that it never passes.

    Attributes:
        skims: Texts and long lists are checked as always, but left empty: decoding them costs much
            more than checking them, and who looks only whether a packet is in order wants neither.
        starts: Where the headers of a packet begin, by name, as far as they were read.
    """

    __slots__ = ("_nodes", "_path", "data", "end", "position", "skims", "starts")

    def __init__(
        self,
        data: bytes,
        *,
        start: int = 0,
        end: int | None = None,
        trace: TraceNode | None = None,
        skims: bool = False,
    ) -> None:
        self.data = data
        self.position = start
        self.end = len(data) if end is None else end
        self.skims = skims
        self.starts: dict[str, int] = {}
        assert 0 <= start <= self.end <= len(data)
        self._path: list[str] = []
        self._nodes: list[TraceNode] | None = None if trace is None else [trace]

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return self.end - self.position

    @property
    def tracing(self) -> bool:
        """Whether somebody wants to see each field."""
        return self._nodes is not None

    def fail(self, reason: str, name: str = "", *, offset: int | None = None) -> WireError:
        """The error for a field of the structure that is being read; the caller raises it."""
        path = ".".join([*self._path, name] if name else self._path)
        return WireError(reason, offset=self.position if offset is None else offset, field=path)

    def take(self, size: int, name: str) -> bytes:
        """The next `size` bytes, unseen by the trace."""
        start = self.position
        if size > self.end - start:
            raise self.fail(f"{size} bytes are needed, {self.end - start} are left", name)
        self.position = start + size
        return self.data[start : start + size]

    def raw(self, size: int, name: str) -> bytes:
        """The next `size` bytes as a field."""
        start = self.position
        value = self.take(size, name)
        self.note(name, start, size, value)
        return value

    def u16(self, name: str) -> int:
        """An unsigned 16-bit number."""
        start = self.position
        value: int = _U16.unpack(self.take(2, name))[0]
        self.note(name, start, 2, value)
        return value

    def u32(self, name: str) -> int:
        """An unsigned 32-bit number."""
        start = self.position
        value: int = _U32.unpack(self.take(4, name))[0]
        self.note(name, start, 4, value)
        return value

    def guid(self, name: str) -> UUID:
        """[MS-DTYP] 2.3.4: a GUID, its first three parts little-endian."""
        start = self.position
        value = UUID(bytes_le=self.take(16, name))
        self.note(name, start, 16, value)
        return value

    def wide(self, size: int, name: str) -> str:
        """A null-terminated UTF-16 string that takes exactly `size` bytes, terminator included."""
        start = self.position
        data = self.take(size, name)
        if size < 2 or size % 2 or data[-2:] != b"\0\0":
            reason = f"{size} bytes are not UTF-16 text that ends with a null character"
            raise self.fail(reason, name, offset=start)
        null = null_character(data, 0, size)
        if null != size - 2:
            reason = f"a null character ends the text early, at {null // 2}"
            raise self.fail(reason, name, offset=start)
        if self.skims:
            return ""
        # Unpaired surrogates are legal WCHARs: they pass through unaltered.
        text = data[:-2].decode("utf-16-le", "surrogatepass")
        self.note(name, start, size, text)
        return text

    def pad(self, origin: int, name: str = "padding") -> bytes:
        """The bytes up to the next 4-byte boundary counted from `origin`."""
        start = self.position
        value = self.take(-(start - origin) % HEADER_ALIGNMENT, name)
        if value:
            self.note(name, start, len(value), value)
        return value

    def pad_if_there(self, origin: int) -> bytes:
        """Like `pad`, for the last part of a packet, where the filling may be left out."""
        start = self.position
        size = min(-(start - origin) % HEADER_ALIGNMENT, self.end - start)
        return self.raw(size, "padding") if size else b""

    @contextmanager
    def bounded(self, end: int) -> Iterator[None]:
        """Inside, the bytes end at `end`."""
        assert self.position <= end <= self.end
        outer, self.end = self.end, end
        yield
        self.end = outer

    def note(self, name: str, offset: int, size: int, value: object) -> None:
        """Shows a field to the trace, if there is one."""
        if self._nodes is not None:
            self._nodes[-1].children.append(TraceNode(name, offset, size, value))

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Everything read inside belongs to the structure `name`."""
        start = self.position
        self._path.append(name)
        if self._nodes is not None:
            node = TraceNode(name, start)
            self._nodes[-1].children.append(node)
            self._nodes.append(node)
        yield
        self._path.pop()
        if self._nodes is not None:
            self._nodes.pop().size = self.position - start

    def nested(self, name: str, offset: int, unpack: Callable[[Reader], _T]) -> _T:
        """A structure that lies at `offset`, within bytes that were taken already."""
        after = self.position
        self.position = offset
        with self.part(name):
            value = unpack(self)
        assert self.position <= after
        self.position = after
        return value

    def finish(self) -> None:
        """Refuses bytes that no field accounts for."""
        if self.position != self.end:
            raise self.fail(f"{self.end - self.position} bytes are left over after the last field")


def null_character(data: bytes, start: int, end: int) -> int:
    """Where the first null character of UTF-16 text that begins at `start` is; -1 if nowhere.

    Two zeros may belong to two characters: only even distances count. Whoever writes many such
    pairs gets no loop of ours for each of them.
    """
    at = data.find(b"\0\0", start, end)
    if at < 0 or not (at - start) & 1:
        return at
    at += 1
    if at + 1 < end and data[at + 1] == 0:
        return at  # behind a character whose high byte is zero
    window = NULL_WINDOW
    while end - at >= 2:
        size = min(window, end - at) & ~1
        low, high = data[at : at + size : 2], data[at + 1 : at + size : 2]
        either = int.from_bytes(low, "big") | int.from_bytes(high, "big")
        found = either.to_bytes(size // 2, "big").find(0)
        if found >= 0:
            return at + 2 * found
        at += size
        window *= 2
    return -1


def pack_wide(text: str, name: str) -> bytes:
    """UTF-16 with a terminating null character."""
    if "\0" in text:
        raise WireError("a null character stands inside the text", field=name)
    return text.encode("utf-16-le", "surrogatepass") + b"\0\0"


def padding_for(size: int, kept: bytes = b"") -> bytes:
    """What fills `size` up to the next boundary: the bytes that were received, or zeros."""
    return kept[: -size % HEADER_ALIGNMENT].ljust(-size % HEADER_ALIGNMENT, b"\0")


def padded(data: bytes, kept: bytes = b"") -> bytes:
    """`data` filled up to the next boundary."""
    return data + padding_for(len(data), kept)
