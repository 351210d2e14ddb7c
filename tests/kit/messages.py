"""Hypothesis strategies for whole packets, every optional part included."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kit.layouts import bit_fields, guids, layouts
from merq.wire import connection, multiqueue, queues, soap
from merq.wire.acks import AckEnvelope, FinalAck, FinalAckBody, OrderAck, OrderAckBody
from merq.wire.acks import final_ack as make_final_ack
from merq.wire.acks import order_ack as make_order_ack
from merq.wire.extension import (
    DeadLetterHeader,
    ExtendedAddressHeader,
    ExtensionFlags,
    ExtensionHeader,
    MessagePacket,
    SubqueueHeader,
)
from merq.wire.headers import (
    BaseFlags,
    BaseHeader,
    DebugFields,
    DebugFlags,
    DebugHeader,
    SessionHeader,
    TransactionFields,
    TransactionFlags,
    TransactionHeader,
)
from merq.wire.layout import Layout
from merq.wire.message import UserMessage
from merq.wire.properties import MessagePropertiesHeader, PropertiesFields
from merq.wire.security import ProviderInfo, SecurityFields, SecurityFlags, SecurityHeader
from merq.wire.user import EXPRESS, UserFields, UserFlags, UserHeader

Draw = Any


def wide_text(max_size: int = 20) -> st.SearchStrategy[str]:
    """UTF-16 text without nulls; unpaired surrogates are text to MSMQ too."""
    # Half a pair next to the other half would be read back as one character.
    plain = st.characters(min_codepoint=1, codec="utf-8")
    lone = st.sampled_from(["\ud800", "\udfff"]).map(lambda half: half + "x")
    letters = st.one_of(
        st.text("abcXYZ019\\$;:.äß漢", max_size=max_size), st.text(plain, max_size=4)
    )
    return st.one_of(letters, letters, letters, lone).filter(
        lambda text: len(text.encode("utf-16-le", "surrogatepass")) <= 2 * max_size
    )


def queue_formats(kind: int) -> st.SearchStrategy[Any]:
    """A queue's name of this type."""
    form = queues.FORMS[kind]
    if form is None:
        return st.none()
    if form is queues.DirectQueueFormatName:
        return st.builds(form, direct_format_name=wide_text(), padding=st.binary(max_size=3))
    assert issubclass(form, Layout)
    return layouts(form)


@st.composite
def user_headers(draw: Draw, flags: UserFlags) -> UserHeader:
    return UserHeader(
        fields=draw(layouts(UserFields, flags=flags)),
        destination_queue=draw(queue_formats(flags.destination_queue_type)),
        admin_queue=draw(queue_formats(flags.admin_queue_type)),
        response_queue=draw(queue_formats(flags.response_queue_type)),
        connector_type=draw(guids()) if flags.connector_type else None,
    )


@st.composite
def transaction_headers(draw: Draw) -> TransactionHeader:
    flags = draw(bit_fields(TransactionFlags))
    return TransactionHeader(
        fields=draw(layouts(TransactionFields, flags=flags)),
        connector_qm_guid=draw(guids()) if flags.connector_guid else None,
    )


@st.composite
def debug_headers(draw: Draw) -> DebugHeader:
    flags = draw(bit_fields(DebugFlags))
    return DebugHeader(
        fields=draw(layouts(DebugFields, flags=flags)),
        queue_identifier=draw(guids()) if flags.queue_type else None,
    )


