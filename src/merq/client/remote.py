"""A queue manager behind a socket: `merq.connect(url)`.

Blocking and thread-safe: of those who wait for answers, one reads for all. A connection that is
lost is made again by whoever needs it. While something is held, a thread answers pings for who is
busy elsewhere.
"""

from __future__ import annotations

import os
import ssl
import time
import weakref
from contextlib import suppress
from threading import Condition, Lock, Thread
from typing import Final, NamedTuple
from uuid import UUID

from merq import __version__
from merq.client.channels import Channel
from merq.client.dialing import (
    CONNECT_S,
    FIRST_PAUSE_S,
    LAST_PAUSE_S,
    Dialing,
    denied,
    dial,
    not_available,
    not_let_in,
    pause_after,
)
from merq.client.messages import received_of
from merq.client.receiving import (
    is_retaken,
    is_two_phased,
    removal_of,
    return_of,
    went_back,
)
from merq.client.watching import LOOK_MAX_S, pause_for, watch
from merq.errors import InDoubt, MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.client import ClientSession, Settled
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import Begin, OpenQueue, Read, Request

PUSH_S: Final = 0.05
"""How long who writes waits before he looks whether somebody still reads."""

ANSWER_S: Final = 10.0
"""How long a queue manager may take to say that a wait is over; then it counts as gone."""

CLIENT: Final = f"merq-python/{__version__}"


class _Answer(NamedTuple):
    """An answer, and the connection on which it came: what is held is held on that one."""

    result: Result
    connection: int


