"""A service in memory to which applications say whatever bytes choose, request by request.

Several of them ask for everything that can be asked, with numbers and names that exist or not, in
frames that are whole or damaged; they leave, come again, and do not read; the power fails. After
every step nothing was raised, and no table is larger than its limit, all of which are low here.
What was told to be sent is on the disk after the power failed, and another application can still
make a queue, send and receive.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from random import Random
from typing import Any, Final, Literal, get_args
from uuid import UUID

from hostile.choosing import Broken, Choices
from hostile.lowering import lowered
from merq.engine.limits import Limits
from merq.errors import MerqError
from merq.host import Hall, Host
from merq.model.access import Access, Share
from merq.model.delivered import Delivered
from merq.model.queue import Alteration, QueueSettings
from merq.model.row_batch import RowBatch
from merq.model.selecting import (
    AtCursor,
    ByCorrelationId,
    ByLookup,
    ByMessageId,
    First,
    Seek,
    Selection,
)
from merq.protocol.application import requests as asked
from merq.protocol.application.codec import decode_result, encode_request
from merq.protocol.application.frames import HEADER_SIZE, FrameReader
from merq.protocol.application.greeting import Hello, encode_hello
from merq.protocol.application.server import ServerLimits
from merq.service.reception import Connection, LocalPorter, Reception, ReceptionLimits
from merq.store.recovery import Identity
from merq.testing.disk import SimulatedDisk
from merq.testing.world import SMALL
from merq.wire.build import Outline, build_packet
from merq.wire.view import MessageView

START: Final = 1_700_000_000
GUID: Final = UUID(int=77)
CLIENTS_MAX: Final = 5
REQUESTS: Final[Sequence[Callable[..., asked.Request]]] = get_args(asked.Request)
LIMITS: Final = ReceptionLimits(
    client=ServerLimits(
        frame_bytes_max=1 << 20, window_bytes=1 << 20, requests_max=20, answer_bytes_max=4000
    ),
    connections_max=CLIENTS_MAX,
    outbox_bytes_max=100_000,
    conversations_max=3,
)
LOWERED: Final[Mapping[tuple[str, str], int]] = {
    ("merq.engine.transactions", "TRANSACTIONS_MAX"): 4,
    ("merq.engine.opening", "DESCRIPTORS_MAX"): 5,
    ("merq.host.desk", "CURSORS_MAX"): 3,
    ("merq.engine.staging", "STAGES_MAX"): 3,
    ("merq.engine.reserving", "GROUPS_MAX"): 2,
    ("merq.engine.reserving", "RANGES_MAX"): 2,
    ("merq.engine.holdings", "WRITERS_MAX"): 2,
    ("merq.engine.outgoing", "OUTGOING_MAX"): 5,
}
"""Limits that are low enough to be reached within an input, where they are looked at."""

NUMBERS: Final = (0, 1, 2, 3, 5, 255, 1 << 31, (1 << 32) - 1, (1 << 56) - 1, (1 << 64) - 1)
NAMES: Final = (
    r".\private$\plain",
    r".\private$\made",
    r"DIRECT=OS:.\private$\plain",
    r"DIRECT=TCP:10.0.0.9\private$\q",
    r".\system$;deadxact",
    "group",
    "",
    "x" * 300,
    "\ud800",
    'a"\\\n\0',
)
RIGHT_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "path_name": NAMES[:2],
    "name": NAMES[2:4],
    "group": ("g", "h"),
    "owner": ("o", "p"),
    "writer": ("w", "v"),
    "part": ("0", "1"),
    "dead_letter": ("", NAMES[0]),
}
SMALL_NUMBERS: Final = frozenset(
    {"transaction", "handle", "cursor", "batch", "request", "start", "after", "skip", "floor"}
)
# The longest that a writer's or a group's name can have as text; more is refused on decoding.
LONG: Final = "ä" * 40_000


def packet_of(body: bytes, *, recoverable: bool = True) -> bytes:
    """A message of an application."""
    return build_packet(
        Outline(destination=r"OS:here\private$\q", body=body, recoverable=recoverable)
    )


class Application:
    """A connection, and what is said and heard over it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.count = 0
        self._reader = FrameReader(1 << 30)

    def heard(self) -> dict[int, object]:
        """The answers that came since."""
        self._reader.feed(b"".join(self.connection.outbox))
        self.connection.outbox.clear()
        self.connection.outbox_bytes = 0
        found: dict[int, object] = {}
        while (each := self._reader.next()) is not None:
            found[each.number] = decode_result(each) if each.number else None
        return found


