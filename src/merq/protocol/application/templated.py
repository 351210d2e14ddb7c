"""Messages that have most in common: the SEND_ROWS frame, and back.

| size | |
|---|---|
| 4 | the stage that they are written into |
| 4 | count, the number of messages |
| 2 | how many templates there are |
| 2 | 0 |
| 4 | what all labels take |
| 4 each | the sizes of the templates |
| 1 each | which template each message has, counted from 0; if flag 0x01 is set |
| 28 each | correlation id, body type and application tag of each; if flag 0x02 is set |
| 1 each | the characters of each label; if flag 0x04 is set |
| 4 each | the sizes of the bodies |
| | the templates, the labels, the bodies |

Here it is only made sure that each part is there. Whether they fit each other is for the queue
manager to say, and is no reason to end the conversation.
"""

from __future__ import annotations

from struct import Struct, unpack_from
from typing import Final

from merq.errors import WireError
from merq.model.row_batch import TAG_SIZE, TEMPLATES_MAX, RowBatch
from merq.protocol.application.batches import MESSAGES_MAX, need_within
from merq.protocol.application.frames import HEADER_SIZE, Frame, Kind, frame
from merq.protocol.application.requests import SendRows

KINDS: Final = 0x01
TAGS: Final = 0x02
LABELS: Final = 0x04
"""Flags of SEND_ROWS: which columns there are."""

_SEND_ROWS: Final = Struct("<IIHHI")  # stage, count, templates, 0, size of the labels


def encode_send_rows(number: int, request: SendRows, received: int) -> bytes:
    """Messages that have most in common, as a frame."""
    rows = request.rows
    flags = 0
    for flag, column in ((KINDS, rows.kinds), (TAGS, rows.tags), (LABELS, rows.label_sizes)):
        if column:
            flags |= flag
    templates = rows.templates
    return frame(
        Kind.SEND_ROWS,
        number,
        _SEND_ROWS.pack(request.stage, rows.count, len(templates), 0, len(rows.labels)),
        Struct(f"<{len(templates)}I").pack(*map(len, templates)),
        rows.kinds,
        rows.tags,
        rows.label_sizes,
        rows.body_sizes,
        *templates,
        rows.labels,
        rows.bodies,
        flags=flags,
        received=received,
    )


def decode_send_rows(found: Frame) -> SendRows:
    """Messages that have most in common.

    Raises:
        WireError: It is not so.
    """
    body, end, flags = found.buffer, found.end, found.flags
    at = found.start + HEADER_SIZE
    need_within(at + _SEND_ROWS.size, end)
    stage, count, templates, zero, labels_size = _SEND_ROWS.unpack_from(body, at)
    at += _SEND_ROWS.size
    if not 1 <= count <= MESSAGES_MAX or not 1 <= templates <= TEMPLATES_MAX:
        raise WireError(
            f"{count} messages of {templates} templates; from 1 to {MESSAGES_MAX} of up to "
            f"{TEMPLATES_MAX} can be sent",
            field="count",
        )
    if flags & ~(KINDS | TAGS | LABELS) or zero:
        raise WireError(f"flags {flags:#x}, and {zero:#x} where 0 belongs", field="flags")
    need_within(at + 4 * templates, end)
    sizes = list(unpack_from(f"<{templates}I", body, at))
    at += 4 * templates
    columns = [
        count if flags & KINDS else 0,
        TAG_SIZE * count if flags & TAGS else 0,
        count if flags & LABELS else 0,
        4 * count,
        *sizes,
        labels_size,
    ]
    need_within(at + sum(columns), end)
    parts = []
    for size in columns:
        parts.append(body[at : at + size])
        at += size
    kinds, tags, label_sizes, body_sizes = parts[:4]
    return SendRows(
        stage,
        RowBatch(
            count=count,
            templates=tuple(parts[4:-1]),
            kinds=kinds,
            tags=tags,
            label_sizes=label_sizes,
            labels=parts[-1],
            body_sizes=body_sizes,
            bodies=body[at:end],
        ),
    )
