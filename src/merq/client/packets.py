"""From what applications want to send to packets, fast when they send much of the same kind."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from merq.client.messages import PROPERTIES, Message
from merq.errors import MessageQueueError, NameSyntaxError, WireError
from merq.hresult import HResult
from merq.model.body import VT_ARRAY_OF_BYTES, Value, encode_body
from merq.model.destinations import parse_destination
from merq.model.names import (
    DirectName,
    FormatName,
    PrivateName,
    PublicName,
    parse_direct_name,
    parse_path_name,
)
from merq.model.queue import NULL_GUID
from merq.wire.build import Destination, Outline, Template, build_packet, check_outline
from merq.wire.refusing import refusal

PREFIX: Final = "DIRECT="
TEMPLATES_MAX: Final = 1_000
"""Kinds of messages, by everything but their bodies, that a queue remembers how to build."""

_BY_IDENTIFIER: Final = frozenset({"PRIVATE", "PUBLIC"})
_PROPERTIES_OF: Final = attrgetter(*PROPERTIES)


class Packer:
    """Makes the packets of messages to one destination."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._templates: dict[object, Kind] = {}

    def kind_of(self, message: Message) -> Kind:
        """How messages like this one are packed.

        Raises:
            MessageQueueError: A property is not what it can be; the text says which and why.
        """
        values = _PROPERTIES_OF(message)
        # True equals 1, but is not one: the types are part of what was checked.
        key = (values, tuple(map(type, values)))
        try:
            known = self._templates.get(key)
        except TypeError:
            message.check()  # says which one is of no type that a property has
            raise
        return known or self._remember(key, message)

    def kind_with(self, properties: dict[str, Any]) -> Kind:
        """How messages with these properties, as Message has them, are packed."""
        values = properties.values()
        key = (*properties, *values, *map(type, values))
        try:
            known = self._templates.get(key)
        except TypeError:
            return self.kind_of(Message(**properties))
        return known or self._remember(key, Message(**properties))

    def _remember(self, key: object, message: Message) -> Kind:
        message.check()
        try:
            template = Template(outline(message, self._destination))
        except WireError as wrong:
            raise refusal(wrong) from wrong
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        self._templates[key] = kind = Kind(template, message.dead_letter_queue)
        return kind


class Kind:
    """What messages that differ only in their bodies have in common."""

    __slots__ = ("_template", "dead_letter_queue")

    def __init__(self, template: Template, dead_letter_queue: str) -> None:
        self._template = template
        self.dead_letter_queue = dead_letter_queue

    def pack(self, body: Value) -> bytes:
        """The packet of a message with this body.

        Raises:
            MessageQueueError: It would be too large, or is of no type that a body has.
        """
        if type(body) is bytes:
            body_type, data = VT_ARRAY_OF_BYTES, body
        else:
            body_type, data = encode_body(body)
        try:
            return self._template.fill(data, body_type)
        except WireError as wrong:
            raise refusal(wrong) from wrong


def pack_copies(message: Message, destinations: tuple[Destination, ...]) -> list[bytes]:
    """One packet for each destination; each says what the others are.

    Raises:
        MessageQueueError: A property is not what it can be.
    """
    message.check()
    all_of_them = destinations if len(destinations) > 1 else ()
    body_type, body = encode_body(message.body)
    try:
        return [
            build_packet(outline(message, each, all_of_them, body_type, body))
            for each in destinations
        ]
    except WireError as wrong:
        raise refusal(wrong) from wrong


def outline(
    message: Message,
    destination: Destination,
    destinations: tuple[Destination, ...] = (),
    body_type: int = 0,
    body: bytes = b"",
) -> Outline:
    """What the packet of a message is to say.

    [MS-MQMQ] 2.2.19.2: an administration queue is named if any acknowledgment is asked for, and
    only then. Whichever of the two stands alone has no effect, so it is left out.
    """
    admin_queue = queue_name(message.admin_queue)
    said = Outline(
        destination=destination,
        destinations=destinations,
        body=body,
        body_type=body_type,
        label=message.label,
        priority=message.priority,
        recoverable=message.recoverable,
        admin_queue=admin_queue,
        response_queue=queue_name(message.response_queue),
        acknowledgments=message.acknowledge,
        positive_journaling=message.journal,
        negative_journaling=message.dead_letter,
        time_to_reach_queue=message.time_to_reach_queue,
        time_to_be_received=message.time_to_be_received,
        correlation_id=message.correlation_id,
        application_tag=message.app_specific,
        extension=message.extension,
        report_queue=None if message.report_queue == NULL_GUID else message.report_queue,
    )
    if bool(admin_queue) == bool(message.acknowledge):
        return said
    check_outline(said)  # what is left out was to be in order, too
    return replace(said, admin_queue="", acknowledgments=0)


def destination_of(name: FormatName) -> Destination:
    """A name that messages can be sent to, as packets carry it."""
    if isinstance(name, DirectName):
        return name.without_prefix()
    assert isinstance(name, PrivateName | PublicName), "others cannot be sent to"
    return name


def queue_name(name: str) -> Destination:
    """A queue that a message names, by path or format name, as packets carry it."""
    if not name:
        return ""
    if name.partition("=")[0].strip().upper() in _BY_IDENTIFIER:
        found = parse_destination(name)
        if len(found) > 1:
            text = f"{name} is {len(found)} queues; one belongs there"
            raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, text)
        return destination_of(found[0])
    try:
        if name.upper().startswith(PREFIX):
            return parse_direct_name(name[len(PREFIX) :]).without_prefix()
        return DirectName.of_path(parse_path_name(name)).without_prefix()
    except NameSyntaxError as wrong:
        raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, str(wrong)) from wrong
