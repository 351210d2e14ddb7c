"""From messages as they lie in the store to Arrow, column by column.

The fields of [MS-MQMQ] 2.2.19 and 2.2.20 lie at places that depend on those before them. They are
found for all messages of a frame at once, each step one operation on arrays. Only what few messages
have, such as names of response queues, is read message by message.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merq.client.messages import ReceivedMessage
from merq.errors import MerqError, StoreError
from merq.model.body import VT_BSTR, VT_LPSTR, decode_body
from merq.model.delivered import Delivered
from merq.model.message_class import MessageClass
from merq.model.variant import VariantType
from merq.protocol.application.rows import RowsReport
from merq.spark.options import DROPMALFORMED, FAILFAST
from merq.spark.texts import texts_of

SEQUENCE_MASK: Final = (1 << 56) - 1
VT_LPWSTR: Final = int(VariantType.VT_LPWSTR)

_RECOVERABLE, _TRANSACTION, _SECURITY = 0x60, 1 << 20, 1 << 19
_CONNECTOR, _MULTI_QUEUE, _SOAP = 1 << 22, 1 << 23, 1 << 25
_ADMIN_QUEUE, _RESPONSE_QUEUE = 7 << 13 | _MULTI_QUEUE, 7 << 16 | _MULTI_QUEUE
_NAME_SIZES: Final = np.array([0, 0, 4, 4, 4, 16, 20, 0], dtype=np.int64)
_CRC_AT: Final = -24
_CHECKED_AT: Final = -16
_ARRIVAL_AT: Final = -12

Array = Any
"""An array of numpy's; what is in it depends on the data."""


class MalformedBody(MerqError):
    """A body that is not what its type says, and the mode is FAILFAST."""


