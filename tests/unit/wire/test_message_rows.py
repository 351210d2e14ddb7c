"""What an application says of a message, in the packet's fields and back, row by row."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Final
from uuid import UUID

import pytest

from merq.model.names import PublicName
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.message import UserMessage
from merq.wire.multiqueue import MQFDirectQueueFormatName
from merq.wire.queues import DirectQueueFormatName, PublicQueueFormatName
from merq.wire.security import ProviderInfo, SecurityFields, SecurityFlags, SecurityHeader
from merq.wire.view import MessageView

SOURCE = UUID(int=0xA1)
REPORTS = UUID(int=0xA2)
CORRELATION = bytes(range(20))
ALL = Outline(
    destination="OS:b\\q",
    source_queue_manager=SOURCE.bytes_le,
    message_ordinal=0x0102,
    sent_time=1_000_000_000,
    body=b"body",
    body_type=0x11,
    label="Label",
    priority=6,
    recoverable=True,
    admin_queue="OS:a\\p",
    response_queue=PublicName(queue=SOURCE),
    acknowledgments=0x05,
    positive_journaling=True,
    negative_journaling=True,
    time_to_reach_queue=60,
    time_to_be_received=120,
    correlation_id=CORRELATION,
    application_tag=77,
    message_class=0x0001,
    extension=b"extension",
    report_queue=REPORTS,
    destinations=("OS:b\\q", "OS:c\\q"),
)
ORDERED = replace(
    ALL,
    transaction=TransactionPlace(
        sequence_id=0x1_0000_0003,
        sequence_number=5,
        previous_sequence_number=4,
        identifier=0xABCDE,
        is_first=True,
        is_last=False,
        final_ack_required=True,
    ),
)

_PROPERTIES = "message_properties_header.fields."
_USER = "user_header.fields."
_TRANSACTION = "transaction_header.fields."
ROWS: Final = [
    ("BaseHeader.Flags.TR", "base_header.flags.traced", True),
    ("BaseHeader.Flags.DH", "base_header.flags.debug_header", True),
    ("BaseHeader.TimeToReachQueue", "base_header.time_to_reach_queue", 60),
    ("LabelLength, with its null", _PROPERTIES + "label_length", 6),
    ("BodyType", _PROPERTIES + "body_type", 0x11),
    ("MessageSize", _PROPERTIES + "message_size", 4),
    ("ExtensionSize", _PROPERTIES + "extension_size", 9),
    ("EncryptionAlgorithm", _PROPERTIES + "encryption_algorithm", 0x6610),
    ("HashAlgorithm", _PROPERTIES + "hash_algorithm", 0x800E),
    ("ApplicationTag", _PROPERTIES + "application_tag", 77),
    ("CorrelationID", _PROPERTIES + "correlation_id", CORRELATION),
    ("Flags.PA", _PROPERTIES + "flags.positive_arrival", True),
    ("Flags.PR", _PROPERTIES + "flags.positive_receive", False),
    ("Flags.NA", _PROPERTIES + "flags.negative_arrival", True),
    ("MessageClass", _PROPERTIES + "message_class", 1),
    ("PrivacyLevel", _PROPERTIES + "privacy_level", 0),
    ("ExtensionData", "message_properties_header.extension_data", b"extension"),
    ("Label", "message_properties_header.label", "Label"),
    ("MessageBody", "message_properties_header.message_body", b"body"),
    ("TransactionHeader.Flags.FA", _TRANSACTION + "flags.final_ack_required", True),
    ("TransactionHeader.Flags.ID", _TRANSACTION + "flags.identifier", 0xABCDE),
    ("TransactionHeader.Flags.FM", _TRANSACTION + "flags.first_message", True),
    ("TransactionHeader.Flags.LM", _TRANSACTION + "flags.last_message", False),
    ("TxSequenceNumber", _TRANSACTION + "tx_sequence_number", 5),
    ("PreviousTxSequenceNumber", _TRANSACTION + "previous_tx_sequence_number", 4),
    ("TxSequenceID.Ordinal", _TRANSACTION + "tx_sequence_id.ordinal", 3),
    ("TxSequenceID.TimeStamp", _TRANSACTION + "tx_sequence_id.time_stamp", 1),
    ("QueueManagerAddress", _USER + "queue_manager_address", UUID(int=0)),
    ("SentTime", _USER + "sent_time", 1_000_000_000),
    ("TimeToBeReceived", _USER + "time_to_be_received", 120),
    ("MessageID", _USER + "message_id", 0x0102),
    ("SourceQueueManager", _USER + "source_queue_manager", SOURCE),
    ("Flags.DQ", _USER + "flags.destination_queue_type", 7),
    ("Flags.AQ", _USER + "flags.admin_queue_type", 7),
    ("Flags.RQ", _USER + "flags.response_queue_type", 5),
    ("Flags.DM", _USER + "flags.delivery_mode", 1),
    ("Flags.JP", _USER + "flags.positive_journaling", True),
    ("Flags.JN", _USER + "flags.negative_journaling", True),
    (
        "DestinationQueue",
        "user_header.destination_queue",
        DirectQueueFormatName(direct_format_name="OS:b\\q"),
    ),
    ("AdminQueue", "user_header.admin_queue", DirectQueueFormatName(direct_format_name="OS:a\\p")),
    (
        "ResponseQueue",
        "user_header.response_queue",
        PublicQueueFormatName(public_queue_identifier=SOURCE),
    ),
    ("DebugHeader.Flags.QT", "debug_header.fields.flags.queue_type", 1),
    ("DebugHeader.QueueIdentifier", "debug_header.queue_identifier", REPORTS),
]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.32")
@pytest.mark.parametrize(("row", "path", "value"), ROWS, ids=[each[0] for each in ROWS])
def test_each_attribute_goes_into_its_field(row: str, path: str, value: object) -> None:
    message = UserMessage.parse(build_packet(ORDERED))
    assert attrgetter(path)(message) == value, row


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.32")
def test_every_destination_goes_into_the_list_of_them() -> None:
    header = UserMessage.parse(build_packet(ALL)).multi_queue_format_header
    assert header is not None
    names = [each.format_name for each in header.destination.format_name_list]
    assert names == [
        MQFDirectQueueFormatName(direct_format_name=each) for each in ("OS:b\\q", "OS:c\\q")
    ]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.32")
def test_the_priority_is_zero_with_a_transaction_header_and_the_messages_without() -> None:
    assert UserMessage.parse(build_packet(ALL)).base_header.flags.priority == 6
    assert UserMessage.parse(build_packet(ORDERED)).base_header.flags.priority == 0


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.32")
@pytest.mark.parametrize("outline", [ALL, ORDERED, Outline(destination="OS:b\\q")])
def test_the_packet_says_its_whole_size(outline: Outline) -> None:
    packet = build_packet(outline)
    assert UserMessage.parse(packet).base_header.packet_size == len(packet)


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.30")
@pytest.mark.parametrize(
    ("header", "outline"),
    [
        ("transaction_header", replace(ORDERED, report_queue=None, destinations=())),
        ("debug_header", replace(ALL, destinations=())),
        ("multi_queue_format_header", replace(ALL, report_queue=None)),
        ("", Outline(destination="OS:b\\q")),
    ],
)
def test_a_header_is_there_if_what_it_carries_is_said(header: str, outline: Outline) -> None:
    optional = (
        "transaction_header",
        "security_header",
        "debug_header",
        "multi_queue_format_header",
        "soap_header",
    )
    message = UserMessage.parse(build_packet(outline))
    assert message.user_header.fields.flags.message_properties_header
    there = [name for name in optional if getattr(message, name) is not None]
    assert there == ([header] if header else [])


SID = bytes.fromhex("0101000000000005") + (18).to_bytes(4, "little")


def secured() -> UserMessage:
    """The same message with everything that a SecurityHeader may carry."""
    message = UserMessage.parse(build_packet(ORDERED))
    provider = ProviderInfo(provider_type=1, provider_name="Provider")
    flags = SecurityFlags(sender_id_type=1, security_data=True, authentication_signature=3)
    header = SecurityHeader(
        fields=SecurityFields(
            flags=flags,
            sender_id_size=len(SID),
            encryption_key_size=3,
            signature_size=9,
            sender_cert_size=4,
            provider_info_size=len(provider.pack()),
        ),
        security_id=SID,
        encryption_key=b"key",
        signature=b"signature",
        sender_cert=b"cert",
        provider_info=provider,
    )
    user = message.user_header
    fields = replace(user.fields, flags=replace(user.fields.flags, security_header=True))
    user = replace(user, fields=fields)
    return replace(message, user_header=user, security_header=header).measured()


ATTRIBUTES: Final = [
    ("TracingRequested", "traced", True),
    ("TimeToReachQueue", "time_to_reach_queue", 60),
    ("BodyType", "body_type", 0x11),
    ("AppSpecific", "application_tag", 77),
    ("CorrelationIdentifier", "correlation_id", CORRELATION),
    ("AcknowledgementsRequested", "acknowledgments", 5),
    ("Class", "message_class", 1),
    ("Extension", "extension", b"extension"),
    ("Label", "label", "Label"),
    ("Body", "body", b"body"),
    ("PrivacyLevel", "privacy_level", 0),
    ("FinalAckRequired", "final_ack_required", True),
    ("TransactionSequenceNumber", "tx_sequence_number", 5),
    ("TransactionalMessageSequenceIdentifier", "tx_sequence_id", 0x1_0000_0003),
    ("DestinationQueueManagerIdentifier", "queue_manager_address", UUID(int=0)),
    ("SentTime", "sent_time", 1_000_000_000),
    ("DestinationQueueType", "destination_type", 7),
    ("AdministrationQueueType", "admin_queue_type", 7),
    ("ResponseQueueType", "response_queue_type", 5),
    ("TimeToBeReceived", "time_to_be_received", 120),
    ("Identifier", "message_id", SOURCE.bytes_le + bytes.fromhex("02010000")),
    ("SourceMachineIdentifier", "source_queue_manager", SOURCE),
    ("AdministrationQueueFormatName", "admin_queue", "OS:a\\p".encode("utf-16-le")),
    ("DestinationQueueFormatName", "destination", "OS:b\\q".encode("utf-16-le")),
    ("ResponseQueueFormatName", "response_queue", SOURCE.bytes_le),
    ("DeliveryGuarantee", "delivery_mode", 1),
    ("PositiveJournalingRequested", "positive_journaling", True),
    ("NegativeJournalingRequested", "negative_journaling", True),
]
SECURITY: Final = [
    ("SenderIdentifierType", "security_header.fields.flags.sender_id_type", 1),
    ("SymmetricKey", "security_header.encryption_key", b"key"),
    ("SenderIdentifier", "security_header.security_id", SID),
    ("SenderCertificate", "security_header.sender_cert", b"cert"),
    ("AuthenticationProviderType", "security_header.provider_info.provider_type", 1),
    ("AuthenticationProviderName", "security_header.provider_info.provider_name", "Provider"),
    ("AuthenticationLevel", "security_header.fields.flags.authentication_signature", 3),
]


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.31")
@pytest.mark.parametrize(
    ("attribute", "name", "value"), ATTRIBUTES, ids=[each[0] for each in ATTRIBUTES]
)
@pytest.mark.parametrize("is_secured", [False, True])
def test_each_field_is_read_back_as_its_attribute(
    attribute: str, name: str, value: object, is_secured: bool
) -> None:
    packet = secured().pack() if is_secured else build_packet(ORDERED)
    assert getattr(MessageView(packet), name) == value, attribute


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.31")
@pytest.mark.parametrize(
    ("attribute", "path", "value"), SECURITY, ids=[each[0] for each in SECURITY]
)
def test_each_item_of_security_is_read_back(attribute: str, path: str, value: object) -> None:
    message = MessageView(secured().pack()).decode()
    assert attrgetter(path)(message) == value, attribute


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.31")
def test_what_has_no_header_is_skipped() -> None:
    view = MessageView(build_packet(Outline(destination="OS:b\\q")))
    message = view.decode()
    assert (view.transactional, view.is_signed, view.traced) == (False, False, False)
    assert (message.transaction_header, message.security_header) == (None, None)
    assert (message.debug_header, message.multi_queue_format_header) == (None, None)
    assert (view.label, view.extension, view.body) == ("", b"", b"")
