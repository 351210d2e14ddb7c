"""What the queue manager holds: queues, messages, transactions, and where each is found.

Only `merq.engine.state`, whose part this is, and the reading of the log alter it.
"""

from __future__ import annotations

import struct
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Final
from uuid import UUID

from merq.engine.aside_messages import AsideMessages
from merq.engine.claims import Claim, unpack_point, unpack_range
from merq.engine.expiry import Expiries
from merq.engine.history import Recent, identity_of
from merq.engine.identifiers import MessageIds
from merq.engine.incoming import Incoming, Sequences
from merq.engine.limits import Limits
from merq.engine.network_share import NetworkShare, foreign_sizes
from merq.engine.numbers import Numbers
from merq.engine.ports import PacketSource
from merq.engine.positions import AVAILABLE, LOCKED, NEVER, PURGE_PENDING, Place
from merq.engine.queue import NO_NOTE, Note, Queue
from merq.engine.records import read_note
from merq.engine.rows import Columns, Rows
from merq.engine.runs import Positions, by_arrival
from merq.engine.source_numbers import SourceNumbers
from merq.engine.work import Sending, Transaction
from merq.errors import StoreError
from merq.model.delivered import Delivered
from merq.model.names import LOCAL_COMPUTER, FormatName, PathName
from merq.model.network_table import NetworkTable
from merq.model.queue import QueueKind, QueueProperties
from merq.wire.headers import INFINITE
from merq.wire.view import MessageView

MEMORY: Final = 1 << 63
"""Set in the location of a packet that is not in the store: express messages."""

WRITERS_MAX: Final = 10_000
"""Writers of whom it is remembered which batch they published last."""

STAGE_NUMBER_FIRST: Final = 0x60000000
STAGE_NUMBER_END: Final = 0x80000000
"""Stages are numbered from here up to here: who was given one, and wakes up late, must not write
into another's."""

NUMBERED: Final = (QueueKind.PRIVATE, QueueKind.SUBQUEUE, QueueKind.OUTGOING, QueueKind.STAGE)
"""Queues that get the next number of their kind."""

_TRANSACTION: Final = 1 << 20
"""[MS-MQMQ] 2.2.19.2: set in UserHeader.Flags if there is a TransactionHeader."""

_U32: Final = struct.Struct("<I")


