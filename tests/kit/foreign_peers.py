"""A queue manager that is not Merq, joined to one exchange: it says any packet it is told to."""

from __future__ import annotations

from uuid import UUID

from kit.exchange import START, Manager, Town
from kit.sessions import establish, parameters
from merq.wire.build import Destination, Outline, TransactionPlace, build_packet
from merq.wire.stream import PacketSplitter
from merq.wire.view import MessageView

SEQUENCE = START << 32 | 1
"""The sequence of everything transactional that it sends."""


class ForeignPeer:
    """The side that connects to a queue manager of a town, by the documents and no further.

    Attributes:
        heard: Packets that the queue manager has sent, since the session is open.
    """

    def __init__(
        self, town: Town, manager: Manager, address: str = "10.0.0.99", guid: UUID | None = None
    ) -> None:
        self.guid = guid or UUID(int=0xF0F0)
        self.heard: list[bytes] = []
        self._town = town
        self._manager = manager
        self._splitter = PacketSplitter()
        self._ordinal = 0
        self._number = 0
        link = manager.exchange.accepted(address, town.now)
        assert link is not None, "there was no room for the connection"
        self._link = link
        self.say(establish(self.guid, manager.guid))
        self.say(parameters())
        assert self._link.is_open
        self.heard.clear()

    def say(self, *packets: bytes) -> None:
        """Sends packets; what they lead to has happened when this returns."""
        for packet in packets:
            self._manager.exchange.received(self._link, packet, self._town.now)
        self._town.run()
        self.listen()

    def listen(self) -> None:
        """Takes what the queue manager wants written to it."""
        self._link.collect()
        for chunk in self._link.take_outbox():
            self.heard += self._splitter.feed(chunk)

    def packet(self, destination: Destination, body: bytes = b"", **fields: object) -> bytes:
        """A message of its own."""
        self._ordinal += 1
        values: dict[str, object] = {
            "source_queue_manager": self.guid.bytes_le,
            "message_ordinal": self._ordinal,
            "sent_time": START + int(self._town.now),
        }
        return build_packet(
            Outline(destination=destination, body=body, **(values | fields))  # type: ignore[arg-type]
        )

    def in_order(self, destination: Destination, body: bytes = b"", **fields: object) -> bytes:
        """The same, as the next of its sequence."""
        self._number += 1
        place = TransactionPlace(SEQUENCE, self._number, self._number - 1)
        return self.packet(destination, body, recoverable=True, transaction=place, **fields)

    @property
    def messages(self) -> list[MessageView]:
        """The messages among what it heard, without the session's part."""
        found = []
        for packet in self.heard:
            if not packet[2] & 0x08:
                size = int.from_bytes(packet[8:12], "little")
                bare = packet[:2] + bytes([packet[2] & ~0x10]) + packet[3:size]
                found.append(MessageView(bare))
        return found
