"""Packets whose destination, administration and response queues are named in every form."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import UUID

from merq.wire.queues import (
    DirectQueueFormatName,
    PrivateQueueFormatName,
    PrivateQueueFormatNameId,
    PublicQueueFormatName,
    QueueFormat,
)
from merq.wire.security import SecurityFields, SecurityFlags, SecurityHeader
from merq.wire.view import MessageView

SOURCE: Final = UUID("11111111-1111-1111-1111-111111111111")
TARGET: Final = UUID("22222222-2222-2222-2222-222222222222")
OTHER: Final = UUID("66666666-6666-6666-6666-666666666666")
PUBLISHED: Final = UUID("55555555-5555-5555-5555-555555555555")
SID: Final = bytes.fromhex("0105000000000005150000000102030405060708090a0b0ce9030000")
"""[MS-DTYP] 2.4.2.2: of a user of a domain."""

SID_TEXT: Final = "S-1-5-21-67305985-134678021-202050057-1001"

NUMBERED: Final = PrivateQueueFormatNameId(private_queue_identifier=0x2A)
FORMS: Final[dict[int, QueueFormat | None]] = {
    0: None,
    1: None,
    2: NUMBERED,
    3: NUMBERED,
    4: NUMBERED,
    5: PublicQueueFormatName(public_queue_identifier=PUBLISHED),
    6: PrivateQueueFormatName(source_queue_manager=OTHER, private_queue_identifier=0x2B),
    7: DirectQueueFormatName(direct_format_name="OS:host\\private$\\told"),
}
"""[MS-MQMQ] 2.2.19.2: a name of each type."""

SHOWN: Final = {
    0: "",
    2: rf"PRIVATE={SOURCE}\0000002a",
    3: rf"PRIVATE={TARGET}\0000002a",
    5: f"PUBLIC={PUBLISHED}",
    6: rf"PRIVATE={OTHER}\0000002b",
    7: r"DIRECT=OS:host\private$\told",
}
"""What each is as a format name, but those that depend on the administration queue."""


def naming(
    packet: bytes,
    *,
    admin: int = 0,
    response: int = 0,
    source: UUID = SOURCE,
    target: UUID = TARGET,
) -> bytes:
    """The packet with administration and response queues of these types."""
    message = MessageView(packet).decode()
    header = message.user_header
    flags = replace(header.fields.flags, admin_queue_type=admin, response_queue_type=response)
    fields = replace(
        header.fields, flags=flags, source_queue_manager=source, queue_manager_address=target
    )
    named = replace(header, fields=fields, admin_queue=FORMS[admin], response_queue=FORMS[response])
    return replace(message, user_header=named).measured().pack()


def from_sender(packet: bytes, security_id: bytes = SID, kind: int = 1) -> bytes:
    """The packet with who sent it in a SecurityHeader, by SID or as a queue manager's GUID."""
    message = MessageView(packet).decode()
    fields = SecurityFields(
        flags=SecurityFlags(sender_id_type=kind, security_data=True),
        sender_id_size=len(security_id),
        encryption_key_size=0,
        signature_size=0,
        sender_cert_size=0 if security_id else 4,
        provider_info_size=0,
    )
    cert = b"" if security_id else b"cert"
    user = message.user_header
    flags = replace(user.fields.flags, security_header=True)
    secured = replace(
        message,
        user_header=replace(user, fields=replace(user.fields, flags=flags)),
        security_header=SecurityHeader(fields=fields, security_id=security_id, sender_cert=cert),
    )
    return secured.measured().pack()
