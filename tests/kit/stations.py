"""Queue managers that exchange messages: each a process with a loopback address of its own.

All of them listen on the port that queue managers have, so an address is never given out twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

from acceptance.service_process import LISTENING, ServiceProcess, wait_until
from kit.open_files import open_files
from kit.relaying import Wire
from merq.client.manager import Manager
from merq.client.messages import ReceivedMessage
from merq.client.queues import OutgoingQueue
from merq.service.sources import variable_of

QUICK: Final[dict[str, object]] = {
    "exchange.retry_s": 0.1,
    "exchange.retry_max_s": 0.1,
    "exchange.order_ack_s": 0.1,
    "exchange.resend_short_s": 2,
    "exchange.resend_medium_s": 2,
    "exchange.resend_long_s": 2,
    "exchange.resend_final_s": 2,
}
"""Settings with which nobody waits long, as people would."""

LOG_REPEATS: Final = 1000
"""Events of one kind that are told each second: tests want to see every one."""

ORDER_QUEUES: Final = (r"\order_queue$", r"\00000004")
"""[MS-MQQB] 2.2.4: how the names end of those queues to which OrderAcks go."""

_WORKERS: Final = 16
_numbers: Final = count(1)


def new_address() -> str:
    """A loopback address that nothing else here has, whichever tests run beside these."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    number = next(_numbers)
    assert number < 250, "all addresses of this process are used"
    process = os.getpid()
    return f"127.{10 + worker + _WORKERS * (process // 250 % 12)}.{process % 250 + 1}.{number}"


class Addressed(Protocol):
    """Somebody with an address."""

    address: str


class Station(ServiceProcess):
    """A queue manager with an address of its own.

    Args:
        data: Its folder; its name is that of the folder.
        settings: More settings by their keys, such as `exchange.window`.
        address: Its address; a new one by default.
    """

    def __init__(
        self, data: Path, settings: Mapping[str, object] | None = None, address: str = ""
    ) -> None:
        self.address = address or new_address()
        self.name = data.name
        own: dict[str, object] = {
            "exchange.listen": "true",
            "exchange.offline": "false",
            "log.repeats_max": LOG_REPEATS,
        }
        flags = ("--address", self.address, "--name", self.name)
        super().__init__(data, *flags, settings=own | QUICK | dict(settings or {}))

    def direct(self, queue: str, address: str = "") -> str:
        """A queue's name for others, by its address."""
        return rf"DIRECT=TCP:{address or self.address}\private$\{queue}"

    def restart(self, settings: Mapping[str, object] | None = None) -> None:
        """Stops and starts it, with some other settings."""
        assert self.stop() == 0, self.output
        self._variables |= {variable_of(key): str(each) for key, each in (settings or {}).items()}
        self.start()

    def peer(self, *, host: str = "", via: str = "") -> str:
        """The table for it in a file of peers."""
        way = f'via = "{via}"' if via else f'host = "{host or self.address}"'
        return f'[[peer]]\nname = "{self.name}"\nguid = "{self.guid}"\n{way}\n'

    @property
    def guid(self) -> str:
        """The queue manager's identifier."""
        return str(self.events("running")[-1]["queue_manager"])

    @property
    def tcp_connections(self) -> int:
        """Its TCP connections, those included that it has yet to close."""
        own = open_files(self.pid)
        count = 0
        for name in ("tcp", "tcp6"):
            for line in Path(f"/proc/{self.pid}/net/{name}").read_text().splitlines()[1:]:
                state, inode = line.split()[3], line.split()[9]
                count += state != LISTENING and f"socket:[{inode}]" in own
        return count

    def wait_until_alone(self) -> None:
        """Returns when nobody is connected to it any more."""
        wait_until(lambda: self.tcp_connections == 0, f"nobody is connected to {self.name}")

    def told(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """What it logged of an event, if the fields are like these."""
        found = self.events(event)
        return [each for each in found if all(each.get(key) == fields[key] for key in fields)]


@contextmanager
def stations(
    folder: Path, *names: str, settings: Mapping[str, object] | None = None
) -> Iterator[list[Station]]:
    """Several queue managers at once, whose logs are clean at their end."""
    with ExitStack() as stack:
        found = [Station(folder / name, settings) for name in names]
        for each in found:
            stack.callback(each.end)
            each.start(is_awaited=False)
        for each in found:
            each.wait_until_running()
        yield found
        end_cleanly(found)


def end_cleanly(found: Sequence[ServiceProcess]) -> None:
    """Stops those that run; nothing went wrong inside of any."""
    for each in found:
        if each.is_alive:
            assert each.stop() == 0, each.output
        each.check_log()


@contextmanager
def wire_between(first: Addressed, second: Addressed) -> Iterator[tuple[Wire, str, str]]:
    """A wire, where the first finds the second, and where the second finds the first."""
    second_seen, first_seen = new_address(), new_address()
    with Wire(
        first.address, second.address, second_seen=second_seen, first_seen=first_seen
    ) as wire:
        yield wire, second_seen, first_seen


def outgoing_to(manager: Manager, part: str) -> OutgoingQueue:
    """The outgoing queue whose destination has this in its name."""
    (found,) = [each for each in manager.outgoing_queues() if part in each.destination.lower()]
    return found


def wait_until_sent(manager: Manager, part: str = "", within_s: float = 20.0) -> None:
    """Returns when nothing waits to be sent to a name with this part, or to be acknowledged.

    Express messages may wait for ten seconds ([MS-MQQB] 3.1.2.5), and so may OrderAcks, which are
    left out here.
    """

    def left() -> dict[str, tuple[int, str]]:
        found = [each.report for each in manager.outgoing_queues()]
        return {
            each.properties.path_name: (each.messages, each.state.value)
            for each in found
            if each.messages
            and part in each.properties.path_name
            and not each.properties.path_name.lower().endswith(ORDER_QUEUES)
        }

    try:
        wait_until(lambda: not left(), "everything is with whom it is for", within_s)
    except AssertionError as wrong:
        wrong.add_note(f"{manager.name} still has {left()}")
        raise


def received(manager: Manager, queue: str, most: int, within_s: float = 20.0) -> list[Any]:
    """The bodies of so many messages of a queue, as they come."""
    found = manager.queue(rf".\private$\{queue}")
    bodies: list[Any] = []
    while len(bodies) < most:
        taken = found.receive_many(most - len(bodies), timeout=within_s)
        bodies += [each.body for each in taken]
    return bodies


def labels(messages: Sequence[ReceivedMessage]) -> list[str]:
    """The labels of messages."""
    return [each.label for each in messages]
