"""[MS-MQQB] 4.1: every dump read, and written again from values.

Where commentary and bytes differ the bytes are right; E01, E03, E04 and E21 in
`conformance/errata.toml` say where they do.
"""

from uuid import UUID

import pytest

from kit.vectors import frame
from merq.wire.connection import (
    ConnectionParameters,
    ConnectionParametersHeader,
    EstablishConnection,
    EstablishConnectionHeader,
    InternalFlags,
    InternalHeader,
    OperatingSystemFlags,
    SessionAck,
)
from merq.wire.headers import BaseFlags, BaseHeader, SessionHeader
from merq.wire.message import UserMessage
from merq.wire.packet import parse_packet
from merq.wire.ping import Ping, PingFlags
from merq.wire.properties import (
    AcknowledgmentFlags,
    MessagePropertiesHeader,
    PropertiesFields,
)
from merq.wire.queues import DirectQueueFormatName
from merq.wire.security import SecurityFields, SecurityFlags, SecurityHeader
from merq.wire.user import UserFields, UserFlags, UserHeader
from merq.wire.view import MessageView

# The commentary prints these with all 16 bytes reversed (E01).
CLIENT = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
SERVER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
OTHER_CLIENT = UUID("1f742305-be5e-4177-bc77-c4dd7719e474")
OTHER_SERVER = UUID("3c3a6aeb-f567-4143-87d3-85cf4d68ceb4")

INTERNAL = BaseFlags(priority=3, internal=True)
FOR_EVER = 0xFFFFFFFF

PING_REQUEST = Ping(
    flags=PingFlags(not_server_class=True, refused=False, reserved=0x7D00),
    signature=0x5548,
    cookie=4,
    qm_guid=CLIENT,
)
PING_RESPONSE = Ping(
    flags=PingFlags(not_server_class=True, refused=False, reserved=0xB294),
    signature=0x5548,
    cookie=4,
    qm_guid=SERVER,
)


def establish_connection(reserved: int, client: UUID, server: UUID) -> EstablishConnection:
    return EstablishConnection(
        base_header=BaseHeader(
            version_number=0x10,
            reserved=reserved,
            flags=INTERNAL,
            signature=0x524F494C,
            packet_size=572,
            time_to_reach_queue=FOR_EVER,
        ),
        internal_header=InternalHeader(
            reserved=0, flags=InternalFlags(packet_type=2, refused=False)
        ),
        header=EstablishConnectionHeader(
            client_guid=client,
            server_guid=server,
            time_stamp=501140046,
            operating_system=OperatingSystemFlags(
                fixed=0x10, without_ping=True, server_class=True, quality_of_service=False
            ),
            reserved=0,
            padding=b"\x5a" * 512,
        ),
    )


CONNECTION_PARAMETERS = ConnectionParameters(
    base_header=BaseHeader(
        reserved=0xC0, flags=INTERNAL, packet_size=32, time_to_reach_queue=FOR_EVER
    ),
    internal_header=InternalHeader(reserved=0, flags=InternalFlags(packet_type=3, refused=False)),
    header=ConnectionParametersHeader(
        recoverable_ack_timeout=1496, ack_timeout=120000, reserved=0, window_size=64
    ),
)
SESSION_ACK = SessionAck(
    base_header=BaseHeader(
        reserved=0xCD,
        flags=BaseFlags(priority=3, internal=True, session_header=True),
        packet_size=36,
        time_to_reach_queue=FOR_EVER,
    ),
    internal_header=InternalHeader(reserved=0, flags=InternalFlags(packet_type=1, refused=False)),
    header=SessionHeader(
        ack_sequence_number=1,
        recoverable_msg_ack_seq_number=0,
        recoverable_msg_ack_flags=0,
        user_msg_sequence_number=0,
        recoverable_msg_seq_number=0,
        window_size=64,
        reserved=0,
    ),
)
SENDER_SID = bytes.fromhex("010500000000000515000000 ad4a9ebd 36d9fa3d 63a656da e8030000")
USER_MESSAGE = UserMessage(
    base_header=BaseHeader(
        reserved=0, flags=BaseFlags(priority=3), packet_size=2224, time_to_reach_queue=345600
    ),
    user_header=UserHeader(
        fields=UserFields(
            source_queue_manager=CLIENT,
            queue_manager_address=UUID(int=0),
            time_to_be_received=FOR_EVER,
            sent_time=0x524F494C,
            message_id=2286,
            flags=UserFlags(
                destination_queue_type=7, security_header=True, message_properties_header=True
            ),
        ),
        destination_queue=DirectQueueFormatName(direct_format_name=r"OS:a04bm02\q"),
    ),
    security_header=SecurityHeader(
        fields=SecurityFields(
            flags=SecurityFlags(sender_id_type=1),
            sender_id_size=28,
            encryption_key_size=0,
            signature_size=0,
            sender_cert_size=0,
            provider_info_size=0,
        ),
        security_id=SENDER_SID,
    ),
    message_properties_header=MessagePropertiesHeader(
        fields=PropertiesFields(
            flags=AcknowledgmentFlags(
                positive_arrival=True,
                positive_receive=True,
                negative_arrival=True,
                negative_receive=True,
            ),
            label_length=15,
            message_class=0,
            correlation_id=bytes(20),
            body_type=8,
            application_tag=0,
            message_size=2000,
            allocation_body_size=2000,
            privacy_level=0,
            hash_algorithm=0x8004,
            encryption_algorithm=0x6801,
            extension_size=0,
        ),
        label="mqsender label",
        message_body=b"a\0" * 1000,
    ),
)


