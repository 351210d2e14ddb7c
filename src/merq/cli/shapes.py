"""A decoded packet as a JSON object, and as a coloured tree."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rich.text import Text
from rich.tree import Tree

from merq.capture.packets import Decoded, Finding, Origin, Undecoded
from merq.capture.records import record_of
from merq.cli.meanings import meaning
from merq.wire.layout import BitField
from merq.wire.reader import TraceNode

SHOWN_BYTES_MAX = 32
"""How much of a long run of bytes the tree shows; JSON has all of it."""


def as_json(finding: Finding) -> str:
    """One line."""
    return json.dumps(record_of(finding))


def as_tree(finding: Decoded) -> Tree:
    """Offset, field, value and meaning, one line a field."""
    title = Text.assemble((finding.kind, "bold cyan"), f"  {finding.size} bytes")
    if finding.origin is None:
        title.append(f"  at {finding.offset}", style="dim")
    else:
        title.append(f"  {_where(finding.origin)}", style="dim")
    tree = Tree(title, guide_style="dim")
    _grow(tree, finding.tree, finding.queues)
    return tree


def as_text(finding: Undecoded) -> Text:
    """What went wrong, in one line."""
    where = "" if finding.origin is None else f"  {_where(finding.origin)}"
    return Text.assemble(
        ("unreadable", "bold red"), f"  at {finding.offset}: {finding.reason}", (where, "dim")
    )


def _where(origin: Origin) -> str:
    time = f", {origin.time}" if origin.time else ""
    return f"{origin.source} → {origin.destination}, frame {origin.frame}{time}"


def _grow(tree: Tree, node: TraceNode, queues: Mapping[str, str]) -> None:
    for child in node.children:
        offset = (f"{child.offset:#06x} ", "dim")
        if child.children or child.value is None:
            line = Text.assemble(offset, (child.name, "bold"), (f"  {child.size} bytes", "dim"))
            name = queues.get(child.name, "")
            if name.isprintable() and not name.startswith("DIRECT="):  # that is spelled out below
                line.append(f"  {name}", style="yellow")
            _grow(tree.add(line), child, queues)
        elif isinstance(child.value, BitField):
            _grow_flags(tree, child, child.value)
        else:
            tree.add(_line(offset, child.name, child.value, node.name))


def _grow_flags(tree: Tree, node: TraceNode, flags: BitField) -> None:
    digits = flags.WIDTH // 4
    branch = tree.add(
        Text.assemble((f"{node.offset:#06x} ", "dim"), node.name, f" = 0x{flags.pack():0{digits}x}")
    )
    for name, spec in flags.BITS:
        value = getattr(flags, name)
        style = "green" if value else "dim"
        line = Text.assemble((f"{spec.code} ", "dim"), (f"{name} = {int(value)}", style))
        if said := meaning(node.name, name, value) if not spec.is_flag else "":
            line.append(f"  {said}", style="yellow")
        branch.add(line)
    if flags.reserved:
        branch.add(Text(f"reserved = {flags.reserved:#x}", style="dim"))


def _line(offset: tuple[str, str], name: str, value: object, structure: str) -> Text:
    line = Text.assemble(offset, f"{name} = ", (_shown(value), "green"))
    if said := meaning(structure, name, value):
        line.append(f"  {said}", style="yellow")
    return line


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return _shown_bytes(value)
    if isinstance(value, int):
        return f"{value} ({value:#x})" if value > 9 else str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=not value.isprintable())
    return str(value)


def _shown_bytes(value: bytes) -> str:
    if len(value) > 4 and len(set(value)) == 1:
        return f"{value[0]:02x} {len(value)} times"
    shown = value[:SHOWN_BYTES_MAX].hex(" ", 2)
    more = len(value) - SHOWN_BYTES_MAX
    return shown if more <= 0 else f"{shown} … {more} bytes more"
