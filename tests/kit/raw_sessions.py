"""The other end of a session with an `Exchange`, made by hand: it says exactly what it is told."""

from __future__ import annotations

from struct import pack, unpack_from
from uuid import UUID

from kit.exchange import Manager
from merq.exchange import Link
from merq.wire.acks import AckEnvelope, FinalAckBody, OrderAckBody, final_ack, order_ack
from merq.wire.headers import TxSequenceID

BASE = b"\x10\x00%s\x00LIOR%s\xff\xff\xff\xff"
ESTABLISH_SIZE, PARAMETERS_SIZE = 572, 32


class RawSession:
    """Somebody who has connected to a queue manager, or was connected to by it.

    Attributes:
        written: Packets that the queue manager has sent, whole.
    """

    def __init__(self, manager: Manager, guid: UUID, link: Link) -> None:
        self.manager = manager
        self.guid = guid
        self.link = link
        self.written: list[bytes] = []
        self._data = b""

    @classmethod
    def connect(cls, manager: Manager, address: str, guid: UUID, now: float = 0.0) -> RawSession:
        """Somebody at this address connects."""
        link = manager.exchange.accepted(address, now)
        assert link is not None, "the connection was cut off"
        return cls(manager, guid, link)

    @classmethod
    def accept(cls, manager: Manager, guid: UUID, now: float = 0.0) -> RawSession:
        """Somebody is connected to, and opens the session as Windows would."""
        manager.turn(now)
        (link,) = manager.exchange.take_dialing()
        session = cls(manager, guid, link)
        manager.exchange.connected(link, now)
        session.settle(now)
        session.say(establish(manager.guid, guid), now)
        session.say(parameters(), now)
        return session

    def hang_up(self, now: float = 0.0) -> None:
        """The connection is cut."""
        self.manager.exchange.lost(self.link, "cut", now)

    def establish(self, now: float = 0.0, *, window: int = 64, wait_ms: int = 20_000) -> RawSession:
        """[MS-MQQB] 3.1.1.7.1: opens the session, as Windows would."""
        self.say(establish(self.guid), now)
        self.say(parameters(window=window, wait_ms=wait_ms), now)
        return self

    def say(self, data: bytes, now: float = 0.0) -> None:
        """Bytes, and everything that the queue manager does upon them."""
        self.manager.exchange.received(self.link, data, now)
        self.settle(now)

    def settle(self, now: float = 0.0) -> None:
        """What the queue manager has to say is read; if it closes the connection, that happens."""
        self.manager.turn(now)
        self.manager.exchange.dirty.pop(self.link, None)
        self.link.collect()
        self._data += b"".join(self.link.take_outbox())
        self._cut_packets()
        if self.link.closing and not self.link.is_lost:
            self.manager.exchange.lost(self.link, self.link.closing, now)
            self.manager.turn(now)

    def _cut_packets(self) -> None:
        while len(self._data) >= 16:
            size: int = unpack_from("<I", self._data, 8)[0]
            is_internal, has_header = self._data[2] & 8, self._data[2] & 0x10
            size += 16 if has_header and not is_internal else 0
            if len(self._data) < size:
                return
            self.written.append(self._data[:size])
            self._data = self._data[size:]

    def messages(self) -> list[bytes]:
        """Those of the packets that are messages; they are not given again."""
        found = [each for each in self.written if not each[2] & 8]
        self.written.clear()
        return found


def establish(client: UUID, server: UUID | None = None, *, flags: int = 0x0310) -> bytes:
    """[MS-MQQB] 2.2.3: a request, with rubbish where Windows leaves it."""
    head = BASE % (b"\x0b", pack("<I", ESTABLISH_SIZE)) + pack("<HH", 0, 2)
    guids = client.bytes_le + (server or UUID(int=0)).bytes_le
    return head + guids + pack("<IHH", 12345, flags, 0) + bytes([0x5A]) * 512


def parameters(
    *, recoverable_ms: int = 500, wait_ms: int = 20_000, window: int = 64, refused: bool = False
) -> bytes:
    """[MS-MQQB] 2.2.2: a proposal or an answer."""
    head = BASE % (b"\x0b", pack("<I", PARAMETERS_SIZE)) + pack("<HH", 0, 3 | refused << 4)
    return head + pack("<IIHH", recoverable_ms, wait_ms, 0, window)


def order_ack_packet(source: UUID, sequence_id: int, number: int, *, ordinal: int = 901) -> bytes:
    """[MS-MQQB] 2.2.4: to whoever reads it."""
    body = OrderAckBody(
        tx_sequence_id=_sequence(sequence_id),
        tx_sequence_number=number,
        tx_previous_sequence_number=number - 1,
    )
    return order_ack(_envelope(source, ordinal), body).pack()


def final_ack_packet(
    source: UUID,
    sequence_id: int,
    number: int,
    sender: UUID,
    message_ordinal: int,
    message_class: int,
    *,
    ordinal: int = 902,
) -> bytes:
    """[MS-MQQB] 2.2.5: about one message of `sender`."""
    body = FinalAckBody(
        tx_sequence_id=_sequence(sequence_id),
        tx_sequence_number=number,
        tx_previous_sequence_number=number - 1,
        source_guid=sender,
        message_id=message_ordinal,
    )
    return final_ack(_envelope(source, ordinal), body, message_class).pack()


def _sequence(sequence_id: int) -> TxSequenceID:
    return TxSequenceID(ordinal=sequence_id & 0xFFFFFFFF, time_stamp=sequence_id >> 32)


def _envelope(source: UUID, ordinal: int) -> AckEnvelope:
    return AckEnvelope(
        source_queue_manager=source,
        destination=r"TCP:10.0.0.1\private$\order_queue$",
        sent_time=1_000_000_000,
        message_id=ordinal,
    )
