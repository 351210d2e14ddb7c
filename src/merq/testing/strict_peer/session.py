"""One session of a strict peer: establishment, counts, session acknowledgments and their timers.

[MS-MQQB] 3.1.1.3.1 to 3.1.7.3, as far as they concern one connection. A session knows packets and
positions; what becomes of messages is decided by its `Owner`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from merq.testing.strict_peer.packets import (
    NO_PING_BIT,
    NOBODY,
    RECOVERABLE_ACK_TIMEOUT_MS,
    RESERVED_OPERATING_SYSTEM,
    SERVER_BIT,
    Establish,
    NotConforming,
    Packet,
    Parameters,
    SessionFields,
    UserMessage,
    frame,
    read_packet,
    rubbish,
    write_establish,
    write_message,
    write_parameters,
    write_session_ack,
)
from merq.testing.strict_peer.readings import Readings

if TYPE_CHECKING:
    from merq.testing.strict_peer.outgoing import OutgoingQueue, Position

FLAG_BITS: Final = 32
DIRECT_FACTOR: Final = 2
"""Note 46: the Session Ack Wait Timer of a session that was made for a direct name."""

DOUBLING_S: Final = 30.0
"""[MS-MQMQ] note 15: the window doubles so often until it is what it was."""

PADDING: Final = b"\x5a" * 512
PIGGYBACK_SHARE: Final = 0.75


class State(Enum):
    """SessionState ([MS-MQQB] 3.1.1.3.1)."""

    CONNECTING = "connecting"
    WAITING_EC = "WAITING_EC_MSG"
    WAITING_ECR = "WAITING_ECR_MSG"
    WAITING_CP = "WAITING_CP_MSG"
    WAITING_CPR = "WAITING_CPR_MSG"
    OPEN = "OPEN"
    CLOSED = "CLOSED"


class Timer(Enum):
    """The timers of a session ([MS-MQQB] 3.1.2)."""

    INITIALIZATION = "3.1.2.1"
    CLEANUP = "3.1.2.2"
    ACK_WAIT = "3.1.2.4"
    ACK_SEND = "3.1.2.5"
    WINDOW = "[MS-MQMQ] note 15"


class Owner(Protocol):
    """The queue manager that a session belongs to."""

    guid: bytes
    readings: Readings
    chance: Random
    miscounts: int

    def opened(self, session: Session, now: float) -> None:
        """Messages can be sent now."""

    def closed(self, session: Session, now: float) -> None:
        """The session is closed."""

    def arrived(self, session: Session, message: UserMessage, now: float) -> None:
        """A message has come and is counted."""

    def acknowledged(self, received: list[Flight], persisted: list[Flight]) -> None:
        """A SessionHeader says what the other side has received, and what is on its disk."""

    def complain(self, text: str) -> None:
        """The other side did what its section says it must not."""


@dataclass(slots=True)
class Flight:
    """A message that was sent on the session, and how it was counted."""

    sequence: int
    recoverable: int
    position: Position


class Session:
    """One connection to another queue manager.

    Attributes:
        address: RemoteQMAddress.
        initiator: This side has made the connection.
        remote: RemoteQMGuid, once it is known.
        direct_format: DirectFormatSession.
        queues: Outgoing queues whose messages go through it.
        outbox: Bytes to be written, packet by packet.
        closing: The connection is to be closed when `outbox` is written.
        reason: Why it was closed.
        last_order_ack: LastOrderAckSendTime.
        order_acks: When OrderAcks are due, by incoming sequence.
    """

    def __init__(self, owner: Owner, address: str, now: float, *, initiator: bool) -> None:
        self.owner = owner
        self.address = address
        self.initiator = initiator
        self.state = State.CONNECTING if initiator else State.WAITING_EC
        self.remote = NOBODY
        self.direct_format = False
        self.queues: list[OutgoingQueue] = []
        self.outbox: list[bytes] = []
        self.closing = False
        self.reason = ""
        self.last_order_ack = now
        self.order_acks: dict[tuple[bytes, str], float] = {}
        self.timers: dict[Timer, float] = {}
        self.in_flight: deque[Flight] = deque()
        self._unpersisted: dict[int, Flight] = {}
        self.sent = self.recoverable_sent = 0
        self.received = self.recoverable_received = 0
        self.recoverable_flags = self.last_acked_recoverable = self.unacked_received = 0
        self.window = owner.readings.window
        self.received_window = owner.readings.window
        self.ack_wait_ms = owner.readings.ack_timeout_ms
        self.recoverable_ack_ms = 0xFFFFFFFF
        self.is_active = self.received_ack = False
        self._ack_send_s = 0.0
        self._timestamp = 0
        self._operating_system = 0
        self._input = bytearray()
        if not initiator:
            self._start(Timer.INITIALIZATION, now + owner.readings.initialization_s)

    # Timers.

    def _start(self, timer: Timer, at: float) -> None:
        self.timers[timer] = at

    def next_deadline(self) -> float | None:
        """When a timer runs out; None if none runs."""
        found = [*self.timers.values(), *self.order_acks.values()]
        return min(found, default=None)

    def tick(self, now: float) -> None:
        """What is due happens."""
        for timer in [each for each, at in self.timers.items() if at <= now]:
            if self.timers.pop(timer, None) is None or self.state is State.CLOSED:
                continue
            match timer:
                case Timer.INITIALIZATION:
                    self.close(f"not established in time, {self.state.value}", now)
                case Timer.CLEANUP:
                    self._clean_up(now)
                case Timer.ACK_WAIT:
                    self._ack_wait(now)
                case Timer.ACK_SEND:
                    self._ack_send(now)
                case Timer.WINDOW:
                    self._widen(now)

    def _clean_up(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.2."""
        if not self.is_active:
            self.close("idle", now)
            return
        self.is_active = False
        self._start(Timer.CLEANUP, now + self.owner.readings.cleanup_s)

    def _ack_wait(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.3."""
        if not self.in_flight:
            self.received_ack = False
        elif not self.received_ack:
            self.close("nothing is heard while something is unacknowledged", now)
        else:
            self.received_ack = False
            self._wait_for_ack(now)

    def _wait_for_ack(self, now: float) -> None:
        factor = DIRECT_FACTOR if self.initiator else 1
        self._start(Timer.ACK_WAIT, now + factor * self.ack_wait_ms / 1000)

    def _ack_send(self, now: float) -> None:
        """[MS-MQQB] 3.1.6.4."""
        if self.unacked_received:
            self.send_ack(now)

    def _widen(self, now: float) -> None:
        self.window = min(self.window * 2, self.owner.readings.window)
        if self.window < self.owner.readings.window:
            self._start(Timer.WINDOW, now + DOUBLING_S)
        self.owner.opened(self, now)  # what waited for the window may go

    # Establishment.

    def connected(self, now: float) -> None:
        """[MS-MQQB] 3.1.5.2.3: the connection that was dialled stands."""
        self._timestamp = int(now * 1000) & 0xFFFFFFFF
        self._operating_system = RESERVED_OPERATING_SYSTEM | NO_PING_BIT | SERVER_BIT
        padding = rubbish(self.owner.chance, len(PADDING))
        system = self._operating_system
        request = Establish(self.owner.guid, NOBODY, self._timestamp, system, padding)
        self.outbox.append(write_establish(request, self.owner.chance))
        self.state = State.WAITING_ECR
        self._start(Timer.INITIALIZATION, now + self.owner.readings.initialization_s)

    def _establish(self, packet: Establish, now: float) -> None:
        if packet.operating_system & 0xFF != RESERVED_OPERATING_SYSTEM:
            self.owner.complain(f"RE of OperatingSystem {packet.operating_system:#x}")
        if self.state is State.WAITING_EC:
            self._answer(packet, now)
        elif self.state is State.WAITING_ECR:
            self._answered(packet, now)
        else:
            self.close(f"an EstablishConnection while {self.state.value}", now)

    def _answer(self, packet: Establish, now: float) -> None:
        """[MS-MQQB] 3.1.5.3.1."""
        if packet.client == NOBODY or packet.refused:
            self.owner.complain("a connection request without ClientGuid, or with CS set")
        self.remote = packet.client
        refused = packet.server not in (NOBODY, self.owner.guid)
        system = RESERVED_OPERATING_SYSTEM | SERVER_BIT | packet.operating_system & NO_PING_BIT
        own = self.owner.guid
        answer = Establish(packet.client, own, packet.timestamp, system, PADDING, refused)
        self.outbox.append(write_establish(answer, self.owner.chance))
        self.state = State.WAITING_CP
        self._start(Timer.INITIALIZATION, now + self.owner.readings.initialization_s)

    def _answered(self, packet: Establish, now: float) -> None:
        """[MS-MQQB] 3.1.5.3.2."""
        if packet.refused or packet.client != self.owner.guid or packet.server == NOBODY:
            self.close("the session was refused", now)
            return
        if (
            packet.padding != PADDING
            or packet.timestamp != self._timestamp
            or (packet.operating_system ^ self._operating_system) & NO_PING_BIT
        ):
            self.owner.complain("padding, TimeStamp or SE of an EstablishConnection response")
        self.remote = packet.server
        round_trip_ms = int(now * 1000) - self._timestamp & 0xFFFFFFFF
        low, high = RECOVERABLE_ACK_TIMEOUT_MS
        self.recoverable_ack_ms = min(max(round_trip_ms * 8, low), high)
        wanted = Parameters(self.recoverable_ack_ms, self.ack_wait_ms, self.owner.readings.window)
        self.outbox.append(write_parameters(wanted, self.owner.chance))
        self.state = State.WAITING_CPR

    def _parameters(self, packet: Parameters, now: float) -> None:
        """[MS-MQQB] 3.1.5.4."""
        if packet.refused:
            self.close("the session was refused", now)
        elif self.state is State.WAITING_CP:
            self.ack_wait_ms = packet.ack_ms
            self.recoverable_ack_ms = packet.recoverable_ack_ms
            answer = replace(packet, window=self.owner.readings.window)
            self.outbox.append(write_parameters(answer, self.owner.chance))
            self._open(packet, now)
        elif self.state is State.WAITING_CPR:
            if (packet.recoverable_ack_ms, packet.ack_ms) != (
                self.recoverable_ack_ms,
                self.ack_wait_ms,
            ):
                self.owner.complain(f"other timeouts than were asked for: {packet}")
            self._open(packet, now)
        else:
            self.close(f"ConnectionParameters while {self.state.value}", now)

    def _open(self, packet: Parameters, now: float) -> None:
        self.received_window = packet.window
        self.timers.pop(Timer.INITIALIZATION, None)
        self._start(Timer.CLEANUP, now + self.owner.readings.cleanup_s)
        self.state = State.OPEN
        self.owner.opened(self, now)

    # Receiving.

    def receive(self, data: bytes, now: float) -> None:
        """Bytes have come, cut anyhow."""
        self._input += data
        try:
            while self.state is not State.CLOSED:
                size = frame(self._input)
                if not size or len(self._input) < size:
                    return
                packet = bytes(self._input[:size])
                del self._input[:size]
                self.received_ack = True  # 3.1.5.1
                self._take(read_packet(packet), now)
        except NotConforming as wrong:
            self.close(f"not conforming: {wrong}", now)

    def _take(self, packet: Packet, now: float) -> None:
        match packet:
            case Establish():
                self._establish(packet, now)
            case Parameters():
                self._parameters(packet, now)
            case SessionFields() if self.state is State.OPEN:
                self._session_header(packet, now)
            case UserMessage() if self.state is State.OPEN:
                self._message(packet, now)
            case _:
                self.close(f"{type(packet).__name__} while {self.state.value}", now)

    def _message(self, message: UserMessage, now: float) -> None:
        """[MS-MQQB] 3.1.5.8.2, 3.1.5.8.7 and 3.1.5.8.4.

        Every message counts, also a duplicate and one that is rejected: its sender has counted it,
        and 3.1.5.5.5 compares.
        """
        self.received += 1
        self.unacked_received += 1
        self.is_active = True
        if Timer.ACK_SEND not in self.timers:
            self._start_ack_send(self.ack_wait_ms / 2000, now)
        if message.recoverable:
            if self.recoverable_received - self.last_acked_recoverable >= FLAG_BITS:
                self.send_ack(now)
                self.unacked_received = 1  # this one is not in the flags yet
            self.recoverable_received += 1
            if not self.recoverable_flags:
                self._start_ack_send(self.recoverable_ack_ms / 1000, now)
            self.recoverable_flags |= 1 << (
                self.recoverable_received - self.last_acked_recoverable - 1
            )
        self.owner.arrived(self, message, now)
        # [MS-MQMQ] 2.2.20.4: the message goes to its queue, whatever its header says.
        if message.session is not None and self.state is State.OPEN:
            self._session_header(message.session, now)
        # 3.1.1.6.1: by count and window; half of what the other side has announced.
        if self.state is State.OPEN and self.unacked_received >= max(self.received_window // 2, 1):
            self.send_ack(now)

    def _start_ack_send(self, seconds: float, now: float) -> None:
        self._ack_send_s = seconds
        self._start(Timer.ACK_SEND, now + seconds)

    def _session_header(self, fields: SessionFields, now: float) -> None:
        """[MS-MQQB] 3.1.5.5."""
        ack = nearest(fields.ack, self.sent)
        if ack > self.sent:
            self.owner.complain(f"{ack} messages acknowledged of {self.sent}")
        if fields.window != self.received_window:
            self._announced(fields.window, now)
        received = []
        while self.in_flight and self.in_flight[0].sequence <= ack:
            received.append(self.in_flight.popleft())
        self.owner.acknowledged(received, self._persisted(fields))
        if (fields.sent, fields.recoverable_sent) != (
            self.received & 0xFFFF,
            self.recoverable_received & 0xFFFF,
        ):
            counts = f"{fields.sent} and {fields.recoverable_sent}"
            self.close(
                f"counts: {counts} sent, {self.received} and {self.recoverable_received} came", now
            )
            return
        if self.in_flight:
            self._wait_for_ack(now)
        self.owner.opened(self, now)

    def _persisted(self, fields: SessionFields) -> list[Flight]:
        """[MS-MQQB] 3.1.5.5.3: the recoverable messages that are on the other side's disk."""
        if not fields.recoverable_ack and not fields.recoverable_flags:
            return []
        base = nearest(fields.recoverable_ack, self.recoverable_sent)
        last = base + fields.recoverable_flags.bit_length() - 1
        if last > self.recoverable_sent:
            self.owner.complain(f"{last} recoverable messages kept of {self.recoverable_sent}")
        numbers = [
            number
            for number in self._unpersisted
            if number <= base or fields.recoverable_flags >> (number - base) & 1
        ]
        return [self._unpersisted.pop(number) for number in numbers]

    def _announced(self, window: int, now: float) -> None:
        self.received_window = window
        if window < self.window:
            self.window = window
            self._start(Timer.WINDOW, now + DOUBLING_S)

    # Sending.

    @property
    def has_room(self) -> bool:
        """[MS-MQQB] 3.1.7.1: whether the window lets another message go."""
        return self.state is State.OPEN and len(self.in_flight) < self.window

    def send(self, message: UserMessage, position: Position, now: float) -> Flight:
        """[MS-MQQB] 3.1.7.1.3 and 3.1.7.1.6: counts a message and sends it."""
        self.sent += 1
        recoverable = 0
        if message.recoverable:
            self.recoverable_sent += 1
            recoverable = self.recoverable_sent
        flight = Flight(self.sent, recoverable, position)
        self.in_flight.append(flight)
        if recoverable:
            self._unpersisted[recoverable] = flight
        if self._rides_along(message, now):
            message = replace(message, session=self._fields())
            self._acked(now)
        self.outbox.append(write_message(message, self.owner.chance))
        if Timer.ACK_WAIT not in self.timers:
            self._wait_for_ack(now)
        self.is_active = True
        return flight

    def _rides_along(self, message: UserMessage, now: float) -> bool:
        """[MS-MQQB] 3.1.7.11; all flags of an OrderAck's or FinalAck's BaseHeader are 0."""
        due = self.timers.get(Timer.ACK_SEND)
        if due is None or not self.unacked_received or message.destination.kind != 7:
            return False
        if message.destination.path.endswith("order_queue$"):
            return False
        return due - now < (1 - PIGGYBACK_SHARE) * self._ack_send_s

    def _fields(self, window: int = 0) -> SessionFields:
        readings, chance = self.owner.readings, self.owner.chance
        sent = self.sent
        if readings.miscounts and chance.random() < readings.miscounts:
            self.owner.miscounts += 1
            sent += chance.choice((1, 7, 0xFFFF))
        if readings.short_of_memory and chance.random() < readings.short_of_memory:
            window = 1
        return SessionFields(
            ack=self.received,
            recoverable_ack=self.last_acked_recoverable + 1 if self.recoverable_flags else 0,
            recoverable_flags=self.recoverable_flags,
            sent=sent,
            recoverable_sent=self.recoverable_sent,
            window=window or readings.window,
        )

    def _acked(self, now: float) -> None:
        self.recoverable_flags = 0
        self.unacked_received = 0
        self.last_acked_recoverable = self.recoverable_received
        self._start_ack_send(self.ack_wait_ms / 2000, now)

    def send_ack(self, now: float, *, window: int = 0) -> None:
        """[MS-MQQB] 3.1.6.4: a SessionAck for all that came."""
        self.outbox.append(write_session_ack(self._fields(window), self.owner.chance))
        self._acked(now)

    def take_output(self) -> list[bytes]:
        """What is to be written, packet by packet."""
        output, self.outbox = self.outbox, []
        return output

    def close(self, reason: str, now: float) -> None:
        """[MS-MQQB] 3.1.5.9."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self.closing = True
        self.reason = reason
        self.timers.clear()
        self.order_acks.clear()
        self.in_flight.clear()
        self.owner.closed(self, now)


def nearest(count: int, near: int) -> int:
    """A count of 16 bits, as the number closest to another."""
    away = (count - near) & 0xFFFF
    return near + (away - 0x10000 if away >= 0x8000 else away)
