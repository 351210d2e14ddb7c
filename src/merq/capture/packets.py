"""From bytes to packets: where each begins, what it is, and what its fields say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from merq.errors import WireError
from merq.wire.message import UserMessage
from merq.wire.packet import parse_packet
from merq.wire.ping import PING_SIGNATURE, PING_SIZE, Ping
from merq.wire.queue_names import admin_queue_name, destination_name, response_queue_name
from merq.wire.reader import Reader, TraceNode
from merq.wire.stream import BASE_HEADER_SIZE, packet_length
from merq.wire.view import MessageView

COOKIES_MAX = 4096
"""Pings whose answers are waited for."""

_SIGNATURE = b"LIOR"
_HEAD = re.compile(rb"\x10[\s\S]{3}LIOR")
_HEAD_SIZE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where in a capture a packet was."""

    frame: int
    time_ns: int | None
    source: str
    destination: str

    @property
    def time(self) -> str | None:
        """The time as text, UTC, to the microsecond."""
        if self.time_ns is None:
            return None
        moment = datetime.fromtimestamp(self.time_ns // 1_000_000_000, tz=UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{self.time_ns // 1000 % 1_000_000:06}Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One packet, or what stands in its place.

    Attributes:
        queues: The queues that a message names, by field, as format names.
    """

    offset: int
    size: int
    kind: str
    tree: TraceNode
    origin: Origin | None = None
    queues: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecoded:
    """What could not be read, and where it stopped making sense."""

    offset: int
    reason: str
    origin: Origin | None = None


Finding = Decoded | Undecoded


class PingRoles:
    """[MS-MQQB] 2.2.7: tells requests from responses.

    Their bytes are alike. In a capture the port tells; elsewhere, whoever repeats the cookie of an
    earlier ping from another queue manager answers it, and a ping that refuses is an answer.
    """

    def __init__(self) -> None:
        self._asked: dict[int, bytes] = {}

    def kind(self, ping: Ping, *, to_ping_port: bool | None) -> str:
        """`PingRequest` or `PingResponse`."""
        if to_ping_port is not None:
            return "PingRequest" if to_ping_port else "PingResponse"
        asker = self._asked.get(ping.cookie)
        if ping.flags.refused or (asker is not None and asker != ping.qm_guid.bytes):
            self._asked.pop(ping.cookie, None)
            return "PingResponse"
        if len(self._asked) < COOKIES_MAX:
            self._asked[ping.cookie] = ping.qm_guid.bytes
        return "PingRequest"


class PacketStream:
    """Packets one after the other, cut where each says that it ends.

    Where bytes are no packet, or some are missing, the next BaseHeader is sought and the stream
    taken up there again. Pings are only told from other bytes where `pings` is given, and are not
    sought: two bytes are no signature.
    """

    def __init__(self, pings: PingRoles | None = None) -> None:
        self._pings = pings
        self._pending = bytearray()
        self._offset = 0
        self._seeking = False
        self._was_sought = False
        self._origin: Origin | None = None

    @property
    def offset(self) -> int:
        """Where in the stream the first byte is that led to nothing yet."""
        return self._offset

    def feed(self, data: bytes, origin: Origin | None = None) -> Iterator[Finding]:
        """Everything that these bytes complete."""
        self._pending += data
        self._origin = origin
        at = 0
        while True:
            if self._seeking:
                at = self._next_head(at)
            try:
                length = 0 if self._seeking else self._length(at)
            except WireError as wrong:
                yield undecoded(wrong, self._offset + at, origin)
                self._seeking = True
                at += 1
                continue
            if not length or len(self._pending) - at < length:
                break
            packet = bytes(self._pending[at : at + length])
            found = decode_packet(packet, self._offset + at, self._pings, origin)
            yield found
            if self._was_sought and isinstance(found, Undecoded):
                # It only looked like a packet's head: its length means nothing.
                self._seeking = True
                at += 1
                continue
            self._was_sought = False
            at += length
        self._drop(at)

    def finish(self) -> Iterator[Finding]:
        """No more bytes come: a packet that was begun never becomes whole.

        If it claimed more than it had, the packets after it are among its bytes.
        """
        while self._pending and not self._seeking:
            needed = self._length(0) or f"at least {BASE_HEADER_SIZE}"
            yield Undecoded(
                offset=self._offset,
                reason=f"the bytes end inside a packet: {len(self._pending)} of {needed}",
                origin=self._origin,
            )
            self._seeking = True
            self._drop(1)
            yield from self.feed(b"", self._origin)
        self._drop(len(self._pending))

    def skip(self, missing_bytes: int) -> None:
        """Bytes are missing after those that were finished; what comes may begin in a packet."""
        assert not self._pending
        self._offset += missing_bytes
        self._seeking = True

    def _drop(self, size: int) -> None:
        del self._pending[:size]
        self._offset += size

    def _next_head(self, at: int) -> int:
        """Where the next BaseHeader begins, or from where on it may."""
        found = _HEAD.search(self._pending, at)
        if found is None:
            return max(at, len(self._pending) - _HEAD_SIZE + 1)
        self._seeking = False
        self._was_sought = True
        return found.start()

    def _length(self, at: int) -> int:
        """The length of what begins at `at`; 0 if more bytes are needed to tell."""
        head = bytes(self._pending[at : at + BASE_HEADER_SIZE])
        if self._pings is not None and is_ping(head):
            return PING_SIZE
        return packet_length(head, 0) if len(head) == BASE_HEADER_SIZE else 0


def is_ping(head: bytes) -> bool:
    """Whether a ping begins here, and not a packet of a session."""
    return head[2:4] == PING_SIGNATURE.to_bytes(2, "little") and head[4:8] != _SIGNATURE


def decode_packet(
    data: bytes, offset: int, pings: PingRoles | None, origin: Origin | None = None
) -> Finding:
    """One packet of a session, or one ping where there may be some."""
    tree = TraceNode("packet", 0, len(data))
    queues: Mapping[str, str] = {}
    try:
        if pings is not None and is_ping(data[:BASE_HEADER_SIZE]):
            kind = pings.kind(read_ping(data, tree), to_ping_port=None)
        else:
            packet = parse_packet(data, trace=tree)
            kind = type(packet).__name__
            queues = _queues(MessageView(data)) if isinstance(packet, UserMessage) else {}
    except WireError as wrong:
        return undecoded(wrong, offset, origin)
    return Decoded(
        offset=offset, size=len(data), kind=kind, tree=tree, origin=origin, queues=queues
    )


def _queues(view: MessageView) -> dict[str, str]:
    """[MS-MQMQ] 2.2.19.2: the queues that a message names, as the fields are called."""
    names = {
        "destination_queue": destination_name(view),
        "admin_queue": admin_queue_name(view),
        "response_queue": response_queue_name(view),
    }
    return {field_name: name for field_name, name in names.items() if name}


def read_ping(data: bytes, tree: TraceNode) -> Ping:
    """The ping of exactly these bytes."""
    reader = Reader(data, trace=tree)
    ping = Ping.unpack(reader)
    reader.finish()
    return ping


def undecoded(wrong: WireError, offset: int, origin: Origin | None) -> Undecoded:
    """What a failure looks like to people; `offset` is where the packet began."""
    field = f"{wrong.field}: " if wrong.field else ""
    # A failure that is about the packet as a whole is shown where that begins.
    at = offset + (wrong.offset or 0)
    return Undecoded(offset=at, reason=f"{field}{wrong.reason}", origin=origin)
