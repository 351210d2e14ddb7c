"""Frames that carry messages to be sent, and back: the packets, and where they go.

Also here is what all frames need: that a body has the bytes it says it has, and text in it.
"""

from __future__ import annotations

from struct import Struct, unpack_from
from typing import Final

from merq.errors import WireError
from merq.protocol.application.frames import HEADER_SIZE, Frame, Kind, frame
from merq.protocol.application.requests import Send, SendManyTo, SendTo

MESSAGES_MAX: Final = 100_000
"""Messages in one frame."""

DESTINATIONS_MAX: Final = 1_000
"""Destinations in one frame."""

_SEND: Final = Struct("<IIQQHH")  # queue, count, transaction, handle, dead letter's length, 0
_SEND_TO: Final = Struct("<QIHH")  # transaction, count, dead letter's length, 0
_SEND_MANY_TO: Final = Struct("<QIHH")  # transaction, count, dead letter's and name's lengths
_COPY: Final = Struct("<IHH")  # packet's length, name's length, 0


def encode_send(number: int, request: Send, received: int) -> bytes:
    """Messages into a queue, as a frame."""
    own = request.dead_letter.encode("utf-8", "surrogatepass")
    packets = request.packets
    fixed = _SEND.pack(
        request.queue, len(packets), request.transaction, request.handle, len(own), 0
    )
    lengths = Struct(f"<{len(packets)}I").pack(*map(len, packets))
    return frame(Kind.SEND, number, fixed, lengths, own, *packets, received=received)


def encode_send_to(number: int, request: SendTo, received: int) -> bytes:
    """Copies of one message, as a frame."""
    own = request.dead_letter.encode("utf-8", "surrogatepass")
    parts = [_SEND_TO.pack(request.transaction, len(request.destinations), len(own), 0), own]
    for text, packet in request.destinations:
        name = text.encode("utf-8", "surrogatepass")
        parts += (_COPY.pack(len(packet), len(name), 0), name, packet)
    return frame(Kind.SEND_TO, number, *parts, received=received)


def encode_send_many_to(number: int, request: SendManyTo, received: int) -> bytes:
    """Messages to one destination, as a frame."""
    own = request.dead_letter.encode("utf-8", "surrogatepass")
    name = request.name.encode("utf-8", "surrogatepass")
    packets = request.packets
    fixed = _SEND_MANY_TO.pack(request.transaction, len(packets), len(own), len(name))
    lengths = Struct(f"<{len(packets)}I").pack(*map(len, packets))
    return frame(Kind.SEND_MANY_TO, number, fixed, lengths, own, name, *packets, received=received)


def decode_send(found: Frame) -> Send:
    """Messages into a queue.

    Raises:
        WireError: It is not so.
    """
    at = found.start + HEADER_SIZE
    need_within(at + _SEND.size, found.end)
    queue, count, transaction, handle, own_size, _ = _SEND.unpack_from(found.buffer, at)
    (own,), packets = _decode_batch(found, at + _SEND.size, count, own_size)
    return Send(queue, packets, transaction, own, handle)


def decode_send_many_to(found: Frame) -> SendManyTo:
    """Messages to one destination.

    Raises:
        WireError: It is not so.
    """
    at = found.start + HEADER_SIZE
    need_within(at + _SEND_MANY_TO.size, found.end)
    fixed = _SEND_MANY_TO.unpack_from(found.buffer, at)
    transaction, count, own_size, name_size = fixed
    (own, name), packets = _decode_batch(found, at + _SEND_MANY_TO.size, count, own_size, name_size)
    return SendManyTo(name, packets, transaction, own)


def _decode_batch(
    found: Frame, at: int, count: int, *text_sizes: int
) -> tuple[list[str], list[bytes]]:
    """The lengths of packets, texts, and the packets."""
    # Packets are copied out of the buffer once: a batch may have megabytes.
    body, end = found.buffer, found.end
    if not 1 <= count <= MESSAGES_MAX:
        raise WireError(f"{count} messages; from 1 to {MESSAGES_MAX} can be sent", field="count")
    need_within(at + 4 * count + sum(text_sizes), end)
    lengths = unpack_from(f"<{count}I", body, at)
    at += 4 * count
    texts = []
    for size in text_sizes:
        texts.append(text_of(body[at : at + size]))
        at += size
    if at + sum(lengths) != end:
        raise WireError(
            f"packets of {sum(lengths)} bytes, but {end - at} are there", field="lengths"
        )
    packets = []
    for length in lengths:
        packets.append(body[at : at + length])
        at += length
    return texts, packets


def decode_send_to(found: Frame) -> SendTo:
    """Copies of one message.

    Raises:
        WireError: It is not so.
    """
    body = found.body
    need(body, _SEND_TO.size)
    transaction, count, own_size, _ = _SEND_TO.unpack_from(body)
    if not 1 <= count <= DESTINATIONS_MAX:
        raise WireError(f"{count} destinations; from 1 to {DESTINATIONS_MAX}", field="count")
    at = _SEND_TO.size
    need(body, at + own_size)
    own = text_of(body[at : at + own_size])
    at += own_size
    copies = []
    for _ in range(count):
        need(body, at + _COPY.size)
        length, name_size, _ = _COPY.unpack_from(body, at)
        at += _COPY.size
        need(body, at + name_size + length)
        name = text_of(body[at : at + name_size])
        at += name_size
        copies.append((name, body[at : at + length]))
        at += length
    need_no_more(body, at)
    return SendTo(tuple(copies), transaction, own)


# Bytes.


def need(body: bytes, size: int) -> None:
    """The body has to have as many bytes, or more.

    Raises:
        WireError: It is not so.
    """
    if len(body) < size:
        raise WireError(f"the body has {len(body)} bytes; it needs {size}", field="body")


def need_within(needed: int, end: int) -> None:
    """What is needed has to end where the body ends, or before.

    Raises:
        WireError: It is not so.
    """
    if needed > end:
        raise WireError(f"the body ends {needed - end} bytes too early", field="body")


def need_no_more(body: bytes, size: int) -> None:
    """The body has to have as many bytes.

    Raises:
        WireError: It is not so.
    """
    if len(body) != size:
        raise WireError(f"the body has {len(body)} bytes; it is to have {size}", field="body")


def text_of(data: bytes) -> str:
    """UTF-8 as text.

    Raises:
        WireError: It is not so.
    """
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as wrong:
        raise WireError(f"no UTF-8: {wrong}", field="text") from wrong