class Frame:
    """The messages of one frame.

    Attributes:
        count: How many there are.
    """

    def __init__(self, rows: RowsReport, queue: str) -> None:
        self.count = rows.count
        self._queue = queue
        self._ids = np.frombuffer(rows.ids, dtype="<u8")
        self._at = np.frombuffer(rows.offsets, dtype="<u4").astype(np.int64)
        self._sizes = np.frombuffer(rows.sizes, dtype="<u4").astype(np.int64)
        self._notes = np.frombuffer(rows.notes, dtype="<u4").reshape(-1, 3)
        self._data = memoryview(rows.data[0] if len(rows.data) == 1 else b"".join(rows.data))
        size = len(self._data)
        # Numbers begin anywhere: each of these has one for every place in the data.
        self._u8 = np.frombuffer(self._data, dtype=np.uint8)
        self._u16 = np.ndarray((size - 1,), "<u2", self._data, strides=(1,))
        self._u32 = np.ndarray((size - 3,), "<u4", self._data, strides=(1,))
        # Two columns are made of these, and they take longer than all others together.
        self._texts_known: tuple[Array, list[int]] | None = None
        self._find()

    def verify(self) -> None:
        """Every message is as it was written.

        Raises:
            StoreError: One is not.
        """
        wanted = self._u32[self._at + _CRC_AT].tolist()
        starts, ends = self._at + _CHECKED_AT, self._at + self._sizes
        pieces = map(slice, starts.tolist(), ends.tolist())
        if list(map(crc32, map(self._data.__getitem__, pieces))) != wanted:
            raise StoreError(f"a message of {self._queue} is not as it was written")

    def _find(self) -> None:
        """Where everything begins."""
        at = self._at
        self._flags = flags = self._u32[at + 60].astype(np.int64)
        place = self._behind_name(at + 64, flags >> 10 & 7)
        self._others = flags & 0x0007E000
        if self._others.any():
            place = self._behind_name(place, flags >> 13 & 7)
            place = self._behind_name(place, flags >> 16 & 7)
        place = place + np.where(flags & _CONNECTOR, 16, 0)
        self._transaction_at = place
        is_there = flags & _TRANSACTION != 0
        if is_there.any():
            # [MS-MQMQ] 2.2.20.5: the first bit says that a connector's GUID follows.
            own = self._u8[np.where(is_there, place, at)]
            place = place + np.where(is_there, np.where(own & 1, 36, 20), 0)
        if (flags & _SECURITY).any():
            place = self._behind_security(place, flags & _SECURITY != 0)
        self._properties_at = place
        self._label_at = place + 56
        self._label_sizes = 2 * self._u8[place + 1].astype(np.int64)
        self._extension_at = self._label_at + self._label_sizes
        self._extension_sizes = self._u32[place + 52].astype(np.int64)
        self._body_at = self._extension_at + self._extension_sizes
        self._body_sizes = self._u32[place + 32].astype(np.int64)

    def _behind_name(self, place: Array, kinds: Array) -> Array:
        """Where what follows a queue's name begins; a direct name says its own size."""
        sizes = self._u16[place].astype(np.int64)
        direct = (place - self._at + 2 + sizes + 3 & ~3) + self._at
        return np.where(kinds == 7, direct, place + _NAME_SIZES[kinds])

    def _behind_security(self, place: Array, is_there: Array) -> Array:
        """[MS-MQMQ] 2.2.20.6: a header of 16 bytes, then what it says the sizes of."""
        safe = np.where(is_there, place, self._at)
        total = np.full(self.count, 16, dtype=np.int64)
        for offset in (2, 4, 6):
            total += self._u16[safe + offset].astype(np.int64) + 3 & ~3
        for offset in (8, 12):
            total += self._u32[safe + offset].astype(np.int64) + 3 & ~3
        return np.where(is_there, place + total, place)

    # Columns.

    def batch(self, names: Iterable[str], mode: str) -> pa.RecordBatch:
        """These columns of all messages.

        Raises:
            MalformedBody: A body is not what its type says, and the mode is FAILFAST.
        """
        names = tuple(names)
        columns = [_COLUMNS[name](self) for name in names if name != "value"]
        malformed: list[int] = []
        if "value" in names or mode != "PERMISSIVE":
            values, malformed = self._values()
            if "value" in names:
                columns.insert(names.index("value"), values)
        batch = pa.RecordBatch.from_arrays(columns, names=list(names))
        if malformed and mode == FAILFAST:
            raise MalformedBody(
                f"message {self.column('message_id')[malformed[0]]} of {self._queue}: its body is "
                "not the text that its type says; read with mode PERMISSIVE to get it as bytes"
            )
        if malformed and mode == DROPMALFORMED:
            kept = np.ones(self.count, dtype=bool)
            kept[malformed] = False
            batch = batch.filter(pa.array(kept))
        return batch

    def column(self, name: str) -> Array:
        """One column."""
        return _COLUMNS[name](self)

    def _constant(self, value: object, kind: pa.DataType) -> Array:
        return pa.repeat(pa.scalar(value, kind), self.count)

    def _queues(self) -> Array:
        return self._constant(self._queue, pa.string())

    def _lookup_ids(self) -> Array:
        return pa.array(self._ids.view(np.int64))

    def _sequences(self) -> Array:
        return pa.array((self._ids & np.uint64(SEQUENCE_MASK)).view(np.int64))

    def _guid_texts(self) -> list[str]:
        """The queue managers that the messages are from; one alone if they are all from it."""
        heads = np.ndarray((len(self._u8) - 15,), "V16", self._data, strides=(1,))[self._at + 16]
        first = bytes(heads[0])
        if heads.tobytes() == first * self.count:
            return [str(uuid.UUID(bytes_le=first))]
        texts = {each: str(uuid.UUID(bytes_le=each)) for each in set(map(bytes, heads))}
        return [texts[bytes(each)] for each in heads]

    def _guids(self) -> Array:
        texts = self._guid_texts()
        if len(texts) == 1:
            return self._constant(texts[0], pa.string())
        return pa.array(texts, pa.string())

    def _numbered(self, numbers: Array) -> Array:
        """Identifiers of a queue manager and a number."""
        guids = self._guid_texts()
        if len(guids) == 1:
            head = pa.scalar(f"{{{guids[0]}}}\\")
            return pc.binary_join_element_wise(head, pa.array(numbers).cast(pa.string()), "")
        pairs = zip(guids, numbers.tolist(), strict=True)
        return pa.array([f"{{{guid}}}\\{number}" for guid, number in pairs], pa.string())

    def _message_ids(self) -> Array:
        return self._numbered(self._u32[self._at + 56])

    def _labels(self) -> Array:
        return self._texts(self._label_at, np.maximum(self._label_sizes - 2, 0))

    def _texts(self, starts: Array, sizes: Array) -> Array:
        """UTF-16 as text."""
        if not sizes.any():
            return self._constant("", pa.string())
        data = self._data
        first, size = int(starts[0]), int(sizes[0])
        if (sizes == size).all():
            same = bytes(data[first : first + size])
            pieces = [bytes(data[start : start + size]) for start in starts.tolist()]
            if all(each == same for each in pieces):
                return self._constant(_text(same), pa.string())
            return pa.array([_text(each) for each in pieces], pa.string())
        pairs = zip(starts.tolist(), sizes.tolist(), strict=True)
        return pa.array([_text(bytes(data[at : at + size])) for at, size in pairs], pa.string())

    def _binary(self, starts: Array, sizes: Array) -> Array:
        """Pieces of the data, one behind the other."""
        data = self._data
        size = int(sizes[0])
        joined: Any
        if size and (sizes == size).all():
            # All at once: each place of the data as a piece of that size.
            pieces = np.ndarray((len(self._u8) - size + 1,), f"V{size}", data, strides=(1,))
            joined = pieces[starts]
        else:
            ends = (starts + sizes).tolist()
            joined = b"".join([data[at:end] for at, end in zip(starts.tolist(), ends, strict=True)])
        offsets = np.zeros(self.count + 1, dtype=np.int32)
        np.cumsum(sizes, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(joined)]
        return pa.Array.from_buffers(pa.binary(), self.count, buffers)

    def _bodies(self) -> Array:
        return self._binary(self._body_at, self._body_sizes)

    def _body_types(self) -> Array:
        return pa.array(self._u32[self._properties_at + 24].astype(np.int32))

    def _values(self) -> tuple[Array, list[int]]:
        """Bodies as text, and which of them are none though their types say so."""
        if self._texts_known is None:
            self._texts_known = self._decoded()
        return self._texts_known

    def _decoded(self) -> tuple[Array, list[int]]:
        kinds = self._u32[self._properties_at + 24]
        rows = np.flatnonzero((kinds == VT_LPWSTR) | (kinds == VT_BSTR) | (kinds == VT_LPSTR))
        if not len(rows):
            return pa.nulls(self.count, pa.string()), []
        texts: list[str | None] = [None] * self.count
        malformed = []
        data = self._data
        starts, ends = self._body_at.tolist(), (self._body_at + self._body_sizes).tolist()
        for row in rows.tolist():
            found = decode_body(int(kinds[row]), bytes(data[starts[row] : ends[row]]))
            # Bytes are what it gives if they are no text; half a pair of surrogates is none either.
            if isinstance(found, str) and _readable(found) == found:
                texts[row] = found
            else:
                malformed.append(row)
        return pa.array(texts, pa.string()), malformed

    def _body_texts(self) -> Array:
        kinds = self._u32[self._properties_at + 24]
        return texts_of(kinds, self._bodies(), self._values()[0])

    def _priorities(self) -> Array:
        # [MS-MQDMPR] 3.1.7.1.32: whoever receives a transactional message ignores its bits.
        bits = np.where(self._flags & _TRANSACTION, 0, self._u16[self._at + 2] & 7)
        return pa.array(bits.astype(np.int32))

    def _deliveries(self) -> Array:
        numbers = np.where(self._flags & _RECOVERABLE, 1, 0)
        numbers = np.where(self._flags & _TRANSACTION, 2, numbers)
        if (numbers == numbers[0]).all():
            return self._constant(_DELIVERIES[int(numbers[0])], pa.string())
        return pa.array([_DELIVERIES[each] for each in numbers.tolist()], pa.string())

    def _classes(self) -> Array:
        numbers = self._u16[self._properties_at + 2]
        if (numbers == numbers[0]).all():
            return self._constant(class_name(int(numbers[0])), pa.string())
        return pa.array([class_name(each) for each in numbers.tolist()], pa.string())

    def _correlation_ids(self) -> Array:
        return self._binary(self._properties_at + 4, np.full(self.count, 20, dtype=np.int64))

    def _sent_times(self) -> Array:
        return _timestamps(self._u32[self._at + 52])

    def _arrived_times(self) -> Array:
        return _timestamps(self._u32[self._at + _ARRIVAL_AT])

    def _app_tags(self) -> Array:
        return pa.array(self._u32[self._properties_at + 28].astype(np.int64))

    def _transaction_ids(self) -> Array:
        is_there = self._flags & _TRANSACTION != 0
        if not is_there.any():
            return pa.nulls(self.count, pa.string())
        place = np.where(is_there, self._transaction_at, self._at)
        found = self._numbered(self._u32[place] >> 4 & 0xFFFFF)
        return pc.if_else(pa.array(is_there), found, pa.scalar(None, pa.string()))

    def _in_transaction(self, bit: int) -> Array:
        is_there = self._flags & _TRANSACTION != 0
        if not is_there.any():
            return pa.nulls(self.count, pa.bool_())
        place = np.where(is_there, self._transaction_at, self._at)
        return pa.array((self._u32[place] >> bit & 1).astype(bool), mask=~is_there)

    def _extensions(self) -> Array:
        return self._binary(self._extension_at, self._extension_sizes)

    def _noted(self, column: int) -> Array:
        """A count that only messages with notes have; it is 0 for the others."""
        counts = np.zeros(self.count, dtype=np.int32)
        counts[self._notes[:, 0]] = self._notes[:, column]
        return pa.array(counts)

    def _rare(self, rows: Array, read: Callable[[ReceivedMessage], object], kind: Any) -> Array:
        """What is read message by message, for those that have it."""
        found: list[object] = [None] * self.count
        data = self._data
        for row in np.flatnonzero(rows).tolist():
            at = int(self._at[row])
            packet = bytes(data[at : at + int(self._sizes[row])])
            value = read(ReceivedMessage(Delivered(packet, 0, 0, 0)))
            found[row] = (_readable(value) if isinstance(value, str) else value) or None
        return pa.array(found, kind)

    def _response_queues(self) -> Array:
        return self._rare(
            self._flags & _RESPONSE_QUEUE, lambda each: each.response_queue, pa.string()
        )

    def _admin_queues(self) -> Array:
        return self._rare(self._flags & _ADMIN_QUEUE, lambda each: each.admin_queue, pa.string())

    def _sender_ids(self) -> Array:
        return self._rare(self._flags & _SECURITY, _sender_id, pa.binary())

    def _soap_envelopes(self) -> Array:
        return self._rare(self._flags & _SOAP, _soap_envelope, pa.string())

    def _destinations(self) -> Array:
        direct = self._flags >> 10 & 7 == 7
        starts, sizes = self._at + 66, self._u16[self._at + 64].astype(np.int64) - 2
        if direct.all():
            names = self._texts(starts, sizes)
            return pc.binary_join_element_wise("DIRECT=", names, "")
        return self._rare(np.ones(self.count), lambda each: each.destination_queue, pa.string())


