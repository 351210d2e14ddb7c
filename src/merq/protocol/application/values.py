"""Dataclasses as JSON and back, checked field by field: for what is asked and told rarely.

UUIDs are text, bytes are base64, an enumeration is its value, a dataclass an object with all its
fields; fields that have defaults may be missing. What is not known is refused, not skipped.
"""

from __future__ import annotations

import json
import types
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from merq.errors import WireError

_T = TypeVar("_T")


def to_json(value: object) -> bytes:
    """A value as UTF-8."""
    return json.dumps(_plain(value), separators=(",", ":")).encode("utf-8")


def parse_json(data: bytes) -> object:
    """What JSON says, as Python's own values.

    Raises:
        WireError: It is none.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise WireError(f"no JSON: {wrong}") from wrong


def from_plain(kind: type[_T], value: object, field: str = "") -> _T:
    """A value of this type out of what JSON says.

    Raises:
        WireError: It is not of this type; the text says where.
    """
    found: _T = _typed(kind, value, field or kind.__name__)
    return found


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    assert is_dataclass(value), f"{type(value).__name__} has no JSON"
    return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}


def _typed(kind: Any, value: object, field: str) -> Any:
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        chosen = [each for each in get_args(kind) if each is not type(None)]
        return None if value is None else _typed(chosen[0], value, field)
    if origin in {list, tuple}:
        inner = get_args(kind)[0]
        return origin(
            _typed(inner, each, f"{field}[{at}]") for at, each in enumerate(_list(value, field))
        )
    if kind in {bool, int, str}:
        if type(value) is not kind:
            raise _wrong(value, field, kind.__name__)
        return value
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return _object(kind, value, field)
    if issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            known = " or ".join(repr(each.value) for each in kind)
            raise _wrong(value, field, known) from None
    return _from_text(kind, value, field)


def _from_text(kind: type, value: object, field: str) -> object:
    if not isinstance(value, str):
        raise _wrong(value, field, "text")
    if kind is UUID:
        try:
            return UUID(value)
        except ValueError:
            raise _wrong(value, field, "a GUID") from None
    assert kind is bytes, f"{kind.__name__} has no JSON"
    try:
        return b64decode(value, validate=True)
    except (Base64Error, ValueError):
        raise _wrong(value, field, "base64") from None


def _object(kind: type, value: object, field: str) -> object:
    if not isinstance(value, dict):
        raise _wrong(value, field, "an object")
    hints, needed = _shape(kind)
    for name in value:
        if name not in hints:
            raise WireError(f"{name[:60]!r} is unknown; known are {', '.join(hints)}", field=field)
    for name in needed:
        if name not in value:
            raise WireError(f"{name!r} is missing", field=field)
    return kind(**{name: _typed(hints[name], each, name) for name, each in value.items()})


@cache
def _shape(kind: type) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The types of a dataclass's fields, and those that have no default."""
    hints = get_type_hints(kind)
    assert is_dataclass(kind)
    needed = [
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    ]
    return {each.name: hints[each.name] for each in fields(kind)}, tuple(needed)


def _list(value: object, field: str) -> list[object]:
    if not isinstance(value, list):
        raise _wrong(value, field, "a list")
    return value


def _wrong(value: object, field: str, wanted: str) -> WireError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return WireError(f"{shown} where {wanted} belongs", field=field)
