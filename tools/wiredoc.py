"""Writes docs/reference/packets.md from the declarations in merq.wire: `make docs`.

    python tools/wiredoc.py [--check]

With --check nothing is written; the exit status is 1 if the page is not what it would be.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import merq.wire
from merq.wire.layout import DECLARED, BitField, FieldSpec, Layout

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "packets.md"

HEAD = """\
# Packet reference

Generated from the declarations in `src/merq/wire` by `make docs`. All numbers are little-endian.
Offsets count from the start of the structure. *Kept* fields are reserved: they come back as they
came and are not compared. Structures that branch list their parts in order; the module has the
rules. The letters beside a flag are the document's.
"""


def modules() -> list[str]:
    """The modules of merq.wire, imported, in the order of the alphabet."""
    names = sorted(module.name for module in pkgutil.iter_modules(merq.wire.__path__))
    for name in names:
        importlib.import_module(f"merq.wire.{name}")
    return names


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name in modules():
        module = importlib.import_module(f"merq.wire.{name}")
        found = [one for one in DECLARED if one.__module__ == module.__name__]
        branching = list(composed(module.__name__))
        if not found and not branching:
            continue
        summary = (module.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        parts.append(f"## merq.wire.{name}\n\n{summary}\n")
        parts += [described(one) for one in found]
        parts += [parts_of(one) for one in branching]
    return "\n".join(parts)


def composed(module: str) -> Iterator[type]:
    """The structures of a module that are written by hand: dataclasses that can be packed."""
    for value in vars(sys.modules[module]).values():
        if (
            isinstance(value, type)
            and value.__module__ == module
            and dataclasses.is_dataclass(value)
            and hasattr(value, "pack")
            and not issubclass(value, Layout | BitField)
        ):
            yield value


def summary(one: type) -> str:
    """The first paragraph of its docstring."""
    return (one.__doc__ or "").split("\n\n")[0].replace("\n    ", " ").strip()


def described(one: type[Layout | BitField]) -> str:
    """A flat structure or a bit field as a table."""
    lines = [f"### {one.__name__}", "", summary(one), ""]
    if issubclass(one, Layout):
        lines += [
            f"{one.SIZE} bytes.",
            "",
            "| offset | size | field | holds |",
            "|--:|--:|---|---|",
        ]
        lines += [
            f"| {offset} | {spec.size} | `{name}` | {holds(spec)} |"
            for name, offset, spec in one.LAYOUT.offsets()
        ]
    else:
        lines += [f"{one.WIDTH} bits.", "", "| bits | | name | may be |", "|---|---|---|---|"]
        for name, spec in one.BITS:
            last = spec.shift + spec.width - 1
            place = str(spec.shift) if spec.width == 1 else f"{spec.shift} to {last}"
            allowed = values(spec.one_of) if spec.one_of else "any" if spec.width > 1 else "0, 1"
            lines.append(f"| {place} | {spec.code} | `{name}` | {allowed} |")
        if one.RESERVED_MASK:
            lines.append(f"| {one.RESERVED_MASK:#x} | | `reserved` | kept |")
    return "\n".join([*lines, ""])


def holds(spec: FieldSpec) -> str:
    """What a field may hold, in a few words."""
    if spec.is_guid:
        return "GUID"
    inner = spec.bits or spec.nested
    if inner is not None:
        return f"[{inner.__name__}](#{inner.__name__.lower()})"
    if spec.reserved:
        return "kept"
    if spec.format.endswith("s"):
        return "bytes"
    if spec.constant is not None:
        return f"always {spec.constant:#x}"
    if spec.one_of:
        return values(spec.one_of)
    full = (1 << 8 * spec.size) - 1
    if (spec.low, spec.high) == (0, full):
        return "any"
    return f"{spec.low:#x} to {spec.high:#x}"


def values(allowed: frozenset[int]) -> str:
    """A few values, or the range that they fill."""
    numbers = sorted(allowed)
    if len(numbers) > 4 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]:#x} to {numbers[-1]:#x}"
    return ", ".join(f"{number:#x}" for number in numbers)


def parts_of(one: type) -> str:
    """A structure that branches, as the list of its parts."""
    assert dataclasses.is_dataclass(one)
    lines = [f"### {one.__name__}", "", summary(one), "", "| part | type |", "|---|---|"]
    lines += [
        f"| `{part.name}` | `{str(part.type).replace('|', 'or')}` |"
        for part in dataclasses.fields(one)
        if part.compare
    ]
    return "\n".join([*lines, ""])


def main() -> int:
    """Writes the page, or checks it."""
    text = page()
    if sys.argv[1:] == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print(f"{PAGE.relative_to(ROOT)} is out of date: run make docs", file=sys.stderr)
        return 1
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
