"""Bodies that are encrypted: nobody here can open them, so they are not taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.foreign_peers import ForeignPeer
from merq.model.message_class import MessageClass
from merq.wire.security import SecurityFields, SecurityFlags, SecurityHeader
from merq.wire.view import MessageView
from unit.exchange.exchange_world import QUEUE, TX, changed, pair

TO_QUEUE, TO_TX = r"TCP:10.0.0.2\private$\q", r"TCP:10.0.0.2\private$\tx"
REFUSED = MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION
SID = bytes.fromhex("010100000000000512000000")


def secured(packet: bytes, *, encrypted: bool, privacy_level: int = 0) -> bytes:
    """The packet with a SecurityHeader, which says whether its body is encrypted."""
    message = MessageView(packet).decode()
    flags = SecurityFlags(sender_id_type=1, body_encrypted=encrypted, security_data=True)
    fields = SecurityFields(
        flags=flags,
        sender_id_size=len(SID),
        encryption_key_size=4,
        signature_size=0,
        sender_cert_size=0,
        provider_info_size=0,
    )
    header = SecurityHeader(fields=fields, security_id=SID, encryption_key=b"key!")
    user, properties = message.user_header, message.message_properties_header
    user_flags = replace(user.fields.flags, security_header=True)
    whole = replace(
        message,
        user_header=replace(user, fields=replace(user.fields, flags=user_flags)),
        security_header=header,
        message_properties_header=replace(
            properties, fields=replace(properties.fields, privacy_level=privacy_level)
        ),
    )
    return whole.measured().pack()


@pytest.mark.parametrize("privacy_level", [0, 1, 2, 3, 5])
@pytest.mark.spec("MS-MQQB 3.1.5.8.3", "MS-MQMQ 2.2.20.6", "MS-MQQB 3.1.7.15")
@pytest.mark.spec("E92")
def test_an_encrypted_body_is_refused_whatever_its_privacy_level_says(privacy_level: int) -> None:
    town, _, receiver = pair(changed(insecure_nacks=True))
    peer = ForeignPeer(town, receiver)
    packet = peer.packet(
        TO_QUEUE,
        b"\x8f\x01 secret",
        admin_queue=r"TCP:10.0.0.99\private$\told",
        acknowledgments=0x0F,
    )
    peer.say(secured(packet, encrypted=True, privacy_level=privacy_level))
    assert receiver.bodies(QUEUE) == []
    assert [(each.message_class, each.body) for each in peer.messages] == [(REFUSED, b"")]


@pytest.mark.spec("MS-MQQB 3.1.5.8.3", "MS-MQMQ 2.2.20.6")
def test_an_encrypted_body_in_the_midst_of_a_sequence_is_refused_and_its_sender_is_told() -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    packets = [
        secured(peer.in_order(TO_TX, b"%d" % number), encrypted=number == 2) for number in range(4)
    ]
    peer.say(b"".join(packets))
    assert receiver.bodies(TX) == [b"0", b"1", b"3"]
    (told,) = peer.messages
    assert told.message_class == REFUSED


@pytest.mark.spec("MS-MQMQ 2.2.20.6")
def test_a_body_that_is_not_encrypted_is_taken_with_its_security_header() -> None:
    town, _, receiver = pair()
    peer = ForeignPeer(town, receiver)
    peer.say(
        secured(peer.packet(TO_QUEUE, b"clear"), encrypted=False),
        secured(peer.in_order(TO_TX, b"in order"), encrypted=False),
    )
    assert (receiver.bodies(QUEUE), receiver.bodies(TX)) == ([b"clear"], [b"in order"])
