"""The acknowledgments that a strict peer sends as messages: [MS-MQQB] 3.1.7.15 and 3.1.7.17.

Also what is wrong with those that it gets.
"""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import TYPE_CHECKING, Final

from merq.testing.strict_peer.outgoing import is_system, order_queue, reply_name
from merq.testing.strict_peer.packets import (
    ACK_REACH_QUEUE,
    ACK_RECEIVE,
    MP_BIT,
    NO_NAME,
    NOBODY,
    ORDER_ACK,
    ORDER_LABEL,
    ORDER_QUEUE,
    ORDER_QUEUE_NUMBER,
    RECOVERABLE_BIT,
    TRANSACTIONAL_ACK_BYTES,
    UserMessage,
)

if TYPE_CHECKING:
    from merq.testing.strict_peer.peer import StrictPeer
    from merq.testing.strict_peer.session import Session

ORDER_BODY: Final = Struct("<QII20s")
FINAL_BODY: Final = Struct("<QII16sI")
VT_EMPTY: Final = 0
DIRECT, PRIVATE_ON_SOURCE, PRIVATE_ON_DESTINATION = 7, 2, 3


class Acknowledgments:
    """Makes acknowledgments and puts them into outgoing queues."""

    def __init__(self, peer: StrictPeer) -> None:
        self._peer = peer

    def administration(self, message: UserMessage, message_class: int) -> None:
        """[MS-MQQB] 3.1.7.15: tells the administration queue of a message what became of it.

        Without a directory only a direct name can be opened, or a queue of this queue manager;
        other acknowledgments are discarded. The section gives them no label.
        """
        peer, name = self._peer, message.admin
        if not name.kind or is_system(message.destination):
            return
        guid, ordinal = message.identifier
        is_positive = message_class in (ACK_REACH_QUEUE, ACK_RECEIVE)
        told = UserMessage(
            source=peer.guid,
            destination=name,
            response=message.destination if message.destination.kind == DIRECT else NO_NAME,
            body=b"" if is_positive else message.body,
            recoverable=message.recoverable,
            message_class=message_class,
            correlation=guid + ordinal.to_bytes(4, "little"),
            sent_time=peer.wall,
            message_id=peer.numbers.next_message_id(),
        )
        if name.kind == DIRECT and name.host not in peer.addresses:
            peer.outgoing.put(told)
        elif name.kind == DIRECT or name.guid == peer.guid:
            is_own = name.kind == PRIVATE_ON_SOURCE
            queue = peer.incoming.find(
                replace(name, kind=PRIVATE_ON_DESTINATION) if is_own else name
            )
            if queue is not None:
                peer.incoming.insert(queue, told)

    def final(self, message: UserMessage, message_class: int, reply: str) -> None:
        """A FinalAck ([MS-MQQB] 2.2.5), which is recoverable."""
        told = message.transaction
        assert told is not None
        body = FINAL_BODY.pack(
            told.sequence, told.number, told.previous, message.source, message.message_id
        )
        self._send(reply, message_class, body)

    def order(self, session: Session, key: tuple[bytes, str], now: float) -> None:
        """[MS-MQQB] 3.1.6.9: an OrderAck, for the current sequence and no other."""
        incoming = self._peer.incoming.sequences[key]
        session.last_order_ack = now
        if incoming.number:
            rest = self._peer.chance.randbytes(20)  # note 17
            body = ORDER_BODY.pack(incoming.sequence, incoming.number, incoming.number - 1, rest)
            reply = order_queue(session.address, session.remote, is_direct=session.direct_format)
            self._send(reply.text, ORDER_ACK, body)

    def _send(self, reply: str, message_class: int, body: bytes) -> None:
        """[MS-MQQB] 3.1.7.17; only a FinalAck has DM set, by 2.2.4 and 2.2.5."""
        peer, name = self._peer, reply_name(reply)
        peer.outgoing.put(
            UserMessage(
                source=peer.guid,
                destination=name,
                address=name.guid,
                label=ORDER_LABEL,
                body=body,
                recoverable=message_class != ORDER_ACK,
                message_class=message_class,
                body_type=VT_EMPTY,
                sent_time=peer.wall,
                message_id=peer.numbers.next_message_id(),
            )
        )

    def take(self, session: Session, message: UserMessage, now: float) -> None:
        """[MS-MQQB] 3.1.5.6 and 3.1.5.7: a transactional acknowledgment has come."""
        peer = self._peer
        wrong = what_is_wrong(message)
        if wrong:
            peer.complain(wrong)
        if message.base_flags or message.label != ORDER_LABEL:
            return  # 3.1.5.1.1: neither an OrderAck nor a FinalAck
        if len(message.body) != TRANSACTIONAL_ACK_BYTES:
            return
        if message.message_class == ORDER_ACK:
            sequence, number, _, _ = ORDER_BODY.unpack(message.body)
            peer.outgoing.ordered(session.remote, sequence, number, now)
        elif message.message_class >= ACK_RECEIVE:
            _, _, _, source, message_id = FINAL_BODY.unpack(message.body)
            if source != peer.guid:
                peer.complain(f"a FinalAck for a message of {source.hex()}")
            peer.outgoing.final(session.remote, message_id, message.message_class)


def is_for_order_queue(message: UserMessage) -> bool:
    """Whether a message is for the private queue order_queue$ ([MS-MQQB] 3.1.5.1.1)."""
    name = message.destination
    if name.kind == DIRECT:
        return name.path == ORDER_QUEUE[1:].lower()
    return name.kind == PRIVATE_ON_DESTINATION and name.number == ORDER_QUEUE_NUMBER


def what_is_wrong(message: UserMessage) -> str:
    """What [MS-MQQB] 2.2.4 and 2.2.5 forbid in a transactional acknowledgment; "" if nothing."""
    wrong = []
    is_final = message.message_class != ORDER_ACK
    name = message.destination
    if message.base_flags:
        wrong.append(f"BaseHeader.Flags {message.base_flags:#x}")
    if message.user_flags != MP_BIT | name.kind << 10 | (RECOVERABLE_BIT if is_final else 0):
        wrong.append(f"UserHeader.Flags {message.user_flags:#x}")
    if message.label != ORDER_LABEL or message.body_type != VT_EMPTY or message.asked:
        wrong.append(f"label {message.label!r}, body type {message.body_type}")
    if len(message.body) != TRANSACTIONAL_ACK_BYTES:
        wrong.append(f"a body of {len(message.body)} bytes")
    elif not is_final:
        _, number, previous, _ = ORDER_BODY.unpack(message.body)
        if not number or previous != number - 1:
            wrong.append(f"number {number} after {previous}")
    if name.kind == DIRECT and not name.text.startswith("TCP:"):
        wrong.append(f"sent to {name.text}")
    return f"class {message.message_class:#x}: {', '.join(wrong)}" if wrong else ""


def what_a_sender_must_not(message: UserMessage) -> list[str]:
    """What a sender of user messages must not do, and a receiver cannot refuse."""
    told, wrong = message.transaction, []
    if told is not None and message.priority:
        wrong.append(f"a transactional message with priority {message.priority}")
    if told is not None and told.previous >= told.number:
        wrong.append(f"{told.previous} before {told.number}")
    if message.destination.kind == DIRECT and message.address != NOBODY:
        wrong.append("a direct name with a QueueManagerAddress")
    if bool(message.asked) != bool(message.admin.kind):
        wrong.append(f"acknowledgments {message.asked:#x} to {message.admin}")
    if message.source == NOBODY:
        wrong.append("a message without SourceQueueManager")
    return wrong
