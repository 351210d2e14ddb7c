"""A queue manager in a process that the system lets open no more files; prints what came of it."""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from merq.engine.limits import Limits
from merq.errors import MessageQueueError, StoreFull
from merq.host.host import Host, HostSettings
from merq.model.queue import QueueSettings
from merq.store.disk import SPARE_DESCRIPTORS, FileDisk
from merq.store.log import LogSettings
from merq.store.recovery import Identity
from merq.wire.build import Outline, build_packet

LIMIT = 64
SMALL = HostSettings(
    log=LogSettings(segment_size=16 << 10, reserve_step=4 << 10), ballast_bytes=1 << 10
)
PACKET = build_packet(
    Outline(destination=r"OS:.\private$\orders", recoverable=True, body=bytes(3_000))
)


class Asked:
    """A host that is asked one thing after the other."""

    def __init__(self, folder: Path) -> None:
        self.disk = FileDisk(folder)
        self.disk.lock()
        identity = Identity(store_id=UUID(int=7), created=1)
        self.host = Host(self.disk, identity, "here", Limits(disk_reserve_bytes=0), SMALL)
        self.host.start(1_000_000, UUID(int=1))
        self.count = 0

    def ask(self, doing: object, *arguments: object) -> int:
        """The code of the refusal; 0 if there was none."""
        self.count += 1
        doing(self.count, *arguments)  # type: ignore[operator]
        (result,) = [each.result for each in self.host.settle() if each.request == self.count]
        return result.code if isinstance(result, MessageQueueError) else 0

    def send(self) -> int:
        orders = self.host.engine.find_queue(r".\private$\orders").number
        return self.ask(self.host.engine.send, orders, [PACKET])

    def checkpoint(self) -> bool:
        writing, _ = self.host.begin_checkpoint()
        assert writing is not None
        try:
            writing.run()
        except StoreFull:
            return False
        self.host.end_checkpoint(writing)
        return True


def exhausted() -> list[int]:
    """All descriptors that the system gives."""
    taken = []
    while True:
        try:
            taken.append(os.open("/", os.O_RDONLY))
        except OSError as wrong:
            if wrong.errno != errno.EMFILE:
                raise
            return taken


def main(folder: Path) -> None:
    asked = Asked(folder)
    asked.ask(asked.host.engine.create_queue, r".\private$\orders", QueueSettings(), UUID(int=2))
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    taken = exhausted()
    acknowledged = 0
    with_spares = without = rolled = 0
    first = len(asked.host.log.segments())
    codes = set()
    for _ in range(60):
        code = asked.send()
        acknowledged += not code
        codes.add(code)
        rolled = len(asked.host.log.segments()) - first
        with_spares += not code and rolled <= SPARE_DESCRIPTORS
        without += code != 0
    checkpoints = [asked.checkpoint()]
    for _ in range(2):  # for the folder of the checkpoints, too: it is the first
        os.close(taken.pop())
    checkpoints.append(asked.checkpoint())
    for each in taken:
        with suppress(OSError):
            os.close(each)
    acknowledged += asked.send() == 0
    checkpoints.append(asked.checkpoint())
    news = [each.text for each in asked.host.news.take()]
    asked.host.close()
    asked.disk.unlock()
    again = Asked(folder)
    found = again.host.engine.find_queue(r".\private$\orders").positions.count
    again.host.close()
    again.disk.unlock()
    told = {
        "acknowledged": acknowledged,
        "found": found,
        "with_spares": with_spares,
        "refused": without,
        "codes": sorted(codes),
        "checkpoints": checkpoints,
        "news": news,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
