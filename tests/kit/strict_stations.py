"""A strict peer as a process with a loopback address of its own, one life after another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from acceptance.service_process import environment, wait_until
from kit.stations import new_address

PROGRAM: Final = "acceptance.strict_receiver_program"


class StrictStation:
    """The receiving side of a soak, by the letter.

    Args:
        data: Its folder; it tells how far it is in the folder above.
    """

    def __init__(self, data: Path) -> None:
        self.address = new_address()
        self.name = data.name
        self._data = data
        self._log = data.with_name(f"{data.name}.log")
        self._process: subprocess.Popen[bytes] | None = None

    def direct(self, queue: str, address: str = "") -> str:
        """A queue's name for others, by its address."""
        return rf"DIRECT=TCP:{address or self.address}\private$\{queue}"

    def start(self) -> None:
        """Begins a life."""
        arguments = [str(self._data), self.address, str(self._data.parent)]
        with self._log.open("ab") as told:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                env=environment(),
                start_new_session=True,
            )
        wait_until((self._data / "strict-peer.db").exists, "the strict peer has its file")

    def check(self) -> None:
        """It must be alive."""
        assert self._process is not None
        assert self._process.poll() is None, f"the strict peer has ended:\n{self._log.read_text()}"

    def kill(self) -> None:
        """Ends it as a power failure would."""
        self.check()
        self.end()

    def end(self) -> None:
        """Ends it, if it lives."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
