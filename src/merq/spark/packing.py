"""From rows to packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE
from merq.client.packets import Packer
from merq.model.body import TypedBytes
from merq.spark.options import BadOption, Options

PER_ROW: Final = {
    "label": "label",
    "priority": "priority",
    "correlation_id": "correlation_id",
    "app_tag": "app_specific",
    "response_queue": "response_queue",
    "admin_queue": "admin_queue",
    "extension": "extension",
}
"""Columns that say something of each message, and what Message calls it."""

_ACKNOWLEDGE: Final = {
    "none": 0,
    "arrival": ACKNOWLEDGE_ARRIVAL,
    "receive": ACKNOWLEDGE_RECEIVE,
    "all": ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE,
}
_DELIVERIES: Final = ("express", "recoverable")


def properties_of(options: Options) -> dict[str, Any]:
    """What all messages have, as Message calls it.

    Raises:
        BadOption: Something is not what it can be.
    """
    given = dict(options.properties)
    found: dict[str, Any] = {"recoverable": True}
    if "delivery" in given:
        if given["delivery"].lower() not in _DELIVERIES:
            raise BadOption(
                f"option delivery: {given['delivery']!r} was found; one of "
                f"{', '.join(_DELIVERIES)} belongs there"
            )
        found["recoverable"] = given["delivery"].lower() == "recoverable"
    if "acknowledge" in given:
        if given["acknowledge"].lower() not in _ACKNOWLEDGE:
            raise BadOption(
                f"option acknowledge: {given['acknowledge']!r} was found; one of "
                f"{', '.join(_ACKNOWLEDGE)} belongs there"
            )
        found["acknowledge"] = _ACKNOWLEDGE[given["acknowledge"].lower()]
    names = {
        "label": "label",
        "priority": "priority",
        "timeToReachQueue": "time_to_reach_queue",
        "timeToBeReceived": "time_to_be_received",
        "journal": "journal",
        "deadLetter": "dead_letter",
        "responseQueue": "response_queue",
        "adminQueue": "admin_queue",
        "appTag": "app_specific",
    }
    found.update({names[name]: value for name, value in given.items() if name in names})
    return found


def pack_batch(batch: pa.RecordBatch, packer: Packer, common: dict[str, Any]) -> list[bytes]:
    """The packets of rows.

    Raises:
        MessageQueueError: A value is not what it can be; the text says which and why.
    """
    bodies = bodies_of(batch)
    columns = {PER_ROW[name]: batch.column(name) for name in batch.schema.names if name in PER_ROW}
    varying = {}
    for name, column in columns.items():
        unique = column.unique()
        if len(unique) == 1:
            value = unique[0].as_py()
            if value is not None:
                common = {**common, name: value}
        else:
            varying[name] = column.to_pylist()
    if not varying:
        pack = packer.kind_with(common).pack
        return [pack(body) for body in bodies]
    packets = []
    names = list(varying)
    for body, values in zip(bodies, zip(*varying.values(), strict=True), strict=True):
        own = {name: each for name, each in zip(names, values, strict=True) if each is not None}
        packets.append(packer.kind_with({**common, **own}).pack(body))
    return packets


def bodies_of(batch: pa.RecordBatch) -> Iterator[Any]:
    """What the messages say: `body` with its type, or `value`."""
    names = batch.schema.names
    values = batch.column("value").to_pylist() if "value" in names else [None] * batch.num_rows
    if "body" not in names:
        yield from values
        return
    bodies = batch.column("body").to_pylist()
    if "body_type" not in names:
        for body, value in zip(bodies, values, strict=True):
            yield value if body is None else body
        return
    for body, kind, value in zip(
        bodies, batch.column("body_type").to_pylist(), values, strict=True
    ):
        if body is None:
            yield value
        elif kind is None:
            yield body
        else:
            yield TypedBytes(kind, body)
