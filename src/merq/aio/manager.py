"""A queue manager in an event loop: what `merq.connect` gives, to be awaited."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, Unpack
from uuid import UUID

from merq.aio.driving import AsyncDriver
from merq.aio.queues import OutgoingQueue, Queue
from merq.aio.transactions import Transaction
from merq.client import asking
from merq.client.asking import QueueOptions, number_of
from merq.client.messages import Message
from merq.model.access import Access, Share
from merq.model.body import Value
from merq.protocol.application.reports import (
    LinkReport,
    QueueReport,
    Sighting,
    Status,
)
from merq.protocol.application.requests import (
    AskStatus,
    BringOnline,
    Family,
    ListLinks,
    ListPrepared,
    OpenQueue,
    TakeOffline,
)


class Manager:
    """A queue manager. Use it in an `async with` block, or close it; from one event loop."""

    def __init__(self, driver: AsyncDriver) -> None:
        self._driver = driver

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def name(self) -> str:
        """The computer name that other names call the queue manager by."""
        return self._driver.name

    @property
    def guid(self) -> UUID:
        """The queue manager's identifier."""
        return self._driver.guid

    async def throttled(self) -> bool:
        """Whether disk or memory runs low and no message is taken until there is more."""
        return (await self.status()).throttled

    async def status(self) -> Status:
        """How the queue manager is: what it holds, how long it runs, what runs low."""
        return asking.status_of(await self._driver.ask(AskStatus()))

    async def why(self, message_id: str) -> list[Sighting]:
        r"""Every place where the message `{guid}\n` is, a copy of it, or what was told about it."""
        return asking.sightings_of(await self._driver.ask(asking.tracing(message_id)))

    async def close(self) -> None:
        """Ends the connection; whoever waits is told so. What is open ends with it."""
        await self._driver.close()

    # Queues.

    async def create_queue(self, path_name: str, **options: Unpack[QueueOptions]) -> Queue:
        r"""Makes a private queue, such as `.\private$\orders`.

        Args:
            path_name: The queue's name.
            **options: What it is like, as `merq.Manager.create_queue` has it.
        """
        request = asking.creation(path_name, options)
        return Queue(self._driver, number_of(await self._driver.ask(request)))

    async def queue(self, path_name: str) -> Queue:
        r"""A queue that exists: private, `;JOURNAL`, or `.\system$;DEADLETTER` and its like."""
        return Queue(self._driver, number_of(await self._driver.ask(asking.finding(path_name))))

    async def open_queue(
        self,
        path_name: str,
        access: Access = Access.RECEIVE,
        share: Share = Share.DENY_NONE,
    ) -> Queue:
        """Opens a queue for some use, until it is closed; others may be shut out meanwhile.

        Raises:
            MessageQueueError: MQ_ERROR_SHARING_VIOLATION, somebody else has it open.
        """
        request = asking.finding(path_name)
        asking.check_opening(access, share)
        number = number_of(await self._driver.ask(request))
        handle = number_of(await self._driver.ask(OpenQueue(number, access, share)))
        return Queue(self._driver, number, handle)

    async def queues(self) -> list[Queue]:
        """The private queues, without those that every queue manager has."""
        return [Queue(self._driver, each.properties.number) for each in await self.reports()]

    async def reports(self, family: Family = Family.PRIVATE) -> list[QueueReport]:
        """The queues of a kind and how they stand, at one moment."""
        return asking.reports_of(await self._driver.ask(asking.listing(family)))

    async def outgoing_queues(self) -> list[OutgoingQueue]:
        """Where messages to other computers wait; each destination has its own."""
        found = await self.reports(Family.OUTGOING)
        return [OutgoingQueue(self._driver, each.properties.number) for each in found]

    # Messages.

    async def send(
        self,
        format_name: str,
        body: Value | Message = None,
        *,
        tx: Transaction | None = None,
        **properties: Any,
    ) -> str:
        r"""Sends a message to where a format name leads, or several; returns its id.

        Args:
            format_name: Such as `DIRECT=OS:server\private$\orders`; several, separated by commas,
                each get a copy, all or none; copies have ids in a row, and the first is returned.
            body: A Python value, or a whole Message.
            tx: The transaction in which it is sent.
            **properties: As Message has them, if `body` is not one.
        """
        request = asking.sending_to(format_name, body, properties, tx, self._driver)
        return asking.id_of(await self._driver.ask(request))

    async def send_many(
        self,
        format_name: str,
        bodies: Iterable[Value | Message],
        *,
        tx: Transaction | None = None,
        **properties: Any,
    ) -> list[str]:
        r"""Sends many messages to where a format name leads, all or none; returns their ids.

        Much faster than one at a time. Each is a message of its own, unlike the copies that `send`
        makes for several names.

        Args:
            format_name: Such as `DIRECT=OS:server\private$\orders`; one name, not several.
            bodies: Python values, or whole Messages.
            tx: The transaction in which they are sent.
            **properties: As Message has them, for bodies that are none.
        """
        request = asking.sending_many_to(format_name, bodies, properties, tx, self._driver)
        return [] if request is None else asking.ids_of(await self._driver.send_many(request))

    # Other queue managers.

    async def links(self) -> list[LinkReport]:
        """The connections with other queue managers: who is there, and for which destinations."""
        return asking.links_of(await self._driver.ask(ListLinks()))

    async def take_offline(self) -> None:
        """[MS-MQDMPR] 3.1.4.12: ends sessions with other queue managers, and allows no new ones.

        Messages to others wait until it is brought online, or the queue manager starts anew.
        """
        await self._driver.ask(TakeOffline())

    async def bring_online(self) -> None:
        """[MS-MQDMPR] 3.1.4.13: allows sessions with other queue managers again."""
        await self._driver.ask(BringOnline())

    # Transactions.

    def transaction(self) -> Transaction:
        """A transaction, for an `async with` block: it commits, or aborts on an exception."""
        return Transaction(self._driver)

    async def prepared_transactions(self) -> list[Transaction]:
        """Transactions that were prepared, also before a restart, and wait for how they end."""
        found = asking.identifiers_of(await self._driver.ask(ListPrepared()))
        return [Transaction(self._driver, 0, name) for name in found]
