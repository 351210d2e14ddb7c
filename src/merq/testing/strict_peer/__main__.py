r"""A strict peer as a process: python -m merq.testing.strict_peer --help.

It listens on a loopback address, on the port that queue managers have, and tells what it receives
as JSON, a line for each message.

    python -m merq.testing.strict_peer --folder strict --address 127.0.0.9 --queue orders:tx
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import sys
from pathlib import Path
from typing import Final

from merq.testing.strict_peer.peer import StrictPeer
from merq.testing.strict_peer.sockets import StrictPeerProcess

FIRST_NUMBER: Final = 16
TRANSACTIONAL: Final = ":tx"


def main() -> int:
    """Runs until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m merq.testing.strict_peer")
    parser.add_argument("--folder", type=Path, required=True, help="what survives is kept there")
    parser.add_argument("--address", type=_loopback, required=True, help="a loopback address")
    parser.add_argument("--queue", action="append", default=[], help="a name, or name:tx")
    asked = parser.parse_args()
    paths = [rf"private$\{each.removesuffix(TRANSACTIONAL)}".lower() for each in asked.queue]

    def receive(peer: StrictPeer, now: float) -> None:
        for path in paths:
            while (message := peer.receive(path, now)) is not None:
                body = message.body.decode("latin-1")
                line = {"queue": path, "label": message.label, "body": body}
                print(json.dumps(line), flush=True)

    process = StrictPeerProcess(asked.folder, asked.address, application=receive)
    for number, (path, queue) in enumerate(zip(paths, asked.queue, strict=True), FIRST_NUMBER):
        process.peer.create_queue(path, number, transactional=queue.endswith(TRANSACTIONAL))
    print(json.dumps({"queue_manager": str(process.guid)}), flush=True)
    try:
        asyncio.run(process.run())
    except KeyboardInterrupt:
        return 130
    return 0


def _loopback(text: str) -> str:
    if not ipaddress.ip_address(text).is_loopback:
        raise argparse.ArgumentTypeError(f"{text} is no loopback address")
    return text


if __name__ == "__main__":
    sys.exit(main())
