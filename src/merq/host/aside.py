"""Keeps what the engine set aside, in the folder `aside` of the store, for a person.

Each message is a file with its packet, as `merq decode` reads it, beside a text that says what was
being done with it and what came of that. Of a message whose record in the log is damaged, it is
what is left of its packet. A stranger may send as many as it likes of whatever we
cannot handle, so both their number and their bytes are limited; those beyond are counted and told.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from merq.engine.aside_messages import Aside, Damaged
from merq.errors import StoreFull
from merq.store.disk import Disk

ASIDE_FILES_MAX: Final = 1_000
"""Messages set aside whose packets are kept, those of earlier starts included."""

ASIDE_BYTES_MAX: Final = 64 << 20
"""What their packets take together."""

_NAME: Final = re.compile(r"(?:aside-([0-9]{6})|damaged-[0-9a-f]{16}-[0-9a-f]{8})\.packet")


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
        self._last = max((int(match[1] or 0) for match in found), default=0)
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
        name = f"aside/aside-{self._last + 1:06}"
        if not what.packet or not self._keep(name, what.packet, f"{what.doing}\n{what.problem}\n"):
            self.unkept += 1
            return KeptAside(what, "")
        self._last += 1
        return KeptAside(what, f"{name}.packet")

    def keep_damaged(self, what: Damaged, left: bytes, queue: str) -> str:
        """Writes what is left of a damaged message, and where it was; gives the file.

        Its name says where in the log the message is: one that is met again after a crash is not
        kept twice. Empty if there is no room for it.

        Raises:
            StoreFailed: The disk failed.
        """
        name = f"aside/damaged-{what.location >> 32:016x}-{what.location & 0xFFFFFFFF:08x}"
        text = (
            f"a damaged message in {queue}, lookup identifier {what.lookup_id:#x}\n{what.problem}\n"
            f"{len(left)} of its {what.size} bytes are here as the disk gave them, some are wrong\n"
        )
        if self._keep(name, left, text):
            return f"{name}.packet"
        self.unkept += 1
        return ""

    def _keep(self, name: str, packet: bytes, why: str) -> bool:
        """Writes a packet and why it is there, durably; False if there is no room."""
        size = len(packet)
        is_new = not self._disk.exists(f"{name}.packet")
        if is_new and (self.count >= ASIDE_FILES_MAX or self._bytes + size > ASIDE_BYTES_MAX):
            return False
        try:
            self._write(f"{name}.txt", why.encode("utf-8", "backslashreplace"))
            self._write(f"{name}.packet", packet)
            self._disk.sync_folder("aside")
        except StoreFull:
            return False
        if is_new:
            self.count += 1
            self._bytes += size
        return True

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
