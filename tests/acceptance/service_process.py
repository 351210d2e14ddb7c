"""The service as a process: `merq serve` with its own folder, started, looked at and ended.

What it logs goes to a file, a JSON object a line; anything else there is a failure. Also here: a
client that is a bare socket, for tests that must not be as polite as `merq.connect`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import merq
from kit.open_files import open_files
from kit.raw_sockets import RawSocket
from merq.errors import MessageQueueError
from merq.protocol.application.client import ClientSession, Settled
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Request
from merq.service.sources import variable_of
from merq.service.tokens import new_token

PATIENCE_S: Final = 20.0
"""How long anything may take that should happen at once."""
STOP_S: Final = 5.0
"""A clean stop takes no longer."""
TESTS: Final = Path(__file__).resolve().parents[1]
TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
LISTENING: Final = "0A"
"""The state of a listening socket in /proc/net/tcp."""


def wait_until(is_so: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Returns when something is so; fails if that takes too long."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, f"after {within_s} s not yet: {what}"
        time.sleep(0.01)


def environment(**variables: str) -> dict[str, str]:
    """What a child finds: nothing of ours that would change its settings, and the tests' folder."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MERQ_")}
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    # Only those with an address of their own can have the port that queue managers have.
    own = {
        "PYTHONPATH": path,
        "MERQ_EXCHANGE_LISTEN": "false",
        "MERQ_EXCHANGE_OFFLINE": "true",
    }
    return kept | own | variables


class ServiceProcess:
    """`merq serve` on a folder, one life after another.

    Args:
        data: The folder.
        flags: More flags.
        settings: Settings by their keys, such as `limits.handshake_s`.
        log: Where its log goes; beside the folder by default.
    """

    def __init__(
        self,
        data: Path,
        *flags: str,
        settings: Mapping[str, object] | None = None,
        log: Path | None = None,
    ) -> None:
        self.data = data
        self.socket_path = data / "merq.sock"
        self.url = f"unix:{self.socket_path}"
        self._flags = flags
        self._variables = {variable_of(key): str(each) for key, each in (settings or {}).items()}
        self._told = log or data.with_name(f"{data.name}.log")
        self._runs = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    @classmethod
    @contextmanager
    def waiting(cls, data: Path, settings: Mapping[str, object], log: Path) -> Iterator[Self]:
        """One that cannot start as long as another has its folder."""
        service = cls(data, "--retry-at-start", settings=settings, log=log)
        service.start(is_awaited=False)
        try:
            yield service
        finally:
            service.end()

    # Its life.

    def start(self, *, is_awaited: bool = True) -> None:
        """Begins a life; returns when it serves, unless nobody waits for that."""
        self._runs = len(self.events("running"))
        command = [sys.executable, "-m", "merq", "serve", "--data", str(self.data)]
        with self._told.open("ab") as told:
            self._process = subprocess.Popen(
                [*command, "--log-format", "json", *self._flags],
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                env=environment(**self._variables),
                start_new_session=True,
            )
        if is_awaited:
            self.wait_until_running()

    def wait_until_running(self) -> None:
        """Returns when this life serves, whatever earlier ones did."""

        def is_running() -> bool:
            assert self.is_alive, f"the service has ended:\n{self._told.read_text()}"
            return len(self.events("running")) > self._runs

        wait_until(is_running, "the service runs")

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        assert self.is_alive
        os.kill(self.pid, number)

    def ended(self, within_s: float = PATIENCE_S) -> int:
        """Waits for its end; gives its exit status."""
        assert self._process is not None
        return self._process.wait(within_s)

    def stop(self) -> int:
        """Stops it cleanly; gives its exit status."""
        self.signal(signal.SIGTERM)
        return self.ended(STOP_S)

    def kill(self) -> None:
        """Ends it as a power failure would."""
        self.signal(signal.SIGKILL)
        self.ended()

    def end(self) -> None:
        """Nothing of it is left."""
        if self.is_alive:
            self.kill()

    def connect(self, **options: Any) -> merq.Manager:
        return merq.connect(self.url, **options)

    def new_token(self, name: str, *, expires: datetime | None = None) -> str:
        """A token that lets a client in over TCP."""
        return new_token(self.data, name, now=datetime.now(UTC), expires=expires)[0]

    # What it tells.

    @property
    def output(self) -> str:
        """All that it has written."""
        return self._told.read_text() if self._told.exists() else ""

    def log(self) -> list[dict[str, Any]]:
        """What it logged; a line that is no JSON is something that nobody has caught."""
        lines = self.output.splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def events(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.log() if each["event"] == event]

    def reasons(self) -> list[str]:
        """Why connections were not let in, or ended."""
        return [str(each["reason"]) for each in self.log() if "reason" in each]

    def check_log(self) -> None:
        """Nothing went wrong inside: no trace of an exception, nothing that asyncio caught."""
        for each in self.log():
            assert "trace" not in each, each
            assert each["logger"] != "asyncio" or each["level"] in {"debug", "info"}, each

    # What it takes.

    @property
    def cpu_s(self) -> float:
        """The processor's time that it has used."""
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / TICKS_A_SECOND

    @property
    def rss_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    @property
    def tcp_ports(self) -> list[int]:
        """The TCP ports on which it listens."""
        own = open_files(self.pid)
        ports = []
        for name in ("tcp", "tcp6"):
            for line in Path(f"/proc/{self.pid}/net/{name}").read_text().splitlines()[1:]:
                place, state, inode = line.split()[1], line.split()[3], line.split()[9]
                if state == LISTENING and f"socket:[{inode}]" in own:
                    ports.append(int(place.rpartition(":")[2], 16))
        return ports

    @property
    def tcp_port(self) -> int:
        """The port that it has chosen."""
        return int(str(self.events("running")[-1]["tcp"]).rpartition(":")[2])


class RawClient(RawSocket):
    """A connection without manners: it says what it is told to, and reads when it is told to."""

    def __init__(self, place: Path | tuple[str, int], token: str = "") -> None:
        super().__init__(place, patience_s=PATIENCE_S)
        self.session = ClientSession("raw", token)

    def fileno(self) -> int:
        return self.socket.fileno()

    def greet(self) -> Self:
        """Says hello and reads the answer."""
        self.session.connected()
        self.write()
        while self.session.welcome is None and not self.session.broken:
            self.read()
        return self

    def post(self, request: Request) -> int:
        """Asks for something without waiting; gives its number."""
        number = self.session.ask(request)
        self.write()
        return number

    def write(self) -> None:
        self.socket.sendall(self.session.data_to_send())

    def read(self) -> list[Settled]:
        """What comes next; fails at the end of the stream."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the service has closed the connection")
        return self.session.receive_data(data)

    def ask(self, request: Request) -> Result:
        """Asks for something; gives the answer. Other answers must not be on their way."""
        number = self.post(request)
        while True:
            for settled in self.read():
                assert settled.number == number
                if isinstance(settled.result, MessageQueueError):
                    raise settled.result
                return settled.result


@contextmanager
def serving(data: Path, *flags: str, **settings: object) -> Iterator[ServiceProcess]:
    """A service with settings, whose log is clean at its end."""
    keys = {name.replace("__", "."): each for name, each in settings.items()}
    with ServiceProcess(data, *flags, settings=keys) as service:
        yield service
        if service.is_alive:
            assert service.stop() == 0, service.output
        service.check_log()
