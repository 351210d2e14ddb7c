"""`Host`: an engine, its store, and what has to be done between them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from merq.engine import damage, notices, records
from merq.engine.changes import NO_ENTRY, Answer, Change, PutManyStep, PutStep
from merq.engine.limits import Limits
from merq.engine.manager import QueueManager
from merq.engine.ports import HEAD_SIZE
from merq.engine.relocating import Relocation
from merq.engine.snapshot import restore_snapshot, take_snapshot
from merq.errors import MessageQueueError, StoreCorrupt, StoreFailed, StoreFull, StoreShort
from merq.host.aside import AsideFolder
from merq.host.clock import ClockWatch
from merq.host.news import NewsBox
from merq.host.packets import CACHE_BYTES, LogPackets
from merq.hresult import HResult
from merq.store.checkpoints import Checkpoint, Section, write_checkpoint
from merq.store.disk import Disk
from merq.store.log import Appended, LogSettings, Segment, Syncing
from merq.store.recovery import Frame, Identity, Opened, open_store

SECRET_SIZE: Final = 32
"""Bytes of chance that a start wants, so that identifiers of sequences cannot be foretold."""

CHECKPOINT_BYTES: Final = 64 << 20
"""A checkpoint is written when the log has grown by this much since the last, or earlier."""

CHECKPOINT_MIN_BYTES: Final = 16 << 20
"""With little that lives it is written when the log has grown by a sixth of that, but not before
it has grown by this much."""

CHECKPOINT_GROWTH: Final = 4
"""Never before it has grown by so many times what the last one had. With a million messages that is
40 MB, and others wait for a tenth of a second while it is gathered."""

SEGMENT_MIN_BYTES: Final = 8 << 20
SEGMENTS: Final = 8
"""What lives is spread over so many segments, lest the newest outweigh the others; but none is
given up before it has this size."""

SETTLING_ROUNDS_MAX: Final = 100
"""Syncs that a checkpoint waits for until nothing is under way."""

BALLAST_BYTES: Final = 1 << 20
"""Room that is kept on the disk for tidying up, when there is no other."""

BALLAST_SHARE: Final = 4
"""It is taken again once this many times as much is free."""

BALLAST: Final = "ballast"
"""The file that keeps it."""

RELIEF: Final = "ballast-for-receives"
"""A second file of that size: its room is for what takes messages away, when there is no other."""

_GROWING: Final = frozenset({records.PUT, records.KEEP, records.RELOCATE, records.QUEUE})
"""Records that bring something; the others take it away, or say a few bytes of it."""

DEAD_MIN_BYTES: Final = 1 << 16
"""With less of the dead in the log than this it is not worth tidying up for room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """How the store is kept; None is the log's own way.

    Attributes:
        checkpoint_bytes: How much the log grows, at least, before the next checkpoint.
        cache_bytes: How much of the packets that were written last is kept in memory.
        ballast_bytes: Room that is kept on the disk for tidying up, when there is no other.
    """

    log: LogSettings | None = None
    checkpoint_bytes: int = CHECKPOINT_BYTES
    cache_bytes: int = CACHE_BYTES
    ballast_bytes: int = BALLAST_BYTES


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """A checkpoint on its way to the disk: `run` may go on while the host does other things.

    Attributes:
        superfluous: Segments that nobody needs once it is durable.
        grown: How much of the log it makes unnecessary to read, in bytes.
    """

    disk: Disk
    store_id: UUID
    checkpoint: Checkpoint
    superfluous: tuple[int, ...]
    grown: int

    def run(self) -> None:
        """Writes it; it is durable when this returns.

        Raises:
            StoreFull: There is no room for it; nothing is lost.
            StoreFailed: The disk failed.
        """
        write_checkpoint(self.disk, self.store_id, self.checkpoint)


