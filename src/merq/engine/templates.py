"""Rows that have most in common become messages: a template is checked once, for all of its rows.

What comes out is, byte for byte, what the same packets would become if each came on its own. A
template is a packet without a body, without headers behind the body, and without security, so that
what a row adds cannot change what was checked: it is a body, a label without null characters, and
fields of which any value will do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from operator import add
from typing import Final, NamedTuple

from merq.errors import MessageQueueError, WireError
from merq.hresult import HResult
from merq.model.row_batch import TAG_SIZE, TEMPLATES_MAX, RowBatch
from merq.wire.build import TRANSACTION_HEADER_SIZE, TransactionPlace, transaction_header
from merq.wire.headers import PACKET_SIZE_MAX, SIGNATURE
from merq.wire.properties import LABEL_LENGTH_MAX
from merq.wire.refusing import refusal
from merq.wire.view import MessageView

_PLAIN_MASK: Final = 0xFFF80000
_PLAIN: Final = 1 << 21
"""[MS-MQMQ] 2.2.19.2: of headers, a template has MessagePropertiesHeader and nothing else."""

_BASE_PLAIN: Final = 0x0007
"""[MS-MQMQ] 2.2.19.1: of BaseHeader's flags, a template says the priority and nothing else."""

_TRANSACTIONAL: Final = 1 << 20 | 1 << 5
"""[MS-MQMQ] 2.2.19.2: a TransactionHeader is there, and the message is recoverable."""

_TAG_AT: Final = 4
_SIZES_AT: Final = _TAG_AT + TAG_SIZE
_FIXED_SIZE: Final = 56
"""[MS-MQMQ] 2.2.19.3: where a row's own fields, the sizes of its body, and its label are."""

_NUMBERS_AT: Final = 12
"""[MS-MQMQ] 2.2.20.5: where a TransactionHeader says which message of its sequence this is."""

_HEAD: Final = struct.Struct("<HI")
_PLACE: Final = struct.Struct("<II")
_U32: Final = struct.Struct("<I")
_FILLING: Final = (b"", b"\0\0\0", b"\0\0", b"\0")


class Rows(NamedTuple):
    """A batch that was found to be in order.

    Attributes:
        views: Its templates.
        kinds: Which of them each row has; empty if all have the first.
        body_sizes: How long each body is.
        sizes: How long each packet will be.
        total: How long they will be together.
    """

    batch: RowBatch
    views: list[MessageView]
    kinds: bytes
    body_sizes: tuple[int, ...]
    sizes: list[int]
    total: int


class Stamp(NamedTuple):
    """What the queue manager says in messages.

    Attributes:
        queue: Where they come, by its number.
        source: This queue manager.
        now: When it is, in seconds since 1970.
        transaction: The first message's place in its transaction, the others follow it; None if
            they are in none.
    """

    queue: int
    source: bytes
    now: int
    transaction: TransactionPlace | None


# Looking.


def checked_rows(batch: RowBatch, *, is_transactional: bool) -> Rows:
    """The batch, if all of its rows can become messages.

    Raises:
        MessageQueueError: They cannot; the text says why, and which row if it is one.
    """
    _check_columns(batch)
    views = [_checked_template(each, batch) for each in batch.templates]
    if batch.kinds and max(batch.kinds) >= len(views):
        raise _wrong(f"a row has template {max(batch.kinds)}, counted from 0, of {len(views)}")
    body_sizes: tuple[int, ...] = struct.unpack(f"<{batch.count}I", batch.body_sizes)
    if sum(body_sizes) != len(batch.bodies):
        raise _wrong(f"bodies of {sum(body_sizes)} bytes, but {len(batch.bodies)} are there")
    if batch.label_sizes:
        _check_labels(batch)
    added = TRANSACTION_HEADER_SIZE if is_transactional else 0
    fixed = [view.body_at + added for view in views]
    if len(views) == 1 and not batch.label_sizes:
        before = fixed[0] + 3
        sizes = [before + size & ~3 for size in body_sizes]
    else:
        befores = _befores(batch, fixed)
        sizes = [before + size & ~3 for before, size in zip(befores, body_sizes, strict=True)]
    largest = max(sizes)
    if largest > PACKET_SIZE_MAX:
        raise MessageQueueError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"the packet of row {sizes.index(largest)} would have {largest} bytes, at most "
            f"{PACKET_SIZE_MAX} may travel",
        )
    kinds = batch.kinds if len(views) > 1 else b""
    return Rows(batch, views, kinds, body_sizes, sizes, sum(sizes))


def _befores(batch: RowBatch, fixed: list[int]) -> list[int]:
    """What each packet has before its body, and 3 for what fills it up."""
    kinds = batch.kinds or bytes(batch.count)
    if not batch.label_sizes:
        return [fixed[kind] + 3 for kind in kinds]
    return [
        fixed[kind] + 3 + (2 * characters + 2 if characters else 0)
        for kind, characters in zip(kinds, batch.label_sizes, strict=True)
    ]


