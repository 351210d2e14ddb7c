r"""The receiving side of a soak, by the letter of the documents: a strict peer and its application.

It receives the numbers of `exchange_soak_program` and keeps the next one with what it receives, so
it knows after any failure how far it is. A number that is not the next one ends it. Run it with the
folder, its address, and the folder in which it tells how far it is.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

from acceptance.exchange_soak_program import BODY, OutOfOrder, tell
from merq.testing.strict_peer import Readings, StrictPeer
from merq.testing.strict_peer.sockets import StrictPeerProcess

QUEUE: Final = r"private$\orders"
NEXT: Final = ("application", "next")
COMPLAINTS: Final = "complaints"
"""The file that says what the strict peer has found wrong."""

QUIET_ENDS: Final = ("idle", "nothing is heard", "not established in time")


class Receiver:
    """Receives numbers in order."""

    def __init__(self, folder: Path, address: str, told: Path) -> None:
        readings = Readings(retry_s=0.1, miscounts=0.001)
        self._told = told
        self._process = StrictPeerProcess(
            folder,
            address,
            readings=readings,
            application=self.receive,
            on_durable=self.tell,
        )
        self._next = int(self._process.kept.get(NEXT, {"next": 0})["next"])
        self._process.peer.create_queue(QUEUE, 16, transactional=True)

    def receive(self, peer: StrictPeer, now: float) -> None:
        """Takes what is there."""
        first = self._next
        while (message := peer.receive(QUEUE, now)) is not None:
            if BODY % self._next not in message.body:
                came = message.body[:20]
                raise OutOfOrder(f"{came!r} came where {self._next} belongs: {message.transaction}")
            self._next += 1
        wrong = [
            each for each in peer.connections.closures if not each.startswith(QUIET_ENDS)
        ] + peer.complaints
        if wrong:
            with (self._told / COMPLAINTS).open("a") as complaints:
                complaints.write("\n".join(wrong) + "\n")
        peer.connections.closures.clear()
        peer.complaints.clear()
        if self._next != first:
            peer.stable.put(NEXT, {"next": self._next})

    def tell(self) -> None:
        """Says how far it is."""
        tell(self._told, "received", self._next)

    def run(self) -> None:
        """Serves until it is killed."""
        asyncio.run(self._process.run())


def main() -> None:
    """Does what it was told."""
    folder, address, told = sys.argv[1:]
    Receiver(Path(folder), address, Path(told)).run()


if __name__ == "__main__":
    main()
