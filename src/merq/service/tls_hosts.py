"""Who was reached inside of TLS, kept over restarts: the file `tls-hosts` in the data folder.

A host a line, the one that was reached last at the end, and a SHA-256 of them in the last line. A
damaged file only ever asks for TLS: what can be read of it holds, it is kept as
`tls-hosts.damaged`, and the log says so. Not in here: what follows from it (`exchange.tls_policy`).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from merq.exchange.tls_policy import REMEMBERED_MAX
from merq.service.durable_files import replace_durably
from merq.service.logs import Log
from merq.store.disk import open_regular

TLS_HOSTS_FILE: Final = "tls-hosts"
HOST_CHARACTERS_MAX: Final = 255
"""A line that is longer is no host."""

FILE_BYTES_MAX: Final = (REMEMBERED_MAX + 2) * (4 * HOST_CHARACTERS_MAX + 1)
"""What is read of the file: more is not written."""

RETRY_S: Final = 60.0
"""After this time it is tried again to write what could not be written."""

_HEAD: Final = "# Written by the service: hosts that are not spoken to in clear, for they have TLS."
_SUM: Final = "# sha256 "
_HOST: Final = re.compile(rf"[^\s#\x00-\x1f\x7f\ud800-\udfff]{{1,{HOST_CHARACTERS_MAX}}}")


class TlsHostsFile:
    """The file, as a running service reads it once and writes it when there is news."""

    def __init__(self, folder: Path, log: Log) -> None:
        self._path = folder / TLS_HOSTS_FILE
        self._log = log
        self._wanted: tuple[str, ...] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def load(self) -> tuple[str, ...]:
        """The hosts that the file holds; as many as can be read, if it is damaged."""
        try:
            # A pipe of that name must not keep the service from starting.
            with os.fdopen(open_regular(self._path, os.O_RDONLY), "rb") as file:
                data = file.read(FILE_BYTES_MAX)
        except FileNotFoundError:
            return ()
        except OSError as wrong:
            self._set_aside(f"it cannot be read: {wrong.strerror}")
            return ()
        hosts = tuple(_hosts_in(data))
        if data != _content(hosts):
            self._set_aside(f"{len(hosts)} hosts can be read, and something is not as written")
            self.keep(hosts)
        return hosts

    def _set_aside(self, what: str) -> None:
        """The damaged file stays, for a person, under another name."""
        aside = self._path.with_name(f"{TLS_HOSTS_FILE}.damaged")
        with suppress(OSError):
            self._path.replace(aside)
        self._log.error(
            "the file of hosts that have TLS is damaged",
            file=aside,
            found=what,
            expected="hosts, a line each, and their SHA-256 in the last line",
            advice="hosts that are missing in it are taken for new ones: with exchange.tls = "
            '"auto" they may be spoken to in clear once. Restore the file, or say tls = "always" '
            "for them in the file of peers",
        )

    def keep(self, hosts: tuple[str, ...]) -> None:
        """These are to be in the file, soon."""
        self._wanted = hosts
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        while (hosts := self._wanted) is not None:
            self._wanted = None
            try:
                await asyncio.to_thread(replace_durably, self._path, _content(hosts))
            except OSError as wrong:
                self._put_back(hosts)
                self._log.error(
                    "who was reached inside of TLS cannot be kept",
                    file=self._path,
                    error=str(wrong),
                    retry_s=RETRY_S,
                    advice="until it can, a restart forgets it. Make room on the disk",
                )
                if self._closing.is_set():
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), RETRY_S)

    def _put_back(self, hosts: tuple[str, ...]) -> None:
        if self._wanted is None:  # nothing newer came meanwhile
            self._wanted = hosts

    async def close(self) -> None:
        """Tries once more to write what is not written yet."""
        self._closing.set()
        if self._writing is not None:
            await self._writing


def _hosts_in(data: bytes) -> Iterator[str]:
    for line in data.decode("utf-8", "replace").split("\n"):
        if _HOST.fullmatch(line) and "\ufffd" not in line:
            yield line


def _content(hosts: tuple[str, ...]) -> bytes:
    lines = [each for each in hosts if _HOST.fullmatch(each)]
    digest = sha256("\n".join(lines).encode()).hexdigest()
    return "\n".join([_HEAD, *lines, f"{_SUM}{digest}", ""]).encode()
