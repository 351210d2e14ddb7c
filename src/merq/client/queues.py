"""Queues as applications use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from merq.client import asking
from merq.client.arguments import of_kind
from merq.client.asking import FIRST, Asking, CursorAsking, number_of, one, several
from merq.client.driving import Driving
from merq.client.holding import Holding
from merq.client.messages import Message, ReceivedMessage
from merq.client.packets import Packer
from merq.client.transactions import Transaction
from merq.errors import MerqError, MessageQueueError
from merq.model.body import Value
from merq.model.queue import NULL_GUID, OutgoingState, QueueProperties
from merq.model.selecting import ByLookup, Seek, Selection
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
    ResumeQueue,
)
from merq.protocol.application.sequence_requests import ForgetSenders
from merq.wire.build import Destination


class Queue:
    """A queue. Reading methods wait up to `timeout` seconds; None is for ever."""

    def __init__(self, driver: Driving, number: int, handle: int = 0) -> None:
        self._driver = driver
        self._number = number
        self._handle = handle
        self._asking = Asking(driver, number, handle)
        self._is_closed = False
        self._packer: Packer | None = None

    def __repr__(self) -> str:
        try:
            return f"<queue {self.path_name}>"
        except MerqError as gone:
            return f"<queue {self._number}: {gone}>"

    def __len__(self) -> int:
        return self.report.messages

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends an opening by `Manager.open_queue`; for others there is nothing to close."""
        if self._handle and not self._is_closed:
            self._driver.ask(CloseQueue(self._handle))
            self._is_closed = True

    # What it is.

    @property
    def number(self) -> int:
        """Its number on its queue manager, which no other queue ever has."""
        return self._number

    @property
    def report(self) -> QueueReport:
        """The queue and how it stands: messages, readers, what came and went."""
        return asking.report_of(self._driver.ask(DescribeQueue(self._number)))

    @property
    def properties(self) -> QueueProperties:
        """Everything that was set about the queue."""
        return self.report.properties

    @property
    def path_name(self) -> str:
        """Its path name."""
        return self.properties.path_name

    @property
    def label(self) -> str:
        """Its label."""
        return self.properties.label

    @property
    def transactional(self) -> bool:
        """Whether it takes messages in transactions only."""
        return self.properties.transactional

    def sequences(self) -> list[SequenceReport]:
        """Who sends transactional messages to it from elsewhere, and how far each of them is.

        At most a thousand, those of which something came last.
        """
        return asking.sequences_of(self._driver.ask(ListSequences(self._number)))

    def forget_senders(self, sender: UUID = NULL_GUID) -> int:
        """Forgets how far transactional messages from elsewhere are; tells of how many sequences.

        For a sender that was restored with an older clock, or in whose name somebody else has sent:
        what it sends next is taken, whichever sequence it is of. What arrived before and was not
        acknowledged may be taken a second time.

        Args:
            sender: The queue manager that sends; all of them by default.
        """
        return number_of(self._driver.ask(ForgetSenders(self._number, sender)))

    def change(self, **properties: Any) -> None:
        """Gives the queue other properties; whether it is transactional stays.

        Args:
            **properties: label, journal, quota_kb, journal_quota_kb, base_priority, type_id,
                poison_after, authenticate, privacy_level, multicast_address, as
                `Manager.create_queue` has them.
        """
        self._driver.ask(asking.alteration(self._number, properties))

    # Sending.

    def send(
        self, body: Value | Message = None, *, tx: Transaction | None = None, **properties: Any
    ) -> str:
        r"""Sends a message; returns its id, `{guid}\n`, when it is as safe as it was to be.

        Args:
            body: A Python value, or a whole Message.
            tx: The transaction in which it is sent; transactional queues need one.
            **properties: As Message has them, if `body` is not one.
        """
        packer = self._packer or self._find_packer()
        kind, content = asking.kind_and_body(packer, body, properties)
        packets = [kind.pack(content)]
        request = self._asking.sending(packets, kind.dead_letter_queue, tx)
        return asking.id_of(self._driver.ask(request))

    def send_many(
        self,
        bodies: Iterable[Value | Message],
        *,
        tx: Transaction | None = None,
        **properties: Any,
    ) -> list[str]:
        """Sends many messages at once, all or none of them; much faster than one at a time."""
        asking.check_bodies(bodies)
        packer = self._packer or self._find_packer()
        packets, dead_letter = asking.pack_all(packer, bodies, properties)
        if not packets:
            return []
        return asking.ids_of(self._driver.ask(self._asking.sending(packets, dead_letter, tx)))

    def _find_packer(self) -> Packer:
        self._packer = Packer(self._destination())
        return self._packer

    def _destination(self) -> Destination:
        return asking.home(self._driver.name, self.path_name)

    # Receiving.

    def receive(
        self, *, timeout: float | None = None, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the first message out of the queue.

        Raises:
            ReceiveTimeout: None came in time.
        """
        return one(self._driver.ask(self._asking.receiving(FIRST, timeout, tx), timeout))

    def receive_many(
        self, most: int, *, timeout: float | None = None, tx: Transaction | None = None
    ) -> list[ReceivedMessage]:
        """Takes up to so many messages, those that are there; waits only for the first.

        Raises:
            ReceiveTimeout: None came in time.
        """
        asking.check_count(most)
        request = self._asking.receiving(FIRST, timeout, tx, most)
        return several(self._driver.ask(request, timeout))

    def receive_by_id(self, message_id: str, *, tx: Transaction | None = None) -> ReceivedMessage:
        r"""Takes the message with this id, `{guid}\n`."""
        return one(self._driver.ask(self._asking.receiving(asking.by_id(message_id), 0, tx)))

    def receive_by_correlation_id(
        self,
        correlation_id: bytes | str,
        *,
        timeout: float | None = 0,
        tx: Transaction | None = None,
    ) -> ReceivedMessage:
        """Takes the first message with this correlation id: 20 bytes, or the text of an id."""
        selection = asking.by_correlation(correlation_id)
        return one(self._driver.ask(self._asking.receiving(selection, timeout, tx), timeout))

    def receive_by_lookup_id(
        self, lookup_id: int, seek: Seek = Seek.CURRENT, *, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the message at a lookup identifier, or the one next to it."""
        selection = asking.by_lookup(lookup_id, seek)
        return one(self._driver.ask(self._asking.receiving(selection, 0, tx)))

    def hold(
        self,
        most: int = 1,
        *,
        timeout: float | None = None,
        selection: Selection = FIRST,
        most_bytes: int = 0,
    ) -> Holding:
        """Messages that leave the queue only when the `with` block ends well.

        Raises:
            ReceiveTimeout: None came in time.

        Args:
            most: Up to so many messages, those that are there; one if they are selected.
            timeout: How long to wait for the first, in seconds; None is for ever.
            selection: Which message is meant, if not the first.
            most_bytes: No further message is added once so many bytes are there; 0 is no limit.
        """
        request = self._asking.holding(selection, timeout, most, most_bytes)
        return Holding(self._driver, request, timeout)

    # Peeking.

    def peek(self, *, timeout: float | None = None) -> ReceivedMessage:
        """The first message, which stays.

        Raises:
            ReceiveTimeout: None came in time.
        """
        return one(self._driver.ask(self._asking.peeking(FIRST, timeout), timeout))

    def peek_by_id(self, message_id: str) -> ReceivedMessage:
        r"""The message with this id, `{guid}\n`, which stays."""
        return one(self._driver.ask(self._asking.peeking(asking.by_id(message_id), 0)))

    def peek_by_correlation_id(
        self, correlation_id: bytes | str, *, timeout: float | None = 0
    ) -> ReceivedMessage:
        """The first message with this correlation id: 20 bytes, or the text of an id; it stays."""
        selection = asking.by_correlation(correlation_id)
        return one(self._driver.ask(self._asking.peeking(selection, timeout), timeout))

    def peek_by_lookup_id(self, lookup_id: int, seek: Seek = Seek.CURRENT) -> ReceivedMessage:
        """The message at a lookup identifier, or the one next to it, which stays."""
        selection = asking.by_lookup(lookup_id, seek)
        return one(self._driver.ask(self._asking.peeking(selection, 0)))

    def peek_all(self) -> Iterator[ReceivedMessage]:
        """All messages from the first on, those included that come meanwhile."""
        lookup_id, seek = 0, Seek.FIRST
        while True:
            place = ByLookup(lookup_id, seek)
            request = self._asking.peeking(place, 0, asking.PEEKED_AT_ONCE)
            try:
                messages = several(self._driver.ask(request))
            except MessageQueueError as end:
                if asking.is_end(end):
                    return
                raise
            yield from messages
            lookup_id, seek = messages[-1].lookup_id, Seek.NEXT

    def cursor(self) -> Cursor:
        """A cursor before the first message."""
        return Cursor(self._driver, self._asking)

    # Everything at once, and parts.

    def purge(self) -> int:
        """Removes all messages; tells how many there were."""
        return number_of(self._driver.ask(Purge(self._number, self._handle)))

    def delete(self) -> None:
        """Removes the queue, its journal, its subqueues and everything in them."""
        self._driver.ask(DeleteQueue(self._number))

    def subqueue(self, name: str) -> Queue:
        """A subqueue; it is made if it is not there, and goes at the next start if it is empty."""
        number = number_of(self._driver.ask(asking.sub_creation(self._number, name)))
        return Queue(self._driver, number)

    def subqueues(self) -> list[Queue]:
        """The subqueues that there are."""
        found = asking.reports_of(self._driver.ask(ListQueues(Family.SUBQUEUES, self._number)))
        return [Queue(self._driver, each.properties.number) for each in found]

    def move(
        self, message: ReceivedMessage | int, to: Queue, *, tx: Transaction | None = None
    ) -> None:
        """Moves a message that was peeked, or its lookup identifier, to a subqueue or from there.

        It keeps its lookup identifier, and its place among the others there.
        """
        target = of_kind("to", to, Queue)
        self._driver.ask(self._asking.moving(message, target._asking, tx))  # noqa: SLF001


class Cursor:
    """[MS-MQDMPR] 3.2: walks over the messages of a queue, which may come and go meanwhile."""

    def __init__(self, driver: Driving, queue: Asking) -> None:
        self._driver = driver
        self._cursor = number_of(driver.ask(OpenCursor(queue.number, queue.handle)))
        self._asking = CursorAsking(queue, self._cursor)

    def peek(self, *, timeout: float | None = 0) -> ReceivedMessage:
        """The message at the cursor, which stays; at first, the first message."""
        return one(self._driver.ask(self._asking.peeking(timeout, next_one=False), timeout))

    def peek_next(self, *, timeout: float | None = 0) -> ReceivedMessage:
        """Moves on to the next message, which stays."""
        return one(self._driver.ask(self._asking.peeking(timeout, next_one=True), timeout))

    def receive(
        self, *, timeout: float | None = 0, tx: Transaction | None = None
    ) -> ReceivedMessage:
        """Takes the message at the cursor, or the next one if that was taken."""
        return one(self._driver.ask(self._asking.receiving(timeout, tx), timeout))

    def close(self) -> None:
        """The cursor is not needed any more; who waits through it is told so."""
        if not self._asking.is_closed:
            self._asking.is_closed = True
            self._driver.ask(CloseCursor(self._cursor))


class OutgoingQueue(Queue):
    """Where messages to a queue on another computer wait."""

    def _destination(self) -> Destination:
        return asking.abroad(self.path_name)

    @property
    def destination(self) -> str:
        """The format name of the queue that they go to."""
        return self.path_name

    @property
    def state(self) -> OutgoingState:
        """How far it is with reaching the destination."""
        return self.report.state

    def transfer(self) -> TransferReport:
        """How far it is with sending: next hops, connection history, what is acknowledged."""
        return asking.transfer_of(self._driver.ask(DescribeTransfer(self._number)))

    def pause(self) -> None:
        """Nothing leaves the queue until it is resumed."""
        self._driver.ask(PauseQueue(self._number))

    def resume(self) -> None:
        """Messages may leave the queue again."""
        self._driver.ask(ResumeQueue(self._number))
