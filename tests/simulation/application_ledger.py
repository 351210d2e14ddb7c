"""What programs were told, and what must hold of their messages because of that.

A letter is a message with a body of its own. The ledger knows what became of its sending, who says
that he has received it, and who does not know whether he has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from uuid import UUID

from merq.engine.manager import QueueManager
from merq.model.delivered import Delivered
from merq.wire.view import MessageView


class Fate(Enum):
    """What a program knows of what it asked for."""

    ASKED = auto()
    DONE = auto()
    IN_DOUBT = auto()
    NOT_DONE = auto()


@dataclass(slots=True, eq=False)
class Letter:
    """One message.

    Attributes:
        order: Its place among all that were asked for.
        fate: What the sender was told.
        life: How often the service had been started when it was asked for.
        readers: Who says that he has received it.
        doubts: How many received it, perhaps.
        lookup_ids: Where it was seen.
    """

    tag: bytes
    sender: str
    queue: int
    order: int
    life: int
    recoverable: bool = True
    unit: Unit | None = None
    fate: Fate = Fate.ASKED
    readers: list[str] = field(default_factory=list)
    doubts: int = 0
    lookup_ids: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Unit:
    """A transaction: letters that it sends, and letters that it receives.

    Attributes:
        guid: Under which it is prepared, if it is.
        ending: What its program asked for after it was prepared, perhaps.
    """

    owner: str
    guid: UUID
    sends: list[Letter] = field(default_factory=list)
    reads: list[Letter] = field(default_factory=list)
    fate: Fate = Fate.ASKED
    ending: Fate = Fate.NOT_DONE
    may_be_prepared: bool = False


def tags_in(engine: QueueManager) -> Iterator[tuple[int, int, bytes]]:
    """Every message of applications that is in a queue: queue, lookup identifier, body."""
    for number, queue in engine.state.queues.items():
        for place in queue.positions:
            packet = engine.state.readable(place)
            assert packet is not None, "the disk has it"
            yield number, place.lookup_id, bytes(MessageView(packet).body)


class Ledger:
    """All letters."""

    def __init__(self) -> None:
        self.letters: dict[bytes, Letter] = {}
        self.units: list[Unit] = []

    def letter(self, sender: str, queue: int, life: int, *, recoverable: bool) -> Letter:
        order = len(self.letters)
        made = Letter(f"letter {order:06}".encode(), sender, queue, order, life, recoverable)
        self.letters[made.tag] = made
        return made

    def unit(self, owner: str) -> Unit:
        made = Unit(owner, UUID(int=(len(self.units) + 1) << 64))
        self.units.append(made)
        return made

    def settle(self, letters: Iterable[Letter], fate: Fate) -> None:
        for each in letters:
            each.fate = fate

    def end(self, unit: Unit, fate: Fate) -> None:
        """What a program knows of the end of its transaction."""
        unit.fate = fate
        self.settle(unit.sends, fate)
        for each in unit.reads:
            if fate is Fate.DONE:
                each.readers.append(unit.owner)
            elif fate is Fate.IN_DOUBT:
                each.doubts += 1

    def of(self, found: Delivered) -> Letter:
        letter = self.letters[bytes(MessageView(found.packet).body)]
        letter.lookup_ids.add(found.lookup_id)
        return letter

    # What must hold at the end.

    def check(self, engine: QueueManager, life: int) -> None:
        """Everything is at rest: each letter is where it must be."""
        present: Counter[bytes] = Counter()
        for queue, lookup_id, tag in tags_in(engine):
            present[tag] += 1
            letter = self.letters[tag]
            assert letter.queue == queue, f"{tag!r} is in queue {queue}"
            letter.lookup_ids.add(lookup_id)
        for letter in self.letters.values():
            self._check_letter(letter, present[letter.tag], life)
        for unit in self.units:
            self._check_unit(unit, present)
        self._check_order()

    def _check_letter(self, letter: Letter, present: int, life: int) -> None:
        total = present + len(letter.readers)
        about = f"{letter}, {present} times in its queue"
        assert total <= 1, f"twice: {about}"
        if letter.fate is Fate.NOT_DONE:
            assert not total, f"sent, and said not to be: {about}"
        assert letter.fate is not Fate.ASKED, f"nobody answered: {about}"
        can_vanish = letter.doubts > 0 or (not letter.recoverable and life > letter.life)
        if letter.fate is Fate.DONE and not can_vanish:
            assert total == 1, f"lost: {about}"

    def _check_unit(self, unit: Unit, present: Counter[bytes]) -> None:
        """Whatever is known of its end, all of it has happened or nothing."""
        assert unit.fate is not Fate.ASKED, f"nobody knows the end of {unit}"
        if unit.fate is not Fate.IN_DOUBT:
            return
        sent = [
            present[each.tag] + len(each.readers)
            for each in unit.sends
            if present[each.tag] or each.readers or not each.doubts  # else somebody may have it
        ]
        taken = [
            1 - present[each.tag] - len(each.readers)
            for each in unit.reads
            if each.doubts == 1 and each.fate is Fate.DONE
        ]
        assert len({*sent, *taken}) <= 1, f"half of it has happened: {unit}, {sent}, {taken}"

    def _check_order(self) -> None:
        """What one program sent to one queue, outside of transactions, lies in that order."""
        last: dict[tuple[str, int], int] = {}
        for letter in self.letters.values():
            if letter.unit is not None or not letter.recoverable or not letter.lookup_ids:
                continue
            (lookup_id,) = letter.lookup_ids
            key = letter.sender, letter.queue
            assert last.get(key, -1) < lookup_id, f"out of order: {letter}"
            last[key] = lookup_id