@pytest.mark.spec("MS-MQQB 4.1.1", "MS-MQQB 2.2.7")
def test_frame_1_is_a_ping_request() -> None:
    ping = Ping.parse(frame(1))
    assert ping.flags.pack() == 0x7D01
    assert ping.flags.not_server_class is True
    assert ping.flags.refused is False
    assert ping.flags.reserved >> 2 == 0b01111101000000
    assert ping.signature == 0x5548
    assert ping.cookie == 4
    assert ping.qm_guid == CLIENT


@pytest.mark.spec("MS-MQQB 4.1.2", "MS-MQQB 2.2.7")
def test_frame_2_is_a_ping_response() -> None:
    ping = Ping.parse(frame(2))
    assert ping.flags.pack() == 0xB295
    assert ping.flags.not_server_class is True
    assert ping.flags.refused is False
    assert ping.flags.reserved >> 2 == 0b10110010100101
    assert ping.signature == 0x5548
    assert ping.cookie == 4
    assert ping.qm_guid == SERVER


def assert_internal_base(base: BaseHeader, *, reserved: int, size: int) -> None:
    assert base.version_number == 0x10
    assert base.reserved == reserved
    assert base.flags.pack() == 0xB
    assert base.flags.priority == 3
    assert base.flags.internal is True
    assert base.flags.session_header is False
    assert base.flags.debug_header is False
    assert base.flags.traced is False
    assert base.flags.reserved == 0
    assert base.signature == 0x524F494C
    assert base.packet_size == size
    assert base.time_to_reach_queue == FOR_EVER


@pytest.mark.parametrize(
    ("number", "reserved", "client", "server"),
    [
        pytest.param(3, 0xC0, CLIENT, SERVER, marks=pytest.mark.spec("MS-MQQB 4.1.3")),
        pytest.param(4, 0x5A, OTHER_CLIENT, OTHER_SERVER, marks=pytest.mark.spec("MS-MQQB 4.1.4")),
    ],
)
@pytest.mark.spec("MS-MQQB 2.2.3", "MS-MQQB 2.2.3.1", "MS-MQQB 2.2.1", "MS-MQMQ 2.2.19.1")
@pytest.mark.spec("E01")
def test_frames_3_and_4_ask_for_a_session_and_grant_it(
    number: int, reserved: int, client: UUID, server: UUID
) -> None:
    packet = parse_packet(frame(number))
    assert isinstance(packet, EstablishConnection)
    assert_internal_base(packet.base_header, reserved=reserved, size=572)
    assert packet.internal_header.reserved == 0
    assert packet.internal_header.flags.pack() == 2
    assert packet.internal_header.flags.packet_type == 2
    assert packet.internal_header.flags.refused is False
    assert packet.header.client_guid == client
    assert packet.header.server_guid == server
    assert packet.header.time_stamp == 501140046
    # The commentary has these two the other way round (E01).
    assert packet.header.operating_system.pack() == 0x0310
    assert packet.header.reserved == 0
    assert packet.header.operating_system.fixed == 0x10
    assert packet.header.operating_system.without_ping is True
    assert packet.header.operating_system.server_class is True
    assert packet.header.operating_system.quality_of_service is False
    assert packet.header.padding == b"\x5a" * 512


