"""Queue managers for flows: one alone, or three that know one another by their addresses."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.brokers.running import running
from bench.builds import ROOT, environment
from bench.exchange.sites import spare_network

RETRY_S = 2.0
"""Whoever is not there yet is tried again soon, and an address where nobody is not all the time."""


@dataclass(frozen=True, slots=True)
class Service:
    """A queue manager that runs.

    Attributes:
        name: Its computer's name.
        host: Its address; empty if it exchanges no messages.
        url: Where clients connect to.
        process: The number of its process.
        folder: Where its data is.
    """

    name: str
    host: str
    url: str
    process: int
    folder: Path

    def direct(self, queue: str) -> str:
        """A queue's name for others."""
        return rf"DIRECT=TCP:{self.host}\private$\{queue}"


@contextmanager
def alone(folder: Path, name: str = "bench") -> Iterator[Service]:
    """One that exchanges no messages."""
    settings = {"EXCHANGE_LISTEN": "false", "EXCHANGE_OFFLINE": "true"}
    with _started(folder, name, "", settings) as found:
        yield found


@contextmanager
def together(folder: Path, names: Sequence[str]) -> Iterator[list[Service]]:
    """Several that exchange messages."""
    network = spare_network(range(2, 2 + len(names)))
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                _started(
                    folder,
                    name,
                    f"{network}.{number}",
                    {
                        "ADDRESS": f"{network}.{number}",
                        "EXCHANGE_LISTEN": "true",
                        "EXCHANGE_OFFLINE": "false",
                        "EXCHANGE_RETRY_S": str(RETRY_S),
                    },
                )
            )
            for number, name in enumerate(names, 2)
        ]


@contextmanager
def _started(folder: Path, name: str, host: str, settings: Mapping[str, str]) -> Iterator[Service]:
    own = folder / name
    own.mkdir(parents=True)
    listening = own / "data" / "merq.sock"
    variables = {f"MERQ_{key}": value for key, value in {"NAME": name, **settings}.items()}
    command = [sys.executable, "-m", "merq", "serve", "--data", str(own / "data")]
    surroundings = {**environment(ROOT / "src"), **variables}
    with running(command, own, listening.is_socket, surroundings) as process:
        yield Service(name, host, f"unix:{listening}", process, own / "data")
