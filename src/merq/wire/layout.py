"""Flat structures, declared once: value, bytes, checks, trace and reference follow.

A layout is a frozen dataclass whose fields say how wide they are and what they may hold. Its size
is checked when the class is made, ranges and constants are checked whenever it is packed or
unpacked, and reserved fields are kept but not compared: they pass through unaltered. Structures
that branch are not layouts; they are written by hand over the reader.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform
from uuid import UUID

from merq.errors import WireError
from merq.wire.reader import Reader

_T = TypeVar("_T", bound="Layout")
_B = TypeVar("_B", bound="BitField")
_SPEC = "merq.wire.layout"
DECLARED: list[type[Layout | BitField]] = []
"""Every layout and bit field of the modules that were imported, for references and tests."""

_FORMATS = {"B": 1, "H": 2, "I": 4, "Q": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """How one field of a layout lies on the wire; in a `free` one anything may stand."""

    format: str
    size: int
    free: bool = False
    low: int = 0
    high: int = 0
    one_of: frozenset[int] = frozenset()
    constant: int | None = None
    reserved: bool = False
    is_guid: bool = False
    bits: type[BitField] | None = None
    nested: type[Layout] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BitSpec:
    """Where one flag or small number lies in a bit field, and the document's letters for it.

    `mask` has the bits in place.
    """

    shift: int
    width: int
    code: str
    is_flag: bool
    mask: int
    one_of: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutInfo:
    """What a layout's declaration amounts to."""

    section: str
    codec: struct.Struct
    fields: tuple[tuple[str, FieldSpec], ...]

    def offsets(self) -> Iterator[tuple[str, int, FieldSpec]]:
        """Name, offset and form of each field."""
        offset = 0
        for name, spec in self.fields:
            yield name, offset, spec
            offset += spec.size


class BitField:
    """A number whose bits have names; bits without a name are kept in `reserved`."""

    __slots__ = ()
    SECTION: ClassVar[str]
    WIDTH: ClassVar[int]
    BITS: ClassVar[tuple[tuple[str, BitSpec], ...]]
    RESERVED_MASK: ClassVar[int]
    reserved: int

    def pack(self) -> int:
        """The number."""
        total = self.reserved & self.RESERVED_MASK
        for name, spec in self.BITS:
            value = int(getattr(self, name))
            where = f"{type(self).__name__}.{name}"
            if value >> spec.width or value < 0:
                raise WireError(f"{value} does not fit in {spec.width} bits", field=where)
            if spec.one_of and value not in spec.one_of:
                raise WireError(_not_one_of(value, spec.one_of), field=where)
            total |= value << spec.shift
        return total

    @classmethod
    def unpack(cls, number: int) -> Self:
        """The value; raises WireError without an offset, which the caller adds."""
        values: dict[str, Any] = {"reserved": number & cls.RESERVED_MASK}
        for name, spec in cls.BITS:
            value = (number & spec.mask) >> spec.shift
            if spec.one_of and value not in spec.one_of:
                raise WireError(_not_one_of(value, spec.one_of), field=name)
            values[name] = bool(value) if spec.is_flag else value
        return cls(**values)


def bit(at: int, code: str, *, default: bool) -> Any:
    """One bit of a bit field."""
    spec = BitSpec(shift=at, width=1, code=code, is_flag=True, mask=1 << at)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def bits(at: int, width: int, code: str, *, one_of: tuple[int, ...] = (), default: int) -> Any:
    """A small number within a bit field."""
    spec = BitSpec(
        shift=at,
        width=width,
        code=code,
        is_flag=False,
        mask=((1 << width) - 1) << at,
        one_of=frozenset(one_of),
    )
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def other_bits(*, default: int) -> Any:
    """The bits that the document reserves: kept in place, never compared."""
    return dataclasses.field(default=default, compare=False, repr=False)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(bit, bits, other_bits)
)
def bit_field(section: str, *, width: int) -> Callable[[type[_B]], type[_B]]:
    """Makes a bit field of a class whose fields are `bit`, `bits` and one `other_bits`."""

    def declare(cls: type[_B]) -> type[_B]:
        made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        named = tuple(
            (entry.name, entry.metadata[_SPEC])
            for entry in dataclasses.fields(cast("Any", made))
            if _SPEC in entry.metadata
        )
        mask = 0
        for name, spec in named:
            assert not mask & spec.mask, f"{made.__name__}.{name} overlaps another field"
            mask |= spec.mask
        assert mask < 1 << width, f"{made.__name__} is wider than {width} bits"
        made.SECTION, made.WIDTH, made.BITS = section, width, named
        made.RESERVED_MASK = ((1 << width) - 1) ^ mask
        DECLARED.append(made)
        return made

    return declare


