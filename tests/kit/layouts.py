"""Hypothesis strategies for flat structures, made from their declarations."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import strategies as st

import merq.wire
from merq.wire.layout import DECLARED, BitField, BitSpec, FieldSpec, Layout

L = TypeVar("L", bound=Layout)
B = TypeVar("B", bound=BitField)


def all_layouts() -> list[type[Layout]]:
    """Every layout that the wire package declares."""
    for module in pkgutil.iter_modules(merq.wire.__path__, "merq.wire."):
        importlib.import_module(module.name)
    return [one for one in DECLARED if issubclass(one, Layout)]


def all_bit_fields() -> list[type[BitField]]:
    """Every bit field that the wire package declares."""
    all_layouts()
    return [one for one in DECLARED if issubclass(one, BitField)]


def guids() -> st.SearchStrategy[UUID]:
    """Any GUID, the null one often."""
    return st.one_of(st.just(UUID(int=0)), st.uuids())


def bit_fields(of: type[B], **fixed: object) -> st.SearchStrategy[B]:
    """Any value of a bit field, reserved bits set too, but for the fields given."""
    chosen: dict[str, st.SearchStrategy[Any]] = {
        "reserved": st.integers(0, (1 << of.WIDTH) - 1).map(lambda bits: bits & of.RESERVED_MASK)
    }
    for name, spec in of.BITS:
        chosen[name] = st.just(fixed[name]) if name in fixed else _bits(spec)
    return st.builds(of, **chosen)


def _bits(spec: BitSpec) -> st.SearchStrategy[Any]:
    if spec.is_flag:
        return st.booleans()
    if spec.one_of:
        return st.sampled_from(sorted(spec.one_of))
    return st.integers(0, (1 << spec.width) - 1)


def layouts(of: type[L], **fixed: object) -> st.SearchStrategy[L]:
    """Any value of a layout, but for the fields given (values or strategies)."""
    chosen: dict[str, st.SearchStrategy[Any]] = {}
    for name, spec in of.LAYOUT.fields:
        if name not in fixed:
            chosen[name] = _field(spec)
        else:
            given = fixed[name]
            chosen[name] = given if isinstance(given, st.SearchStrategy) else st.just(given)
    return st.builds(of, **chosen)


def _field(spec: FieldSpec) -> st.SearchStrategy[Any]:
    if spec.is_guid:
        return guids()
    if spec.bits is not None:
        return bit_fields(spec.bits)
    if spec.nested is not None:
        return layouts(spec.nested)
    if spec.format.endswith("s"):
        return st.binary(min_size=spec.size, max_size=spec.size)
    if spec.constant is not None:
        return st.just(spec.constant)
    if spec.one_of:
        return st.sampled_from(sorted(spec.one_of))
    return st.integers(spec.low, spec.high)