def _check_columns(batch: RowBatch) -> None:
    rows = batch.count
    if not 1 <= len(batch.templates) <= TEMPLATES_MAX:
        raise _wrong(f"{len(batch.templates)} templates; from 1 to {TEMPLATES_MAX} can be")
    if len(batch.body_sizes) != 4 * rows or not rows:
        raise _wrong(f"sizes of {len(batch.body_sizes) // 4} bodies for {rows} rows")
    for name, column, size in (
        ("kinds", batch.kinds, 1),
        ("tags", batch.tags, TAG_SIZE),
        ("label_sizes", batch.label_sizes, 1),
    ):
        if column and len(column) != size * rows:
            raise _wrong(f"{name} has {len(column)} bytes for {rows} rows of {size}")
    if len(batch.templates) > 1 and not batch.kinds:
        raise _wrong(f"{len(batch.templates)} templates, and no row says which is its own")
    if batch.labels and not batch.label_sizes:
        raise _wrong("labels are there, but not their sizes")


def _checked_template(packet: bytes, batch: RowBatch) -> MessageView:
    try:
        view = MessageView(packet)
    except WireError as wrong:
        raise refusal(wrong) from wrong
    at = view.body_at
    if (
        view.user_flags & _PLAIN_MASK != _PLAIN
        or view.base_flags & ~_BASE_PLAIN
        or view.body_size
        or len(packet) != at + 3 & ~3
        or len(packet) != view.packet_size
    ):
        raise _wrong(
            "a template has a body, security, or headers that are for the queue manager to say: "
            "send such messages as packets"
        )
    if batch.label_sizes and packet[view.properties_at + 1]:
        raise _wrong("a template has a label, and rows have labels of their own")
    return view


def _check_labels(batch: RowBatch) -> None:
    sizes, labels = batch.label_sizes, batch.labels
    if 2 * sum(sizes) != len(labels):
        raise _wrong(f"labels of {2 * sum(sizes)} bytes, but {len(labels)} are there")
    longest = max(sizes)
    if longest >= LABEL_LENGTH_MAX:
        raise MessageQueueError(
            HResult.MQ_ERROR_LABEL_TOO_LONG,
            f"the label of row {sizes.index(longest)} has {longest} characters, at most "
            f"{LABEL_LENGTH_MAX - 1} fit",
        )
    # Nearly no text has two zeros in a row; where one has, it is looked at by characters.
    if b"\0\0" in labels and "\0" in labels.decode("utf-16-le", "surrogatepass"):
        found = next(n for n in range(0, len(labels), 2) if labels[n : n + 2] == b"\0\0")
        row = 0
        while found >= 2 * sizes[row]:
            found -= 2 * sizes[row]
            row += 1
        raise MessageQueueError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE,
            f"label: a null character stands inside that of row {row}",
        )


def _wrong(text: str) -> MessageQueueError:
    return MessageQueueError(HResult.MQ_ERROR_INVALID_PARAMETER, text)


# Making.


class _Columns(NamedTuple):
    """What is put between the constants of a template, for each row; None is as the template says.

    Attributes:
        numbers: Of each in its transaction; None if it is in none.
        characters: Of each label.
        labels: With a null at the end of each.
    """

    lookup_ids: Sequence[int]
    sizes: Sequence[int]
    ordinals: Sequence[int]
    body_sizes: Sequence[int]
    numbers: Sequence[int] | None
    tags: Sequence[bytes] | None
    characters: bytes
    labels: Sequence[bytes] | None

    def of(self, rows: list[int]) -> _Columns:
        """Some of the rows."""
        return _Columns(
            [self.lookup_ids[row] for row in rows],
            [self.sizes[row] for row in rows],
            [self.ordinals[row] for row in rows],
            [self.body_sizes[row] for row in rows],
            None if self.numbers is None else [self.numbers[row] for row in rows],
            None if self.tags is None else [self.tags[row] for row in rows],
            bytes([self.characters[row] for row in rows]) if self.characters else b"",
            None if self.labels is None else [self.labels[row] for row in rows],
        )


