"""Packets by the position of their record, from the log, the latest from memory."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from typing import Final

from merq.engine.ports import HEAD_SIZE
from merq.engine.records import PUT_HEADER_SIZE, read_put
from merq.errors import StoreError
from merq.host.spans import spans
from merq.store.log import Log
from merq.store.records import checked_records

CACHE_BYTES: Final = 64 << 20
"""Packets that were written lately are kept in memory up to this."""

APART_BYTES: Final = 8 << 10
"""Packets that have more on average are not read to their ends to get their first bytes."""

_SEGMENT_SPAN: Final = 1 << 32
"""Positions of one segment; the number of the segment is above."""


class LogPackets:
    """What the engine needs of the log."""

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._log: Log | None = None
        self._cache: OrderedDict[int, tuple[int, bytes]] = OrderedDict()
        self._cached = 0
        self._most = cache_bytes
        self._living: dict[int, int] = {}

    def attach(self, log: Log) -> None:
        """The log is open: what was counted while it was read is counted there."""
        self._log = log
        for segment, size in self._living.items():
            if size:
                log.keep(segment << 32, size)
        self._living.clear()

    def remember(self, position: int, arrival: int, packet: bytes) -> None:
        """A packet that was just written."""
        self._cache[position] = (arrival, packet)
        self._cached += len(packet)
        while self._cached > self._most:
            _, oldest = self._cache.popitem(last=False)
            self._cached -= len(oldest[1])

    def remember_many(
        self, positions: tuple[int, ...], first: int, arrival: int, packets: list[bytes]
    ) -> None:
        """Packets that were just written, the first of them at this place among the positions."""
        cache = self._cache
        at = first
        for packet in packets:
            cache[positions[at]] = (arrival, packet)
            self._cached += len(packet)
            at += 1
        while self._cached > self._most:
            _, oldest = cache.popitem(last=False)
            self._cached -= len(oldest[1])

    def read(self, position: int, size: int) -> tuple[int, bytes]:
        """When the message in the record there arrived, and its packet."""
        found = self._cache.get(position)
        if found is not None:
            return found
        assert self._log is not None, "packets are read when the log is open"
        data = self._log.read(position, PUT_HEADER_SIZE + size)
        return read_put(data).arrival, data[PUT_HEADER_SIZE:]

    def heads(self, positions: array[int], sizes: array[int]) -> list[bytes]:
        """The first bytes of packets, `HEAD_SIZE` of them; they are not checked."""
        assert self._log is not None, "packets are read when the log is open"
        if sum(sizes) > APART_BYTES * len(sizes):
            read = self._log.read_raw
            return [read(position + PUT_HEADER_SIZE, HEAD_SIZE) for position in positions]
        found: list[bytes] = []
        for span in spans(positions, sizes, PUT_HEADER_SIZE):
            data = self._log.read_raw(span.position, span.size)
            skipped = span.position - PUT_HEADER_SIZE
            end = skipped - HEAD_SIZE
            found += [data[at - skipped : at - end] for at in positions[span.first : span.end]]
        return found

    def records(self, positions: array[int], sizes: array[int]) -> list[bytes | None]:
        """The data of records that have packets; None for one that is not as it was written."""
        assert self._log is not None, "packets are read when the log is open"
        found: list[bytes | None] = []
        for span in spans(positions, sizes, PUT_HEADER_SIZE):
            rows = slice(span.first, span.end)
            try:
                data = self._log.read_raw(span.position, span.size)
            except StoreError:
                found += [None] * (span.end - span.first)
                continue
            lengths = [PUT_HEADER_SIZE + size for size in sizes[rows]]
            found += checked_records(data, span.position, positions[rows], lengths)
        return found

    def remains(self, position: int, size: int) -> bytes:
        """What is there of a packet, as it was written or not."""
        return self.read_raw(position + PUT_HEADER_SIZE, size)

    def read_raw(self, position: int, size: int) -> bytes:
        """A piece of the log."""
        assert self._log is not None, "packets are read when the log is open"
        return self._log.read_raw(position, size)

    def keep(self, position: int, size: int) -> None:
        """The packet is needed."""
        if self._log is None:
            self._count(position >> 32, size)
        else:
            self._log.keep(position, size)

    def keep_all(self, positions: array[int], sizes: array[int]) -> None:
        """All these packets are needed; this is for opening, when they are counted only."""
        # Neighbours nearly always lie in the same segment: they are summed up before they count.
        segment, end, total = 0, 0, 0
        for position, size in zip(positions, sizes, strict=True):
            if not end - _SEGMENT_SPAN <= position < end:
                self._count(segment, total)
                segment, total = position >> 32, 0
                end = segment + 1 << 32
            total += size
        self._count(segment, total)

    def _count(self, segment: int, size: int) -> None:
        if size:
            self._living[segment] = self._living.get(segment, 0) + size

    def release_all(self, positions: array[int], sizes: array[int], size: int) -> None:
        """Packets that lie in one segment are needed no more; `size` is of all of them."""
        cache = self._cache
        for position, each in zip(positions, sizes, strict=True):
            if cache.pop(position, None) is not None:
                self._cached -= each
        if self._log is None:
            self._living[positions[0] >> 32] -= size
        else:
            self._log.release(positions[0], size)

    def release(self, position: int, size: int) -> None:
        """The packet is needed no more."""
        found = self._cache.pop(position, None)
        if found is not None:
            self._cached -= len(found[1])
        if self._log is None:
            self._living[position >> 32] -= size
        else:
            self._log.release(position, size)