@pytest.mark.parametrize("number", [5, 6])
@pytest.mark.spec("MS-MQQB 4.1.5", "MS-MQQB 4.1.6", "MS-MQQB 2.2.2", "MS-MQQB 2.2.2.1")
@pytest.mark.spec("E03")
def test_frames_5_and_6_agree_on_parameters(number: int) -> None:
    packet = parse_packet(frame(number))
    assert isinstance(packet, ConnectionParameters)
    assert_internal_base(packet.base_header, reserved=0xC0, size=32)
    assert packet.internal_header.reserved == 0
    assert packet.internal_header.flags.pack() == 3
    assert packet.internal_header.flags.packet_type == 3
    assert packet.internal_header.flags.refused is False
    assert packet.header.recoverable_ack_timeout == 1496
    assert packet.header.ack_timeout == 120000
    assert packet.header.reserved == 0
    assert packet.header.window_size == 64  # 32 in the commentary of 4.1.6 (E03)


@pytest.mark.spec("MS-MQQB 4.1.7", "MS-MQMQ 2.2.19.1", "MS-MQMQ 2.2.19.2", "MS-MQMQ 2.2.18.1.5.2")
@pytest.mark.spec("E21")
def test_frame_7_says_where_the_message_comes_from_and_goes() -> None:
    assert len(frame(7)) == 2224
    message = parse_packet(frame(7))
    assert isinstance(message, UserMessage)
    base, user = message.base_header, message.user_header
    assert base.version_number == 0x10
    assert base.reserved == 0
    assert base.flags.pack() == 3
    assert base.flags.priority == 3
    assert base.flags.internal is False
    assert base.signature == 0x524F494C
    assert base.packet_size == 2224
    assert base.time_to_reach_queue == 345600
    assert user.fields.source_queue_manager == CLIENT
    assert user.fields.queue_manager_address == UUID(int=0)
    assert user.fields.time_to_be_received == FOR_EVER
    assert user.fields.sent_time == 0x524F494C  # 0x441105E6 in the commentary (E21)
    assert user.fields.message_id == 2286
    flags = user.fields.flags
    assert flags.pack() == 0x281C00
    assert flags.hop_count == 0
    assert flags.delivery_mode == 0
    assert flags.negative_journaling is False
    assert flags.positive_journaling is False
    assert flags.destination_queue_type == 7
    assert flags.admin_queue_type == 0
    assert flags.response_queue_type == 0
    assert flags.security_header is True
    assert flags.transaction_header is False
    assert flags.message_properties_header is True
    assert flags.connector_type is False
    assert flags.multi_queue_format_header is False
    assert flags.from_http is False
    assert flags.soap_header is False
    assert flags.reserved == 0
    assert user.destination_queue == DirectQueueFormatName(direct_format_name=r"OS:a04bm02\q")
    assert user.admin_queue is None
    assert user.response_queue is None
    assert user.connector_type is None


@pytest.mark.spec("MS-MQQB 4.1.7", "MS-MQMQ 2.2.20.6")
@pytest.mark.spec("E04", "E23")
def test_frame_7_carries_a_sid_though_ai_is_clear() -> None:
    message = UserMessage.parse(frame(7))
    security = message.security_header
    assert security is not None
    assert security.fields.flags.pack() == 1
    assert security.fields.flags.sender_id_type == 1
    assert security.fields.flags.authenticated is False
    assert security.fields.flags.body_encrypted is False
    assert security.fields.flags.default_provider is False
    assert security.fields.flags.security_data is False
    assert security.fields.flags.authentication_signature == 0
    assert security.fields.sender_id_size == 28
    assert security.fields.encryption_key_size == 0
    assert security.fields.signature_size == 0
    assert security.fields.sender_cert_size == 0
    assert security.fields.provider_info_size == 0
    assert security.security_id == SENDER_SID
    assert security.sid == "S-1-5-21-3181267629-1039849782-3663111779-1000"


@pytest.mark.spec("MS-MQQB 4.1.7", "MS-MQMQ 2.2.19.3")
@pytest.mark.spec("E04", "E21")
def test_frame_7_carries_a_label_and_a_body_of_2000_bytes() -> None:
    properties = UserMessage.parse(frame(7)).message_properties_header
    fields = properties.fields
    assert fields.flags.pack() == 0x0F  # no acknowledgments in the commentary (E21)
    assert fields.label_length == 15
    assert fields.message_class == 0
    assert fields.correlation_id == bytes(20)
    assert fields.body_type == 8
    assert fields.application_tag == 0
    assert fields.message_size == 2000
    assert fields.allocation_body_size == 2000  # 20 in the commentary (E21)
    assert fields.privacy_level == 0
    assert fields.hash_algorithm == 0x8004
    assert fields.encryption_algorithm == 0x6801  # 0x6601 in the commentary (E04)
    assert fields.extension_size == 0
    assert properties.label == "mqsender label"
    assert properties.extension_data == b""
    assert properties.body.decode("utf-16-le") == "a" * 1000
    assert properties.padding == bytes(2)


