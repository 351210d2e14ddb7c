"""Queues in an event loop: what `merq.Queue` has, to be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from copy import copy
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from merq.aio.driving import AsyncDriver
from merq.aio.holding import Holding
from merq.aio.streams import PREFETCH, PREFETCH_MAX, Peeking, Receiving
from merq.aio.transactions import Transaction
from merq.aio.waiting import Caller
from merq.client import asking
from merq.client.arguments import of_kind
from merq.client.asking import FIRST, Asking, CursorAsking, number_of, one, several
from merq.client.messages import Message, ReceivedMessage
from merq.client.packets import Packer
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.body import Value
from merq.model.queue import NULL_GUID, OutgoingState, QueueProperties
from merq.model.selecting import Seek, Selection
from merq.protocol.application.reports import QueueReport, SequenceReport, TransferReport
from merq.protocol.application.requests import (
    CloseCursor,
    CloseQueue,
    DeleteQueue,
    DescribeQueue,
    DescribeTransfer,
    Family,
    ListQueues,
    ListSequences,
    OpenCursor,
    PauseQueue,
    Purge,
    Read,
    ResumeQueue,
)
from merq.protocol.application.sequence_requests import ForgetSenders
from merq.wire.build import Destination


class Queue:
    """A queue. Reading methods wait up to `timeout` seconds; None is for ever.

    A task that is cancelled while it waits for a message leaves the message in its queue. Once the
    queue manager removes it, it is received, as if the task had been cancelled a moment later: a
    transaction, or `receive_all`, is for who cannot bear that.
    """

    def __init__(self, driver: AsyncDriver, number: int, handle: int = 0) -> None:
        self._driver = driver
        self._number = number
        self._handle = handle
        self._asking = Asking(driver, number, handle)
        self._is_closed = False
        self._packer: Packer | None = None
        self._describing: Caller | None = None

    def __repr__(self) -> str:
        return f"<queue {self._number} of {self._driver.name}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends an opening by `Manager.open_queue`; for others there is nothing to close."""
        if self._handle and not self._is_closed:
            await self._driver.ask(CloseQueue(self._handle))
            self._is_closed = True

    # What it is.

    @property
    def number(self) -> int:
        """Its number on its queue manager, which no other queue ever has."""
        return self._number

    async def report(self) -> QueueReport:
        """The queue and how it stands: messages, readers, what came and went."""
        return asking.report_of(await self._driver.ask(DescribeQueue(self._number)))

    async def count(self) -> int:
        """How many messages are in it, those included that somebody is receiving."""
        return (await self.report()).messages

    async def properties(self) -> QueueProperties:
        """Everything that was set about the queue."""
        return (await self.report()).properties

    async def path_name(self) -> str:
        """Its path name."""
        return (await self.properties()).path_name

    async def label(self) -> str:
        """Its label."""
        return (await self.properties()).label

    async def transactional(self) -> bool:
        """Whether it takes messages in transactions only."""
        return (await self.properties()).transactional

    async def sequences(self) -> list[SequenceReport]:
        """Who sends transactional messages to it from elsewhere, and how far each of them is.

        At most a thousand, those of which something came last.
        """
        return asking.sequences_of(await self._driver.ask(ListSequences(self._number)))

    async def forget_senders(self, sender: UUID = NULL_GUID) -> int:
        """Forgets how far transactional messages from elsewhere are; tells of how many sequences.

        For a sender that was restored with an older clock, or in whose name somebody else has sent:
        what it sends next is taken, whichever sequence it is of. What arrived before and was not
        acknowledged may be taken a second time.

        Args:
            sender: The queue manager that sends; all of them by default.
        """
        return number_of(await self._driver.ask(ForgetSenders(self._number, sender)))

    async def change(self, **properties: Any) -> None:
        """Gives the queue other properties; whether it is transactional stays.

        Args:
            **properties: As `merq.Queue.change` has them.
        """
        await self._driver.ask(asking.alteration(self._number, properties))

    # Sending.

    async def send(
        self, body: Value | Message = None, *, tx: Transaction | None = None, **properties: Any
    ) -> str:
        r"""Sends a message; returns its id, `{guid}\n`, when it is as safe as it was to be.

        Messages that several tasks send in one turn of the loop travel together, in that order, and
        cost little more than one: `asyncio.gather` is fast. If one of those is refused, the others
        are sent by themselves and may come behind what was sent after them.

        Args:
            body: A Python value, or a whole Message.
            tx: The transaction in which it is sent; transactional queues need one.
            **properties: As Message has them, if `body` is not one.
        """
        packer = self._packer or await self._find_packer()
        kind, content = asking.kind_and_body(packer, body, properties)
        within = 0 if tx is None else asking.number_within(tx, self._driver)
        packet = kind.pack(content)
        dead_letter = kind.dead_letter_queue
        ids = await self._driver.send(self._number, packet, within, dead_letter, self._handle)
        return asking.id_text(ids)

    async def send_many(
        self,
        bodies: Iterable[Value | Message],
        *,
        tx: Transaction | None = None,
        **properties: Any,
    ) -> list[str]:
        """Sends many messages at once, all or none of them."""
        asking.check_bodies(bodies)
        packer = self._packer or await self._find_packer()
        packets, dead_letter = asking.pack_all(packer, bodies, properties)
        if not packets:
            return []
        request = self._asking.sending(packets, dead_letter, tx)
        return asking.ids_of(await self._driver.send_many(request))

    async def _find_packer(self) -> Packer:
        """Many may send for the first time at once: the queue's name is asked for once."""
        describing = self._describing
        if describing is None:
            self._describing = describing = Caller(self._driver.loop)
            self._driver.start(DescribeQueue(self._number), describing)
        await asyncio.wait((describing.future,))
        result = describing.future.result()
        if isinstance(result, MessageQueueError):
            self._describing = None
            raise copy(result)  # others wait for the same
        if self._packer is None:
            path_name = asking.report_of(result).properties.path_name
            self._packer = Packer(self._destination(path_name))
            self._describing = None
        return self._packer

    def _destination(self, path_name: str) -> Destination:
        return asking.home(self._driver.name, path_name)

    # Receiving.

    async def receive(
        self, *, timeout: float | None = None, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the first message out of the queue.

        Raises:
            ReceiveTimeout: None came in time.
        """
        return await self._one(self._asking.receiving(FIRST, timeout, tx), timeout)

    async def receive_many(
        self, most: int, *, timeout: float | None = None, tx: Transaction | None = None
    ) -> list[ReceivedMessage]:
        """Takes up to so many messages, those that are there; waits only for the first.

        Raises:
            ReceiveTimeout: None came in time.
        """
        asking.check_count(most)
        request = self._asking.receiving(FIRST, timeout, tx, most)
        return several(await self._driver.ask(request, timeout))

    def receive_all(self, *, prefetch: int = PREFETCH) -> Receiving:
        """All messages as they come, for `async for`; fast, and nothing is lost.

        A message counts as processed when the loop comes back for the next one; it is removed from
        the queue some time after that, together with others. Whatever was not processed stays in
        the queue. After a crash of the client or a lost connection the last few that were processed
        come again, at most half of `prefetch` and the one that was being processed.

        The message at which a loop is left, by `break` or an exception, goes back to the queue. Say
        `async with queue.receive_all() as messages` around the loop, and it goes back only after an
        exception; then everything is settled where the block ends.

        Args:
            prefetch: How many messages may be at hand; nobody else gets these meanwhile.
        """
        asking.check_count(prefetch)
        if prefetch > PREFETCH_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"{prefetch} messages at hand; {PREFETCH_MAX} are the most",
            )
        return Receiving(self._driver, self._asking, prefetch)

    def hold(
        self,
        most: int = 1,
        *,
        timeout: float | None = None,
        selection: Selection = FIRST,
        most_bytes: int = 0,
    ) -> Holding:
        """Messages that leave the queue only when the `async with` block ends well.

        Args:
            most: Up to so many messages, those that are there; one if they are selected.
            timeout: How long to wait for the first, in seconds; None is for ever.
            selection: Which message is meant, if not the first.
            most_bytes: No further message is added once so many bytes are there; 0 is no limit.
        """
        request = self._asking.holding(selection, timeout, most, most_bytes)
        return Holding(self._driver, request, timeout)

    async def receive_by_id(
        self, message_id: str, *, tx: Transaction | None = None
    ) -> ReceivedMessage:
        r"""Takes the message with this id, `{guid}\n`."""
        return await self._one(self._asking.receiving(asking.by_id(message_id), 0, tx))

    async def receive_by_correlation_id(
        self,
        correlation_id: bytes | str,
        *,
        timeout: float | None = 0,
        tx: Transaction | None = None,
    ) -> ReceivedMessage:
        """Takes the first message with this correlation id: 20 bytes, or the text of an id."""
        selection = asking.by_correlation(correlation_id)
        return await self._one(self._asking.receiving(selection, timeout, tx), timeout)

    async def receive_by_lookup_id(
        self, lookup_id: int, seek: Seek = Seek.CURRENT, *, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the message at a lookup identifier, or the one next to it."""
        return await self._one(self._asking.receiving(asking.by_lookup(lookup_id, seek), 0, tx))

    # Peeking.

    async def peek(self, *, timeout: float | None = None) -> ReceivedMessage:
        """The first message, which stays.

        Raises:
            ReceiveTimeout: None came in time.
        """
        return await self._one(self._asking.peeking(FIRST, timeout), timeout)

    async def peek_by_id(self, message_id: str) -> ReceivedMessage:
        r"""The message with this id, `{guid}\n`, which stays."""
        return await self._one(self._asking.peeking(asking.by_id(message_id), 0))

    async def peek_by_correlation_id(
        self, correlation_id: bytes | str, *, timeout: float | None = 0
    ) -> ReceivedMessage:
        """The first message with this correlation id: 20 bytes, or the text of an id; it stays."""
        selection = asking.by_correlation(correlation_id)
        return await self._one(self._asking.peeking(selection, timeout), timeout)

    async def peek_by_lookup_id(self, lookup_id: int, seek: Seek = Seek.CURRENT) -> ReceivedMessage:
        """The message at a lookup identifier, or the one next to it, which stays."""
        return await self._one(self._asking.peeking(asking.by_lookup(lookup_id, seek), 0))

    def peek_all(self) -> Peeking:
        """All messages from the first on, for `async for`; those that come meanwhile too."""
        return Peeking(self._driver, self._asking)

    async def _one(self, request: Read, timeout: float | None = 0) -> ReceivedMessage:
        return one(await self._driver.ask(request, timeout))

    async def cursor(self) -> Cursor:
        """A cursor before the first message."""
        number = number_of(await self._driver.ask(OpenCursor(self._number, self._handle)))
        return Cursor(self._driver, self._asking, number)

    # Everything at once, and parts.

    async def purge(self) -> int:
        """Removes all messages; tells how many there were."""
        return number_of(await self._driver.ask(Purge(self._number, self._handle)))

    async def delete(self) -> None:
        """Removes the queue, its journal, its subqueues and everything in them."""
        await self._driver.ask(DeleteQueue(self._number))

    async def subqueue(self, name: str) -> Queue:
        """A subqueue; it is made if it is not there, and goes at the next start if it is empty."""
        number = number_of(await self._driver.ask(asking.sub_creation(self._number, name)))
        return Queue(self._driver, number)

    async def subqueues(self) -> list[Queue]:
        """The subqueues that there are."""
        found = await self._driver.ask(ListQueues(Family.SUBQUEUES, self._number))
        return [Queue(self._driver, each.properties.number) for each in asking.reports_of(found)]

    async def move(
        self, message: ReceivedMessage | int, to: Queue, *, tx: Transaction | None = None
    ) -> None:
        """Moves a message that was peeked, or its lookup identifier, to a subqueue or from there.

        It keeps its lookup identifier, and its place among the others there.
        """
        target = of_kind("to", to, Queue)
        await self._driver.ask(self._asking.moving(message, target._asking, tx))  # noqa: SLF001


class Cursor:
    """[MS-MQDMPR] 3.2: walks over the messages of a queue, which may come and go meanwhile."""

    def __init__(self, driver: AsyncDriver, queue: Asking, number: int) -> None:
        self._driver = driver
        self._number = number
        self._asking = CursorAsking(queue, number)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def peek(self, *, timeout: float | None = 0) -> ReceivedMessage:
        """The message at the cursor, which stays; at first, the first message."""
        return one(await self._driver.ask(self._asking.peeking(timeout, next_one=False), timeout))

    async def peek_next(self, *, timeout: float | None = 0) -> ReceivedMessage:
        """Moves on to the next message, which stays."""
        return one(await self._driver.ask(self._asking.peeking(timeout, next_one=True), timeout))

    async def receive(
        self, *, timeout: float | None = 0, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the message at the cursor, or the next one if that was taken."""
        return one(await self._driver.ask(self._asking.receiving(timeout, tx), timeout))

    async def close(self) -> None:
        """The cursor is not needed any more; who waits through it is told so."""
        if not self._asking.is_closed:
            self._asking.is_closed = True
            await self._driver.ask(CloseCursor(self._number))


class OutgoingQueue(Queue):
    """Where messages to a queue on another computer wait."""

    def _destination(self, path_name: str) -> Destination:
        return asking.abroad(path_name)

    async def destination(self) -> str:
        """The format name of the queue that they go to."""
        return await self.path_name()

    async def state(self) -> OutgoingState:
        """How far it is with reaching the destination."""
        return (await self.report()).state

    async def transfer(self) -> TransferReport:
        """How far it is with sending: next hops, connection history, what is acknowledged."""
        return asking.transfer_of(await self._driver.ask(DescribeTransfer(self._number)))

    async def pause(self) -> None:
        """Nothing leaves the queue until it is resumed."""
        await self._driver.ask(PauseQueue(self._number))

    async def resume(self) -> None:
        """Messages may leave the queue again."""
        await self._driver.ask(ResumeQueue(self._number))
