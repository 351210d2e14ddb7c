"""Keeps what the engine set aside, in the folder `aside` of the store, for a person.

Each message is a file with its packet, as `merq decode` reads it, beside a text that says what was
being done with it and what came of that. A stranger may send as many as it likes of whatever we
cannot handle, so both their number and their bytes are limited; those beyond are counted and told.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from merq.engine.holdings import Aside
from merq.errors import StoreFull
from merq.store.disk import Disk

ASIDE_FILES_MAX: Final = 1_000
"""Messages set aside whose packets are kept, those of earlier starts included."""

ASIDE_BYTES_MAX: Final = 64 << 20
"""What their packets take together."""

_NAME: Final = re.compile(r"aside-([0-9]{6})\.packet")


class KeptAside(NamedTuple):
    """A message that was set aside.

    Attributes:
        file: Where its packet is; empty if it was not kept.
    """

    what: Aside
    file: str


class AsideFolder:
    """The packets that were set aside on a disk.

    Attributes:
        count: How many are kept.
        unkept: Messages set aside since the start whose packets were not kept.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        found = [match for name in disk.names("aside") if (match := _NAME.fullmatch(name))]
        self.unkept = 0
        self._last = max((int(match[1]) for match in found), default=0)
        self.count = len(found)
        self._bytes = sum(self._size(match[0]) for match in found)

    def _size(self, name: str) -> int:
        file = self._disk.open(f"aside/{name}")
        try:
            return file.size()
        finally:
            file.close()

    def keep(self, what: Aside) -> KeptAside:
        """Writes a packet and why it is there, durably, unless there is no room for more.

        Raises:
            StoreFailed: The disk failed.
        """
        size = len(what.packet)
        if not size or self.count >= ASIDE_FILES_MAX or self._bytes + size > ASIDE_BYTES_MAX:
            self.unkept += 1
            return KeptAside(what, "")
        name = f"aside/aside-{self._last + 1:06}"
        text = f"{what.doing}\n{what.problem}\n".encode("utf-8", "backslashreplace")
        try:
            self._write(f"{name}.txt", text)
            self._write(f"{name}.packet", what.packet)
            self._disk.sync_folder("aside")
        except StoreFull:
            self.unkept += 1
            return KeptAside(what, "")
        self._last += 1
        self.count += 1
        self._bytes += size
        return KeptAside(what, f"{name}.packet")

    def _write(self, name: str, data: bytes) -> None:
        if self._disk.exists(name):
            self._disk.remove(name)  # of a start that was interrupted
        file = self._disk.create(name)
        try:
            file.write(0, data)
            file.sync()
        except StoreFull:
            self._disk.remove(name)
            raise
        finally:
            file.close()
