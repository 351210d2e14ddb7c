"""What strangers do to a queue manager, each attack a bounded round that is done again and again.

Everything goes to loopback addresses. Each leaves when its round is over; what it opened is closed.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from acceptance.service_process import RawClient
from hostile import stranger_packets as packets
from hostile.strangers import Stranger
from merq.errors import MerqError
from merq.model.queue import QueueSettings
from merq.protocol.application.frames import HEADER, Kind
from merq.protocol.application.requests import AskStatus, CreateQueue, Request

PATIENCE_S: Final = 2.0
NAMES: Final = 16_384
"""As many names as a packet's list may have."""

ADDRESSES: Final = 16
"""So many a stranger has."""

CLOSED: Final = "127.36.200"
"""The network where nobody listens, which acknowledgments are asked to be sent to."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to attack, and how it is known from outside.

    Attributes:
        address: Where it listens.
        guid: Its identifier, which it tells everybody who asks.
        friend: The address of its honest peer.
        friend_guid: That one's identifier.
        socket: Its local socket, for applications that mean no good.
        started: When it began, in seconds since 1970: strangers can guess it.
    """

    address: str
    guid: UUID
    friend: str
    friend_guid: UUID
    socket: Path
    started: int

    def queue(self, name: str) -> str:
        """A queue's name, as strangers write it."""
        return rf"TCP:{self.address}\private$\{name}"


Attack = Callable[[Target, Random], None]


def _somewhere(chance: Random) -> str:
    return f"127.36.100.{chance.randint(1, ADDRESSES)}"


@contextmanager
def _stranger(target: Target, chance: Random, guid: UUID | None = None) -> Iterator[Stranger]:
    source = _somewhere(chance)
    with Stranger(target.address, source, guid=guid, patience_s=PATIENCE_S) as stranger:
        yield stranger


def _some_bytes(chance: Random) -> bytes:
    return chance.randbytes(16)


def flood(target: Target, chance: Random) -> None:
    """Messages to a queue that is there, and many more to queues that are not."""
    with _stranger(target, chance) as stranger:
        stranger.open()
        for number in range(400):
            name = "inbox" if number % 20 == 0 else f"nothing{number}"
            stranger.say(stranger.message(target.queue(name), body=bytes(200), recoverable=True))


def invented_senders(target: Target, chance: Random) -> None:
    """Every message is of another queue manager, and begins a sequence of its own."""
    with _stranger(target, chance) as stranger:
        stranger.open()
        for number in range(300):
            place = packets.Transaction(chance.getrandbits(63), 1, 0)
            name = "orders" if number % 50 == 0 else "nothing"
            stranger.say(
                stranger.message(
                    target.queue(name), source=_some_bytes(chance), transaction=place, body=b"x"
                )
            )


def half_packets(target: Target, chance: Random) -> None:
    """Connections that claim four megabytes and say almost all of them."""
    with ExitStack() as stack:
        for _ in range(12):
            stranger = stack.enter_context(_stranger(target, chance))
            stranger.open()
            whole = stranger.message(target.queue("inbox"), body=bytes((4 << 20) - 1000))
            stranger.say(whole[: -chance.randint(1, 1000)])
        time.sleep(0.5)


def forged_acknowledgments(target: Target, chance: Random) -> None:
    """Order and final acknowledgments about what the target may have sent to its friend."""
    host = f"TCP:{target.address}"
    with _stranger(target, chance, target.friend_guid) as stranger:
        stranger.open()
        friend = target.friend_guid.bytes_le
        for number in range(200):
            second = target.started + chance.randint(-2, 30)
            sequence = second << 32 | chance.choice((0, 1, 2, chance.getrandbits(32)))
            ordinal = chance.randint(1, 5000)
            stranger.say(
                packets.order_ack(friend, number + 1, sequence, chance.randint(1, 10_000), host),
                packets.final_ack(
                    friend,
                    number + 1000,
                    sequence,
                    ordinal,
                    host,
                    of=target.guid.bytes_le,
                    of_ordinal=ordinal,
                    message_class=0xC001,
                ),
            )


def poisoned_sequences(target: Target, chance: Random) -> None:
    """Messages in the friend's name that put its sequence far ahead."""
    with _stranger(target, chance, target.friend_guid) as stranger:
        stranger.open()
        for sequence in ((1 << 64) - 1, (1 << 63) - 1, chance.getrandbits(64)):
            place = packets.Transaction(sequence, 1, 0)
            for name in ("orders", "nothing"):
                stranger.say(stranger.message(target.queue(name), transaction=place, body=b"x"))


