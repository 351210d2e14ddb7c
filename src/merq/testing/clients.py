"""Programs in a simulated world that use a queue manager behind a network.

`SimulatedClient` asks as `merq.client.remote` does, receives in two steps included, but waits by
letting the world go on. What a program does can also be an errand, a generator that yields requests
and gets their answers, so that many go on at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Protocol, TypeAlias
from uuid import UUID

from merq.client.receiving import is_retaken, is_two_phased, removal_of
from merq.errors import InDoubt, MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.client import ClientSession, Settled
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Begin, Read, Request
from merq.testing.driver import Clock, WaitsForEver
from merq.testing.network import Line, SimulatedNetwork

Errand: TypeAlias = Generator[Request, Result, None]
"""What a program does: it yields a request, and is given its answer, or its error is raised."""


class Surroundings(Protocol):
    """What a client needs of the world that it is in."""

    clock: Clock
    network: SimulatedNetwork

    def step(self) -> bool:
        """One thing happens, somewhere; False if there is nothing to happen."""

    def advance(self, seconds: float) -> None:
        """Puts the clock on."""

    def accept(self, line: Line) -> bool:
        """A client has made a line; False if nobody answers."""

    def was_read(self, line: Line) -> None:
        """A client has got some of what it was told."""


def asking(request: Request) -> Generator[Request, Result, Result]:
    """A request as clients make it: a message that is received is held first, and then goes."""
    if not is_two_phased(request):
        return (yield request)
    assert isinstance(request, Read)
    request.held = True
    while True:
        received = yield request
        try:
            yield removal_of(request, received)
        except InDoubt as doubt:
            raise InDoubt(doubt.text, received) from None
        except MessageQueueError as wrong:
            if is_retaken(wrong):
                continue
            raise
        return received


class Doing:
    """An errand on its way.

    Attributes:
        number: The request that it waits for.
        request: The same as it was made.
        is_over: It has ended.
    """

    __slots__ = ("errand", "is_over", "number", "request")

    def __init__(self, errand: Errand) -> None:
        self.errand = errand
        self.number = 0
        self.request: Request | None = None
        self.is_over = False


class SimulatedClient:
    """One program's connection.

    Attributes:
        session: Its conversation.
        line: What it goes over now.
        doing: Errands that wait for answers, by the numbers of their requests.
    """

    def __init__(self, world: Surroundings, name: str) -> None:
        self._world = world
        self._name = name
        self._transaction_count = 0
        self._is_closed = False
        self._wants_line = False
        self._guid = UUID(int=0)
        self._manager_name = ""
        self.session = ClientSession(name)
        self.line: Line | None = None
        self.doing: dict[int, Doing] = {}

    # Errands.

    def do(self, errand: Errand) -> Doing:
        """Begins an errand; it goes on as answers come."""
        doing = Doing(errand)
        self._go_on(doing, lambda: next(errand))
        return doing

    def cancel(self, doing: Doing) -> None:
        """An errand that waits for a message waits no longer, unless it has just got one."""
        if not doing.is_over and isinstance(doing.request, Read):
            self.session.cancel(doing.number)
            self._settle(self.session.refusals)
            self._write()

    def abandon(self, doing: Doing) -> None:
        """Ends an errand at once; a message that comes for it goes back."""
        if self.doing.pop(doing.number, None) is not None:
            self.session.abandon(doing.number)
            self.session.cancel(doing.number)
            doing.is_over = True
            doing.errand.close()
            self._write()

    def _go_on(self, doing: Doing, how: Callable[[], Request]) -> None:
        try:
            request = how()
        except StopIteration:
            doing.is_over = True
            return
        number = self.session.ask(request)
        doing.number, doing.request = number, request
        self.doing[number] = doing
        self._settle(self.session.refusals)
        self._write()

    def _settle(self, settled: list[Settled]) -> None:
        answers = list(settled)
        settled.clear()
        for number, result in answers:
            doing = self.doing.pop(number, None)
            if doing is None:
                continue
            errand = doing.errand
            if isinstance(result, MessageQueueError):
                self._go_on(doing, lambda errand=errand, wrong=result: errand.throw(wrong))  # type: ignore[misc]
            else:
                self._go_on(doing, lambda errand=errand, result=result: errand.send(result))  # type: ignore[misc]

    def give_up(self) -> None:
        """A client without a line stops trying to get one: who waits is told so."""
        if self.line is None:
            self._settle(self.session.give_up("nobody answers"))

    # Lines.

    def possible(self) -> list[Callable[[], None]]:
        """What can happen to this client next."""
        if self._is_closed:
            return []
        if self.line is None:
            return [self._dial] if self._wants_line or self.session.unanswered else []
        if self.line.down.size or self.line.down.has_ended:
            return [self._hear]
        return []

    def _dial(self) -> None:
        line = self._world.network.connect()
        if line is None:
            return
        if not self._world.accept(line):
            line.is_left_by_client = line.is_left_by_server = True
            self._world.network.tidy(line)
            return
        self.line = line
        self.session.connected()
        self._write()

    def _hear(self) -> None:
        line = self.line
        assert line is not None, "a client hears over a line"
        data = self._world.network.arriving(line.down)
        self._world.was_read(line)
        if data:
            self._settle(self.session.receive_data(data))
            self._settle(self.session.refusals)
            if self.session.welcome is not None:
                self._wants_line = False
        if self.session.broken or (not data and line.down.has_ended):
            self._lose()
        else:
            self._write()

    def _lose(self) -> None:
        if self.line is not None:
            self.line.hang_up()
            self._world.network.tidy(self.line)
            self.line = None
            self.session.disconnected()
            self._settle(self.session.refusals)

    def _write(self) -> None:
        if self.line is not None:
            self.line.up.write(self.session.data_to_send())

    # As the client's classes use it.

    def be_welcome(self) -> None:
        """Connects; returns when the queue manager has let the client in."""
        self._wants_line = True
        while self.session.welcome is None:
            if self.session.refused is not None:
                raise self.session.refused
            if not self._world.step():
                raise WaitsForEver("nobody answers")
        self._guid = self.session.welcome.queue_manager
        self._manager_name = self.session.welcome.name

    @property
    def is_closed(self) -> bool:
        """Whether the program has ended its connection for good."""
        return self._is_closed

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""
        return self._guid

    @property
    def name(self) -> str:
        """The computer name that other names call the queue manager by."""
        return self._manager_name

    def begin(self) -> int:
        """A new transaction; gives its number."""
        self._check()
        self._transaction_count += 1
        self.session.abandon(self.session.ask(Begin(self._transaction_count)))
        return self._transaction_count

    def ask(self, request: Request, timeout: float | None = 0) -> Result:
        """Asks for something, and lets the world go on until the answer is there.

        Raises:
            MessageQueueError: What was asked for cannot be; nothing was changed.
            InDoubt: The queue manager went away before it answered.
            WaitsForEver: Nothing can come, and the wait has no limit.
        """
        self._check()
        told: list[Result] = []

        def errand() -> Errand:
            try:
                told.append((yield from asking(request)))
            except MessageQueueError as wrong:
                told.append(wrong)

        doing = self.do(errand())
        deadline = None if timeout is None else self._world.clock.now + timeout
        self._wait(doing, deadline)
        (result,) = told
        if isinstance(result, MessageQueueError):
            raise result
        return result

    def _wait(self, doing: Doing, deadline: float | None) -> None:
        while not doing.is_over:
            if self._world.step():
                continue
            if deadline is None:
                self.abandon(doing)
                raise WaitsForEver("a receive or peek without a timeout, and nothing can come")
            self._world.advance(max(0.0, deadline - self._world.clock.now))
            self.cancel(doing)

    def close(self) -> None:
        """Nothing more is asked; whoever waits gets no answer."""
        if not self._is_closed:
            self._is_closed = True
            self._lose()
            for doing in self.doing.values():
                doing.is_over = True
                doing.errand.close()
            self.doing.clear()

    def _check(self) -> None:
        if self._is_closed:
            raise MessageQueueError(
                HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, "the connection was closed"
            )