@st.composite
def security_headers(draw: Draw) -> SecurityHeader:
    kind = draw(st.sampled_from([0, 1, 2]))
    sender = b"" if kind == 0 else draw(st.binary(min_size=16, max_size=16 if kind == 2 else 30))
    key, signature = draw(st.binary(max_size=9)), draw(st.binary(max_size=9))
    cert = draw(st.binary(max_size=9))
    provider = draw(
        st.none()
        | st.builds(
            ProviderInfo, provider_type=st.integers(0, 0xFFFFFFFF), provider_name=wide_text()
        )
    )
    if not (sender or key or signature or cert or provider):
        signature = b"s"
    fields = SecurityFields(
        flags=draw(bit_fields(SecurityFlags, sender_id_type=kind)),
        sender_id_size=len(sender),
        encryption_key_size=len(key),
        signature_size=len(signature),
        sender_cert_size=len(cert),
        provider_info_size=0 if provider is None else len(provider.pack()),
    )
    return SecurityHeader(
        fields=fields,
        security_id=sender,
        encryption_key=key,
        signature=signature,
        sender_cert=cert,
        provider_info=provider,
        paddings=tuple(draw(st.lists(st.binary(max_size=3), max_size=5))),
    )


@st.composite
def properties_headers(draw: Draw, max_body: int = 60) -> MessagePropertiesHeader:
    label = draw(st.none() | wide_text())
    extension = draw(st.binary(max_size=9))
    body = draw(st.binary(max_size=max_body))
    size = draw(st.integers(0, len(body)))
    units = 0 if label is None else len(label.encode("utf-16-le", "surrogatepass")) // 2 + 1
    return MessagePropertiesHeader(
        fields=draw(
            layouts(
                PropertiesFields,
                label_length=units,
                extension_size=len(extension),
                message_size=draw(st.sampled_from([len(body), size])),
                allocation_body_size=len(body),
            )
        ),
        label=label,
        extension_data=extension,
        message_body=body,
        padding=draw(st.binary(max_size=3)),
    )


@st.composite
def address_lists(draw: Draw, header_id: int) -> multiqueue.MQFAddressHeader:
    names = st.one_of(
        layouts(queues.PublicQueueFormatName),
        layouts(queues.PrivateQueueFormatName),
        layouts(multiqueue.MQFDistributionQueueFormatName),
        st.builds(multiqueue.MQFDirectQueueFormatName, direct_format_name=wide_text()),
    )
    element = st.builds(
        multiqueue.MQFFormatNameElement, format_name=names, padding=st.binary(max_size=2)
    )
    return multiqueue.MQFAddressHeader(
        header_id=header_id,
        format_name_list=tuple(draw(st.lists(element, max_size=4))),
        reserved=draw(st.integers(0, 0xFFFF)),
    )


@st.composite
def multi_queue_headers(draw: Draw) -> multiqueue.MultiQueueFormatHeader:
    return multiqueue.MultiQueueFormatHeader(
        destination=draw(address_lists(multiqueue.DESTINATION_ID)),
        administration=draw(address_lists(multiqueue.ADMIN_ID)),
        response=draw(address_lists(multiqueue.RESPONSE_ID)),
        signature=draw(st.binary(max_size=9)),
    )


def text_sections(section_id: int) -> st.SearchStrategy[soap.TextSection]:
    return st.builds(
        soap.TextSection,
        section_id=st.just(section_id),
        data=st.none() | wide_text(),
        reserved=st.integers(0, 0xFFFF),
    )


def soap_headers() -> st.SearchStrategy[soap.SoapHeader]:
    return st.builds(
        soap.SoapHeader,
        header=text_sections(soap.SOAP_HEADER_ID),
        body=text_sections(soap.SOAP_BODY_ID),
    )


@st.composite
def compound_headers(draw: Draw) -> soap.CompoundMessageHeader:
    data = draw(st.binary(max_size=30))
    offset = draw(st.integers(0, len(data)))
    size = draw(st.integers(0, len(data) - offset))
    fields = soap.CompoundFields(
        header_id=draw(st.integers(0, 0xFFFF)),
        http_body_size=len(data),
        msg_body_size=size,
        msg_body_offset=offset,
    )
    return soap.CompoundMessageHeader(fields=fields, data=data)


