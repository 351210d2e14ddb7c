"""A world for the store: an application on a simulated disk, and what must hold whatever happens.

The application puts, takes and moves blobs; it keeps checkpoints and drops old segments. The world
remembers every frame that was accepted (`history`) and how many of them the log has called durable
(`certain`). After every crash the store must come back with a prefix of the history that has at
least the certain frames, and with the very state that this prefix adds up to.

Some blobs are forged frames: of one who knows the store's identifier and where in the log the blob
will be, and lacks only the secret.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Literal, NoReturn
from uuid import UUID
from zlib import crc32

from merq.errors import StoreCorrupt, StoreFailed, StoreFull
from merq.store.checkpoints import Checkpoint, Section, write_checkpoint
from merq.store.log import Log, LogSettings, position_of, segment_name
from merq.store.records import Record, pack_frame
from merq.store.recovery import Frame, Identity, Opened, Torn, open_store
from merq.testing.disk import Operation, PowerCut, SimulatedDisk

PUT, TAKE, MOVE = 1, 2, 3
TABLE, CHAIN, FILLER = 1, 2, 3
SETTINGS = LogSettings(segment_size=4096, reserve_step=1024)
OPENINGS_MAX = 12
FRAME_HEADER, RECORD_HEADER = 40, 12
FIRST_DATA = FRAME_HEADER + RECORD_HEADER
FAILING = (Operation.WRITE, Operation.SYNC, Operation.RESERVE, Operation.CREATE,
           Operation.SYNC_FOLDER, Operation.REMOVE)  # fmt: skip
CRASHES: tuple[Literal["power", "kill"], ...] = ("power", "kill")

_KEY = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQI")


class ProcessEnds(Exception):
    """The store has failed; nothing is left but to open it anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A frame that was accepted: what it said and where it is."""

    records: tuple[Record, ...]
    start: int
    end: int
    durable_mark: int


@dataclass(slots=True)
class Application:
    """What the records add up to: a digest of all of them, and where each living blob is."""

    chain: bytes = bytes(32)
    living: dict[int, tuple[int, int]] = field(default_factory=dict)
    sequence: int = 1
    checkpoint: int = 0
    checkpoint_position: int = 0
    replayed: list[Entry] = field(default_factory=list)
    log: Log | None = None

    def restore(self, checkpoint: Checkpoint) -> None:
        assert self.sequence == 1, "a checkpoint comes before all frames"
        sections = {section.kind: section.data for section in checkpoint.sections}
        self.chain = bytes(sections[CHAIN])
        self.living = {key: (at, size) for key, at, size in _ENTRY.iter_unpack(sections[TABLE])}
        self.sequence = checkpoint.next_sequence
        self.checkpoint = checkpoint.number
        self.checkpoint_position = checkpoint.position

    def replay(self, frame: Frame) -> None:
        assert frame.sequence == self.sequence, "each frame comes once and in order"
        found = list(frame.records())
        records = tuple(Record(record.kind, bytes(record.data)) for record in found)
        self.apply(records, tuple(record.position for record in found))
        start, end = frame.position, frame.position + frame.size
        self.replayed.append(
            Entry(records=records, start=start, end=end, durable_mark=frame.durable)
        )

    def apply(self, records: tuple[Record, ...], positions: tuple[int, ...]) -> None:
        self.chain = linked(self.chain, records)
        self.sequence += 1
        for record, position in zip(records, positions, strict=True):
            (key,) = _KEY.unpack_from(record.data)
            old = self.living.pop(key, None)
            if old is not None and self.log is not None:
                self.log.release(*old)
            if record.kind != TAKE:
                self.living[key] = (position, len(record.data))
                if self.log is not None:
                    self.log.keep(*self.living[key])

    def snapshot(self, filler: bytes) -> tuple[Section, ...]:
        table = b"".join(_ENTRY.pack(key, *place) for key, place in self.living.items())
        return (
            Section(TABLE, memoryview(table)),
            Section(CHAIN, self.chain),
            Section(FILLER, bytearray(filler)),
        )


def linked(chain: bytes, records: tuple[Record, ...]) -> bytes:
    """The digest of everything up to and with these records."""
    digest = sha256(chain)
    for kind, data in records:
        digest.update(struct.pack("<BI", kind, len(data)) + data)
    return digest.digest()


class StoreWorld:
    """One application's lives on one disk."""

    def __init__(self, seed: int, *, disk_seed: int | None = None) -> None:
        self.chance = Random(seed)  # noqa: S311
        reserves = self.chance.random() < 0.6
        self.disk = SimulatedDisk(seed if disk_seed is None else disk_seed, reserves=reserves)
        self.identity = Identity(
            store_id=UUID(int=self.chance.getrandbits(128)),
            created=seed,
            secret=self.chance.randbytes(16),
        )
        self.history: list[Entry] = []
        self.certain = 0
        self.in_flight: tuple[Record, ...] | None = None
        self.next_key = 1
        self.log: Log | None = None
        self.application = Application()
        self.torn: Torn | None = None
        self.may_fail = False

    # Opening, and what must hold then.

    def open(self) -> Log:
        """Opens the store, gives it room if it has none, and checks all that came back."""
        for _ in range(OPENINGS_MAX):
            self.disk.lock()
            application = Application()
            try:
                opened = open_store(
                    self.disk, self.identity, application.restore, application.replay, SETTINGS
                )
            except StoreFull:
                assert self.disk.capacity is not None, "a disk without limit is not full"
                self.disk.capacity = None
            except StoreFailed:
                assert self.may_fail, "a disk that did not fail did"
            else:
                self.application, self.log, self.torn = application, opened.log, opened.torn
                application.log = opened.log
                for place in application.living.values():
                    opened.log.keep(*place)
                self._check_opened(opened.log)
                return opened.log
            assert self.disk.open_files == 0, "what was opened is closed after a failure"
            self.disk.unlock()
        raise AssertionError("the store does not open")

    def _check_opened(self, log: Log) -> None:
        count = log.next_sequence - 1
        assert count >= self.certain, f"{self.certain} frames were durable, {count} came back"
        if self.in_flight is not None and count == len(self.history) + 1:
            self.history.append(Entry(records=self.in_flight, start=0, end=0, durable_mark=0))
        assert count <= len(self.history), f"{count} frames of {len(self.history)} came back"
        del self.history[count:]
        self.in_flight = None
        if self.application.replayed:
            expected = [e.records for e in self.history[-len(self.application.replayed) :]]
            assert [e.records for e in self.application.replayed] == expected
            self.history[-len(expected) :] = self.application.replayed
        chain = bytes(32)
        for entry in self.history:
            chain = linked(chain, entry.records)
        assert self.application.chain == chain, "what came back is not what was appended"
        assert self.application.sequence == count + 1
        assert log.durable == log.end
        self.certain = count
        self.check_living()

    def check_living(self) -> None:
        """Every blob that was put and not taken is read as it was."""
        expected: dict[int, bytes] = {}
        for entry in self.history:
            for record in entry.records:
                (key,) = _KEY.unpack_from(record.data)
                expected.pop(key, None)
                if record.kind != TAKE:
                    expected[key] = record.data
        assert self.log is not None
        found = {key: self.log.read(*place) for key, place in self.application.living.items()}
        assert found == expected, "a blob is not what was put"

    # What the application does.

    def step(self, log: Log) -> None:
        """One thing, by chance."""
        luck = self.chance.random()
        if luck < 0.62:
            self.append(log, self.some_records())
        elif luck < 0.80:
            self.sync(log)
        elif luck < 0.88:
            self.checkpoint(log)
        elif luck < 0.93:
            self.compact(log)
        elif luck < 0.96:
            self.disk.capacity = self.disk.used + self.chance.randint(0, 3000)
        elif luck < 0.985:
            self.disk.capacity = None
        else:
            self.may_fail = True
            self.disk.fail_next(self.chance.choice(FAILING), self.chance.randint(0, 3))

    def append(self, log: Log, records: tuple[Record, ...]) -> bool:
        """Appends a frame; False if there was no room."""
        before = log.next_sequence
        self.in_flight = records
        try:
            appended = log.append(records)
        except StoreFull:
            assert log.next_sequence == before
            self.in_flight = None
            self.note(log)
            return False
        except StoreFailed:
            self.refused(log)
        assert appended.sequence == before == len(self.history) + 1
        self.in_flight = None
        start = appended.positions[0] - FIRST_DATA
        segment = self.disk.content(segment_name(start >> 32))
        (mark,) = _KEY.unpack_from(segment, (start & 0xFFFFFFFF) + 16)
        self.history.append(
            Entry(records=records, start=start, end=appended.end, durable_mark=mark)
        )
        self.application.apply(records, appended.positions)
        self.note(log)
        return True

    def sync(self, log: Log) -> None:
        """Makes everything durable."""
        try:
            log.sync()
        except StoreFailed:
            self.refused(log)
        self.note(log)
        assert self.certain == len(self.history)

    def note(self, log: Log) -> None:
        """Holds the log to what it calls durable."""
        durable = log.durable
        while self.certain < len(self.history) and self.history[self.certain].end <= durable:
            self.certain += 1

    def refused(self, log: Log) -> NoReturn:
        """After the disk has failed, and only then, nothing is accepted."""
        assert self.may_fail, "a full disk is no reason to fail"
        self.note(log)
        self.disk.capacity = None
        for refused in (lambda: log.append([Record(1, b"never")]), log.begin_sync, log.sync):
            try:
                refused()
            except StoreFailed:
                continue
            raise AssertionError("the log went on after the disk had failed")
        raise ProcessEnds

    def checkpoint(self, log: Log) -> bool:
        """Writes a checkpoint of everything; False if there was no room."""
        self.sync(log)
        number, position = self.application.checkpoint + 1, log.end
        filler = self.chance.randbytes(self.chance.randint(0, 700))
        checkpoint = Checkpoint(
            number=number,
            position=position,
            next_sequence=log.next_sequence,
            sections=self.application.snapshot(filler),
        )
        if self.chance.random() < 0.5:
            self.disk.before = lambda _, name: self.go_on_meanwhile(log, name)
        try:
            write_checkpoint(self.disk, self.identity.store_id, checkpoint)
        except StoreFull:
            return False
        except StoreFailed:
            assert self.may_fail, "a full disk is no reason to fail"
            raise ProcessEnds from None
        finally:
            self.disk.before = None
        self.application.checkpoint = number
        self.application.checkpoint_position = position
        return True

    def go_on_meanwhile(self, log: Log, name: str) -> None:
        """What another thread does between two operations of who writes a checkpoint."""
        if name.startswith("checkpoints"):
            if self.chance.random() < 0.3:
                self.append(log, self.some_records())
            if self.chance.random() < 0.2:
                self.sync(log)

    def compact(self, log: Log) -> None:
        """Copies what lives in the oldest segments, and drops them after a checkpoint."""
        tail = log.end >> 32
        old = [segment.number for segment in log.segments() if segment.number < tail][:2]
        for _, (position, size) in sorted(self.application.living.items()):
            if position >> 32 in old and not self.append(
                log, (Record(MOVE, log.read(position, size)),)
            ):
                return
        if not self.checkpoint(log):
            return
        for number in old:
            assert next(s.living for s in log.segments() if s.number == number) == 0
            try:
                log.drop(number)
            except StoreFailed:
                self.refused(log)

    def some_records(self) -> tuple[Record, ...]:
        """A frame's worth of blobs put and taken."""
        records = []
        gone: set[int] = set()
        for _ in range(self.chance.choice((1, 1, 1, 2, 5))):
            living = [key for key in self.application.living if key not in gone]
            if living and self.chance.random() < 0.4:
                key = self.chance.choice(living)
                gone.add(key)
                records.append(Record(TAKE, _KEY.pack(key)))
            else:
                records.append(Record(PUT, _KEY.pack(self.next_key) + self.some_blob()))
                self.next_key += 1
        return tuple(records)

    def some_blob(self) -> bytes:
        """Bytes of all kinds: none, few, many, zeros, and some that look like frames."""
        size = self.chance.choice((0, 5, 40, 200, 600, 1500, 1500 + self.chance.randint(0, 4000)))
        match self.chance.randrange(5):
            case 0:
                return bytes(size)
            case 1:
                half = size // 2
                return self.chance.randbytes(size - half) + bytes(half)
            case 2:
                return self.forged_frames() * (size // 64 + 1)
            case _:
                return self.chance.randbytes(size)

    def forged_frames(self) -> bytes:
        """Frames such as this store could write next, if the secret is guessed right."""
        assert self.log is not None
        end = self.log.end
        start = self.chance.choice((end, end, (end >> 32) + 1 << 32 | 64))
        key = self.chance.choice((0, crc32(self.identity.store_id.bytes), 1 << 31))
        # If this is the first record of the next frame, the forged one is where a frame may be.
        filling = bytes(-(FIRST_DATA + _KEY.size) % 8)
        place = start + FIRST_DATA + _KEY.size + len(filling)
        mark = self.chance.choice((place, place, start + 8, 0, 1 << 62))
        sequence = len(self.history) + self.chance.choice((2, 2, 2, 1, -1, 1 << 40))
        forged, _ = pack_frame([Record(PUT, bytes(8))], max(sequence, 1), mark, key, place)
        return filling + forged

    # Lives and deaths.

    def live(self, steps: int) -> None:
        """One life of the process: until it ends, fails or is interrupted."""
        try:
            log = self.open()
            for _ in range(steps):
                self.step(log)
            self.check_living()
        except ProcessEnds:
            pass
        except PowerCut:
            if self.log is not None:
                self.note(self.log)

    def crash(self, kind: Literal["power", "kill"]) -> None:
        """What is left is all there is."""
        self.disk = self.disk.crash(kind)
        self.may_fail = False
        self.log = None

    def close(self) -> None:
        """An orderly end of the process, in which nothing is synced."""
        assert self.log is not None
        self.log.close()
        assert self.disk.open_files == 0, "a closed log has no open files"
        self.disk.unlock()
        self.log = None


def run_seed(seed: int) -> None:
    """Several lives with crashes at any time, opening included; then opened twice."""
    world = StoreWorld(seed)
    chance = Random(seed + 1)  # noqa: S311
    for _ in range(chance.randint(2, 5)):
        if chance.random() < 0.85:
            world.disk.cut_power_in(chance.choice((chance.randint(0, 12), chance.randint(0, 90))))
        world.live(chance.randint(1, 40))
        world.crash(chance.choice(CRASHES))
    world.open()
    before = (world.application.chain, world.application.living)
    world.close()
    world.open()
    assert (world.application.chain, world.application.living) == before
    assert world.torn is None, "what was cut is not cut twice"


def run_everywhere(seed: int, steps: int = 14) -> None:
    """A short script, interrupted at every operation, by power loss and by kill."""
    first = StoreWorld(seed)
    first.live(steps)
    for at in range(first.disk.operations):
        for number, kind in enumerate(CRASHES):
            world = StoreWorld(seed, disk_seed=seed * 1000 + at * 2 + number)
            world.disk.cut_power_in(at)
            world.live(steps)
            world.crash(kind)
            if at % 3 == 0:
                world.disk.cut_power_in(at // 3 % 9)
                world.live(2)
                world.crash("power")
            log = world.open()
            world.append(log, (Record(PUT, _KEY.pack(world.next_key) + b"goes on"),))
            world.sync(log)
            world.crash("power")
            world.open()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What must become of a damaged store: refused there, or so many frames come back."""

    corrupt: tuple[str, int] | None = None
    frames: int = 0


def run_damage(seed: int, flips: int = 12) -> None:
    """A store whose bits are flipped afterwards, one at a time: noticed, or harmless."""
    world = StoreWorld(seed)
    world.chance = chance = Random(seed + 2)  # noqa: S311
    world.disk.capacity = None
    log = world.open()
    for _ in range(chance.randint(3, 30)):
        luck = chance.random()
        if luck < 0.7:
            world.append(log, world.some_records())
        elif luck < 0.9:
            world.sync(log)
        elif luck < 0.96:
            world.checkpoint(log)
        else:
            world.compact(log)
    end = log.end
    world.close()
    whole = world.disk
    for _ in range(flips):
        world.disk = whole.snapshot()
        names = [name for name in world.disk.files() if world.disk.content(name)]
        newest = [name for name in names if name.startswith("checkpoints/")][-1:]
        name = chance.choice([n for n in names if n.startswith(("log/", "identity"))] + newest)
        offset = chance.randrange(len(world.disk.content(name)))
        if name.startswith("log/") and chance.random() < 0.3:
            offset = chance.randrange(min(64 + FIRST_DATA, len(world.disk.content(name))))
        world.disk.damage(name, offset, 1 << chance.randrange(8))
        check_damaged(world, name, offset, end)


def check_damaged(world: StoreWorld, name: str, offset: int, end: int) -> None:
    """Opens a damaged store and compares with what must come of it."""
    expected = expectation(world, name, offset, end)
    application = Application()
    opened = opened_or_refused(world, application)
    if isinstance(opened, StoreCorrupt):
        assert expected.corrupt is not None, f"{name} at {offset} is harmless, yet: {opened}"
        assert opened.file == expected.corrupt[0], f"{opened} instead of {expected}"
        if expected.corrupt[1] >= 0:
            assert opened.offset == expected.corrupt[1], f"{opened} instead of {expected}"
        assert world.disk.open_files == 0
        return
    assert expected.corrupt is None, f"{name} at {offset} was not noticed"
    assert opened.log.next_sequence - 1 == expected.frames
    chain = bytes(32)
    for entry in world.history[: expected.frames]:
        chain = linked(chain, entry.records)
    assert application.chain == chain
    check_reading(opened.log, application, name, offset)
    if expected.frames < len(world.history):
        assert opened.torn is not None, "frames are gone and nobody says so"


def check_reading(log: Log, application: Application, name: str, offset: int) -> None:
    """What lies before the checkpoint is met when it is read: a blob that is damaged is refused."""
    for position, size in application.living.values():
        place = position & 0xFFFFFFFF
        # The kind of a record is after its size and checksum, and is not what is read.
        counts = [*range(place - RECORD_HEADER, place - 4), *range(place, place + size)]
        is_damaged = name == segment_name(position >> 32) and offset in counts
        refusal = read_or_refused(log, position, size)
        if refusal is None:
            assert not is_damaged, f"{name} at {offset} was not noticed"
        else:
            assert is_damaged, f"{name} at {offset} is harmless, yet: {refusal}"
            assert (refusal.file, refusal.offset) == (name, place)


def read_or_refused(log: Log, position: int, size: int) -> StoreCorrupt | None:
    """None if the blob was read, or why not."""
    try:
        log.read(position, size)
    except StoreCorrupt as wrong:
        return wrong
    return None


def opened_or_refused(world: StoreWorld, application: Application) -> Opened | StoreCorrupt:
    """The store, or why it is refused."""
    try:
        return open_store(
            world.disk, world.identity, application.restore, application.replay, SETTINGS
        )
    except StoreCorrupt as wrong:
        return wrong


def expectation(world: StoreWorld, name: str, offset: int, end: int) -> Expectation:
    """Worked out from what was appended, not from what recovery does."""
    everything = Expectation(frames=len(world.history))
    if name.startswith("checkpoints/") and segment_name(1) in world.disk.files():
        return everything  # the log before it is all there, and is read instead
    if not name.startswith("log/"):
        return Expectation(corrupt=(name, -1))
    number = int(name[4:20], 16)
    place = position_of(number, offset)
    is_tail = number == end >> 32
    start = world.application.checkpoint_position
    if offset < 64:
        holds_nothing = is_tail and end == position_of(number, 64) and start >> 32 < number
        return everything if holds_nothing else Expectation(corrupt=(name, 0))
    if place < start:
        return everything  # contained in the checkpoint, and not read again
    for index, entry in enumerate(world.history):
        if entry.start <= place < entry.end:
            size = FRAME_HEADER + sum(RECORD_HEADER + len(r.data) for r in entry.records)
            if place >= entry.start + size:
                return everything  # the filling, which says nothing
            shown = not is_tail or any(
                later.durable_mark > entry.start for later in world.history[index + 1 :]
            )
            if shown:
                return Expectation(corrupt=(name, entry.start & 0xFFFFFFFF))
            return Expectation(frames=index)
    return everything if is_tail else Expectation(corrupt=(name, -1))