@pytest.mark.spec("MS-MQQB 4.1.7", "MS-MQMQ 2.2.20")
def test_frame_7_is_the_same_through_the_view() -> None:
    view = MessageView(frame(7))
    assert view.label == "mqsender label"
    assert view.destination.decode("utf-16-le") == r"OS:a04bm02\q"
    assert view.message_id == CLIENT.bytes_le + bytes.fromhex("ee080000")
    assert view.body == b"a\0" * 1000
    assert view.decode() == USER_MESSAGE


@pytest.mark.spec("MS-MQQB 4.1.8", "MS-MQQB 2.2.6", "MS-MQMQ 2.2.20.4")
def test_frame_8_acknowledges_one_message() -> None:
    packet = parse_packet(frame(8))
    assert isinstance(packet, SessionAck)
    base = packet.base_header
    assert base.version_number == 0x10
    assert base.reserved == 0xCD
    assert base.flags.pack() == 0x1B
    assert base.flags.priority == 3
    assert base.flags.internal is True
    assert base.flags.session_header is True
    assert base.signature == 0x524F494C
    assert base.packet_size == 36  # the SessionHeader counted (E05)
    assert base.time_to_reach_queue == FOR_EVER
    assert packet.internal_header.flags.pack() == 1
    assert packet.internal_header.flags.packet_type == 1
    assert packet.internal_header.flags.refused is False
    assert packet.header.ack_sequence_number == 1
    assert packet.header.recoverable_msg_ack_seq_number == 0
    assert packet.header.recoverable_msg_ack_flags == 0
    assert packet.header.user_msg_sequence_number == 0
    assert packet.header.recoverable_msg_seq_number == 0
    assert packet.header.window_size == 64
    assert packet.header.reserved == 0


@pytest.mark.parametrize(
    ("number", "value"),
    [
        pytest.param(1, PING_REQUEST, marks=pytest.mark.spec("MS-MQQB 4.1.1")),
        pytest.param(2, PING_RESPONSE, marks=pytest.mark.spec("MS-MQQB 4.1.2")),
        pytest.param(
            3,
            establish_connection(0xC0, CLIENT, SERVER),
            marks=pytest.mark.spec("MS-MQQB 4.1.3"),
        ),
        pytest.param(
            4,
            establish_connection(0x5A, OTHER_CLIENT, OTHER_SERVER),
            marks=pytest.mark.spec("MS-MQQB 4.1.4"),
        ),
        pytest.param(5, CONNECTION_PARAMETERS, marks=pytest.mark.spec("MS-MQQB 4.1.5")),
        pytest.param(6, CONNECTION_PARAMETERS, marks=pytest.mark.spec("MS-MQQB 4.1.6")),
        pytest.param(7, USER_MESSAGE, marks=pytest.mark.spec("MS-MQQB 4.1.7")),
        pytest.param(8, SESSION_ACK, marks=pytest.mark.spec("MS-MQQB 4.1.8")),
    ],
    ids=lambda value: f"frame_{value}" if isinstance(value, int) else type(value).__name__,
)
def test_a_frame_is_written_byte_for_byte_from_its_values(
    number: int,
    value: Ping | EstablishConnection | ConnectionParameters | SessionAck | UserMessage,
) -> None:
    assert value.pack() == frame(number)


@pytest.mark.spec("MS-MQQB 4.1.4", "MS-MQQB 4.1.5", "MS-MQQB 4.1.8")
def test_the_short_way_to_internal_packets_gives_the_same_frames() -> None:
    response = establish_connection(0x5A, OTHER_CLIENT, OTHER_SERVER).header
    assert EstablishConnection.of(response, base_reserved=0x5A).pack() == frame(4)
    parameters = ConnectionParameters.of(CONNECTION_PARAMETERS.header, base_reserved=0xC0)
    assert parameters.pack() == frame(5)
    assert SessionAck.of(SESSION_ACK.header, base_reserved=0xCD).pack() == frame(8)
