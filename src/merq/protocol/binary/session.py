"""[MS-MQQB] 3.1: one session, from the first packet to the last.

It does no I/O and knows no queue: bytes and the time go in, bytes come out of `take_output`, and
the caller finds what came and what was acknowledged in plain lists. No packet can raise out of
`receive_data`; what cannot be read closes the session with a reason.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final, Generic, TypeVar
from uuid import UUID

from merq.errors import WireError
from merq.protocol.binary.acknowledging import HEADER_SIZE, Received, Sent, SessionHeaderFields
from merq.protocol.binary.settings import (
    ACK_TIMEOUT_MAX_MS,
    ACK_TIMEOUT_MIN_MS,
    OPENING_PACKET_BYTES_MAX,
    PACKET_RATE_MIN,
    RECOVERABLE_ACK_MAX_MS,
    RECOVERABLE_ACK_MIN_MS,
    SessionSettings,
)
from merq.protocol.binary.window import PeerWindow
from merq.wire.connection import (
    MERQ_REQUEST_PADDING,
    MERQ_RESPONSE_RESERVED,
    RESPONSE_FILL,
    ConnectionParameters,
    ConnectionParametersHeader,
    EstablishConnection,
    EstablishConnectionHeader,
    OperatingSystemFlags,
)
from merq.wire.packet import parse_packet
from merq.wire.stream import PacketSplitter
from merq.wire.view import MessageView

_T = TypeVar("_T")

NULL_GUID: Final = UUID(int=0)

_INTERNAL: Final = 0x08
_SESSION: Final = 0x10
_SESSION_ACK_HEAD: Final = b"\x10\x00\x18\x00LIOR\x24\x00\x00\x00\xff\xff\xff\xff\x00\x00\x01\x00"
"""[MS-MQQB] 2.2.6: BaseHeader and InternalHeader of a SessionAck."""

_SESSION_ACK_SIZE: Final = 36
_PIGGYBACK_SHARE: Final = 0.75
"""[MS-MQQB] 3.1.7.11: an acknowledgment travels along when so much of its time has passed."""


ITSELF: Final = (
    "the other side is this queue manager itself: if this computer has that name, let the settings "
    "say so"
)
"""Why a session is closed that this queue manager has made with itself."""

IMPOSTOR: Final = (
    "the other side says that it is this queue manager: either this computer has called itself, by "
    "a name that exchange.aliases lacks, or a copy of its data folder runs elsewhere, or somebody "
    "lies"
)
"""Why a session is refused that begins with this queue manager's own identifier."""


class SessionState(Enum):
    """[MS-MQQB] 3.1.1.3.1: how far a session is."""

    WAITING_EC_MSG = "waiting for EstablishConnection"
    WAITING_ECR_MSG = "waiting for the answer to EstablishConnection"
    WAITING_CP_MSG = "waiting for ConnectionParameters"
    WAITING_CPR_MSG = "waiting for the answer to ConnectionParameters"
    OPEN = "open"
    CLOSED = "closed"


class _Batch:
    """Messages that came together, and how many of them are recoverable."""

    __slots__ = ("recoverable", "size", "views")

    def __init__(self) -> None:
        self.views: list[MessageView] = []
        self.recoverable = 0
        self.size = 0


