"""What strangers write by hand is what a queue manager reads: else nothing here would attack."""

from __future__ import annotations

from uuid import UUID

from hostile import stranger_packets as packets
from merq.wire.packet import parse_packet
from merq.wire.view import MessageView

GUID = UUID(int=7).bytes_le


def test_messages_of_strangers_can_be_read() -> None:
    packet = packets.message(
        GUID,
        5,
        r"OS:a\private$\q",
        body=b"hello",
        label="greeting",
        admin=r"TCP:127.9.9.9\private$\told",
        response=r"OS:b\private$\r",
        asked=packets.NA,
        dead_letter=True,
        transaction=packets.Transaction(1 << 40, 3, 2),
        copies_to=[packets.direct_element(r"OS:a\private$\q"), packets.direct_element("OS:c\\d")],
    )
    view = MessageView(packet)
    assert (view.body, view.label, view.message_ordinal) == (b"hello", "greeting", 5)
    assert view.tx_place == (1 << 40, 3, 2)
    assert (view.negative_journaling, view.positive_journaling) == (True, False)
    assert view.acknowledgments == packets.NA
    parse_packet(packet)


def test_every_form_of_destination_can_be_read() -> None:
    for destination in ("OS:a\\private$\\q", 9, GUID):
        parse_packet(packets.message(GUID, 1, destination))
    names = [packets.private_element(GUID, number) for number in range(100)]
    parse_packet(packets.message(GUID, 1, "OS:a\\private$\\q", copies_to=names))


def test_what_strangers_say_in_a_session_can_be_read() -> None:
    for packet in (
        packets.establish(GUID),
        packets.parameters(),
        packets.session_ack(3, 4),
        packets.order_ack(GUID, 1, 1 << 33, 5, "OS:a"),
        packets.final_ack(GUID, 1, 1 << 33, 5, "OS:a", of=GUID, of_ordinal=7, message_class=0xC001),
    ):
        parse_packet(packet)
