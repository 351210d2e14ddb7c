"""Batches of rows from packets, and back, one row at a time and without hurry."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from merq.model.row_batch import RowBatch
from merq.wire.view import MessageView

TAG_AT, SIZES_AT, LABEL_AT = 4, 32, 56
"""Places in the MessagePropertiesHeader."""


def sized(head: bytes, properties_at: int, body: bytes) -> bytes:
    """A packet whose headers are these, with this body."""
    size = struct.pack("<I", len(head) + len(body) + 3 & ~3)
    at = properties_at + SIZES_AT
    lengths = struct.pack("<II", len(body), len(body))
    whole = head[:8] + size + head[12:at] + lengths + head[at + 8 :] + body
    return whole + bytes(-len(whole) % 4)


def without_body(packet: bytes) -> bytes:
    """A packet as a template."""
    view = MessageView(packet)
    return sized(packet[: view.body_at], view.properties_at, b"")


def batch_of(packets: Sequence[bytes]) -> RowBatch:
    """Packets as rows, each of the template that it has in common with others."""
    views = [MessageView(each) for each in packets]
    templates: dict[bytes, int] = {}
    kinds = [templates.setdefault(without_body(each), len(templates)) for each in packets]
    return RowBatch(
        count=len(packets),
        templates=tuple(templates),
        kinds=bytes(kinds) if len(templates) > 1 else b"",
        tags=b"",
        label_sizes=b"",
        labels=b"",
        body_sizes=struct.pack(f"<{len(views)}I", *(view.body_size for view in views)),
        bodies=b"".join(view.body for view in views),
    )


def packets_of(batch: RowBatch) -> list[bytes]:
    """The packets that the rows of a batch stand for."""
    found = []
    label_at = body_at = 0
    for row in range(batch.count):
        template = batch.templates[batch.kinds[row] if batch.kinds else 0]
        view = MessageView(template)
        at = view.properties_at
        head = template[: view.body_at]
        if batch.tags:
            tag = batch.tags[28 * row : 28 * row + 28]
            head = head[: at + TAG_AT] + tag + head[at + SIZES_AT :]
        if batch.label_sizes and batch.label_sizes[row]:
            characters = batch.label_sizes[row]
            label = batch.labels[label_at : label_at + 2 * characters] + b"\0\0"
            label_at += 2 * characters
            head = head[: at + LABEL_AT] + label + head[at + LABEL_AT :]
            head = head[: at + 1] + bytes([characters + 1]) + head[at + 2 :]
        (size,) = struct.unpack_from("<I", batch.body_sizes, 4 * row)
        found.append(sized(head, at, batch.bodies[body_at : body_at + size]))
        body_at += size
    return found
