"""A decoded packet as names and plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain, count
from uuid import UUID

from merq.capture.packets import Finding, Origin, Undecoded
from merq.wire.layout import BitField
from merq.wire.reader import TraceNode

_INDEXED = re.compile(r"^(\w+)\[\d+\]$")


def record_of(finding: Finding) -> dict[str, object]:
    """Everything that was found, as values that JSON has."""
    record: dict[str, object]
    if isinstance(finding, Undecoded):
        record = {"error": finding.reason, "offset": finding.offset}
    else:
        record = {"packet": finding.kind, "size": finding.size}
        record.update(_members(finding.tree))
        if finding.queues:
            record["format_names"] = dict(finding.queues)
    if finding.origin is not None:
        record["capture"] = _origin_members(finding.origin)
    return record


def _origin_members(origin: Origin) -> dict[str, object]:
    return {
        "frame": origin.frame,
        "time": origin.time,
        "source": origin.source,
        "destination": origin.destination,
    }


def _members(node: TraceNode) -> dict[str, object]:
    members: dict[str, object] = {}
    for child in node.children:
        value = _members(child) if child.children or child.value is None else _plain(child.value)
        if indexed := _INDEXED.match(child.name):
            items = members.setdefault(indexed[1], [])
            assert isinstance(items, list)
            items.append(value)
        else:
            members[_free_name(child.name, members)] = value
    return members


def _free_name(name: str, members: Mapping[str, object]) -> str:
    """The name, numbered if it is there already: padding may come more than once."""
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(free for free in names if free not in members)


def _plain(value: object) -> object:
    if isinstance(value, BitField):
        named: dict[str, object] = {name: getattr(value, name) for name, _ in value.BITS}
        return {"value": value.pack(), **named, "reserved": value.reserved}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID):
        return str(value)
    return value
