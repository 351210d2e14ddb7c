"""Rows as a batch, column by column, say what the same rows say packed one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kit.row_batches import packets_of
from merq.client.packets import Packer
from merq.errors import MessageQueueError
from merq.model.row_batch import TEMPLATES_MAX
from merq.spark.gathering import gathered
from merq.spark.packing import pack_batch
from merq.spark.writing import ROWS, ROWS_BYTES, pieces

DESTINATION = r"OS:here\private$\q"
COMMON = {"recoverable": True}
ALL = {**COMMON, "label": "of all", "priority": 5, "app_specific": 9}
KINDS = {
    "body": pa.binary(),
    "value": pa.string(),
    "body_type": pa.int32(),
    "label": pa.string(),
    "priority": pa.int32(),
    "correlation_id": pa.binary(),
    "app_tag": pa.int64(),
    "response_queue": pa.string(),
    "admin_queue": pa.string(),
    "extension": pa.binary(),
}
BODY = [b"a", b"", b"ccc", b"dd"]
ONE, TWO = b"1" * 20, b"2" * 20


def batch_of(**columns: list[Any]) -> pa.RecordBatch:
    """Columns as a slice of others, which is how Spark hands them over too."""
    padded = {name: pa.array([*each[::-1], *each], KINDS[name]) for name, each in columns.items()}
    count = len(next(iter(columns.values())))
    return pa.RecordBatch.from_pydict(padded).slice(count, count)


ROWS_OF: dict[str, dict[str, list[Any]]] = {
    "bodies": {"body": BODY},
    "no bytes": {"body": [b"", b""]},
    "types": {"body": BODY, "body_type": [8, 30, 8, None]},
    "one type": {"body": BODY, "body_type": [8] * 4},
    "texts": {"value": ["a", "", "ccc", "d"]},
    "wide texts": {"value": ["a", "\u0100", "\U0001f600", ""]},
    "nulls": {"value": ["a", None, "c", "d"]},
    "either": {"body": [b"a", None, None, b"d"], "value": [None, "b", None, "x"]},
    "typed or not": {"body": [b"a", None], "value": ["x", "y"], "body_type": [8, 8]},
    "only values": {"body": [None] * 2, "value": ["x", "y"]},
    "labels": {"body": BODY, "label": ["a", None, "", "dd"]},
    "wide labels": {"body": BODY, "label": ["a", "\u0100\u0100", "\U0001f600", ""]},
    "a label": {"body": BODY, "label": ["same"] * 4},
    "no label": {"body": BODY, "label": [None] * 4},
    "priorities": {"body": BODY, "priority": [1, 7, None, 1]},
    "ids": {"body": BODY, "correlation_id": [ONE, TWO, None, ONE]},
    "tags": {"body": BODY, "app_tag": [0, 2**32 - 1, None, 7]},
    "an id and types": {"body": BODY, "correlation_id": [ONE] * 4, "body_type": [8, 8, 30, 30]},
    "extensions": {"body": BODY, "extension": [b"x", b"", None, b"yyy"], "label": list("abcd")},
    "queues": {
        "body": BODY,
        "response_queue": [r".\private$\r", None, r"DIRECT=OS:b\private$\r", ""],
        "admin_queue": [r".\private$\a", r".\private$\b", None, None],
    },
    "everything": {
        "body": BODY,
        "body_type": [8, 30, None, 8],
        "label": ["a", None, "\u0100", "d"],
        "priority": [0, 1, 0, None],
        "correlation_id": [ONE, None, TWO, TWO],
        "app_tag": [1, 2, 3, None],
        "extension": [b"", b"e", None, b"e"],
    },
}


@pytest.mark.parametrize("common", [COMMON, ALL], ids=["alone", "with options"])
@pytest.mark.parametrize("what", ROWS_OF)
def test_rows_say_the_same_as_packed_one_by_one(what: str, common: dict[str, Any]) -> None:
    batch = batch_of(**ROWS_OF[what])
    found = gathered(batch, Packer(DESTINATION), common)
    assert found is not None
    assert packets_of(found) == pack_batch(batch, Packer(DESTINATION), common)


def test_large_columns_are_taken_too() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "body": pa.array(BODY, pa.large_binary()),
            "label": pa.array(list("abcd"), pa.large_string()),
        }
    )
    found = gathered(batch, Packer(DESTINATION), COMMON)
    assert found is not None
    assert packets_of(found) == pack_batch(batch, Packer(DESTINATION), COMMON)


def test_what_rows_have_in_common_is_one_template() -> None:
    columns: dict[str, list[Any]] = {
        "label": list("abcd"),
        "correlation_id": [ONE, TWO, ONE, TWO],
        "app_tag": [1, 2, 3, 4],
    }
    found = gathered(batch_of(body=BODY, **columns), Packer(DESTINATION), COMMON)
    assert found is not None
    assert len(found.templates) == 1


def test_rows_that_differ_in_too_much_are_packed_one_by_one() -> None:
    count = TEMPLATES_MAX + 1
    extensions = [b"%d" % each for each in range(count)]
    packer = Packer(DESTINATION)
    batch = batch_of(body=[b""] * count, extension=extensions)
    assert gathered(batch, packer, COMMON) is None
    found = gathered(batch.slice(1), packer, COMMON)
    assert found is not None
    assert packets_of(found) == pack_batch(batch.slice(1), packer, COMMON)


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": ["a", "b" * 250]},
        {"label": ["a", "\u0100" * 250]},
        {"label": ["a", "b\0"]},
        {"label": ["\u0100", "b\0"]},
        {"label": ["b" * 250] * 2},
        {"correlation_id": [ONE, b"short"]},
        {"correlation_id": [ONE, ONE * 2]},
        {"correlation_id": [b"short"] * 2, "app_tag": [1, 2]},
        {"app_tag": [0, -1]},
        {"app_tag": [2**32, 0]},
        {"app_tag": [2**32] * 2, "correlation_id": [ONE, TWO]},
        {"priority": [3, 8]},
        {"response_queue": ["", "no name"]},
    ],
)
def test_a_value_that_cannot_be_is_refused_as_if_packed_one_by_one(wrong: dict[str, Any]) -> None:
    batch = batch_of(body=[b"a", b"b"], **wrong)
    with pytest.raises(MessageQueueError) as expected:
        pack_batch(batch, Packer(DESTINATION), COMMON)
    with pytest.raises(MessageQueueError) as found:
        gathered(batch, Packer(DESTINATION), COMMON)
    assert str(found.value) == str(expected.value)


def test_a_body_type_that_cannot_be_is_refused() -> None:
    with pytest.raises(MessageQueueError, match="body_type: -1 is outside"):
        gathered(batch_of(body=[b"a", b"b"], body_type=[8, -1]), Packer(DESTINATION), COMMON)


def test_rows_are_handed_over_in_pieces_that_are_not_too_large() -> None:
    assert [each.num_rows for each in pieces(batch_of(body=[b""] * (2 * ROWS + 1)))] == [
        ROWS,
        ROWS,
        1,
    ]
    assert list(pieces(batch_of(body=[b"a"]).slice(1))) == []
    large = batch_of(body=[b"small"] * 5 + [bytes(ROWS_BYTES)] * 3)
    found = list(pieces(large))
    assert pa.Table.from_batches(found) == pa.Table.from_batches([large])
    assert all(each.num_rows == 1 or each.nbytes <= ROWS_BYTES for each in found)