class ApplicationMachine:
    """A service and its applications.

    Args:
        choices: What happens.
    """

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._chance = Random(7)  # noqa: S311 - repeatable on purpose
        self._now = 1000.0
        self._clock = START
        self._sent = 0
        self.told: set[bytes] = set()
        self._applications: list[Application] = []
        self._disk = SimulatedDisk(1)
        self._start()
        honest = self._connect()
        assert honest is not None
        self._honest_queue = self._made(honest, "honest")
        self._numbers = [self._honest_queue, self._made(honest, "plain"), self._made(honest, "t")]
        self._drop(honest)

    def _start(self) -> None:
        self._disk.lock()
        identity = Identity(store_id=GUID, created=START)
        limits = Limits(disk_reserve_bytes=0, machine_quota=20_000)
        self._host = Host(self._disk, identity, "here", limits, SMALL)
        self._host.start(self._clock, UUID(int=5))
        self._reception = Reception(
            self._host, Hall("test", self._clock), LocalPorter(), self._guid, LIMITS
        )

    def _guid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)

    def run(self) -> None:
        """Does what the bytes say.

        Raises:
            Broken: Something that must hold does not.
        """
        steps = (
            self._connect,
            self._ask,
            self._ask,
            self._ask,
            self._ask,
            self._ask_much,
            self._damage,
            self._leave,
            self._wait,
            self._restart,
            self._send_honestly,
        )
        self._choices.play(steps, self._check)
        self._check_application()
        self._restart()
        self._check_application()

    def _check(self) -> None:
        self._settle()
        self._check_tables()

    # What applications do.

    def _connect(self) -> Application | None:
        connection = self._reception.connected("somebody", is_local=True)
        if connection is None:
            return None
        application = Application(connection)
        self._applications.append(application)
        hello = encode_hello(Hello(protocol="merq", oldest=1, newest=1))
        self._reception.received(connection, hello, self._now)
        self._settle()
        application.heard()
        return application

    def _one(self) -> Application | None:
        return self._choices.one(self._applications) if self._applications else self._connect()

    def _ask(self) -> None:
        application = self._one()
        if application is not None:
            self._say(application, self._frame(application))

    def _ask_much(self) -> None:
        """Several requests at once, before any is answered."""
        application = self._one()
        if application is not None:
            frames = [self._frame(application) for _ in range(self._choices.below(25))]
            self._say(application, b"".join(frames))

    def _damage(self) -> None:
        """A frame with other bytes in it."""
        application = self._one()
        if application is None:
            return
        frame = bytearray(self._frame(application))
        for _ in range(1 + self._choices.below(4)):
            if frame:
                frame[self._choices.below(min(len(frame), 0xFFFF))] = self._choices.byte()
        if self._choices.flag(rarely=True):
            frame = frame[:HEADER_SIZE] + self._choices.some_bytes(60)
        self._say(application, bytes(frame))

    def _say(self, application: Application, data: bytes) -> None:
        self._reception.received(application.connection, data, self._now)

    def _leave(self) -> None:
        application = self._one()
        if application is not None:
            self._drop(application)

    def _drop(self, application: Application) -> None:
        self._applications.remove(application)
        self._reception.lost(application.connection, self._now)
        self._settle()

    # Requests.

    def _frame(self, application: Application) -> bytes:
        """A request, or nothing if what was chosen cannot be written."""
        request = self._request(self._choices.one(REQUESTS))
        application.count += 1
        try:
            return encode_request(application.count, request)
        except (MerqError, ValueError, OverflowError, struct.error, AssertionError):
            return b""

    def _request(self, kind: Callable[..., asked.Request]) -> asked.Request:
        """Everything that the kind takes is chosen; what has a default is left alone at times."""
        arguments: dict[str, Any] = {}
        for name, parameter in inspect.signature(kind).parameters.items():
            if parameter.default is not parameter.empty and self._choices.flag():
                continue
            arguments[name] = self._value(name, str(parameter.annotation))
        return kind(**arguments)

    def _value(self, name: str, annotation: str) -> object:
        choices = self._choices
        makers: Mapping[str, Callable[[], object]] = {
            "bool": choices.flag,
            "int": lambda: self._number(name),
            "str": lambda: self._name(name),
            "bytes": lambda: choices.one((bytes(20), GUID.bytes_le + bytes(4), b"short")),
            "UUID": lambda: UUID(int=choices.below(3)),
            "Selection": self._selection,
            "Ending": lambda: _any_of(asked.Ending, choices),
            "Family": lambda: _any_of(asked.Family, choices),
            "Access": lambda: _any_of(Access, choices),
            "Share": lambda: _any_of(Share, choices),
            "QueueSettings": self._settings,
            "Alteration": lambda: Alteration(label=self._name(), quota=choices.one(NUMBERS)),
            "RowBatch": self._rows,
            "Sequence[bytes]": self._packets,
            "Sequence[int]": lambda: [self._number(name) for _ in range(choices.below(4))],
            "tuple[int, ...]": lambda: tuple(self._number(name) for _ in range(choices.below(4))),
            "tuple[tuple[str, bytes], ...]": lambda: tuple(
                (self._name("name"), packet) for packet in self._packets()
            ),
        }
        # What has a limit in its type has a type of its own.
        for ending, plain in (("Text", "str"), ("Numbers", "tuple[int, ...]")):
            if annotation.endswith(ending):
                return makers[plain]()
        return makers[annotation]()

    def _number(self, name: str) -> int:
        if name in ("queue", "owner", "target", "stage", "stages") and self._choices.byte() & 3:
            state = self._host.engine.state
            return self._choices.one([*self._numbers, *state.queues])
        if name.startswith("lookup") and self._choices.byte() & 3:
            state = self._host.engine.state
            found = [row.lookup_id for each in state.queues.values() for row in each.positions]
            return self._choices.one(found[:20]) if found else 0
        if name in SMALL_NUMBERS and self._choices.byte() & 7:
            return self._choices.below(3)
        return self._choices.one(NUMBERS)

    def _name(self, of: str = "") -> str:
        """One that is right for it, mostly; sometimes one that is far too long."""
        kind = self._choices.byte()
        if kind == 99:
            return LONG
        return self._choices.one(RIGHT_NAMES.get(of, NAMES) if kind & 7 else NAMES)

    def _selection(self) -> Selection:
        choices = self._choices
        found: Sequence[Selection] = (
            First(),
            ByLookup(self._number("lookup_id"), _any_of(Seek, choices)),
            ByMessageId(GUID.bytes_le + bytes(4)),
            ByCorrelationId(bytes(20)),
            AtCursor(choices.below(4), next_one=choices.flag()),
        )
        return choices.one(found)

    def _settings(self) -> QueueSettings:
        choices = self._choices
        return QueueSettings(
            label="x" * choices.one((0, 124, 125)),
            transactional=choices.flag(),
            journaling=choices.flag(),
            quota=choices.one((1, 0, 0xFFFFFFFF)),
            poison_after=choices.one((0, 1, 2_000_000)),
        )

    def _packets(self) -> list[bytes]:
        count = self._choices.one((1, 0, 2, 30))
        recoverable = self._choices.flag()
        body = bytes(self._choices.one((5, 0, 2000, 60_000)))
        packet = packet_of(body, recoverable=recoverable)
        if self._choices.flag(rarely=True):
            packet = packet[: self._choices.below(len(packet))]
        return [packet] * count

    def _rows(self) -> RowBatch:
        choices = self._choices
        count = choices.below(5)
        return RowBatch(
            count=choices.below(5) if choices.flag(rarely=True) else count,
            templates=(packet_of(b""),) * choices.one((1, 0, 2)),
            kinds=choices.some_bytes(count),
            tags=bytes(28 * count) if choices.flag() else b"",
            label_sizes=bytes([1] * count) if choices.flag() else b"",
            labels=b"x\0" * choices.one((count, 0)),
            body_sizes=struct.pack("<I", 3) * count,
            bodies=b"row" * count,
        )

    # What time and power do.

    def _wait(self) -> None:
        step = self._choices.one((1, 60, 4000, 100_000))
        self._now += step
        self._clock += step
        self._reception.forget(self._now)
        self._host.engine.tick(self._clock)

    def _restart(self) -> None:
        """The power fails: what was told to be sent, and was still there, is there afterwards."""
        self._settle()
        promised = self.told & self._present()
        kind: Literal["power", "kill"] = "kill" if self._choices.flag() else "power"
        self._host.close()
        self._disk = self._disk.crash(kind)
        self._applications.clear()
        self._start()
        if lost := promised - self._present():
            raise Broken(f"{sorted(lost)} were sent, and are gone after a {kind} failure")

    def _present(self) -> set[bytes]:
        state = self._host.engine.state
        queue = state.queues.get(self._honest_queue)
        rows = queue.positions if queue is not None else ()
        return {MessageView(state.stored(row)[1]).body for row in rows}

    # Somebody honest.

    def _made(self, honest: Application, name: str) -> int:
        settings = QueueSettings(transactional=name == "t")
        made = self._asked(honest, asked.CreateQueue(rf".\private$\{name}", settings, self._guid()))
        if not isinstance(made, int):
            raise Broken(f"an application cannot make a queue any more: {made}")
        return made

    def _asked(self, application: Application, request: asked.Request) -> object:
        application.count += 1
        self._say(application, encode_request(application.count, request))
        self._settle()
        return application.heard().get(application.count)

    def _send_honestly(self) -> None:
        honest = self._connect()
        if honest is None:
            return
        self._sent += 1
        body = b"honest %d" % self._sent
        if isinstance(
            self._asked(honest, asked.Send(self._honest_queue, [packet_of(body)])), bytes
        ):
            self.told.add(body)
        if honest in self._applications:
            self._drop(honest)

    def _check_application(self) -> None:
        """Whoever comes can make a queue, send and receive, unless the quota is used up."""
        while self._applications:
            self._drop(self._applications[-1])
        honest = self._connect()
        if honest is None:
            raise Broken("nobody is let in any more")
        self._sent += 1
        number = self._made(honest, f"check{self._sent}")
        if self._host.engine.state.has_room(1000):
            sent = self._asked(honest, asked.Send(number, [packet_of(b"still")]))
            got = self._asked(honest, asked.Read(number, First()))
            if not isinstance(got, Delivered):
                raise Broken(f"an application sent, {sent!r}, and received {got!r}")
        self._drop(honest)

    # What must hold.

    def _settle(self) -> None:
        reception = self._reception
        reception.perform(self._now)
        reception.take(self._host.settle())
        for application in list(self._applications):
            if application.connection.closing:
                self._applications.remove(application)
                reception.lost(application.connection, self._now)
        reception.dirty.clear()
        reception.perform(self._now)

    def _check_tables(self) -> None:
        state = self._host.engine.state
        outgoing = sum(1 for _ in self._host.engine.outgoing_queues())
        for what, size, most in (
            ("connections", len(self._applications), CLIENTS_MAX),
            ("transactions", len(state.transactions), _limit("TRANSACTIONS_MAX")),
            ("outgoing queues", outgoing, _limit("OUTGOING_MAX") + 1),
            ("writers", len(state.published), _limit("WRITERS_MAX")),
        ):
            if size > most:
                raise Broken(f"{size} {what}; {most} are the most")


def _limit(name: str) -> int:
    (found,) = (value for (_, each), value in LOWERED.items() if each == name)
    return found


def _any_of(kind: type[Enum], choices: Choices) -> Any:
    return choices.one(list(kind))


def one_input(data: bytes) -> None:
    """Everything that must hold for these bytes."""
    with lowered(LOWERED):
        ApplicationMachine(Choices(data)).run()
