"""[MS-MQMQ] 2.2.12: message bodies as MSMQ types them, to Python values and back.

| Python | type | bytes |
|---|---|---|
| None | VT_EMPTY | none |
| str | VT_LPWSTR | UTF-16 with a terminating null |
| bytes | VT_ARRAY of VT_UI1 | as they are |
| bool | VT_BOOL | 0 or -1 in 2 bytes |
| int | VT_I4, VT_I8 or VT_UI8, the smallest that holds it | |
| float | VT_R8 | |
| UUID | VT_CLSID | |
| datetime | VT_DATE | days since 1899-12-30 as VT_R8, UTC |

Bodies of other senders are read likewise, VT_BSTR, VT_LPSTR and the other numbers too; a type that
is not known here gives bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final, TypeAlias
from uuid import UUID

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.variant import VariantType


@dataclass(frozen=True, slots=True)
class TypedBytes:
    """A body as it was in another message: its bytes and their type, which may have no value here.

    It can be sent; a message that was received gives its body as one of the other types.
    """

    kind: int
    data: bytes


Value: TypeAlias = str | bytes | bool | int | float | UUID | datetime | TypedBytes | None

VT_EMPTY: Final = VariantType.VT_EMPTY
VT_R4: Final = 4
VT_R8: Final = 5
VT_DATE: Final = 7
VT_BSTR: Final = 8
VT_LPSTR: Final = 30
VT_ARRAY_OF_BYTES: Final = 0x2011
"""[MC-MQAC] 3.17.4.1.22 allows these beside the types of [MS-MQMQ] 2.2.12."""

_EPOCH: Final = datetime(1899, 12, 30, tzinfo=UTC)
_DAY: Final = 86_400
_NUMBERS: Final = {
    VariantType.VT_I1: "<b",
    VariantType.VT_UI1: "<B",
    VariantType.VT_I2: "<h",
    VariantType.VT_UI2: "<H",
    VariantType.VT_I4: "<i",
    VariantType.VT_UI4: "<I",
    VariantType.VT_I8: "<q",
    VariantType.VT_UI8: "<Q",
    VT_R4: "<f",
    VT_R8: "<d",
}


def encode_body(value: Value) -> tuple[int, bytes]:  # noqa: PLR0911 - one for each type
    """The type and the bytes of a body.

    Raises:
        MessageQueueError: No type holds the value.
    """
    if isinstance(value, TypedBytes):
        return value.kind, value.data
    match value:
        case None:
            return int(VT_EMPTY), b""
        case bytes():
            return VT_ARRAY_OF_BYTES, value
        case str():
            text = value.encode("utf-16-le", "surrogatepass")
            return int(VariantType.VT_LPWSTR), text + b"\0\0"
        case bool():
            return int(VariantType.VT_BOOL), b"\xff\xff" if value else b"\0\0"
        case int():
            return _encode_integer(value)
        case float():
            return VT_R8, struct.pack("<d", value)
        case UUID():
            return int(VariantType.VT_CLSID), value.bytes_le
        case datetime():
            if value.tzinfo is None:
                raise MessageQueueError(
                    HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
                    f"{value} has no time zone; give it one, such as UTC",
                )
            days = (value - _EPOCH) / timedelta(seconds=_DAY)
            return VT_DATE, struct.pack("<d", days)
        case _:
            raise MessageQueueError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
                f"a body of type {type(value).__name__}; it may be str, bytes, bool, int, float, "
                "UUID, datetime or None",
            )


def _encode_integer(value: int) -> tuple[int, bytes]:
    for kind in (VariantType.VT_I4, VariantType.VT_I8, VariantType.VT_UI8):
        try:
            return int(kind), struct.pack(_NUMBERS[kind], value)
        except struct.error:
            continue
    raise MessageQueueError(
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"{value} does not fit in 64 bits"
    )


def decode_body(kind: int, data: bytes) -> Value:
    """The value of a body; bytes where its type is not known or its bytes do not fit it."""
    if kind in (VariantType.VT_EMPTY, VariantType.VT_NULL) and not data:
        return None
    try:
        return _decode(kind, data)
    except (struct.error, UnicodeDecodeError, OverflowError, ValueError):
        return data


def _decode(kind: int, data: bytes) -> Value:
    if kind in (VariantType.VT_LPWSTR, VT_BSTR):
        text = data.decode("utf-16-le", "surrogatepass")
        return text.removesuffix("\0") if kind == VariantType.VT_LPWSTR else text
    if kind == VT_LPSTR:
        return data.decode("utf-8").removesuffix("\0")
    if kind == VariantType.VT_BOOL:
        return data != b"\0\0" if len(data) == 2 else data
    if kind == VariantType.VT_CLSID:
        return UUID(bytes_le=data)
    if kind == VT_DATE:
        (days,) = struct.unpack("<d", data)
        # A float has microseconds to spare until 2079, if none are lost by multiplying floats.
        return _EPOCH + timedelta(microseconds=round(Fraction(days) * _DAY * 1_000_000))
    form = _NUMBERS.get(kind)
    if form is None:
        return data
    number: float = struct.unpack(form, data)[0]
    return number