class Layout:
    """The root of all flat structures."""

    __slots__ = ()
    LAYOUT: ClassVar[LayoutInfo]
    SIZE: ClassVar[int]

    def pack(self) -> bytes:
        """The bytes; a value that the document does not allow is refused with its name."""
        info = self.LAYOUT
        raw: list[int | bytes] = []
        for name, spec in info.fields:
            value = getattr(self, name)
            if problem := _problem(value, spec):
                raise WireError(problem, field=f"{type(self).__name__}.{name}")
            if spec.is_guid:
                raw.append(value.bytes_le)
            elif spec.bits is not None or spec.nested is not None:
                raw.append(value.pack())
            else:
                raw.append(value)
        return info.codec.pack(*raw)

    @classmethod
    def unpack(cls, reader: Reader) -> Self:
        """The value at the reader's position."""
        info = cls.LAYOUT
        start = reader.position
        raw = info.codec.unpack(reader.take(cls.SIZE, ""))
        values: dict[str, Any] = {}
        offset = start
        for (name, spec), found in zip(info.fields, raw, strict=True):
            if spec.free:
                values[name] = found
                reader.note(name, offset, spec.size, found)
            elif spec.nested is not None:
                values[name] = reader.nested(name, offset, spec.nested.unpack)
            else:
                values[name] = _read_field(reader, name, spec, offset, found)
            offset += spec.size
        return cls(**values)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The value of exactly these bytes."""
        reader = Reader(data)
        with reader.part(cls.__name__):
            value = cls.unpack(reader)
            reader.finish()
        return value


def number(
    size: int,
    *,
    low: int = 0,
    high: int | None = None,
    one_of: tuple[int, ...] = (),
    default: int = dataclasses.MISSING,  # type: ignore[assignment]
) -> Any:
    """An unsigned number of 1, 2, 4 or 8 bytes, within a range or one of a few."""
    code = {width: name for name, width in _FORMATS.items()}[size]
    top = (1 << 8 * size) - 1 if high is None else high
    free = low == 0 and high is None and not one_of
    spec = FieldSpec(format=code, size=size, free=free, low=low, high=top, one_of=frozenset(one_of))
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def constant(size: int, *, default: int) -> Any:
    """A number that is always the same; anything else is refused."""
    code = {width: name for name, width in _FORMATS.items()}[size]
    spec = FieldSpec(format=code, size=size, low=default, high=default, constant=default)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def spare(size: int, *, default: int) -> Any:
    """A number that the receiver ignores: kept as it came, not compared."""
    code = {width: name for name, width in _FORMATS.items()}[size]
    top = (1 << 8 * size) - 1
    spec = FieldSpec(format=code, size=size, free=True, high=top, reserved=True)
    return dataclasses.field(default=default, compare=False, repr=False, metadata={_SPEC: spec})


def spare_bytes(size: int, *, default: bytes) -> Any:
    """Bytes that the receiver ignores: kept as they came, not compared."""
    spec = FieldSpec(format=f"{size}s", size=size, free=True, reserved=True)
    return dataclasses.field(default=default, compare=False, repr=False, metadata={_SPEC: spec})


def raw_bytes(size: int, *, default: bytes = dataclasses.MISSING) -> Any:  # type: ignore[assignment]
    """A fixed number of bytes with no inner form."""
    spec = FieldSpec(format=f"{size}s", size=size, free=True)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def guid_field(*, default: UUID = dataclasses.MISSING) -> Any:  # type: ignore[assignment]
    """[MS-DTYP] 2.3.4: a GUID."""
    spec = FieldSpec(format="16s", size=16, is_guid=True)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def flag_word(of: type[BitField], *, default: BitField = dataclasses.MISSING) -> Any:  # type: ignore[assignment]
    """A bit field."""
    size = of.WIDTH // 8
    code = {width: name for name, width in _FORMATS.items()}[size]
    spec = FieldSpec(format=code, size=size, high=(1 << of.WIDTH) - 1, bits=of)
    return dataclasses.field(default=default, metadata={_SPEC: spec})


def nested(of: type[Layout]) -> Any:
    """Another layout in place."""
    spec = FieldSpec(format=f"{of.SIZE}s", size=of.SIZE, nested=of)
    return dataclasses.field(metadata={_SPEC: spec})


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(
        number,
        constant,
        spare,
        spare_bytes,
        raw_bytes,
        guid_field,
        flag_word,
        nested,
    ),
)
def layout(section: str, *, size: int) -> Callable[[type[_T]], type[_T]]:
    """Makes a layout of a class; `size` is the document's figure and must come out."""

    def declare(cls: type[_T]) -> type[_T]:
        made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        fields = tuple(
            (entry.name, entry.metadata[_SPEC]) for entry in dataclasses.fields(cast("Any", made))
        )
        codec = struct.Struct("<" + "".join(spec.format for _, spec in fields))
        assert codec.size == size, f"{made.__name__} is {codec.size} bytes, not {size}"
        made.LAYOUT = LayoutInfo(section=section, codec=codec, fields=fields)
        made.SIZE = size
        DECLARED.append(made)
        return made

    return declare


def _read_field(reader: Reader, name: str, spec: FieldSpec, offset: int, found: Any) -> Any:
    """The value of one field, checked and shown to the trace."""
    value: Any = found
    if spec.is_guid:
        value = UUID(bytes_le=found)
    elif spec.bits is not None:
        try:
            value = spec.bits.unpack(found)
        except WireError as wrong:
            raise reader.fail(wrong.reason, f"{name}.{wrong.field}", offset=offset) from None
    elif problem := _problem(found, spec):
        raise reader.fail(problem, name, offset=offset)
    reader.note(name, offset, spec.size, value)
    return value


def _problem(value: Any, spec: FieldSpec) -> str:
    """What the document does not allow about a value in this field; empty if nothing."""
    if spec.is_guid or spec.bits is not None or spec.nested is not None:
        return ""
    if spec.format.endswith("s"):
        return "" if len(value) == spec.size else f"{len(value)} bytes where {spec.size} belong"
    if spec.constant is not None and value != spec.constant:
        return f"{value:#x} where only {spec.constant:#x} may stand"
    if not spec.low <= value <= spec.high:
        return f"{value:#x} is outside {spec.low:#x}..{spec.high:#x}"
    if spec.one_of and value not in spec.one_of:
        return _not_one_of(value, spec.one_of)
    return ""


def _not_one_of(value: int, allowed: frozenset[int]) -> str:
    return f"{value:#x} is not one of {', '.join(f'{one:#x}' for one in sorted(allowed))}"