def many_names(target: Target, chance: Random) -> None:
    """Packets whose list of destinations is as long as it may be."""
    names = [packets.private_element(_some_bytes(chance), number) for number in range(NAMES)]
    with _stranger(target, chance) as stranger:
        stranger.open()
        for _ in range(2):
            stranger.say(stranger.message(target.queue("nothing"), copies_to=names))


def reflection(target: Target, chance: Random) -> None:
    """Acknowledgments are to go to computers that never asked for any."""
    with _stranger(target, chance) as stranger:
        stranger.open()
        for _ in range(60):
            admin = rf"TCP:{CLOSED}.{chance.randint(1, 250)}\private$\told"
            stranger.say(
                stranger.message(
                    target.queue("inbox"), admin=admin, asked=packets.PA | packets.NA, body=b"x"
                )
            )


def connect_storm(target: Target, chance: Random) -> None:
    """Connections that say nothing, or only hello, and go."""
    for number in range(150):
        with _stranger(target, chance) as stranger:
            if number % 3 == 0:
                stranger.say(packets.establish(_some_bytes(chance)))


def garbage(target: Target, chance: Random) -> None:
    """Bytes that mean nothing, before and after a session is open."""
    for number in range(20):
        with _stranger(target, chance) as stranger:
            if number % 2:
                stranger.open()
                packet = bytearray(stranger.message(target.queue("inbox"), body=bytes(100)))
                for _ in range(5):
                    packet[chance.randrange(len(packet))] = chance.randrange(256)
                stranger.say(bytes(packet))
            else:
                stranger.say(chance.randbytes(chance.randint(1, 5000)))


def slow_readers(target: Target, chance: Random) -> None:
    """Sessions that ask for acknowledgments and never read one."""
    with ExitStack() as stack:
        for _ in range(8):
            stranger = stack.enter_context(_stranger(target, chance))
            stranger.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stranger.open(window=0xFFFF)
            told = rf"TCP:{stranger.socket.getsockname()[0]}\private$\told"
            for _ in range(100):
                stranger.say(
                    stranger.message(
                        target.queue("nothing"), admin=told, asked=packets.NA, body=bytes(500)
                    )
                )
        time.sleep(1.0)


def impostors(target: Target, chance: Random) -> None:
    """Somebody says it is the friend, or is at its address, or both, and takes what it gets."""
    is_named, is_there = chance.choice(((True, False), (False, True), (True, True)))
    source = target.friend if is_there else _somewhere(chance)
    guid = target.friend_guid if is_named else None
    with Stranger(target.address, source, guid=guid, patience_s=PATIENCE_S) as stranger:
        stranger.open()
        stranger.socket.settimeout(0.3)
        with suppress(TimeoutError):
            for count, _ in enumerate(stranger.hear_messages(), 1):
                stranger.say(packets.session_ack(count & 0xFFFF, 0, recoverable=count & 0xFFFF))


def own_name(target: Target, chance: Random) -> None:
    """Messages that the target itself is said to have sent."""
    with _stranger(target, chance, target.guid) as stranger:
        stranger.say(packets.establish(target.guid.bytes_le), packets.parameters())
        for number in range(50):
            place = packets.Transaction(target.started << 32, number + 1, number)
            stranger.say(
                stranger.message(target.queue("orders"), transaction=place),
                stranger.message(target.queue("inbox"), recoverable=True),
            )


def dear_requests(target: Target, chance: Random) -> None:
    """An application of this machine that asks for much, says things by halves, and goes."""
    size = 8 << 20
    half = HEADER.pack(size, Kind.ASK, 0, 0, 1, 0) + bytes(size // 2)
    with RawClient(target.socket).greet() as first, RawClient(target.socket).greet() as second:
        first.socket.sendall(half)
        for _ in range(200):
            second.session.ask(AskStatus())
        for number in range(10):
            request: Request = CreateQueue(
                rf".\private$\dear{number}", QueueSettings(), UUID(int=chance.getrandbits(128))
            )
            second.session.ask(request)
        second.write()
        second.read()


ATTACKS: Final[Mapping[str, Attack]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        flood,
        invented_senders,
        half_packets,
        forged_acknowledgments,
        poisoned_sequences,
        many_names,
        reflection,
        connect_storm,
        garbage,
        slow_readers,
        impostors,
        own_name,
        dear_requests,
    )
}
"""By the name that the command line has for them."""

EXPECTED: Final = (OSError, AssertionError, MerqError)
"""How rounds end that are refused, cut off, or meet a service that was just killed."""
