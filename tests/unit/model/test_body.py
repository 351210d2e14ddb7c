"""Bodies: Python values to MSMQ's types and back."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.body import (
    VT_ARRAY_OF_BYTES,
    VT_BSTR,
    VT_DATE,
    VT_LPSTR,
    VT_R4,
    VT_R8,
    Value,
    decode_body,
    encode_body,
)
from merq.model.variant import VariantType

pytestmark = pytest.mark.spec("MS-MQMQ 2.2.12")

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=[])),
    st.binary(),
    st.uuids(),
)


@given(values)
def test_a_body_comes_back_as_it_was_and_of_the_same_type(value: Value) -> None:
    found = decode_body(*encode_body(value))
    assert found == value
    assert type(found) is type(value)


@given(st.datetimes(datetime(1899, 12, 30), datetime(2079, 6, 1)))  # noqa: DTZ001 - UTC below
def test_a_time_comes_back_to_the_microsecond_until_2079(naive: datetime) -> None:
    value = naive.replace(tzinfo=UTC)
    assert decode_body(*encode_body(value)) == value


@given(st.datetimes(datetime(2079, 1, 1), datetime(2250, 1, 1)))  # noqa: DTZ001 - UTC below
def test_a_later_time_comes_back_to_within_a_microsecond(naive: datetime) -> None:
    value = naive.replace(tzinfo=UTC)
    found = decode_body(*encode_body(value))
    assert isinstance(found, datetime)
    assert abs(found - value) <= timedelta(microseconds=1)


def test_a_time_of_another_zone_is_the_same_moment() -> None:
    value = datetime(2024, 5, 6, 12, tzinfo=timezone(timedelta(hours=2)))
    assert decode_body(*encode_body(value)) == datetime(2024, 5, 6, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind", "data"),
    [
        (None, VariantType.VT_EMPTY, b""),
        ("hi", VariantType.VT_LPWSTR, b"h\0i\0\0\0"),
        ("", VariantType.VT_LPWSTR, b"\0\0"),
        (b"hi", VT_ARRAY_OF_BYTES, b"hi"),
        (True, VariantType.VT_BOOL, b"\xff\xff"),
        (False, VariantType.VT_BOOL, b"\0\0"),
        (-1, VariantType.VT_I4, b"\xff" * 4),
        (1 << 31, VariantType.VT_I8, (1 << 31).to_bytes(8, "little")),
        (1 << 63, VariantType.VT_UI8, (1 << 63).to_bytes(8, "little")),
        (1.5, VT_R8, struct.pack("<d", 1.5)),
        (UUID(int=1), VariantType.VT_CLSID, UUID(int=1).bytes_le),
        (datetime(1900, 1, 4, 6, tzinfo=UTC), VT_DATE, struct.pack("<d", 5.25)),
    ],
)
def test_values_have_the_type_that_others_expect(value: Value, kind: int, data: bytes) -> None:
    assert encode_body(value) == (kind, data)


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (VT_BSTR, b"h\0i\0", "hi"),
        (VT_LPSTR, b"hi\0", "hi"),
        (VT_LPSTR, "é".encode(), "é"),
        (VariantType.VT_UI1, b"\xff", 255),
        (VariantType.VT_I1, b"\xff", -1),
        (VariantType.VT_I2, b"\xff\xff", -1),
        (VariantType.VT_UI2, b"\xff\xff", 65535),
        (VariantType.VT_UI4, b"\xff" * 4, 0xFFFFFFFF),
        (VT_R4, struct.pack("<f", 0.5), 0.5),
        (VariantType.VT_BOOL, b"\1\0", True),
        (VariantType.VT_NULL, b"", None),
    ],
)
def test_types_of_other_senders_are_read(kind: int, data: bytes, value: Value) -> None:
    assert decode_body(kind, data) == value


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (VariantType.VT_EMPTY, b"untyped"),
        (VariantType.VT_I4, b"123"),
        (VariantType.VT_BOOL, b"1"),
        (VariantType.VT_CLSID, b"short"),
        (VariantType.VT_LPWSTR, b"odd"),
        (VT_LPSTR, b"\xff\xfe"),
        (VT_DATE, struct.pack("<d", math.nan)),
        (VT_DATE, struct.pack("<d", math.inf)),
        (VT_DATE, struct.pack("<d", 1e300)),
        (VT_DATE, b"1234"),
        (0x7777, b"what"),
        (0xFFFFFFFF, b""),
    ],
)
def test_what_cannot_be_read_as_its_type_is_given_as_bytes(kind: int, data: bytes) -> None:
    assert decode_body(kind, data) == data


@given(st.integers(0, 0xFFFFFFFF) | st.sampled_from([*map(int, VariantType), 4, 5, 7, 8, 30]))
def test_no_type_with_any_bytes_raises(kind: int) -> None:
    for data in (b"", b"\0", b"\xff" * 8, b"\0" * 16, b"\xd8" * 4, b"\x7f" * 8):
        decode_body(kind, data)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (1 << 64, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        (-(1 << 63) - 1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        (datetime(2024, 1, 1), HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),  # noqa: DTZ001
        ([1, 2], HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        ({"a": 1}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        (object(), HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        (1j, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
        (bytearray(b"x"), HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT),
    ],
)
def test_what_has_no_type_is_refused_with_advice(value: object, code: int) -> None:
    with pytest.raises(MessageQueueError) as refused:
        encode_body(value)  # type: ignore[arg-type]
    assert refused.value.code == code
    assert len(refused.value.text) > 10
