"""A connection without manners: open from the beginning, and closed whatever happens."""

from __future__ import annotations

import socket
from pathlib import Path
from types import TracebackType
from typing import Self


class RawSocket:
    """A connection to a local or a TCP socket; who inherits knows what to say.

    Attributes:
        socket: What it says and hears goes through it as it is.
    """

    def __init__(
        self, place: Path | tuple[str, int], *, source: str = "", patience_s: float
    ) -> None:
        is_local = isinstance(place, Path)
        self._patience_s = patience_s
        self.socket = socket.socket(socket.AF_UNIX if is_local else socket.AF_INET)
        try:
            self.socket.settimeout(patience_s)
            if source:
                self.socket.bind((source, 0))
            self.socket.connect(str(place) if isinstance(place, Path) else place)
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def is_cut_off(self) -> bool:
        """Whether the other side closes the connection; what it says before is thrown away."""
        self.socket.settimeout(self._patience_s)
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True