def _timestamps(seconds: Array) -> Array:
    microseconds = seconds.astype(np.int64) * 1_000_000
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))


def _text(data: bytes) -> str:
    return data.decode("utf-16-le", "replace")


def _readable(text: str) -> str:
    """Arrow's text cannot have half a pair of surrogates, which MSMQ's can."""
    return text if text.isascii() else _text(text.encode("utf-16-le", "surrogatepass"))


def class_name(number: int) -> str:
    """The name of a message class, or its number."""
    found = MessageClass.of(number)
    return f"{number:#06x}" if found is None else found.name


def _sender_id(message: ReceivedMessage) -> bytes | None:
    header = message.details.security_header
    return None if header is None else bytes(header.security_id or b"")


def _soap_envelope(message: ReceivedMessage) -> str | None:
    header = message.details.srmp_envelope_header
    return None if header is None else header.envelope.data


_DELIVERIES: Final = ("express", "recoverable", "transactional")
_COLUMNS: Final[dict[str, Callable[[Frame], Array]]] = {
    "queue": Frame._queues,
    "message_id": Frame._message_ids,
    "lookup_id": Frame._lookup_ids,
    "sequence": Frame._sequences,
    "label": Frame._labels,
    "body": Frame._bodies,
    "body_type": Frame._body_types,
    "value": lambda frame: frame._values()[0],
    "priority": Frame._priorities,
    "delivery": Frame._deliveries,
    "class": Frame._classes,
    "correlation_id": Frame._correlation_ids,
    "sent_time": Frame._sent_times,
    "arrived_time": Frame._arrived_times,
    "source_qm": Frame._guids,
    "response_queue": Frame._response_queues,
    "admin_queue": Frame._admin_queues,
    "app_tag": Frame._app_tags,
    "sender_id": Frame._sender_ids,
    "transaction_id": Frame._transaction_ids,
    "first_in_xact": lambda frame: frame._in_transaction(2),
    "last_in_xact": lambda frame: frame._in_transaction(3),
    "extension": Frame._extensions,
    "abort_count": lambda frame: frame._noted(1),
    "move_count": lambda frame: frame._noted(2),
    "soap_envelope": Frame._soap_envelopes,
    "destination": Frame._destinations,
    "body_text": Frame._body_texts,
}