@st.composite
def user_messages(draw: Draw) -> UserMessage:
    base = draw(bit_fields(BaseFlags, internal=False))
    if base.traced and not base.debug_header:
        base = draw(bit_fields(BaseFlags, internal=False, traced=False, debug_header=False))
    flags = draw(bit_fields(UserFlags, message_properties_header=True))
    if flags.transaction_header and flags.delivery_mode == EXPRESS:
        flags = draw(
            bit_fields(UserFlags, message_properties_header=True, transaction_header=False)
        )
    srmp = st.builds(soap.SRMPEnvelopeHeader, envelope=text_sections(500))

    def optional(present: bool, strategy: st.SearchStrategy[Any]) -> Any:
        return draw(strategy) if present else None

    return UserMessage(
        base_header=draw(layouts(BaseHeader, flags=base, packet_size=16)),
        user_header=draw(user_headers(flags)),
        transaction_header=optional(flags.transaction_header, transaction_headers()),
        security_header=optional(flags.security_header, security_headers()),
        message_properties_header=draw(properties_headers()),
        debug_header=optional(base.debug_header, debug_headers()),
        srmp_envelope_header=optional(flags.from_http, srmp),
        compound_message_header=optional(flags.from_http, compound_headers()),
        soap_header=optional(flags.soap_header, soap_headers()),
        multi_queue_format_header=optional(flags.multi_queue_format_header, multi_queue_headers()),
        session_header=optional(base.session_header, layouts(SessionHeader)),
    ).measured()


def plain_messages() -> st.SearchStrategy[UserMessage]:
    """Messages of the forms that the view knows by itself."""
    return user_messages().filter(
        lambda message: (
            message.debug_header is None
            and message.multi_queue_format_header is None
            and message.soap_header is None
            and message.compound_message_header is None
            and message.user_header.connector_type is None
        )
    )


def internal_packets() -> st.SearchStrategy[Any]:
    return st.one_of(
        layouts(connection.EstablishConnectionHeader).map(connection.EstablishConnection.of),
        layouts(connection.ConnectionParametersHeader).map(connection.ConnectionParameters.of),
        layouts(SessionHeader).map(connection.SessionAck.of),
    )


def envelopes() -> st.SearchStrategy[AckEnvelope]:
    hosts = st.sampled_from(["TCP:10.0.0.1", "tcp:fe80::1", "SPX:00000001.0123456789AB"])
    return st.builds(
        AckEnvelope,
        source_queue_manager=guids(),
        destination=st.one_of(st.uuids(), hosts.map(lambda host: host + r"\PRIVATE$\order_queue$")),
        sent_time=st.integers(0, 0xFFFFFFFF),
        message_id=st.integers(0, 0xFFFFFFFF),
    )


def order_acks() -> st.SearchStrategy[OrderAck]:
    return st.builds(make_order_ack, envelopes(), layouts(OrderAckBody))


def final_acks() -> st.SearchStrategy[FinalAck]:
    classes = st.sampled_from([0x4000, 0x8000, 0x8009, 0xC000, 0xC002])
    return st.builds(make_final_ack, envelopes(), layouts(FinalAckBody), classes)


def packets() -> st.SearchStrategy[Any]:
    """Anything that travels on a session."""
    return st.one_of(user_messages(), internal_packets(), order_acks(), final_acks())


@st.composite
def message_packets(draw: Draw) -> MessagePacket:
    flags = draw(bit_fields(ExtensionFlags))
    dead_letter = st.builds(DeadLetterHeader, dead_letter_path_name=wide_text())
    parts = {
        "subqueue_header": draw(layouts(SubqueueHeader)) if flags.subqueue_header else None,
        "dead_letter_header": draw(dead_letter) if flags.dead_letter_header else None,
        "extended_address_header": draw(layouts(ExtendedAddressHeader))
        if flags.extended_address_header
        else None,
    }
    size = sum(len(part.pack()) for part in parts.values() if part is not None)
    extension = draw(layouts(ExtensionHeader, flags=flags, remaining_headers_size=size))
    return MessagePacket(message=draw(user_messages()), extension_header=extension, **parts)