class Holdings:
    """The queue manager's memory.

    Attributes:
        aside: What was set aside and is to be kept for a person, until the driver takes it.
    """

    def __init__(self, guid: UUID, name: str, packets: PacketSource, limits: Limits) -> None:
        self.guid = guid
        self.source = guid.bytes_le
        self.name = name
        self.aliases = frozenset({LOCAL_COMPUTER, "localhost", "127.0.0.1", "::1", name.lower()})
        self.limits = limits
        self.now = 0
        self.low_on_disk = False
        self.low_on_memory = False
        self.network_low_on_disk = False
        self.connection_active = True
        self.queues: dict[int, Queue] = {}
        self.transactions: dict[int, Transaction] = {}
        self.transaction_count = 0
        self.numbers = Numbers()
        self.expiries = Expiries()
        self.awake: list[Queue] = []
        self.overdue: list[tuple[Queue, int]] = []
        self.outbound: dict[Queue, None] = {}
        self.sequences = Sequences()
        self.recent = Recent()
        self.last_sequence_id = 0
        self.secret = b""  # chance for identifiers of sequences
        self.known_places: dict[UUID, UUID] = {}
        self.known_managers: frozenset[bytes] = frozenset()  # those that the settings name
        # Outgoing queues that others' messages had us make, by their names.
        self.order_queues: NetworkTable[str] = NetworkTable()
        self.admin_queues: NetworkTable[str] = NetworkTable()
        self.base_priorities: dict[UUID, int] = {}
        self.sends_insecure_nacks = False
        self.sends_reports = True
        self.acknowledgment_lifetime_s = INFINITE
        self.may_call: Callable[[FormatName], bool] = lambda _: True  # because of others' messages
        self.taken_bytes = 0
        self.memory_bytes = 0
        self.network = NetworkShare()
        self.network_memory = NetworkShare()
        self._quota_bytes = limits.quota_bytes
        self.last_numbers: dict[QueueKind, int] = {}
        self.published: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._paths: dict[PathName, Queue] = {}
        self._identifiers: dict[UUID, Queue] = {}
        self._destinations: dict[str, Queue] = {}
        self._packets = packets
        self._memory: dict[int, tuple[int, bytes]] = {}
        self._memory_count = 0
        self.sources = SourceNumbers()
        self.aside = AsideMessages()

    def answer_to(self, names: Iterable[str]) -> None:
        """This queue manager is known by these names and addresses too."""
        self.aliases |= {each.lower() for each in names}

    def be(self, guid: UUID) -> None:
        """Takes the identifier that the store has."""
        self.guid = guid
        self.source = guid.bytes_le

    @property
    def throttled(self) -> bool:
        """[MS-MQDMPR] 3.1.1.1: whether disk or memory runs low and no message is taken."""
        return self.low_on_disk or self.low_on_memory

    def key_of(self, message_id: bytes) -> int:
        """A message id as a number: the ordinal, and which queue manager it is from."""
        return self.source_key(message_id[:16]) | int.from_bytes(message_id[16:], "little")

    def source_key(self, source: bytes) -> int:
        """The part of that number that says which queue manager it is."""
        return self.sources.number_of(source) << 32

    def forget_sources(self) -> None:
        """Queue managers of which no message is here have no number any more.

        No change may be under way: what is planned has its number already.
        """
        used = {each for queue in self.queues.values() for each in queue.by_message_id.sources()}
        self.sources.keep(used | {self.sources.get(self.source, 0)})

    def known_key_of(self, message_id: bytes) -> int | None:
        """The same, or None if no message of that queue manager was ever here."""
        return self.key_of(message_id) if message_id[:16] in self.sources else None

    # Messages and queues.

    def hold(self, transaction: Transaction) -> None:
        """What a prepared transaction is about belongs to it until it ends."""
        for operation in transaction.operations:
            if isinstance(operation, Sending):
                self.stage(operation.queue, operation.size)
            else:
                queue, lookup_id = operation.queue, operation.lookup_id
                purged = queue.notes.get(lookup_id, NO_NOTE).purged
                queue.positions.set_state(lookup_id, PURGE_PENDING if purged else LOCKED)

    def stage(self, queue: Queue, size: int) -> None:
        """Room in a queue is taken for a message on its way into it."""
        queue.staged_bytes += size
        self.taken_bytes += size

    def unstage(self, queue: Queue, size: int) -> None:
        """Room that was taken is free again."""
        queue.staged_bytes -= size
        self.taken_bytes -= size

    def give_back(self, queue: Queue, lookup_id: int) -> None:
        """A message that somebody held is available again, unless its time is over."""
        queue.positions.set_state(lookup_id, AVAILABLE)
        if lookup_id in queue.expired:
            place = queue.positions.get(lookup_id)
            assert place is not None
            self._watch_again(queue, place)
        self.awake.append(queue)
        if queue.transfer is not None:
            self.outbound[queue] = None

    def give_back_all(self, queue: Queue, lookup_ids: Sequence[int]) -> None:
        """The same for many of which none has had its time."""
        queue.positions.reopen(lookup_ids)
        self.awake.append(queue)
        if queue.transfer is not None:
            self.outbound[queue] = None

    def _watch_again(self, queue: Queue, place: Place) -> None:
        queue.expired.discard(place.lookup_id)
        self.expiries.add(place.expires, queue.number, place.lookup_id)

    def insert(
        self,
        queue: Queue,
        lookup_id: int,
        location: int,
        packet: bytes | memoryview,
        *,
        kept: bool = False,
    ) -> None:
        """Gives a message its place, by which it can be found; a copy that is kept stays."""
        source = bytes(packet[16:32])
        key = self.sources.number_of(source) << 32 | _U32.unpack_from(packet, 56)[0]
        expires = NEVER if kept else queue.expiry_of(packet)
        queue.positions.append(lookup_id, location, len(packet), expires, key)
        if source != self.source:
            self.network.total_bytes += len(packet)
            if location & MEMORY:
                self.network_memory.total_bytes += len(packet)
        queue.by_message_id.add(key, lookup_id)
        if expires != NEVER and queue.properties.kind is not QueueKind.STAGE:
            self.expiries.add(expires, queue.number, lookup_id)
            if expires < self.now:
                self._withhold(queue, lookup_id, expires)
        if queue.transfer is not None:
            self.outbound[queue] = None
        if queue.waiting:
            self.awake.append(queue)

    def _withhold(self, queue: Queue, lookup_id: int, expires: int) -> None:
        """A message comes into its queue when its time is over already: nobody is to get it.

        One that waits to be sent stays as it is: only what is not over is transmitted, and what
        another queue manager put in order is for its destination to decide.
        """
        self.expiries.remove(expires, queue.number, lookup_id)
        queue.expired.add(lookup_id)
        if queue.transfer is None:
            queue.positions.set_state(lookup_id, PURGE_PENDING)
        self.overdue.append((queue, lookup_id))

    def withhold_overdue(
        self, queue: Queue, expiries: Sequence[int], lookup_ids: Sequence[int]
    ) -> None:
        """Like `_withhold`, for those of many whose time is over."""
        if min(expiries) < self.now:
            for lookup_id, expires in zip(lookup_ids, expiries, strict=True):
                if expires < self.now:
                    self._withhold(queue, lookup_id, expires)

    def remove(self, queue: Queue, lookup_id: int) -> None:
        """A message is gone."""
        place = self._take_out(queue, lookup_id)
        queue.notes.pop(lookup_id, None)
        if queue.transfer is not None:
            queue.transfer.awaiting_final.discard(lookup_id)
            self.outbound[queue] = None  # somebody may have held it, with all behind it
        self.taken_bytes -= place.size
        number = place.key >> 32
        if number != self.sources.get(self.source):
            self._network_left(number, place.size, place.location)
        self._release(place.location, place.size)

    def _network_left(self, number: int, size: int, location: int) -> None:
        """A message of another queue manager is gone."""
        self.network.remove(number, size)
        if location & MEMORY:
            self.network_memory.remove(number, size)

    def network_came(
        self, keys: Sequence[int], sizes: Sequence[int], *, in_memory: bool = False
    ) -> None:
        """Messages are here, some of them perhaps of other queue managers."""
        size = sum(foreign_sizes(keys, sizes, self.sources.get(self.source)))
        self.network.total_bytes += size
        if in_memory:
            self.network_memory.total_bytes += size

    def _release(self, location: int, size: int) -> None:
        if location & MEMORY:
            del self._memory[location]
            self.memory_bytes -= size
        else:
            self._packets.release(location, size)

    def remove_many(self, queue: Queue, lookup_ids: Sequence[int]) -> None:
        """Messages are gone; those that lie one behind the other go at once."""
        at = 0
        while at < len(lookup_ids):
            taken = self._remove_run(queue, lookup_ids, at)
            if not taken:
                self.remove(queue, lookup_ids[at])
            at += taken or 1

    def _remove_run(self, queue: Queue, lookup_ids: Sequence[int], at: int) -> int:
        """Takes out neighbours, if there are some; gives how many."""
        run = queue.positions.remove_run(lookup_ids, at)
        if run is None:
            return 0
        count = len(run.ids)
        queue.left += count
        queue.by_message_id.remove_many(run.keys, run.ids)
        if queue.notes:
            for lookup_id in run.ids:
                queue.notes.pop(lookup_id, None)
        if queue.held:
            for lookup_id in run.ids:
                queue.held.pop(lookup_id, None)
        if min(run.expiries) != NEVER:
            self._forget_expiries(queue, run)
        size = sum(run.sizes)
        self.taken_bytes -= size
        self._network_run_left(run, size)
        self._release_all(run.locations, run.sizes, size)
        if queue.transfer is not None:
            queue.transfer.awaiting_final.difference_update(run.ids)
            self.outbound[queue] = None
        return count

    def _network_run_left(self, run: Columns, size: int) -> None:
        """The same as `_network_left` for many, some of which may be of this queue manager."""
        if not self.network.total_bytes:
            return
        own = self.sources.get(self.source)
        number = min(run.keys) >> 32
        is_plain = not max(run.locations) & MEMORY or min(run.locations) & MEMORY
        if number == max(run.keys) >> 32 and is_plain:
            if number != own:
                self._network_left(number, size, run.locations[0])
            return
        for key, each, location in zip(run.keys, run.sizes, run.locations, strict=True):
            if key >> 32 != own:
                self._network_left(key >> 32, each, location)

    def _forget_expiries(self, queue: Queue, run: Columns) -> None:
        """Messages of which some were to expire are gone; those that have are not waited for."""
        expiries, ids = run.expiries, run.ids
        over = queue.expired.intersection(ids) if queue.expired else None
        if over:
            queue.expired -= over
            waiting = [lookup_id not in over for lookup_id in ids]
            expiries = array("I", compress(expiries, waiting))
            ids = array("Q", compress(ids, waiting))
        self.expiries.remove_many(expiries, queue.number, ids, NEVER)

    def _release_all(self, locations: array[int], sizes: array[int], size: int) -> None:
        """Packets, some at least, are needed no more; `size` is of all of them."""
        low, high = min(locations), max(locations)
        if low >> 32 == high >> 32 and not high & MEMORY:
            self._packets.release_all(locations, sizes, size)
        else:
            for location, each in zip(locations, sizes, strict=True):
                self._release(location, each)

    def _take_out(self, queue: Queue, lookup_id: int) -> Place:
        place = queue.positions.remove(lookup_id)
        queue.left += 1
        queue.by_message_id.remove(place.key, lookup_id)
        if queue.held:
            queue.held.pop(lookup_id, None)
        if place.expires != NEVER:
            if lookup_id in queue.expired:
                queue.expired.remove(lookup_id)
            else:
                self.expiries.remove(place.expires, queue.number, lookup_id)
        return place

    def move(self, queue: Queue, lookup_id: int, target: Queue) -> None:
        """A message takes its place in another queue, and was moved once more."""
        place = self._take_out(queue, lookup_id)
        note = queue.notes.pop(lookup_id, NO_NOTE)
        # The other queue was purged, if any was.
        target.notes[lookup_id] = note._replace(purged=False, moves=note.moves + 1)
        target.positions.add(place._replace(state=AVAILABLE))
        target.by_message_id.add(place.key, lookup_id)
        target.arrived += 1
        if place.expires != NEVER:
            self.expiries.add(place.expires, target.number, lookup_id)
        self.awake.append(target)

    def move_all(self, stage: Queue, target: Queue, first: int) -> None:
        """What was written into a stage is in a queue from now on, behind all that is there.

        The first message gets this number, the others follow in the order in which they came.
        """
        columns = stage.positions.columns(without=0)
        if columns.ids[0] >> 56 == columns.ids[-1] >> 56:
            start = columns.ids[0] >> 56 << 56 | first
            ids = array("Q", range(start, start + len(columns.ids)))
        else:
            columns = by_arrival(columns)
            numbered = enumerate(columns.ids, first)
            ids = array("Q", [each >> 56 << 56 | number for number, each in numbered])
        stage.positions = Positions()
        stage.by_message_id = MessageIds()
        target.positions.append_many(
            ids, columns.locations, columns.sizes, columns.expiries, columns.keys
        )
        target.by_message_id.add_many(columns.keys, ids)
        if min(columns.expiries) != NEVER:
            self.expiries.add_many(columns.expiries, target.number, ids, NEVER)
            self.withhold_overdue(target, columns.expiries, ids)
        target.arrived += len(ids)
        self.awake.append(target)

    def remember_published(self, writer: str, batch: int, time: int) -> None:
        """A batch of a writer is not to be published again."""
        self.published[writer] = (batch, time)
        self.published.move_to_end(writer)
        if len(self.published) > WRITERS_MAX:
            self.published.popitem(last=False)

    def note(self, queue: Queue, lookup_id: int, note: Note) -> None:
        """Something is known of a message, if the message is still there."""
        if queue.positions.get(lookup_id) is not None:
            queue.notes[lookup_id] = note

    def restore_note(self, data: bytes | memoryview) -> None:
        """Takes a NOTE as it was written; one of an older store does not know of moves."""
        found = read_note(data)
        queue = self.queues[found.queue]
        moves = found.moves or queue.notes.get(found.lookup_id, NO_NOTE).moves
        note = Note(found.aborts, found.purged, found.dead_letter, found.kept, moves)
        self.note(queue, found.lookup_id, note)

    def relocate(self, queue: Queue, lookup_id: int, location: int) -> None:
        """A message's packet lies elsewhere now, if the message is still there."""
        place = queue.positions.get(lookup_id)
        if place is not None:
            queue.positions.relocate(lookup_id, location)
            self._packets.keep(location, place.size)
            self._packets.release(place.location, place.size)

    def relocate_many(
        self, queue: Queue, lookup_ids: Sequence[int], locations: tuple[int, ...]
    ) -> None:
        """The same for many whose copies lie in one frame."""
        before, sizes = queue.positions.relocate_many(lookup_ids, array("Q", locations))
        if before:
            size = sum(sizes)
            # A frame lies in one segment.
            self._packets.keep(locations[0], size)
            self._release_all(before, sizes, size)

    def drop(self, queue: Queue) -> None:
        """A queue is gone, with everything in it."""
        self.remove_many(queue, queue.positions.columns(without=0).ids)
        del self.queues[queue.number]
        if self._identifiers.get(queue.properties.identifier) is queue:
            del self._identifiers[queue.properties.identifier]
        if queue.path is not None:
            self._paths.pop(queue.path, None)
        else:
            self._destinations.pop(queue.properties.path_name.lower(), None)
        owner = self.queues.get(queue.properties.owner)
        if owner is not None and queue.properties.kind is QueueKind.SUBQUEUE:
            owner.subqueues = {
                name: each for name, each in owner.subqueues.items() if each is not queue
            }

    def define(self, properties: QueueProperties, queue: Queue | None = None) -> None:
        """Makes a queue, or gives one other properties."""
        known = self.queues.get(properties.number)
        if known is not None:
            known.properties = properties
            return
        queue = queue or Queue(properties)
        self.queues[properties.number] = queue
        self._identifiers.setdefault(properties.identifier, queue)
        kind = properties.kind
        if kind in NUMBERED:
            self.last_numbers[kind] = max(self.last_numbers.get(kind, 0), properties.number)
        if queue.path is not None:
            self._paths[queue.path] = queue
        else:
            self._destinations[properties.path_name.lower()] = queue
        owner = self.queues.get(properties.owner)
        if owner is not None and properties.kind is QueueKind.JOURNAL:
            owner.journal = queue
        elif owner is not None and properties.kind is QueueKind.SUBQUEUE and queue.path is not None:
            owner.subqueues[(queue.path.subqueue or "").lower()] = queue

    def learn(self, queue: Queue, packet: bytes | memoryview, arrival: int) -> None:
        """What a message in the log says of our sequences, or that another's was here."""
        source = bytes(packet[16:32])
        flags: int = _U32.unpack_from(packet, 60)[0]
        if source == self.source:
            if queue.transfer is not None and flags & _TRANSACTION:
                view = MessageView(bytes(packet))
                queue.transfer.restored(view.tx_sequence_id, view.tx_sequence_number + 1)
                self.last_sequence_id = max(self.last_sequence_id, view.tx_sequence_id)
        elif not flags & _TRANSACTION:
            self.recent.add(source, identity_of(packet), arrival)

    # Opening and checkpoints.

    def restore_range(self, data: bytes) -> None:
        """A group has reserved messages."""
        number, group, found = unpack_range(data)
        queue = self.queues[number]
        queue.claims.setdefault(group, Claim(group)).ranges.append(found)
        queue.positions.lock(found.ids)

    def restore_point(self, data: bytes, *, is_released: bool = False) -> Claim:
        """A group is so far; what it had reserved up to there is over, or anybody's again."""
        number, group, acknowledged, floor = unpack_point(data)
        queue = self.queues[number]
        claim = queue.claims.setdefault(group, Claim(group))
        claim.floor = floor
        if is_released:
            self.release_ranges(queue, claim, acknowledged, forgotten=False)
        while claim.ranges and claim.ranges[0].end <= acknowledged:
            claim.ranges.pop(0)
        claim.acknowledged = acknowledged
        return claim

    def release_ranges(self, queue: Queue, claim: Claim, end: int, *, forgotten: bool) -> None:
        """What a group has reserved up to here is anybody's; all of it if it is forgotten."""
        while claim.ranges and (forgotten or claim.ranges[0].end <= end):
            over = claim.ranges.pop(0)
            for lookup_id in over.ids:
                if queue.positions.get(lookup_id) is not None:
                    self.give_back(queue, lookup_id)
        claim.acknowledged = end
        if forgotten:
            queue.claims.pop(claim.group, None)

    def keep(self, location: int, size: int) -> None:
        """A packet in the store is needed."""
        self._packets.keep(location, size)

    def keep_all(self, locations: array[int], sizes: array[int]) -> None:
        """Packets in the store are needed."""
        self._packets.keep_all(locations, sizes)

    # Looking.

    def find(self, path: PathName) -> Queue | None:
        """The queue with this path name on this queue manager, or None."""
        if path.computer.lower() not in self.aliases:
            return None
        return self._paths.get(path.on(LOCAL_COMPUTER))

    def find_by_identifier(self, identifier: UUID) -> Queue | None:
        """The queue with this identifier, or None."""
        return self._identifiers.get(identifier)

    def find_outgoing(self, destination: str) -> Queue | None:
        """The outgoing queue to a destination, by its format name."""
        return self._destinations.get(destination.lower())

    def has_messages_of(self, incoming: Incoming) -> bool:
        """Whether messages of a sequence's sender are in its queue."""
        queue = self.queues.get(incoming.queue)
        source = self.sources.get(incoming.key.source)
        if queue is None or source is None:
            return False
        return queue.by_message_id.has_source(source)

    def stored(self, place: Place) -> tuple[int, bytes]:
        """When a message arrived, and its packet."""
        if place.location & MEMORY:
            return self._memory[place.location]
        return self._packets.read(place.location, place.size)

    def readable(self, place: Place) -> bytes | None:
        """The packet of a message, or None if the disk does not have it as it was written."""
        try:
            return self.stored(place)[1]
        except StoreError:
            return None

    def delivered(self, queue: Queue, place: Place) -> Delivered:
        """A message as a reader gets it."""
        note = queue.notes.get(place.lookup_id, NO_NOTE) if queue.notes else NO_NOTE
        arrival, packet = self.stored(place)
        return Delivered(packet, place.lookup_id, arrival, note.aborts, note.moves)

    def heads(self, rows: Rows) -> list[bytes]:
        """The first bytes of messages' packets, up to the names of queues; they are not checked."""
        if not rows.ids or not max(rows.locations) & MEMORY:
            return self._packets.heads(rows.locations, rows.sizes)
        in_store = [not location & MEMORY for location in rows.locations]
        heads = iter(
            self._packets.heads(
                array("Q", compress(rows.locations, in_store)),
                array("I", compress(rows.sizes, in_store)),
            )
        )
        pairs = zip(rows.locations, in_store, strict=True)
        return [next(heads) if stored else self._memory[at][1] for at, stored in pairs]

    def records(self, rows: Rows) -> list[bytes | None]:
        """The records in the store that have messages' packets; None for one that is damaged."""
        return self._packets.records(rows.locations, rows.sizes)

    @property
    def free_bytes(self) -> int:
        """What is left of the machine's quota; less than nothing if it was smaller before."""
        return self._quota_bytes - self.taken_bytes

    def has_room(self, size: int) -> bool:
        """[MS-MQDMPR] 3.1.7.1.9: whether the machine's quota allows a packet of this size."""
        return self.taken_bytes + size <= self._quota_bytes
