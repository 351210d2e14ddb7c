"""[MS-MQQB] 3.1.1.4, 3.1.1.6.1: what was sent and received on a session, and who knows it.

The counts are 16 bits wide on the wire and grow without end here; a count that comes is understood
as the one nearest to what was sent last.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Final, Generic, NamedTuple, TypeVar

from merq.errors import WireError

_T = TypeVar("_T")

HEADER_SIZE: Final = 16
FLAG_BITS: Final = 32
"""[MS-MQMQ] 2.2.20.4: so many recoverable messages fit into RecoverableMsgAckFlags."""

_HEADER: Final = struct.Struct("<HHIHHHH")
_MASK: Final = 0xFFFF
_HALF: Final = 0x8000


class SessionHeaderFields(NamedTuple):
    """[MS-MQMQ] 2.2.20.4: a session acknowledgment."""

    received: int
    recoverable: int
    flags: int
    sent: int
    recoverable_sent: int
    window: int
    reserved: int

    @classmethod
    def unpack(cls, data: bytes, at: int) -> SessionHeaderFields:
        """The header at this place."""
        return cls(*_HEADER.unpack_from(data, at))


class Sent(Generic[_T]):
    """What was sent.

    Attributes:
        count: Messages so far.
        recoverable_count: Those of them that are recoverable.
    """

    __slots__ = ("_unpersisted", "_unreceived", "count", "recoverable_count")

    def __init__(self) -> None:
        self.count = 0
        self.recoverable_count = 0
        # Tokens of what the other side has not said that it has; None for recoverable ones, which
        # wait among the others until they are on its disk.
        self._unreceived: deque[_T | None] = deque()
        self._unpersisted: deque[tuple[int, _T]] = deque()

    def add(self, token: _T, *, is_recoverable: bool) -> None:
        """A message is sent."""
        self.count += 1
        if is_recoverable:
            self.recoverable_count += 1
            self._unpersisted.append((self.recoverable_count, token))
            self._unreceived.append(None)
        else:
            self._unreceived.append(token)

    @property
    def unacknowledged(self) -> int:
        """Messages that the other side has not said that it has."""
        return len(self._unreceived)

    @property
    def has_waiting(self) -> bool:
        """Whether anything waits for an acknowledgment."""
        return bool(self._unreceived or self._unpersisted)

    @property
    def waiting(self) -> int:
        """How many messages do."""
        return len(self._unpersisted) + sum(each is not None for each in self._unreceived)

    def acknowledged(self, header: SessionHeaderFields) -> list[_T]:
        """[MS-MQQB] 3.1.5.5.1 to 3.1.5.5.3: tokens of what the other side has.

        Raises:
            WireError: It says that it has what was never sent.
        """
        received = _nearest(header.received, self.count)
        if received > self.count:
            raise _bogus(received - self.count, "messages")
        persisted = self._persisted(header) if header.recoverable or header.flags else []
        done: list[_T] = []
        for _ in range(received - (self.count - len(self._unreceived))):
            token = self._unreceived.popleft()
            if token is not None:
                done.append(token)
        return done + persisted

    def _persisted(self, header: SessionHeaderFields) -> list[_T]:
        first = _nearest(header.recoverable, self.recoverable_count)
        last = first + max(header.flags.bit_length() - 1, 0)
        if last > self.recoverable_count:
            raise _bogus(last - self.recoverable_count, "recoverable messages")
        # Up to the first bit that is clear all are there; what is behind it comes one by one.
        rest = header.flags | 1
        upto = first - 1
        while rest & 1:
            rest >>= 1
            upto += 1
        waiting = self._unpersisted
        done: list[_T] = []
        while waiting and waiting[0][0] <= upto:
            done.append(waiting.popleft()[1])
        if rest:
            there = {upto + 1 + bit for bit in range(FLAG_BITS) if rest >> bit & 1}
            done += [token for number, token in waiting if number in there]
            self._unpersisted = deque(each for each in waiting if each[0] not in there)
        return done


class Received:
    """What came.

    Attributes:
        count: Messages so far.
        recoverable_count: Those of them that are recoverable.
        handled: Messages that are taken care of.
        persisted: Recoverable ones that are on the disk, or were decided on.
        acknowledged: Messages that the other side was told of.
    """

    __slots__ = (
        "_recoverable_acknowledged",
        "acknowledged",
        "count",
        "handled",
        "persisted",
        "recoverable_count",
    )

    def __init__(self) -> None:
        self.count = 0
        self.recoverable_count = 0
        self.handled = 0
        self.persisted = 0
        self.acknowledged = 0
        self._recoverable_acknowledged = 0

    def came(self, *, is_recoverable: bool) -> None:
        """A message came."""
        self.count += 1
        self.recoverable_count += is_recoverable

    @property
    def unacknowledged(self) -> int:
        """Messages that are taken care of and not acknowledged."""
        return self.handled - self.acknowledged

    @property
    def persisted_unacked(self) -> int:
        """Recoverable messages on the disk that are not acknowledged."""
        return self.persisted - self._recoverable_acknowledged

    @property
    def has_unpersisted(self) -> bool:
        """Whether recoverable messages are on their way to the disk."""
        return self.recoverable_count > self.persisted

    @property
    def is_full(self) -> bool:
        """[MS-MQQB] 3.1.5.8.7: whether as many wait as an acknowledgment can name."""
        return self.persisted_unacked >= FLAG_BITS

    def header(self, sent: Sent[_T], window: int) -> bytes:
        """[MS-MQQB] 3.1.6.4: the acknowledgment of what can be acknowledged, with one header."""
        first = flags = 0
        count = min(self.persisted_unacked, FLAG_BITS)
        if count:
            first = self._recoverable_acknowledged + 1
            flags = (1 << count) - 1
            self._recoverable_acknowledged += count
        self.acknowledged = self.handled
        return _HEADER.pack(
            self.handled & _MASK,
            first & _MASK,
            flags,
            sent.count & _MASK,
            sent.recoverable_count & _MASK,
            window,
            0,
        )

    def mismatch(self, header: SessionHeaderFields, *, is_recoverable: bool | None) -> str:
        """[MS-MQQB] 3.1.5.5.5: what is wrong if the other side has sent another number than came.

        Whether the counts have the message that a header travels on already is not clear in the
        document, so both are taken.
        """
        total = {self.count & _MASK}
        if is_recoverable is not None:
            total.add(self.count - 1 & _MASK)
        if header.sent not in total:
            return f"the other side has sent {header.sent} messages, {self.count & _MASK} came"
        recoverable = {self.recoverable_count & _MASK}
        if is_recoverable:
            recoverable.add(self.recoverable_count - 1 & _MASK)
        if header.recoverable_sent not in recoverable:
            found = self.recoverable_count & _MASK
            return (
                f"the other side has sent {header.recoverable_sent} recoverable messages, "
                f"{found} came"
            )
        return ""


def _nearest(count: int, known: int) -> int:
    """The number with these low 16 bits that is nearest to what is known."""
    return known + ((count - known + _HALF) & _MASK) - _HALF


def _bogus(excess: int, what: str) -> WireError:
    return WireError(f"the other side acknowledges {excess} {what} that were not sent")