class RemoteDriver:
    """Carries requests to a queue manager, and answers back."""

    def __init__(self, how: Dialing) -> None:
        """Connects.

        Raises:
            MessageQueueError: Nobody answers, or does not let us in.
        """
        self._how = how
        self._transaction_count = 0
        self._closed = False
        self._begin_anew()
        _ALL.add(self)
        self._connect_once()
        welcome = self._session.welcome
        assert welcome is not None
        self._guid, self._name = welcome.queue_manager, welcome.name

    def _begin_anew(self) -> None:
        """A conversation from the start; after a fork, the parent's is not ours."""
        # Entered directly: Ctrl-C between a condition's own steps would leave it locked for ever.
        self._lock = Lock()
        self._turn = Condition(self._lock)
        self._writing = Lock()
        self._session = ClientSession(CLIENT, self._how.token)
        self._socket: Channel | None = None
        self._answers: dict[int, _Answer] = {}
        self._has_reader = False
        self._watcher: Thread | None = None

    def forked(self) -> None:
        """This is a child: it has a copy of the parent's socket, and no business with it."""
        if self._socket is not None:
            self._socket.leave()
        self._begin_anew()

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""
        return self._guid

    @property
    def name(self) -> str:
        """The computer name that other names call the queue manager by."""
        return self._name

    def begin(self) -> int:
        """A new transaction; gives its number. Nobody waits for an answer to that."""
        with self._lock:
            self._check()
            self._transaction_count += 1
            number = self._transaction_count
            self._session.abandon(self._session.ask(Begin(number)))
            self._be_watched()
        return number

    def ask(self, request: Request, timeout: float | None = 0) -> Result:
        """Asks for something and waits for the answer.

        Raises:
            MessageQueueError: What was asked for cannot be; nothing was changed.
            InDoubt: The queue manager went away before it answered.
        """
        deadline = None if timeout is None else time.monotonic() + timeout if timeout else 0.0
        if not is_two_phased(request):
            if self._watcher is None and _holds(request):
                self._be_watched()
            return self._call(request, deadline).result
        assert isinstance(request, Read)
        request.held = True
        while True:
            answer = self._call(request, deadline)
            received = answer.result
            try:
                self._call(removal_of(request, received), None, answer.connection)
            except InDoubt as doubt:
                raise InDoubt(doubt.text, received_of(received)) from None
            except MessageQueueError as wrong:
                if is_retaken(wrong):
                    continue  # it went back when the connection was lost: nobody has got it
                raise
            return received

    def _call(
        self, request: Request, deadline: float | None, held_on: int | None = None
    ) -> _Answer:
        with self._lock:
            self._check()
            if held_on is not None and held_on != self._connection:
                raise went_back()
            number = self._session.ask(request)
            if self._session.refusals:
                self._settle(self._session.refusals)
        try:
            self._write()
            answer = self._wait(
                number, deadline, can_wait=isinstance(request, Read) and request.wait
            )
        except BaseException:
            self._abandon(number, request)
            raise
        if isinstance(answer.result, MessageQueueError):
            raise answer.result
        return answer

    def _be_watched(self) -> None:
        """From now on pings are answered while nobody reads."""
        if self._watcher is None:
            self._watcher = watch(self)

    def look(self) -> float | None:
        """Answers pings if nobody else reads; gives how soon to look again, None for never."""
        with self._lock:
            if self._closed:
                return None
            welcome, connection = self._session.welcome, self._socket
            pause = pause_for(0 if welcome is None else welcome.pong_ms)
            if self._has_reader or welcome is None or connection is None:
                return pause if welcome is not None else LOOK_MAX_S
            self._has_reader = True
        try:
            if connection.is_readable(0):
                data = self._read(connection, None)
                with self._lock:
                    self._settle(self._session.receive_data(data or b""))
                    if data == b"" or self._session.broken:
                        self._lose(connection)
                self._write(reads=True)
        except (OSError, ValueError):  # it was closed meanwhile
            with self._lock:
                self._lose(connection)
        finally:
            self._stop_reading()
        return pause

    def close(self) -> None:
        """Nothing more is asked; whoever waits is told so."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._socket is not None:
                with suppress(OSError):  # it was lost already
                    self._socket.shut()
                if not self._has_reader:
                    self._socket.close()
                    self._socket = None
            self._turn.notify_all()
        _ALL.discard(self)

    def _check(self) -> None:
        if self._closed:
            raise MessageQueueError(
                HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE, "the connection was closed"
            )

    # Waiting.

    def _wait(self, number: int, deadline: float | None, *, can_wait: bool) -> _Answer:
        """Returns the answer; reads for all if nobody does."""
        if not can_wait:
            deadline = None
        connection: Channel | None = None
        is_cancelled = False
        while True:
            with self._lock:
                while number not in self._answers and self._has_reader:
                    self._check()
                    if not self._turn.wait(_remaining(deadline)):
                        break
                if number in self._answers:
                    return self._answers.pop(number)
                self._check()
                is_late = _is_over(deadline)
                reads = not self._has_reader and not is_late
                if is_late and (self._socket is None or is_cancelled):
                    raise not_available(self._how, TimeoutError("it does not answer"))
                if is_late:
                    self._session.cancel(number)
                    self._settle(self._session.refusals)
                    is_cancelled = True
                    deadline = time.monotonic() + ANSWER_S
                if reads:
                    self._has_reader = True
                    connection = self._socket
            if reads:
                self._read_until(number, deadline, connection)
            else:
                self._write()

    def _read_until(self, number: int, deadline: float | None, connection: Channel | None) -> None:
        """Reads for all, until this answer is there or its time is over."""
        session = self._session
        try:
            while True:
                if connection is None:
                    self._reconnect(deadline)
                    if _is_over(deadline):
                        return
                    data: bytes | None = b""
                else:
                    data = self._read(connection, deadline)
                    if data is None:
                        return  # its time is over
                with self._lock:
                    if data:
                        self._settle(session.receive_data(data))
                        if session.refusals:
                            self._settle(session.refusals)
                    if connection is not None and (not data or session.broken):
                        self._lose(connection)
                    is_done = number in self._answers or self._closed
                    has_more = session.has_output
                    connection = self._socket
                if has_more:
                    self._write(reads=True)
                if is_done:
                    return
        finally:
            self._stop_reading()

    def _stop_reading(self) -> None:
        """Somebody else may read from now on."""
        with self._lock:
            self._has_reader = False
            if self._closed and self._socket is not None:
                self._socket.close()
                self._socket = None
            self._turn.notify_all()

    def _read(self, connection: Channel, deadline: float | None) -> bytes | None:
        """Bytes from the server; none if the connection is lost, None if time is over."""
        try:
            while True:
                # Who may wait for ever, and has nothing to write meanwhile, needs no look before.
                must_look = deadline is not None or connection.has_unsent
                if must_look and not connection.is_readable(_remaining(deadline)):
                    return None
                data = connection.receive()
                if data is not None:
                    return data
        except (OSError, ValueError):  # ValueError: it was closed meanwhile
            return b""

    def _settle(self, settled: list[Settled]) -> None:
        """Puts answers where those who asked find them."""
        if not settled:
            return
        for each in settled:
            self._answers[each.number] = _Answer(each.result, self._session.connections)
        settled.clear()
        self._turn.notify_all()

    @property
    def _connection(self) -> int:
        """Which connection this is, counted from 1; 0 if there is none."""
        return 0 if self._session.welcome is None else self._session.connections

    def _abandon(self, number: int, request: Request) -> None:
        """Nobody waits any more: Ctrl-C. A message that was on its way here goes back."""
        with self._lock:
            if self._closed:
                return
            answer = self._answers.pop(number, None)
            if answer is None:
                self._session.abandon(number)
                self._session.cancel(number)
            elif answer.connection == self._connection:
                back = return_of(request, answer.result)
                if back is not None:
                    self._session.abandon(self._session.ask(back))
        self._write()

    def _write(self, *, reads: bool = False) -> None:
        """Writes what is to be written; who reads is told by the socket if that fails.

        Who reads for all does not wait until it is written: he goes on reading, and writes the rest
        meanwhile. Otherwise a server that waits until its answers are read would stop them all.
        """
        with self._writing:
            with self._lock:
                connection = self._socket
                if connection is None:
                    return
                data = self._session.data_to_send()
            try:
                if data:
                    connection.put(data)
            except OSError:
                with self._lock:
                    self._lose(connection)
                return
        if reads:
            return
        try:
            # Who reads may not see that there is something to be written, so we write it. If nobody
            # reads any more, we must: the server may be waiting until its answers are read.
            while connection.has_unsent and self._has_reader:
                connection.push_soon(PUSH_S)
        except (OSError, ValueError):  # ValueError: it was closed meanwhile
            with self._lock:
                self._lose(connection)

    # Connecting.

    def _lose(self, connection: Channel) -> None:
        if self._socket is connection:
            self._socket = None
            connection.close()
            self._session.disconnected()
            self._settle(self._session.refusals)

    def _reconnect(self, deadline: float | None) -> None:
        """Makes the connection again; whoever waits is told if that takes too long."""
        until = time.monotonic() + self._how.reconnect_s
        pause = FIRST_PAUSE_S
        if self._session.breaks:
            left = _remaining(deadline)
            rest = pause_after(self._session.breaks)
            time.sleep(rest if left is None else min(rest, left))
        while not self._closed and not _is_over(deadline):
            try:
                self._connect_once()
            except MessageQueueError as wrong:
                if time.monotonic() + pause > until or self._session.refused is not None:
                    with self._lock:
                        self._settle(self._session.give_up(wrong.text))
                    return
            else:
                return
            time.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)

    def _connect_once(self) -> None:
        """One attempt, up to the server's welcome."""
        try:
            connection = dial(self._how)
        except OSError as wrong:
            raise not_available(self._how, wrong) from wrong
        try:
            with self._lock:
                self._greet(connection)
                self._socket = connection
        except (ssl.SSLError, ConnectionError) as wrong:
            connection.close()
            raise not_let_in(self._how, wrong) from wrong
        except OSError as wrong:
            connection.close()
            raise not_available(self._how, wrong) from wrong
        except BaseException:
            connection.close()
            raise

    def _greet(self, connection: Channel) -> None:
        """Says hello, and what was not answered before; returns when we are welcome."""
        session = self._session
        session.connected()
        connection.set_timeout(CONNECT_S)
        try:
            connection.send(session.data_to_send())
            while session.welcome is None:
                self._settle(session.receive_data(_some(connection)))
                if session.refused is not None or session.broken:
                    break
        except BaseException:
            session.disconnected()
            raise
        connection.set_timeout(None)
        if session.welcome is None:
            session.disconnected()
            if session.refused is not None:
                raise denied(self._how, session.refused)
            raise ConnectionError(session.broken)


def _holds(request: Request) -> bool:
    """Whether others will have to wait for what is asked for, while the application is busy."""
    return isinstance(request, OpenQueue) or (isinstance(request, Read) and request.held)


def _some(connection: Channel) -> bytes:
    """Bytes that come first."""
    while True:
        data = connection.receive()
        if data:
            return data
        if data is not None:
            raise ConnectionError("the connection was closed before a welcome")


def _remaining(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


_ALL: Final[weakref.WeakSet[RemoteDriver]] = weakref.WeakSet()


def _after_fork() -> None:
    for driver in list(_ALL):
        driver.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