class _Mould:
    """A template as constants, and how rows are put between them."""

    __slots__ = (
        "_base",
        "_extension",
        "_middle",
        "_names",
        "_pack",
        "_place",
        "_said",
        "_tag",
        "_tail",
    )

    def __init__(self, view: MessageView, stamp: Stamp, *, labelled: bool) -> None:
        packet = view.packet
        names_end, at = view.user_header_end, view.properties_at
        flags, priority, header, numbers = view.user_flags, view.base_flags, b"", ""
        if stamp.transaction is not None:
            flags |= _TRANSACTIONAL
            priority, numbers = 0, "II"
            header = transaction_header(stamp.transaction)[:_NUMBERS_AT]
        self._place = _PLACE.pack(stamp.queue, stamp.now)
        self._base = packet[:2] + _HEAD.pack(priority, SIGNATURE)
        self._middle = packet[12:16] + stamp.source + packet[32:52] + _U32.pack(stamp.now)
        self._names = _U32.pack(flags) + packet[64:names_end] + header
        self._said = packet[at : at + _TAG_AT]
        self._tag = packet[at + _TAG_AT : at + _SIZES_AT]
        end = at + _FIXED_SIZE if labelled else view.body_at
        self._tail = packet[at + _SIZES_AT + 8 : end]
        self._extension = packet[end : view.body_at]
        self._pack = struct.Struct(
            f"<8sQ8sI{len(self._middle)}sI{len(self._names)}s{numbers}{_TAG_AT}s{TAG_SIZE}sII"
            f"{len(self._tail)}s"
        ).pack

    def heads(self, rows: _Columns) -> list[bytes]:
        """What a PUT says of each row before its body. The loop is one in C."""
        numbers: tuple[Iterable[int], ...] = ()
        if rows.numbers is not None:
            numbers = rows.numbers, [number - 1 for number in rows.numbers]
        heads: Iterator[bytes] = map(
            self._pack,
            repeat(self._place),
            rows.lookup_ids,
            repeat(self._base),
            rows.sizes,
            repeat(self._middle),
            rows.ordinals,
            repeat(self._names),
            *numbers,
            self._said_of(rows.characters),
            repeat(self._tag) if rows.tags is None else rows.tags,
            rows.body_sizes,
            rows.body_sizes,
            repeat(self._tail),
        )
        if rows.labels is not None:
            heads = map(add, heads, rows.labels)
            if self._extension:
                heads = map(add, heads, repeat(self._extension))
        return list(heads)

    def _said_of(self, characters: bytes) -> Iterable[bytes]:
        """The first fields of the properties, one of which is the label's length."""
        said = self._said
        if not characters:
            return repeat(said)
        known = {
            each: said[:1] + (each + 1 if each else 0).to_bytes(1, "little") + said[2:]
            for each in set(characters)
        }
        return [known[each] for each in characters]


def made_packets(
    rows: Rows, stamp: Stamp, lookup_ids: Sequence[int], ordinals: Sequence[int]
) -> tuple[list[bytes], list[bytes]]:
    """For each row what a PUT says before the message's body, and its body, filled up.

    Raises:
        WireError: A number does not fit its field.
    """
    batch = rows.batch
    numbers = None
    if stamp.transaction is not None:
        first = stamp.transaction
        end = first.sequence_number + batch.count
        transaction_header(first._replace(sequence_number=end - 1))
        numbers = range(first.sequence_number, end)
    columns = _Columns(
        lookup_ids,
        rows.sizes,
        ordinals,
        rows.body_sizes,
        numbers,
        _cut(batch.tags, repeat(TAG_SIZE, batch.count)) if batch.tags else None,
        batch.label_sizes,
        _ended_labels(batch) if batch.label_sizes else None,
    )
    labelled = bool(batch.label_sizes)
    moulds = [_Mould(view, stamp, labelled=labelled) for view in rows.views]
    if len(moulds) == 1:
        heads = moulds[0].heads(columns)
        return heads, _bodies(rows, heads)
    heads = [b""] * batch.count
    of_kind: dict[int, list[int]] = {}
    for row, kind in enumerate(rows.kinds):
        of_kind.setdefault(kind, []).append(row)
    for kind, some in of_kind.items():
        for row, head in zip(some, moulds[kind].heads(columns.of(some)), strict=True):
            heads[row] = head
    return heads, _bodies(rows, heads)


def _cut(data: bytes, sizes: Iterable[int]) -> list[bytes]:
    """Bytes as pieces of these sizes."""
    ends = list(accumulate(sizes))
    return list(map(data.__getitem__, map(slice, chain((0,), ends), ends)))


def _ended_labels(batch: RowBatch) -> list[bytes]:
    cut = _cut(batch.labels, [2 * size for size in batch.label_sizes])
    return [each + b"\0\0" if each else each for each in cut]


def _bodies(rows: Rows, heads: list[bytes]) -> list[bytes]:
    """Each body with what fills its packet up."""
    bodies = _cut(rows.batch.bodies, rows.body_sizes)
    lengths = map(add, map(len, heads), rows.body_sizes)
    fillings = [length & 3 for length in lengths]
    if any(fillings):
        pairs = zip(bodies, fillings, strict=True)
        bodies = [body + _FILLING[filling] if filling else body for body, filling in pairs]
    return bodies
