"""Bodies as text, for people and for SQL: the column `body_text`.

Bytes that are a text are most of what people send besides texts: those of a frame are looked at
together. Only what is left is read message by message. Spark could do it too, by a function in
Python; then every row goes to another process and back, and writing costs a third more CPU.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merq.errors import MerqError
from merq.model.body import VT_ARRAY_OF_BYTES, VT_BSTR, VT_LPSTR, decode_body
from merq.model.variant import VariantType

TEXTS: Final = (int(VariantType.VT_LPWSTR), VT_BSTR, VT_LPSTR)
"""Types of bodies that are text; the source gives them as `value`."""

ZERO: Final = "\0"
"""Bytes with this character are no text; other control characters pass."""

_MARKS: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}
"""Byte order marks, and how what follows is to be read."""


def text_of(kind: int | None, data: bytes | None) -> str | None:
    """A body as text: numbers and truth as JSON has them, bytes only if they are a text.

    None for what has no text: bytes that are not UTF-8 or have a zero among them, empty bodies,
    and bodies that are not what their type says.
    """
    if kind is None or data is None:
        return None
    try:
        value = decode_body(kind, data)
    except MerqError:
        return None
    match value:
        case str():
            return value
        case bytes():
            # Others than these are of a type that is not known, or not what their type says.
            return _text_in(value) if kind == VT_ARRAY_OF_BYTES else None
        case bool() | int() | float():
            return json.dumps(value)
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case _:
            return None


def _text_in(data: bytes) -> str | None:
    mark = next((each for each in _MARKS if data.startswith(each)), b"")
    try:
        text = data[len(mark) :].decode(_MARKS.get(mark, "utf-8"))
    except UnicodeDecodeError:
        return None
    return text if text and ZERO not in text else None


def texts_of(kinds: Any, bodies: pa.Array, values: pa.Array) -> pa.Array:
    """The bodies of many messages as text.

    Args:
        kinds: Their types, as an array of numpy's.
        bodies: The bodies.
        values: What the source gives as `value`.
    """
    is_text = np.isin(kinds, TEXTS)
    if is_text.all():
        return values
    plain = _plain(bodies) if (kinds == VT_ARRAY_OF_BYTES).all() else None
    if plain is not None:
        return plain
    pairs = zip(kinds.tolist(), bodies.to_pylist(), values.to_pylist(), is_text, strict=True)
    found = [value if known else text_of(kind, body) for kind, body, value, known in pairs]
    return pa.array(found, pa.string())


def _plain(bodies: pa.Array) -> pa.Array | None:
    """Bytes that are all of them UTF-8 without marks and zeros; None if one of them is not."""
    try:
        said = bodies.cast(pa.string())
    except pa.ArrowInvalid:
        return None
    # In UTF-8 the marks are one letter; those of UTF-16 are never a part of it.
    if pc.any(pc.starts_with(said, "\ufeff")).as_py() or pc.any(_has_zero(said)).as_py():
        return None
    return pc.if_else(pc.equal(pc.binary_length(said), 0), pa.scalar(None, pa.string()), said)


def _has_zero(said: pa.Array) -> pa.Array:
    return pc.match_substring(said, ZERO)
