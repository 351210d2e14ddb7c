"""A disk in memory that tears, forgets and fills up.

`SimulatedDisk` implements `merq.store.disk.Disk`, and the files it gives implement `LogFile`. It
promises what POSIX promises, decided by a seed where that is nothing:

* A write goes to an image in memory. `sync` of the same file makes it durable. When the power goes,
  each sector of every unsynced write survives, is lost or is torn, and each unsynced change of the
  file's size has happened or has not.
* A name becomes durable by `sync_folder`; until then each creation, renaming and removal may have
  happened or not, whatever became of the others.
* A process that is killed leaves the image as it is: all that was written is there, and still not
  durable.
* A sync that failed has forgotten what it should have written: the image shows it, later syncs do
  not make it durable, and only writing it again does.

Reading fails only if it was told to, and bytes that were durable stay as they are unless `damage`
alters them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from random import Random
from threading import RLock
from typing import Final, Literal

from merq.errors import StoreFailed, StoreFull, StoreInUse
from merq.store.disk import Buffer, LogFile

SECTOR_SIZE: Final = 512
"""What a disk writes at once; several are written in any order."""
ROOM_WITHOUT_LIMIT: Final = 1 << 40
"""What `free_bytes` says of a disk without a capacity."""


class PowerCut(BaseException):
    """The power went, or the process was killed, in the middle of an operation.

    It is not an `Exception`, so that nothing but the test handles it.
    """


class Operation(StrEnum):
    """What changes a disk, and can be interrupted or fail; reading can only fail."""

    CREATE = auto()
    RENAME = auto()
    REMOVE = auto()
    SYNC_FOLDER = auto()
    WRITE = auto()
    RESERVE = auto()
    TRUNCATE = auto()
    SYNC = auto()
    READ = auto()


class _Course(Enum):
    """How an operation goes."""

    WELL = auto()
    FAILING = auto()
    CUT = auto()


class _Standing(Enum):
    """What has become of a change that is not folded into the durable bytes yet."""

    PENDING = auto()
    DURABLE = auto()
    FORGOTTEN = auto()


@dataclass(slots=True)
class _Change:
    """A change of one file: a write at `place`, or a new size `place`."""

    operation: Operation
    place: int
    data: bytes = b""
    standing: _Standing = _Standing.PENDING

    def apply(self, to: bytearray) -> None:
        if self.operation is Operation.WRITE:
            _grow(to, self.place + len(self.data))
            to[self.place : self.place + len(self.data)] = self.data
        elif self.operation is Operation.TRUNCATE:
            _grow(to, self.place)
            del to[self.place :]
        else:
            _grow(to, self.place)

    def apply_perhaps(self, to: bytearray, chance: Random) -> None:
        """What the power left of it."""
        luck = chance.random()
        if luck < 0.2:
            self.apply(to)
        elif luck > 0.4 and self.operation is Operation.WRITE:
            self._tear(to, chance)

    def _tear(self, to: bytearray, chance: Random) -> None:
        end = self.place + len(self.data)
        if end > len(to):
            # The file's size is written apart from its data: zeros may have taken their place.
            _grow(to, chance.choice((len(to), end, chance.randint(len(to), end))))
        at = self.place
        while at < end:
            border = min(end, at - at % SECTOR_SIZE + SECTOR_SIZE)
            new = self.data[at - self.place : border - self.place]
            old = bytes(to[at:border])
            new = new[: len(old)]
            match chance.randrange(4):
                case 0 | 1:
                    to[at : at + len(old)] = new
                case 2:
                    cut = chance.randint(0, len(old))
                    mixed = (
                        new[:cut] + old[cut:] if chance.random() < 0.7 else old[:cut] + new[cut:]
                    )
                    to[at : at + len(old)] = mixed
                case _:
                    pass
            at = border


@dataclass(slots=True, eq=False)
class _Node:
    """What a name stands for: bytes that are durable, bytes as they are seen, and the way."""

    durable: bytearray = field(default_factory=bytearray)
    image: bytearray = field(default_factory=bytearray)
    changes: list[_Change] = field(default_factory=list)

    def change(self, change: _Change) -> None:
        self.changes.append(change)
        change.apply(self.image)

    def sync(self) -> None:
        for change in self.changes:
            if change.standing is _Standing.PENDING:
                change.standing = _Standing.DURABLE
        # What comes after a forgotten change cannot be folded before that one is decided.
        while self.changes and self.changes[0].standing is _Standing.DURABLE:
            self.changes.pop(0).apply(self.durable)

    def forget(self) -> None:
        for change in self.changes:
            if change.standing is _Standing.PENDING:
                change.standing = _Standing.FORGOTTEN

    def after_power_loss(self, chance: Random) -> _Node:
        data = bytearray(self.durable)
        for change in self.changes:
            if change.standing is _Standing.DURABLE:
                change.apply(data)
            else:
                change.apply_perhaps(data, chance)
        return _Node(durable=data, image=bytearray(data))

    def copy(self) -> _Node:
        changes = [_Change(c.operation, c.place, c.data, c.standing) for c in self.changes]
        return _Node(bytearray(self.durable), bytearray(self.image), changes)


@dataclass(frozen=True, slots=True, eq=False)
class _Naming:
    """A change of one folder: `name` appears for `node`, disappears, or takes over from `old`."""

    operation: Operation
    name: str
    node: _Node
    old: str = ""

    def apply(self, to: dict[str, _Node]) -> None:
        if self.operation is Operation.REMOVE:
            to.pop(self.name, None)
            return
        to[self.name] = self.node
        if self.old and to.get(self.old) is self.node:
            del to[self.old]


@dataclass(slots=True)
class _Machine:
    """The one computer that all processes with this disk run on."""

    chance: Random
    capacity: int | None
    reserves: bool
    names: dict[str, _Node] = field(default_factory=dict)
    durable_names: dict[str, _Node] = field(default_factory=dict)
    namings: list[_Naming] = field(default_factory=list)
    folders: set[str] = field(default_factory=lambda: {"."})
    holder: SimulatedDisk | None = None
    off: bool = False
    operations: int = 0
    cut_at: int | None = None
    full_at: int | None = None
    failing: dict[Operation, int] = field(default_factory=dict)
    open_files: int = 0
    turn: RLock = field(default_factory=RLock)

    def begin(self, operation: Operation) -> _Course:
        """Counts the operation and decides how it goes."""
        self.check()
        number = self.operations
        self.operations += 1
        if self.cut_at is not None and number >= self.cut_at:
            self.off = True
            return _Course.CUT
        if operation in self.failing:
            self.failing[operation] -= 1
            if self.failing[operation] < 0:
                del self.failing[operation]
                return _Course.FAILING
        return _Course.WELL

    def read(self, doing: str) -> None:
        """Reading changes nothing, so it is not counted; it fails only if it was told to."""
        if Operation.READ in self.failing:
            self.failing[Operation.READ] -= 1
            if self.failing[Operation.READ] < 0:
                del self.failing[Operation.READ]
                raise StoreFailed(f"{doing}: the simulated disk was told to fail")

    def happens(self, course: _Course) -> bool:
        """Whether an operation that is done or not is done."""
        return course is _Course.WELL or self.chance.random() < 0.5

    def end(self, course: _Course, doing: str) -> None:
        """Says how the operation went."""
        if course is _Course.CUT:
            raise PowerCut(doing)
        if course is _Course.FAILING:
            raise StoreFailed(f"{doing}: the simulated disk was told to fail")

    def check(self) -> None:
        if self.off:
            raise PowerCut("the machine is off")

    @property
    def is_filled_up(self) -> bool:
        """Whether others have taken all room since some operation: no name fits in either."""
        return self.full_at is not None and self.operations > self.full_at

    def used(self) -> int:
        return sum(len(node.image) for node in self.names.values())

    def room(self) -> int:
        if self.is_filled_up:
            return 0
        if self.capacity is None:
            return ROOM_WITHOUT_LIMIT
        return max(0, self.capacity - self.used())


class _SimulatedFile:
    """A file of a simulated disk."""

    def __init__(self, disk: SimulatedDisk, machine: _Machine, node: _Node, name: str) -> None:
        self._disk = disk
        self._machine = machine
        self._node = node
        self._name = name
        self._open = True
        machine.open_files += 1

    def write(self, offset: int, data: Buffer) -> None:
        machine = self._begin(Operation.WRITE)
        with machine.turn:
            course = machine.begin(Operation.WRITE)
            lacking = offset + len(data) - len(self._node.image) - machine.room()
            fitting = len(data) - max(0, lacking)
            size = len(data)
            if course is not _Course.WELL or fitting < size:
                size = machine.chance.randint(0, max(0, fitting))
            if size:
                self._node.change(_Change(Operation.WRITE, offset, bytes(data[:size])))
            machine.end(course, f"writing {self._name} at {offset}")
            if fitting < len(data):
                raise StoreFull(f"writing {self._name} at {offset}: the simulated disk is full")

    def reserve(self, size: int) -> None:
        if not self._machine.reserves:
            return
        machine = self._begin(Operation.RESERVE)
        with machine.turn:
            course = machine.begin(Operation.RESERVE)
            fitting = len(self._node.image) + machine.room()
            kept = size
            if course is not _Course.WELL or fitting < size:
                kept = machine.chance.randint(0, min(fitting, size))
            if kept > len(self._node.image):
                self._node.change(_Change(Operation.RESERVE, kept))
            machine.end(course, f"reserving {size} bytes for {self._name}")
            if fitting < size:
                raise StoreFull(f"reserving {size} bytes for {self._name}: no room")

    def read(self, offset: int, size: int) -> bytes:
        with self._machine.turn:
            self._check()
            self._machine.read(f"reading {self._name} at {offset}")
            return bytes(self._node.image[offset : offset + size])

    def sync(self) -> None:
        machine = self._begin(Operation.SYNC)
        with machine.turn:
            course = machine.begin(Operation.SYNC)
            if course is _Course.FAILING:
                self._node.forget()
            elif machine.happens(course):
                self._node.sync()
            machine.end(course, f"making {self._name} durable")

    def truncate(self, size: int) -> None:
        machine = self._begin(Operation.TRUNCATE)
        with machine.turn:
            course = machine.begin(Operation.TRUNCATE)
            if machine.happens(course):
                self._node.change(_Change(Operation.TRUNCATE, size))
            machine.end(course, f"cutting {self._name} at {size}")

    def size(self) -> int:
        with self._machine.turn:
            self._check()
            return len(self._node.image)

    def close(self) -> None:
        with self._machine.turn:
            if self._open:
                self._open = False
                self._machine.open_files -= 1

    def _begin(self, operation: Operation) -> _Machine:
        self._check()
        self._disk.announce(operation, self._name)
        return self._machine

    def _check(self) -> None:
        assert self._open, f"{self._name} was closed before"
        self._machine.check()


class SimulatedDisk:
    """A folder on a simulated machine, as one process has it.

    Args:
        seed: Decides everything that is left to chance.
        capacity: How many bytes the files may have together; None for no limit.
        reserves: Whether room can be reserved; False for a file system that cannot, where a disk
            that is full is noticed by writing.

    Attributes:
        before: Called before each operation with what it is and the file's or folder's name, in
            the thread that does it; it may wait.
    """

    def __init__(
        self, seed: int = 0, *, capacity: int | None = None, reserves: bool = True
    ) -> None:
        self._machine = _Machine(chance=Random(seed), capacity=capacity, reserves=reserves)  # noqa: S311
        self.before: Callable[[Operation, str], None] | None = None

    # What may go wrong.

    @property
    def capacity(self) -> int | None:
        """How many bytes the files may have together; may be altered at any time."""
        return self._machine.capacity

    @capacity.setter
    def capacity(self, size: int | None) -> None:
        self._machine.capacity = size

    @property
    def is_limited(self) -> bool:
        """Whether there is a capacity, or others fill the disk."""
        return self._machine.capacity is not None or self._machine.full_at is not None

    @property
    def used(self) -> int:
        """How many bytes the files have together."""
        return self._machine.used()

    @property
    def operations(self) -> int:
        """How many operations there were since the machine was started."""
        return self._machine.operations

    @property
    def open_files(self) -> int:
        """How many files were opened and not closed."""
        return self._machine.open_files

    def cut_power_in(self, operations: int) -> None:
        """Raises PowerCut in the operation that comes after so many, and from then on."""
        self._machine.cut_at = self._machine.operations + operations

    def fill_up_in(self, operations: int) -> None:
        """From the operation on that comes after so many there is no room, not for a name either.

        Room that was reserved is there, and room that is given back goes to others.
        """
        self._machine.full_at = self._machine.operations + operations

    def make_room(self) -> None:
        """Takes `fill_up_in` back."""
        self._machine.full_at = None

    def keep_power(self) -> None:
        """Takes `cut_power_in` back."""
        self._machine.cut_at = None

    def fail_next(self, operation: Operation, after: int = 0) -> None:
        """Raises StoreFailed once, when this operation is asked for after so many good ones.

        A write may have happened in part; what a failed sync should have written is forgotten.
        """
        self._machine.failing[operation] = after

    def crash(self, kind: Literal["power", "kill"] = "power") -> SimulatedDisk:
        """The disk after the machine lost power, or after its processes were killed.

        The disk that crashes is off from then on.
        """
        self._machine.off = True
        return self._copied(kind)

    def snapshot(self) -> SimulatedDisk:
        """Another machine with a disk that is the same in every byte, synced or not."""
        return self._copied("kill")

    def another_process(self) -> SimulatedDisk:
        """The same folder as another process on this machine has it."""
        other = SimulatedDisk()
        other._machine = self._machine
        return other

    def files(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(self._machine.names)

    def content(self, name: str) -> bytes:
        """What is seen of a file."""
        return bytes(self._machine.names[name].image)

    def damage(self, name: str, offset: int, mask: int = 1) -> None:
        """Flips the bits of `mask` in a byte, as a failing disk may, after all of it was synced."""
        node = self._machine.names[name]
        node.image[offset] ^= mask
        node.durable[:] = node.image
        node.changes.clear()

    # What the store sees.

    def lock(self) -> None:
        """Takes the folder for this process, or raises StoreInUse."""
        with self._machine.turn:
            self._machine.check()
            if self._machine.holder is not None:
                raise StoreInUse("the simulated disk is open in another process")
            self._machine.holder = self

    def unlock(self) -> None:
        """Gives the folder back."""
        with self._machine.turn:
            if self._machine.holder is self:
                self._machine.holder = None

    def create(self, name: str) -> LogFile:
        """A new file, in a folder made if it is not there."""
        machine = self.announce(Operation.CREATE, name)
        with machine.turn:
            course = machine.begin(Operation.CREATE)
            if course is _Course.WELL and machine.is_filled_up:
                raise StoreFull(f"opening {name}: the simulated disk is full")
            if name in machine.names:
                raise StoreFailed(f"opening {name}: it exists")
            node = _Node()
            if machine.happens(course):
                self._name(_Naming(Operation.CREATE, name, node))
            machine.end(course, f"opening {name}")
            return _SimulatedFile(self, machine, node, name)

    def open(self, name: str) -> LogFile:
        """A file that exists."""
        with self._machine.turn:
            self._machine.check()
            return _SimulatedFile(self, self._machine, self._found(name), name)

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        self._machine.check()
        return name in self._machine.names

    def names(self, folder: str) -> list[str]:
        """The files in a folder, sorted."""
        self._machine.check()
        with self._machine.turn:
            names = list(self._machine.names)
        return sorted(name.rpartition("/")[2] for name in names if _folder_of(name) == folder)

    def rename(self, name: str, new_name: str) -> None:
        """Gives a file another name."""
        machine = self.announce(Operation.RENAME, name)
        with machine.turn:
            course = machine.begin(Operation.RENAME)
            if course is _Course.WELL and machine.is_filled_up:
                raise StoreFull(f"renaming {name} to {new_name}: the simulated disk is full")
            node = self._found(name)
            if machine.happens(course):
                self._name(_Naming(Operation.RENAME, new_name, node, old=name))
            machine.end(course, f"renaming {name} to {new_name}")

    def remove(self, name: str) -> None:
        """Removes a file; who has it open keeps it."""
        machine = self.announce(Operation.REMOVE, name)
        with machine.turn:
            course = machine.begin(Operation.REMOVE)
            node = self._found(name)
            if machine.happens(course):
                self._name(_Naming(Operation.REMOVE, name, node))
            machine.end(course, f"removing {name}")

    def sync_folder(self, folder: str) -> None:
        """Makes the folder's names durable."""
        machine = self.announce(Operation.SYNC_FOLDER, folder)
        with machine.turn:
            course = machine.begin(Operation.SYNC_FOLDER)
            if folder not in machine.folders:
                raise StoreFailed(f"making {folder} durable: there is no such folder")
            if course is not _Course.FAILING and machine.happens(course):
                for naming in [n for n in machine.namings if _folder_of(n.name) == folder]:
                    naming.apply(machine.durable_names)
                    machine.namings.remove(naming)
            machine.end(course, f"making {folder} durable")

    def free_bytes(self) -> int:
        """How many bytes the capacity leaves; room that was reserved is used."""
        with self._machine.turn:
            return self._machine.room()

    def total_bytes(self) -> int:
        """The capacity, if there is one."""
        return self._machine.capacity or ROOM_WITHOUT_LIMIT

    def announce(self, operation: Operation, name: str) -> _Machine:
        """Calls `before`; the machine's turn is not held, so that others may go on."""
        self._machine.check()
        if self.before is not None:
            self.before(operation, name)
        return self._machine

    def _found(self, name: str) -> _Node:
        if name not in self._machine.names:
            raise StoreFailed(f"opening {name}: there is no such file")
        return self._machine.names[name]

    def _name(self, naming: _Naming) -> None:
        self._machine.namings.append(naming)
        self._machine.folders.add(_folder_of(naming.name))
        naming.apply(self._machine.names)

    def _copied(self, kind: Literal["power", "kill"]) -> SimulatedDisk:
        old = self._machine
        disk = SimulatedDisk(
            old.chance.getrandbits(64), capacity=old.capacity, reserves=old.reserves
        )
        new = disk._machine
        copies: dict[int, _Node] = {}

        def copy(node: _Node) -> _Node:
            if id(node) not in copies:
                lost = kind == "power"
                copies[id(node)] = node.after_power_loss(old.chance) if lost else node.copy()
            return copies[id(node)]

        new.durable_names = {name: copy(node) for name, node in old.durable_names.items()}
        if kind == "kill":
            new.names = {name: copy(node) for name, node in old.names.items()}
            new.namings = [_Naming(n.operation, n.name, copy(n.node), n.old) for n in old.namings]
            new.folders = set(old.folders)
            return disk
        for naming in old.namings:
            if old.chance.random() < 0.5:
                survivor = _Naming(naming.operation, naming.name, copy(naming.node), naming.old)
                survivor.apply(new.durable_names)
        new.names = dict(new.durable_names)
        new.folders |= {_folder_of(name) for name in new.names}
        return disk


def _grow(data: bytearray, size: int) -> None:
    if size > len(data):
        data.extend(bytes(size - len(data)))


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0] or "."