class Host:
    """An engine on a disk. One caller at a time; what it returns is durable as it says."""

    def __init__(
        self,
        disk: Disk,
        fresh: Identity,
        name: str,
        limits: Limits,
        settings: HostSettings | None = None,
    ) -> None:
        """Opens the store, which must be locked, and brings the engine to where it was.

        Args:
            disk: Where the store is.
            fresh: What a store that is new is to be called.
            name: The computer name of the queue manager.
            limits: Quotas and such.
            settings: How the store is kept.
        """
        self._disk = disk
        self._settings = settings or HostSettings()
        limits = limits.on_disk(disk.total_bytes())
        self._reserve = max(limits.disk_reserve_bytes, limits.network_reserve_bytes)
        self.packets = LogPackets(self._settings.cache_bytes)
        self.engine = QueueManager(fresh.store_id, name, self.packets, limits)
        self._checkpoint_number = 0
        self._checkpoint_size = 0
        self._grown = 0
        self._growth = 0
        self._segment_bytes = 0
        self._room = 0
        self._is_full = False
        self._is_short_of_files = False
        self._told = 0
        self._relocation: Relocation | None = None
        self._relocated: Segment | None = None
        self._is_stuck = False
        self._damaged_segment = 0
        self._uncovered = 0  # the last damage that no checkpoint is behind
        self._is_to_be_left = False
        self.news = NewsBox()
        self.clock = ClockWatch(self.news)
        self.aside = AsideFolder(disk)

        opened = open_store(
            disk,
            fresh,
            self._restore,
            self._replay,
            self._settings.log,
            identify=self._identify,
        )
        self.torn = opened.torn
        self._tell_lost(opened)
        self.log = opened.log
        try:
            self.packets.attach(self.log)
        except StoreCorrupt:
            self.log.close()
            raise
        self._measure()

    def _tell_lost(self, opened: Opened) -> None:
        for lost in opened.lost_checkpoints:
            self.news.warn(
                "a checkpoint is damaged: it was done without, and the log before it read instead",
                problem=lost.reason,
                kept_as=lost.kept_as,
            )

    def _identify(self, identity: Identity) -> None:
        """The queue manager's identifier is the store's: made once per folder."""
        self.engine.state.be(identity.store_id)

    def _replay(self, frame: Frame) -> None:
        replay = self.engine.replay
        for kind, position, data in frame.records():
            replay(kind, data, position)
            self._grown += len(data)

    def _restore(self, checkpoint: Checkpoint) -> None:
        self._checkpoint_number = checkpoint.number
        self._checkpoint_size = sum(len(each.data) for each in checkpoint.sections)
        restore_snapshot(self.engine.state, [(k, bytes(d)) for k, d in checkpoint.sections])

    def start(self, now: int, new_guid: UUID, secret: bytes = b"") -> None:
        """Work begins: the system's queues are there, and everything is settled.

        See `QueueManager.start` for the `secret`.

        Raises:
            StoreFull: There is no room even for that.
        """
        self.clock.started(now, self.engine.state)
        self.engine.tick(now)
        self.engine.start(new_guid, secret)
        self._keep_ballast()
        self.watch_resources()
        self.settle()
        if notices.JOURNAL_NUMBER not in self.engine.state.queues:
            raise StoreFull("there is no room for the queues that every queue manager has")

    def close(self) -> None:
        """Gives the files back. Nothing is made durable that was not."""
        self.log.close()

    # Effects.

    def perform(self) -> list[Answer]:
        """Writes what the engine wants written; gives the answers that are due.

        Raises:
            StoreFailed: The disk failed; the store must be opened anew.
        """
        answers: list[Answer] = []
        engine = self.engine
        while True:
            effects = engine.take_effects()
            aside = engine.state.aside
            if aside.waiting or aside.damaged:
                self._keep_aside()
                self._keep_damaged()
            elif not effects:
                return answers
            for effect in effects:
                if isinstance(effect, Answer):
                    answers.append(effect)
                elif effect.entries:
                    self._write(effect)

    @property
    def set_aside_count(self) -> int:
        """Messages set aside: those that are kept, and those that could not be since the start."""
        return self.aside.count + self.aside.unkept

    def _keep_aside(self) -> None:
        """Before anything is written that lets these messages go, their packets are kept."""
        found = self.engine.state.aside.take()
        self.aside.unkept += found.unkept
        for each in found.messages:
            kept = self.aside.keep(each)
            view = each.packet
            self.news.warn(
                "a message could not be handled and was set aside",
                doing=each.doing,
                problem=each.problem,
                source=UUID(bytes_le=view[16:32]) if len(view) >= HEAD_SIZE else None,
                bytes=len(view),
                kept_as=kept.file or "nothing: there is no room for more in aside",
            )

    def _keep_damaged(self) -> None:
        """What is left of damaged messages is kept; what could be kept leaves its queue."""
        state = self.engine.state
        for each in state.aside.take_damaged():
            found = state.queues.get(each.queue)
            if found is None:
                continue  # it was deleted meanwhile, with what was in it
            queue = found.properties.path_name
            try:
                left = self.packets.remains(each.location, each.size)
            except StoreFailed as wrong:
                damage.give_back(state, each)  # that may pass
                self.news.warn("a message cannot be read", queue=queue, error=str(wrong))
                continue
            file = self.aside.keep_damaged(each, left, queue)
            if file:
                damage.let_go(state, each)
                self._damaged_segment = max(self._damaged_segment, each.location >> 32)
                self._uncovered = max(self._uncovered, each.location)
                self._is_to_be_left = True
            text = "a damaged message was set aside"
            if not file:
                text = "a damaged message is passed over until the next start: no room to keep it"
            self.news.warn(
                text,
                queue=queue,
                lookup_id=each.lookup_id,
                problem=each.problem,
                bytes=len(left),
                kept_as=file or "nothing: make room on the disk, or move files out of aside",
            )

    def _write(self, change: Change) -> None:
        try:
            appended = self._append(change)
        except StoreShort as short:
            if not self._is_short_of_files:
                self.news.warn(
                    "the system lets no more files be opened: what needs the next file of the log "
                    "is refused until it does",
                    error=str(short),
                )
            self._is_short_of_files = True
            self._tell()
            code = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
            self.engine.failed(change, MessageQueueError(code, f"nothing was changed: {short}"))
            return
        except StoreFull as full:
            error = MessageQueueError(
                HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED,
                f"the disk is full and nothing was changed: {full}",
            )
            if not self._is_full:
                self.news.warn(
                    "the disk is full: nothing more can be written until there is room on it",
                    error=str(full),
                )
            self._is_full = True
            # What made room may have made what was written before durable.
            self._tell()
            self.engine.failed(change, error)
            return
        self._is_short_of_files = False
        positions = appended.positions
        for step in change.steps:
            if isinstance(step, PutStep) and step.entry != NO_ENTRY:
                self.packets.remember(positions[step.entry], step.arrival, step.packet)
            elif isinstance(step, PutManyStep) and step.entry != NO_ENTRY:
                self.packets.remember_many(positions, step.entry, step.arrival, step.packets)
        self.engine.written(change, positions, appended.end)
        size = appended.end - positions[0]
        self._grown += size
        self._room -= size
        if self._room < self._reserve:
            self.watch_resources()
        if appended.end & 0xFFFFFFFF > self._segment_bytes:
            with suppress(StoreFull):  # it goes on where it is, then
                self.log.roll()
        if self.log.durable != self._told:
            self._tell()

    def _append(self, change: Change) -> Appended:
        """Writes a change; one that takes messages away may use the room that is kept for that."""
        try:
            return self.log.append(change.entries)
        except StoreShort:
            raise
        except StoreFull:
            is_leaving = not any(entry.kind in _GROWING for entry in change.entries)
            if not is_leaving or not self._disk.exists(RELIEF):
                raise
            self._disk.remove(RELIEF)
            return self.log.append(change.entries)

    def _tell(self) -> None:
        """The engine learns how far the log is durable; the log moves that on by itself too."""
        if self.log.durable != self._told:
            self._told = self.log.durable
            self.engine.durable(self._told)

    # Syncing.

    @property
    def has_unsynced(self) -> bool:
        """Whether something was written that is not durable."""
        return self.log.durable < self.log.end

    def begin_sync(self) -> Syncing | None:
        """The sync that makes everything so far durable, or None if it is.

        Its `run` may go on elsewhere while more is asked for; `end_sync` takes the result.
        """
        return self.log.begin_sync()

    def end_sync(self, syncing: Syncing) -> list[Answer]:
        """Takes the result of a sync that has run; gives the answers that are due."""
        self.log.end_sync(syncing)
        self._tell()
        return self.perform()

    def settle(self) -> list[Answer]:
        """Everything that is under way happens; gives the answers."""
        answers = self.perform()
        while self.has_unsynced or self.log.durable != self._told:
            self.log.sync()
            self._tell()
            answers += self.perform()
        return answers

    # Resources and upkeep.

    def watch_resources(self) -> None:
        """[MS-MQDMPR] 3.1.7.2.5: looks at disk and memory, and lets the engine throttle."""
        state = self.engine.state
        was_low = state.low_on_disk
        self._room = self._disk.free_bytes()
        self.engine.watch_resources(self._room)
        if state.low_on_disk and not was_low:
            self.news.warn(
                "the disk is short of room: messages can be received, but none is taken until "
                "there is twice the reserve again",
                free_bytes=self._room,
                disk_reserve_bytes=state.limits.disk_reserve_bytes,
            )
        elif was_low and not state.low_on_disk:
            self.news.tell("there is room on the disk again", free_bytes=self._room)
        if not state.low_on_disk and self._room > BALLAST_SHARE * self._settings.ballast_bytes:
            self._keep_ballast()  # some of it may have been used

    @property
    def room(self) -> int:
        """Free bytes on the disk, as they were looked at last and used since."""
        return self._room

    @property
    def needs_upkeep(self) -> bool:
        """Whether the log has grown enough for a checkpoint, or the dead in it take needed room.

        Or whether there is damage in it: behind the last checkpoint it keeps the log from being
        opened, and before it from being backed up.
        """
        if self._uncovered or self._is_to_be_left or self._grown >= self._growth:
            return True
        return self.is_short and self._has_many_dead()

    @property
    def is_short(self) -> bool:
        """Whether room on the disk runs out."""
        return self._is_full or self.engine.state.low_on_disk

    def _measure(self) -> None:
        """How large segments may become and how far the log may grow, now that so much lives."""
        living = sum(each.living for each in self.log.segments())
        self._segment_bytes = max(SEGMENT_MIN_BYTES, living // SEGMENTS)
        most = self._settings.checkpoint_bytes
        wanted = min(most, max(CHECKPOINT_MIN_BYTES, living // 6))
        self._growth = max(wanted, CHECKPOINT_GROWTH * self._checkpoint_size)

    def _has_many_dead(self) -> bool:
        """Whether a third of the log is dead, so that copying the rest is worth it."""
        segments = self.log.segments()
        living = sum(each.living for each in segments)
        dead = sum(each.used for each in segments) - living
        return dead >= max(DEAD_MIN_BYTES, living // 2)

    def begin_checkpoint(self) -> tuple[Checkpointing | None, list[Answer]]:
        """A snapshot of what has happened, at the end of the log, and answers that came on the way.

        None: too much is under way; another time.
        """
        answers: list[Answer] = []
        if self.is_short:
            self._make_room()
        elif self._uncovered:
            with suppress(StoreFull):
                self.log.roll()  # what lives beside the damage can be copied then
        for _ in range(SETTLING_ROUNDS_MAX):
            answers += self.settle()
            if self.engine.state.is_settled and not self.has_unsynced:
                break
        else:
            return None, answers
        sections = tuple(Section(*each) for each in take_snapshot(self.engine.state))
        superfluous = self._superfluous()
        checkpoint = Checkpoint(
            number=self._checkpoint_number + 1,
            position=self.log.end,
            next_sequence=self.log.next_sequence,
            sections=sections,
            oldest_segment=self.log.segments()[len(superfluous)].number,
        )
        store_id = self.engine.state.guid
        writing = Checkpointing(self._disk, store_id, checkpoint, superfluous, self._grown)
        return writing, answers

    def _superfluous(self) -> tuple[int, ...]:
        """The oldest segments, those in which nothing lives that a snapshot of now mentions."""
        numbers = []
        for segment in self.log.segments()[:-1]:
            if segment.living:
                break
            numbers.append(segment.number)
        return tuple(numbers)

    def end_checkpoint(self, done: Checkpointing) -> None:
        """A checkpoint is durable: segments that it makes superfluous go."""
        checkpoint = done.checkpoint
        self._checkpoint_number = checkpoint.number
        self._checkpoint_size = sum(len(each.data) for each in checkpoint.sections)
        self._grown -= done.grown
        if self._uncovered < checkpoint.position:
            self._uncovered = 0
        self._is_stuck = False
        for number in done.superfluous:
            self.log.drop(number)
        self._measure()
        self._is_full = False
        self._keep_ballast()
        self.watch_resources()

    def _make_room(self) -> None:
        """The disk is nearly full: the newest segment is closed, so that it can be given up too.

        What that and a checkpoint need is taken from the ballast.
        """
        if self._disk.exists(BALLAST):
            self._disk.remove(BALLAST)
        # Without room even for that, tidying up has to do without the newest segment.
        with suppress(StoreFull):
            self.log.roll()

    def _keep_ballast(self) -> None:
        """Takes room on the disk for when there is no other, if there is some."""
        for name in (BALLAST, RELIEF):
            if self._disk.exists(name) or not self._settings.ballast_bytes:
                continue
            file = self._disk.create(name)
            try:
                file.reserve(self._settings.ballast_bytes)
            except StoreFull:
                self._disk.remove(name)
            finally:
                file.close()

    def close_with_checkpoint(self) -> list[Answer]:
        """Everything that is under way happens; gives the answers.

        What is opened next opens faster, and a message that rots meanwhile is set aside then:
        behind the last checkpoint it would keep the store closed.
        """
        answers = self.settle()
        if self._grown or self._uncovered:
            writing, more = self.begin_checkpoint()
            answers += more
            if writing is not None:
                with suppress(StoreFull):  # it opens slower, then
                    writing.run()
        return answers

    def is_wasteful(self) -> bool:
        """Whether more than a quarter of the log is dead, the newest segment aside.

        Segments in which nothing lives do not count: the next checkpoint lets them go. And whether
        a segment has a damaged record: what lives there is better elsewhere, and as long as the
        record is there, no backup can be made.
        """
        segments = self._lasting_segments()
        if self._is_stuck or len(segments) < 2:
            return False
        if segments[0].number <= self._damaged_segment:
            return True
        used = sum(each.used for each in segments)
        living = sum(each.living for each in segments)
        if self.is_short:
            return used - living >= max(DEAD_MIN_BYTES, living // 2)
        return used - living > living // 3 + segments[-1].used

    @property
    def has_much_to_drop(self) -> bool:
        """Whether a checkpoint would let go as much as the log grows between two of them."""
        lasting = self._lasting_segments()[0].number
        dead = sum(each.used for each in self.log.segments() if each.number < lasting)
        return dead >= min(self._growth, CHECKPOINT_MIN_BYTES)

    def _lasting_segments(self) -> list[Segment]:
        """The segments from the first on in which something lives."""
        segments = self.log.segments()
        dead = next((n for n, each in enumerate(segments) if each.living), len(segments) - 1)
        return segments[dead:]

    def relocate_some(self) -> tuple[bool, list[Answer]]:
        """Copies some of what lives in the oldest segment to the end of the log.

        Gives whether there is more to copy, and answers that came on the way. When there is no
        more, the next checkpoint lets the segment go.
        """
        if self._relocation is None:
            self._relocated = self._lasting_segments()[0]
            self._relocation = Relocation(self.engine.state, self._relocated.number)
        if self._relocation.go_on():
            return True, self.perform()
        self._relocation = None
        answers = self.settle()
        # Without room to copy what lives nothing is won; another time.
        self._is_stuck = self._relocated is not None and self._relocated.living > 0
        if self._is_stuck or self._lasting_segments()[0].number > self._damaged_segment:
            self._is_to_be_left = False
        return False, answers