class Session(Generic[_T]):
    """[MS-MQQB] 3.1.1.3.1: a session with another queue manager.

    What is sent is told by tokens of the caller's choice when it is acknowledged.

    Attributes:
        state: How far it is.
        remote_guid: Who the other side is; null until it has said so.
        is_initiator: This side has connected.
        is_direct: It was made for a direct format name, or such messages came through it.
        window: How many messages may be without an acknowledgment, as we announce it.
        closing: Why it is closed, or is to be once its output is written; empty while it goes on.
        acknowledged: Tokens of messages that the other side has, for the caller to take.
        half_packet_since: When the packet began to come that is not whole yet, or when it was
            excused last; None if there is none.
    """

    def __init__(
        self,
        own_guid: UUID,
        settings: SessionSettings,
        now: float,
        *,
        is_initiator: bool,
        remote_guid: UUID = NULL_GUID,
        is_direct: bool = False,
        pinged: bool = False,
        refusal: str = "",
    ) -> None:
        """Begins a session.

        Args:
            own_guid: Who this side is.
            settings: What it keeps to.
            now: Seconds on a clock that only goes forward.
            is_initiator: This side has connected.
            remote_guid: Who must be at the other side; null if anybody may.
            is_direct: It is made for a direct format name.
            pinged: A ping was sent before it ([MS-MQQB] 3.1.5.2.2).
            refusal: Why the other side's request is to be refused; empty if it is not.
        """
        self._own_guid = own_guid
        self._refusal = refusal
        self._settings = settings
        self.state = SessionState.WAITING_EC_MSG
        self.remote_guid = remote_guid
        self.is_initiator = is_initiator
        self.is_direct = is_direct
        self.closing = ""
        self.acknowledged: list[_T] = []
        self._output: list[bytes] = []
        self._splitter = PacketSplitter()
        self.half_packet_since: float | None = None
        self._sent: Sent[_T] = Sent()
        self._received = Received()
        self._batch = _Batch()
        self._unhandled: deque[_Batch] = deque()
        self._unhandled_bytes = 0
        self._ack_wait_s = settings.ack_wait_s
        self._recoverable_ack_s = 0.5
        self.window = settings.window
        self._peer_window = PeerWindow(settings.window)
        self._is_active = False
        self._heard = False
        self._initialization: float | None = now + settings.initialization_s
        self._cleanup: float | None = None
        self._ack_wait: float | None = None
        self._ack_send: float | None = None
        self._ack_send_s = 0.0
        if is_initiator:
            self._request(now, pinged=pinged)

    @property
    def is_open(self) -> bool:
        """Whether messages may be sent."""
        return self.state is SessionState.OPEN and not self.closing

    def take_output(self) -> list[bytes]:
        """What is to be written, in order."""
        output, self._output = self._output, []
        return output

    # Establishment, [MS-MQQB] 3.1.1.7.1.

    def _request(self, now: float, *, pinged: bool) -> None:
        """[MS-MQQB] 3.1.5.2.3: asks for a session."""
        header = EstablishConnectionHeader(
            client_guid=self._own_guid,
            server_guid=NULL_GUID if self.is_direct else self.remote_guid,
            time_stamp=_milliseconds(now),
            operating_system=OperatingSystemFlags(without_ping=not pinged, server_class=True),
            padding=MERQ_REQUEST_PADDING,
        )
        self._output.append(EstablishConnection.of(header).pack())
        self.state = SessionState.WAITING_ECR_MSG

    def _established(self, packet: EstablishConnection, now: float) -> None:
        """[MS-MQQB] 3.1.5.3: a request, or the answer to ours."""
        header = packet.header
        if self.state is SessionState.WAITING_EC_MSG:
            self._answer(header)
        elif self.state is not SessionState.WAITING_ECR_MSG:
            self.close(f"an EstablishConnection came while the session was {self.state.value}")
        elif packet.internal_header.flags.refused:
            if header.server_guid == self._own_guid:
                self.close(ITSELF)
                return
            is_meant = self.remote_guid in (NULL_GUID, header.server_guid)
            why = "it takes no more" if is_meant else f"{self.remote_guid} was wanted"
            self.close(f"{header.server_guid} refused the session: {why}")
        elif header.client_guid != self._own_guid:
            self.close(f"the answer is for {header.client_guid}, not for us")
        elif self.remote_guid not in (NULL_GUID, header.server_guid):
            self.close(f"{header.server_guid} answered where {self.remote_guid} was expected")
        else:
            self.remote_guid = header.server_guid
            if packet.base_header.reserved == MERQ_RESPONSE_RESERVED:
                self.window = self._settings.merq_window
            self._propose(header.time_stamp, now)

    def _answer(self, header: EstablishConnectionHeader) -> None:
        """[MS-MQQB] 3.1.5.3.1: the answer to a request; public scanners know MSMQ by its fill."""
        self.remote_guid = header.client_guid
        if header.server_guid not in (NULL_GUID, self._own_guid):
            self._refusal = f"{header.client_guid} wanted {header.server_guid}, which is not here"
        if header.client_guid == self._own_guid:
            self._refusal = IMPOSTOR
        reserved = RESPONSE_FILL
        if header.padding == MERQ_REQUEST_PADDING:
            reserved = MERQ_RESPONSE_RESERVED
            self.window = self._settings.merq_window
        answer = EstablishConnectionHeader(
            client_guid=header.client_guid,
            server_guid=self._own_guid,
            time_stamp=header.time_stamp,
            operating_system=OperatingSystemFlags(
                without_ping=header.operating_system.without_ping, server_class=True
            ),
            padding=bytes([RESPONSE_FILL]) * 512,
        )
        refused = self._refusal != ""
        packet = EstablishConnection.of(answer, refused=refused, base_reserved=reserved)
        self._output.append(packet.pack())
        self.state = SessionState.WAITING_CP_MSG
        if refused:
            self.close(self._refusal)

    def _propose(self, sent: int, now: float) -> None:
        """[MS-MQQB] 3.1.5.3.2: says how long to wait and how much to leave open."""
        round_trip = (_milliseconds(now) - sent) & 0xFFFFFFFF
        recoverable = min(max(8 * round_trip, RECOVERABLE_ACK_MIN_MS), RECOVERABLE_ACK_MAX_MS)
        wait = min(max(int(self._ack_wait_s * 1000), ACK_TIMEOUT_MIN_MS), ACK_TIMEOUT_MAX_MS)
        self._recoverable_ack_s = recoverable / 1000
        header = ConnectionParametersHeader(
            recoverable_ack_timeout=recoverable,
            ack_timeout=wait,
            window_size=self.window,
        )
        self._output.append(ConnectionParameters.of(header).pack())
        self.state = SessionState.WAITING_CPR_MSG

    def _agreed(self, packet: ConnectionParameters, now: float) -> None:
        """[MS-MQQB] 3.1.5.4, 3.1.5.4.1, 3.1.5.4.2: a proposal, or the answer to ours.

        Times out of range are brought into it; the answer repeats them as they came.
        """
        header = packet.header
        if packet.internal_header.flags.refused:
            self.close(f"{self.remote_guid} refused the session with its ConnectionParameters")
            return
        if self.state is SessionState.WAITING_CP_MSG:
            wait = min(max(header.ack_timeout, ACK_TIMEOUT_MIN_MS), ACK_TIMEOUT_MAX_MS)
            recoverable = min(
                max(header.recoverable_ack_timeout, RECOVERABLE_ACK_MIN_MS), RECOVERABLE_ACK_MAX_MS
            )
            self._ack_wait_s = wait / 1000
            self._recoverable_ack_s = recoverable / 1000
            answer = ConnectionParametersHeader(
                recoverable_ack_timeout=header.recoverable_ack_timeout,
                ack_timeout=header.ack_timeout,
                window_size=self.window,
            )
            self._output.append(ConnectionParameters.of(answer).pack())
        elif self.state is not SessionState.WAITING_CPR_MSG:
            self.close(f"ConnectionParameters came while the session was {self.state.value}")
            return
        self._peer_window = PeerWindow(header.window_size)
        self.state = SessionState.OPEN
        self._initialization = None
        self._cleanup = now + self._settings.cleanup_s

    # What comes.

    def receive_data(self, data: bytes, now: float) -> None:
        """[MS-MQQB] 3.1.5.1: bytes from the other side, cut anyhow.

        [MS-MQQB] 3.1.5.1.2, 3.1.5.1.3: what has no signature or is not formed as it should be is
        dropped, and the session is closed.
        """
        if self._is_over():
            return
        splitter = self._splitter
        packets = splitter.feed(data)
        if not splitter.buffered:
            self.half_packet_since = None
        elif packets or self.half_packet_since is None:
            self.half_packet_since = now
        for packet in packets:
            self._heard = True
            self._check_opening(len(packet))
            if self._is_over():
                return
            try:
                self._receive(packet, now)
            except WireError as wrong:
                self.close(f"a packet cannot be read: {wrong}")
            if self._is_over():
                return
        if splitter.failure is not None:
            self.close(f"a packet cannot be read: {splitter.failure}")
        else:
            self._check_opening(splitter.expected)

    def _check_opening(self, size: int) -> None:
        """Before a session is open only small packets belong there, whole or half."""
        if self.state is not SessionState.OPEN and size > OPENING_PACKET_BYTES_MAX:
            self.close(
                f"a packet of {size} bytes came while the session was {self.state.value}; at most "
                f"{OPENING_PACKET_BYTES_MAX} belong there"
            )

    def _is_over(self) -> bool:
        return bool(self.closing)

    @property
    def held_bytes(self) -> int:
        """Bytes that came and are not taken care of, those of a packet that is not whole too."""
        return self._unhandled_bytes + self._splitter.buffered

    @property
    def unhandled_bytes(self) -> int:
        """Bytes of messages that came whole and are not taken care of."""
        return self._unhandled_bytes

    @property
    def has_unhandled(self) -> bool:
        """Whether messages came that are not taken care of."""
        return self._unhandled_bytes > 0

    def forget_input(self) -> None:
        """Lets go of what came, of a session that is closed."""
        assert self.closing, "what came is still wanted"
        self._splitter = PacketSplitter()
        self.half_packet_since = None
        self._batch = _Batch()
        self._unhandled.clear()
        self._unhandled_bytes = 0

    def excuse(self, now: float) -> None:
        """Nothing is read at the moment: that a packet does not become whole is our doing."""
        if self.half_packet_since is not None:
            self.half_packet_since = now

    def _stalled_at(self) -> float | None:
        """When a packet that is not whole ends the session."""
        if self.half_packet_since is None:
            return None
        came_s = self._splitter.buffered / PACKET_RATE_MIN
        return self.half_packet_since + self._settings.stall_s + came_s

    def _receive(self, packet: bytes, now: float) -> None:
        if not packet[2] & _INTERNAL:
            self._receive_message(packet, now)
            return
        if len(packet) == _SESSION_ACK_SIZE and packet[18] & 0x0F == 1 and packet[2] & _SESSION:
            if self.state is not SessionState.OPEN:
                self.close(f"a SessionAck came while the session was {self.state.value}")
                return
            self._take_header(SessionHeaderFields.unpack(packet, 20), now)
            return
        found = parse_packet(packet)
        if isinstance(found, EstablishConnection):
            self._established(found, now)
        elif isinstance(found, ConnectionParameters):
            self._agreed(found, now)
        else:
            self.close(f"a {type(found).__name__} came that has no place in a session")

    def _receive_message(self, packet: bytes, now: float) -> None:
        """[MS-MQQB] 3.1.5.8, 3.1.5.8.4: a message; every one counts, whatever becomes of it."""
        if self.state is not SessionState.OPEN:
            self.close(f"a message came while the session was {self.state.value}")
            return
        header = None
        if packet[2] & _SESSION:
            header = SessionHeaderFields.unpack(packet, len(packet) - HEADER_SIZE)
            flags = packet[2] & ~_SESSION
            packet = packet[:2] + bytes([flags]) + packet[3:-HEADER_SIZE]
        view = MessageView(packet)
        is_recoverable = view.user_flags & 0x60 != 0
        self._is_active = True
        if view.user_flags >> 10 & 7 == 7:
            self.is_direct = True
        self._received.came(is_recoverable=is_recoverable)
        batch = self._batch
        batch.views.append(view)
        batch.recoverable += is_recoverable
        batch.size += len(packet)
        self._unhandled_bytes += len(packet)
        if header is not None:
            self._take_header(header, now, is_recoverable=is_recoverable)
        # [MS-MQQB] 3.1.2.5: sooner for what is to be on the disk.
        if self._ack_send is None:
            self._start_ack_send(now, self._ack_wait_s / 2)
        if is_recoverable and self._ack_send_s > self._recoverable_ack_s:
            self._start_ack_send(now, self._recoverable_ack_s)

    def _start_ack_send(self, now: float, seconds: float) -> None:
        self._ack_send_s = seconds
        self._ack_send = now + seconds

    @property
    def is_congested(self) -> bool:
        """Whether so much has come that nothing more should be read for now."""
        return self._unhandled_bytes > self._settings.unhandled_bytes_max

    def take_arrived(self) -> list[MessageView]:
        """Messages that came, in order; `handled` says when they are taken care of."""
        batch = self._batch
        if batch.views:
            self._batch = _Batch()
            self._unhandled.append(batch)
        return batch.views

    def handled(self, now: float) -> None:
        """What was taken first is taken care of: what is to be kept of it is on the disk."""
        batch = self._unhandled.popleft()
        self._unhandled_bytes -= batch.size
        received = self._received
        received.handled += len(batch.views)
        received.persisted += batch.recoverable
        # [MS-MQQB] 3.1.1.6.1, 3.1.5.8.7: by time, or by how much waits for it.
        limit = max(min(self.window, self._peer_window.size) // 2, 1)
        while self.is_open and (received.is_full or received.unacknowledged >= limit):
            self._send_ack(now)

    def _send_ack(self, now: float, window: int = 0) -> None:
        """[MS-MQQB] 3.1.6.4: a session acknowledgment that travels alone."""
        header = self._received.header(self._sent, window or self.window)
        self._output.append(_SESSION_ACK_HEAD + header)
        self._after_ack(now)

    def _after_ack(self, now: float) -> None:
        received = self._received
        # What has come and is not taken care of yet will start no timer when it is.
        if received.count > received.acknowledged or received.persisted_unacked:
            soon = received.has_unpersisted or received.persisted_unacked
            self._start_ack_send(now, self._recoverable_ack_s if soon else self._ack_wait_s / 2)
        else:
            self._ack_send = None

    def _take_header(
        self, header: SessionHeaderFields, now: float, *, is_recoverable: bool | None = None
    ) -> None:
        """[MS-MQQB] 3.1.5.5: what the other side has of ours, and what it thinks that it sent."""
        if not header.window:
            self.close("a SessionHeader has a window of 0, expected 1 or more")
            return
        try:
            self.acknowledged += self._sent.acknowledged(header)
        except WireError as wrong:
            self.close(str(wrong))
            return
        self._peer_window.announced(header.window, now)
        wrong_counts = self._received.mismatch(header, is_recoverable=is_recoverable)
        if wrong_counts:
            self.close(wrong_counts)
        elif self._sent.has_waiting:
            self._ack_wait = now + self._wait_s()

    # What goes.

    @property
    def room(self) -> int:
        """How many messages may be sent before the next acknowledgment."""
        if not self.is_open:
            return 0
        return min(self.window, self._peer_window.size) - self._sent.unacknowledged

    @property
    def waiting(self) -> int:
        """How many messages were sent and are not acknowledged whole."""
        return self._sent.waiting

    def send(
        self,
        packet: bytes,
        token: _T,
        now: float,
        *,
        is_recoverable: bool,
        carries_ack: bool = True,
    ) -> None:
        """[MS-MQQB] 3.1.7.1.3, 3.1.7.1.6: sends a message; an acknowledgment may travel along.

        [MS-MQQB] 2.2.4, 2.2.5: not on an OrderAck or FinalAck, in which no flag may be set.
        """
        self._sent.add(token, is_recoverable=is_recoverable)
        self._is_active = True
        if self._ack_wait is None:
            self._ack_wait = now + self._wait_s()
        if carries_ack and self._ack_send is not None and self._received.unacknowledged:
            left = self._ack_send - now
            if left < (1 - _PIGGYBACK_SHARE) * self._ack_send_s:
                header = self._received.header(self._sent, self.window)
                self._output.append(packet[:2] + bytes([packet[2] | _SESSION]) + packet[3:])
                self._output.append(header)
                self._after_ack(now)
                return
        self._output.append(packet)

    def pause(self, now: float) -> None:
        """[MS-MQQB] 3.1.7.13: acknowledges, and asks the other side to go slowly."""
        if self.is_open:
            self._send_ack(now, window=1)
            self._is_active = False

    # Time.

    def _wait_s(self) -> float:
        """[MS-MQQB] 3.1.2.4: the session ack wait timer."""
        return self._ack_wait_s * (self._settings.direct_factor if self.is_direct else 1.0)

    @property
    def _owes_ack(self) -> bool:
        return bool(self._received.unacknowledged or self._received.persisted_unacked)

    def next_deadline(self) -> float | None:
        """When `tick` has something to do next; never once the session is closed."""
        if self.closing:
            return None
        grows_at = self._peer_window.grows_at
        timers = (
            self._initialization,
            self._cleanup,
            self._ack_wait,
            self._ack_send,
            self._stalled_at(),
            grows_at,
        )
        return min((each for each in timers if each is not None), default=None)

    def tick(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.2, 3.1.6.3, 3.1.6.4, 3.1.6.6: what is due happens."""
        if self.closing:
            return
        self._peer_window.tick(now)
        if self._initialization is not None and now >= self._initialization:
            self.close(f"the session was {self.state.value} for too long")
            return
        stalled_at = self._stalled_at()
        if stalled_at is not None and now >= stalled_at:
            came, expected = self._splitter.buffered, self._splitter.expected or "the first 16"
            self.close(f"of a packet of {expected} bytes only {came} came in time")
            return
        if self._ack_send is not None and now >= self._ack_send:
            if self._owes_ack:
                self._send_ack(now)
            else:
                self._after_ack(now)
        if self._ack_wait is not None and now >= self._ack_wait:
            self._ack_waited(now)
        if self._cleanup is not None and now >= self._cleanup and not self.closing:
            if not (self._is_active or self._sent.has_waiting or self.held_bytes):
                if self._owes_ack:
                    self._send_ack(now)  # or it would be sent again, and the same for ever
                self.close("nothing was sent for a while")
                return
            self._is_active = False
            self._cleanup = now + self._settings.cleanup_s

    def _ack_waited(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.3: no acknowledgment for a while."""
        if not self._sent.has_waiting:
            self._ack_wait = None
        elif not self._heard:
            waited = self._wait_s()
            self.close(f"{self._sent.waiting} messages were not acknowledged within {waited:g} s")
            return
        else:
            self._ack_wait = now + self._wait_s()
        self._heard = False

    def close(self, reason: str) -> None:
        """[MS-MQQB] 3.1.5.9: the session ends; no packet says so."""
        if not self.closing:
            self.closing = reason
            self.state = SessionState.CLOSED


def _milliseconds(now: float) -> int:
    """[MS-MQQB] 2.2.3.1: a time stamp in 32 bits."""
    return int(now * 1000) & 0xFFFFFFFF
