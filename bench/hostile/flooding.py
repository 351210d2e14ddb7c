"""The strangers, all in one process: `python -m bench.hostile.flooding FLOOD ADDRESS SOURCE COUNT`.

It says `ready` when it has begun, and goes on until it is ended. Not here: what it does to others.
"""

from __future__ import annotations

import selectors
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from typing import Final
from uuid import UUID, uuid4

from hostile import stranger_packets as packets
from hostile.strangers import PORT, Stranger

QUEUE: Final = "OS:bench\\private$\\flooded"
NAMES: Final = 1024
SMALL: Final = 2_000
"""Small messages that are made in advance, and said again and again: those are duplicates then."""
SPENT_BYTES: Final = 1 << 16
HALF_BYTES: Final = 1 << 20
"""What each of the sessions with a half packet says of it."""
PEERS_PER_ADDRESS: Final = 500
"""Sessions that each of the strangers' addresses has, below the limit of one address."""


def names_flood(guid: UUID) -> Iterator[bytes]:
    """(a) Messages with as many destinations as may be."""
    element = packets.direct_element("OS:a\\b")
    ordinal = 0
    while True:
        ordinal += 1
        yield packets.message(guid.bytes_le, ordinal, QUEUE, copies_to=[element] * NAMES)


def small_flood(guid: UUID) -> Iterator[bytes]:
    """(b) Small express messages to a queue that is not there."""
    made = [packets.message(guid.bytes_le, number + 1, QUEUE, body=b"x") for number in range(SMALL)]
    return cycle(b"".join(made[at : at + 100]) for at in range(0, SMALL, 100))


FLOODS: Final = {"names": names_flood, "small": small_flood}


def pour(flood: str, address: str, source: str, count: int) -> None:
    """Each stranger has a session, and says as much as is taken from it."""
    ready = selectors.DefaultSelector()
    for number in range(count):
        stranger = Stranger(address, f"{source}.{number + 1}", guid=uuid4()).open()
        stranger.socket.settimeout(0)
        said = [memoryview(b""), FLOODS[flood](stranger.guid)]
        ready.register(stranger.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, said)
    print("ready", flush=True)
    while ready.get_map():
        for key, events in ready.select():
            try:
                if events & selectors.EVENT_READ and not key.fileobj.recv(SPENT_BYTES):  # type: ignore[union-attr]
                    ready.unregister(key.fileobj)
                    continue
                said = key.data
                if not said[0]:
                    said[0] = memoryview(next(said[1]))
                said[0] = said[0][key.fileobj.send(said[0]) :]  # type: ignore[union-attr]
            except BlockingIOError:
                continue
            except OSError:
                ready.unregister(key.fileobj)
    print("all sessions are gone", flush=True)


def knock(address: str, source: str, count: int) -> None:
    """(c) Connections that are made and dropped, as fast as it goes."""
    print("ready", flush=True)
    for number in cycle(range(count)):
        with socket.socket() as knocking, suppress(OSError):
            knocking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            knocking.bind((f"{source}.{number + 1}", 0))
            knocking.connect((address, PORT))


def hold(address: str, source: str, count: int) -> None:
    """Sessions that have said half of a large packet each, and nothing more."""
    held = []
    for number in range(count):
        place = f"{source}.{number // PEERS_PER_ADDRESS + 1}"
        with suppress(OSError, AssertionError):
            stranger = Stranger(address, place, patience_s=5.0).open()
            whole = stranger.message(QUEUE, body=bytes(4 * HALF_BYTES - 1000))
            held.append(stranger)
            stranger.say(whole[:HALF_BYTES])
    print("ready", flush=True)
    sys.stdin.read()


def main() -> None:
    """Floods."""
    flood, address, source, count = sys.argv[1:]
    if flood == "connects":
        knock(address, source, int(count))
    elif flood == "half":
        hold(address, source, int(count))
    else:
        pour(flood, address, source, int(count))


if __name__ == "__main__":
    main()
