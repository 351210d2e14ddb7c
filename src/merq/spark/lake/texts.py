"""What an archive adds to messages: the day on which they came, and their bodies as text.

Texts, and bytes that are a text, are most of what people send: Spark finds those by itself. Only
what is left goes through Python, which takes twice the time for all of it.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from merq.errors import MerqError
from merq.model.body import VT_ARRAY_OF_BYTES, VT_BSTR, VT_LPSTR, decode_body
from merq.model.variant import VariantType
from merq.spark.lake.description import BODY_TEXT, DAY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TEXTS: Final = frozenset({int(VariantType.VT_LPWSTR), VT_BSTR, VT_LPSTR})
"""Types of bodies that are text; the source gives them as `value`."""

ZERO: Final = "\0"
"""Bytes with this character are no text. A search for all control characters took most of the time
of an archive when it was tried, so that others pass."""

_DAY: Final = "date_from_unix_date(cast(floor(unix_micros(arrived_time) / 86400000000) as int))"
"""The day of a moment in UTC, whatever the session's time zone is."""

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


def with_day_and_text(rows: DataFrame) -> DataFrame:
    """Messages with their day and their text behind their columns."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark takes long to import

    return rows.withColumns({DAY: f.expr(_DAY), BODY_TEXT: _text()})


def _text() -> Column:
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark takes long to import

    kind, body = f.col("body_type"), f.col("body")
    is_text = kind.isin(*sorted(TEXTS))
    is_plain = (kind == VT_ARRAY_OF_BYTES) & ~f.substring(body, 1, 2).isin(
        *(bytearray(each[:2]) for each in _MARKS)
    )
    said = body.cast("string")
    plain = f.when((f.length(body) > 0) & f.is_valid_utf8(said) & ~said.contains(ZERO), said)
    rest = f.udf(text_of, "string", useArrow=True)(kind, f.when(~is_text & ~is_plain, body))
    return f.when(is_text, f.col("value")).when(is_plain, plain).otherwise(rest)
