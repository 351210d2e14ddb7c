"""The engine's world with checkpoints: a restart begins from the last one, as the store does it."""

from __future__ import annotations

from uuid import UUID

from merq.engine.manager import QueueManager
from merq.engine.snapshot import restore_snapshot, take_snapshot
from unit.engine.engine_world import GUID, NAME, MemoryPackets, World, Written


class CheckpointedWorld(World):
    """A world of which some frames are not read again, for a checkpoint stands for them."""

    sections: list[tuple[int, bytes]] | None = None
    covered_frames = 0

    def take_checkpoint(self) -> None:
        self.sections = [(kind, bytes(data)) for kind, data in take_snapshot(self.engine.state)]
        self.covered_frames = len(self.log)

    def open_copy(self, *, from_checkpoint: bool) -> tuple[QueueManager, MemoryPackets]:
        """Another engine that has read what is durable, before it has begun to work."""
        packets = MemoryPackets()
        engine = QueueManager(GUID, NAME, packets, self.limits)
        for frame in self.log[: self.durable_frames]:
            lay_out(packets, frame)
        skipped = 0
        if from_checkpoint and self.sections is not None:
            restore_snapshot(engine.state, self.sections)
            skipped = self.covered_frames
        for frame in self.log[skipped : self.durable_frames]:
            for entry, position in zip(frame.entries, frame.positions, strict=True):
                engine.replay(entry.kind, memoryview(entry.whole), position)
        return engine, packets

    def _start(self) -> None:
        self.engine, self.packets = self.open_copy(from_checkpoint=True)
        self.engine.tick(self.now)
        self.engine.start(UUID(int=77 << 64))
        self.perform()
        self.sync()


def lay_out(packets: MemoryPackets, frame: Written) -> None:
    base = frame.positions[0] & ~0xFFFFFF
    packets.bytes_at[base] = b"".join(entry.whole for entry in frame.entries)
