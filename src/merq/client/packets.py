"""From what applications want to send to packets, fast when they send much of the same kind."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from merq.client.messages import PROPERTIES, Message
from merq.engine.sending import refusal
from merq.errors import MessageQueueError, NameSyntaxError, WireError
from merq.hresult import HResult
from merq.model.body import encode_body
from merq.model.names import DirectName, parse_direct_name, parse_path_name
from merq.wire.build import Destination, Outline, Template, build_packet

PREFIX: Final = "DIRECT="
TEMPLATES_MAX: Final = 1_000
"""Kinds of messages, by everything but their bodies, that a queue remembers how to build."""

_PROPERTIES_OF: Final = attrgetter(*PROPERTIES)


class Packer:
    """Makes the packets of messages to one destination."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._templates: dict[tuple[object, ...], Template] = {}

    def pack(self, message: Message) -> bytes:
        """The packet of a message.

        Raises:
            MessageQueueError: A property is not what it can be; the text says which and why.
        """
        values = _PROPERTIES_OF(message)
        # True equals 1, but is not one: the types are part of what was checked.
        key = (values, tuple(map(type, values)))
        try:
            template = self._templates.get(key)
        except TypeError:
            message.check()  # says which one is of no type that a property has
            raise
        if template is None:
            template = self._templates_with(key, message)
        body_type, body = encode_body(message.body)
        try:
            return template.fill(body, body_type)
        except WireError as wrong:
            raise refusal(wrong) from wrong

    def _templates_with(self, key: tuple[object, ...], message: Message) -> Template:
        message.check()
        try:
            template = Template(outline(message, self._destination))
        except WireError as wrong:
            raise refusal(wrong) from wrong
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        self._templates[key] = template
        return template


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
    """What the packet of a message is to say."""
    return Outline(
        destination=destination,
        destinations=destinations,
        body=body,
        body_type=body_type,
        label=message.label,
        priority=message.priority,
        recoverable=message.recoverable,
        admin_queue=direct_name(message.admin_queue),
        response_queue=direct_name(message.response_queue),
        acknowledgments=message.acknowledge,
        positive_journaling=message.journal,
        negative_journaling=message.dead_letter,
        time_to_reach_queue=message.time_to_reach_queue,
        time_to_be_received=message.time_to_be_received,
        correlation_id=message.correlation_id,
        application_tag=message.app_specific,
        extension=message.extension,
    )


def direct_name(name: str) -> str:
    """A path name or direct format name as packets carry it."""
    if not name:
        return ""
    try:
        if name.upper().startswith(PREFIX):
            return parse_direct_name(name[len(PREFIX) :]).without_prefix()
        return DirectName.of_path(parse_path_name(name)).without_prefix()
    except NameSyntaxError as wrong:
        raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, str(wrong)) from wrong
