"""From rows to a batch of messages, column by column: nothing here is done for each row.

What rows have in common becomes a template, and so do the few kinds of rows that differ in anything
rare. Labels, correlation ids and application tags may differ from row to row, and bodies do. What
comes out says the same as what `merq.spark.packing` makes of each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merq.client.packets import Packer
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.body import VT_ARRAY_OF_BYTES, TypedBytes, encode_body
from merq.model.row_batch import TAG_SIZE, TEMPLATES_MAX, RowBatch
from merq.model.variant import VariantType
from merq.spark.packing import PER_ROW, bodies_of
from merq.wire.properties import CORRELATION_ID_SIZE, LABEL_LENGTH_MAX, NO_CORRELATION

_TAGGED: Final = frozenset({"correlation_id", "app_specific"})
_U32_MAX: Final = 0xFFFFFFFF


class Texts(NamedTuple):
    """Values of a column one behind the other, and how many bytes each has."""

    data: bytes
    sizes: np.ndarray[Any, np.dtype[np.int64]]


class Bodies(NamedTuple):
    """Bodies one behind the other, and their types: one for all, or each its own."""

    values: Texts
    kinds: int | np.ndarray[Any, np.dtype[np.int64]]


def gathered(batch: pa.RecordBatch, packer: Packer, common: Mapping[str, Any]) -> RowBatch | None:
    """The rows as a batch; None if they differ in too much, and have to be packed one by one.

    Raises:
        MessageQueueError: A value is not what it can be; the text says which and why.
    """
    count = batch.num_rows
    shared = dict(common)
    varying: dict[str, pa.Array] = {}
    for column in batch.schema.names:
        if column not in PER_ROW:
            continue
        values = batch.column(column)
        unique = values.unique()
        if len(unique) > 1:
            varying[PER_ROW[column]] = values
        elif unique[0].is_valid:
            shared[PER_ROW[column]] = unique[0].as_py()
    bodies = _gathered_bodies(batch)
    label_sizes, labels = b"", b""
    if "label" in varying:
        filled = varying.pop("label").fill_null(shared.pop("label", ""))
        label_sizes, labels = _labels(filled, packer, shared)
    tagged = {name: varying.pop(name) for name in _TAGGED & varying.keys()}
    kinds, rare = _kinds_of(varying, count)
    if len(rare) > TEMPLATES_MAX:
        return None
    kind = bodies.kinds if isinstance(bodies.kinds, int) else VT_ARRAY_OF_BYTES
    empty = TypedBytes(kind, b"")
    templates = [packer.kind_with({**shared, **each}).pack(empty) for each in rare]
    tags = b""
    if tagged or not isinstance(bodies.kinds, int):
        tags = _tags(tagged, bodies, packer, shared, count)
    return RowBatch(
        count=count,
        templates=tuple(templates),
        kinds=kinds,
        tags=tags,
        label_sizes=label_sizes,
        labels=labels,
        body_sizes=bodies.values.sizes.astype("<u4").tobytes(),
        bodies=bodies.values.data,
    )


def _texts(column: pa.Array) -> Texts:
    """The bytes of a column of texts or bytes that has no nulls."""
    if column.type not in (pa.binary(), pa.string()):
        column = column.cast(pa.binary())
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, "<i4")[column.offset : column.offset + len(column) + 1]
    start, end = int(ends[0]), int(ends[-1])
    held = b"" if data is None else data.slice(start, end - start).to_pybytes()
    return Texts(held, np.diff(ends).astype(np.int64))


def _joined(values: list[bytes]) -> Texts:
    return Texts(b"".join(values), np.fromiter(map(len, values), np.int64, len(values)))


# Bodies.


def _gathered_bodies(batch: pa.RecordBatch) -> Bodies:
    names = batch.schema.names
    body = batch.column("body") if "body" in names else None
    if body is not None and not body.null_count:
        return Bodies(_texts(body), _body_types(batch))
    value = batch.column("value") if "value" in names else None
    if (
        value is not None
        and not value.null_count
        and (body is None or body.null_count == len(body))
    ):
        return Bodies(_wide(value), int(VariantType.VT_LPWSTR))
    encoded = [encode_body(each) for each in bodies_of(batch)]
    kinds = np.array([kind for kind, _ in encoded], np.int64)
    return Bodies(_joined([data for _, data in encoded]), kinds)


def _body_types(batch: pa.RecordBatch) -> int | np.ndarray[Any, np.dtype[np.int64]]:
    if "body_type" not in batch.schema.names:
        return VT_ARRAY_OF_BYTES
    column = batch.column("body_type").fill_null(VT_ARRAY_OF_BYTES)
    kinds: np.ndarray[Any, np.dtype[np.int64]] = column.to_numpy(zero_copy_only=False)
    low = int(kinds.min())
    if low < 0:
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"body_type: {low} is outside 0..{_U32_MAX:#x}"
        )
    return low if low == kinds.max() else kinds.astype(np.int64)


def _wide(column: pa.Array) -> Texts:
    """Texts as bodies have them: UTF-16, with a null at the end of each."""
    ended = _texts(pc.binary_join_element_wise(column.cast(pa.string()), "\0", ""))
    if ended.data.isascii():
        return Texts(ended.data.decode("ascii").encode("utf-16-le"), 2 * ended.sizes)
    return _joined([encode_body(each)[1] for each in column.to_pylist()])


# What rows have beside them.


def _labels(column: pa.Array, packer: Packer, shared: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """How many characters of UTF-16 each label has, and all of them."""
    found = _texts(column)
    if found.data.isascii():
        found = Texts(found.data.decode("ascii").encode("utf-16-le"), 2 * found.sizes)
    else:
        found = _joined([each.encode("utf-16-le", "surrogatepass") for each in column.to_pylist()])
    characters = found.sizes // 2
    if characters.max() >= LABEL_LENGTH_MAX or "\0" in found.data.decode(
        "utf-16-le", "surrogatepass"
    ):
        for each in column.to_pylist():
            packer.kind_with({**shared, "label": each})
    return characters.astype(np.uint8).tobytes(), found.data


def _tags(
    tagged: Mapping[str, pa.Array],
    bodies: Bodies,
    packer: Packer,
    shared: Mapping[str, Any],
    count: int,
) -> bytes:
    """Correlation id, body type and application tag of each row; what is shared was checked."""
    found = np.zeros((count, TAG_SIZE), np.uint8)
    same = shared.get("correlation_id", NO_CORRELATION)
    column = tagged.get("correlation_id")
    if column is None:
        found[:, :CORRELATION_ID_SIZE] = np.frombuffer(same, np.uint8)
    else:
        ids = _texts(column.fill_null(same))
        if (ids.sizes != CORRELATION_ID_SIZE).any():
            for each in column.drop_null().to_pylist():
                packer.kind_with({**shared, "correlation_id": each})
        rows = np.frombuffer(ids.data, np.uint8).reshape(count, CORRELATION_ID_SIZE)
        found[:, :CORRELATION_ID_SIZE] = rows
    numbers = np.empty((count, 2), "<u4")
    numbers[:, 0] = bodies.kinds
    tag = shared.get("app_specific", 0)
    column = tagged.get("app_specific")
    if column is None:
        numbers[:, 1] = tag
    else:
        values = column.fill_null(tag).to_numpy(zero_copy_only=False)
        for each in (int(values.min()), int(values.max())):
            if not 0 <= each <= _U32_MAX:
                packer.kind_with({**shared, "app_specific": each})
        numbers[:, 1] = values
    found[:, CORRELATION_ID_SIZE:] = numbers.view(np.uint8).reshape(count, 8)
    return found.tobytes()


def _kinds_of(varying: Mapping[str, pa.Array], count: int) -> tuple[bytes, list[dict[str, Any]]]:
    """Which kind each row is of, and what each kind has that others have otherwise."""
    if not varying:
        return b"", [{}]
    number = np.zeros(count, np.int64)
    values = []
    for column in varying.values():
        encoded = column.dictionary_encode(null_encoding="encode")
        held = encoded.dictionary.to_pylist()
        number = number * len(held) + encoded.indices.to_numpy(zero_copy_only=False)
        values.append(held)
    found, kinds = np.unique(number, return_inverse=True)
    if len(found) > TEMPLATES_MAX:
        return b"", [{}] * len(found)
    named = dict(zip(varying, values, strict=True))
    rare = [_combination(each, named) for each in found.tolist()]
    return kinds.astype(np.uint8).tobytes(), rare


def _combination(number: int, values: Mapping[str, list[Any]]) -> dict[str, Any]:
    """What a kind of rows has, by its number; what is null is as all others have it."""
    own = {}
    for name, held in reversed(list(values.items())):
        number, at = divmod(number, len(held))
        if held[at] is not None:
            own[name] = held[at]
    return own
