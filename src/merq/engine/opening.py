"""[MS-MQDMPR] 3.1.1.16, 3.1.7.1.5, 3.1.7.1.6: opening and closing queues, alone or with others.

Whoever opens a queue to receive from it may deny that to others. What is done without opening is
as if the queue were opened for it alone, shared with everybody, and closed again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from merq.engine.cursor import Cursor
from merq.engine.queue import Queue
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.access import Access, Share

DESCRIPTORS_MAX: Final = 100_000
"""Queues that are open at the same time, each as often as it is opened."""

CURSORS_MAX: Final = 10_000
"""Cursors of one opened queue."""


RECEIVING: Final = frozenset({Access.RECEIVE, Access.RECEIVE_ADMIN})
PEEKING: Final = frozenset({Access.PEEK, Access.PEEK_ADMIN})

_ALLOWED: Final[dict[Access, frozenset[Access]]] = {
    Access.RECEIVE: frozenset({Access.RECEIVE, Access.PEEK}),
    Access.SEND: frozenset({Access.SEND}),
    Access.PEEK: frozenset({Access.PEEK}),
    Access.MOVE: frozenset({Access.MOVE}),
    Access.RECEIVE_ADMIN: frozenset({Access.RECEIVE, Access.PEEK}),
    Access.PEEK_ADMIN: frozenset({Access.PEEK}),
}
"""What each access type allows."""


@dataclass(slots=True, eq=False, kw_only=True)
class Descriptor:
    """[MS-MQDMPR] 3.1.1.16: OpenQueueDescriptor, one opening of a queue."""

    handle: int
    queue: Queue
    access: Access
    share: Share
    cursors: dict[int, Cursor] = field(default_factory=dict)


class Opened:
    """Every queue that is open."""

    def __init__(self) -> None:
        self._descriptors: dict[int, Descriptor] = {}
        self._count = 0

    def open(self, queue: Queue, access: Access, share: Share) -> Descriptor:
        """[MS-MQDMPR] 3.1.7.1.5: a queue is open from now on.

        Raises:
            MessageQueueError: The queue has no such access, or somebody else has it for himself.
        """
        _refuse_access(queue, access, share)
        _refuse_sharing(queue, access, share)
        if len(self._descriptors) >= DESCRIPTORS_MAX:
            raise MessageQueueError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"{DESCRIPTORS_MAX} queues are open: close some",
            )
        self._count += 1
        opened = Descriptor(handle=self._count, queue=queue, access=access, share=share)
        self._descriptors[opened.handle] = opened
        queue.descriptors[opened.handle] = opened
        return opened

    def get(self, handle: int) -> Descriptor:
        """The opening with this handle.

        Raises:
            MessageQueueError: It was closed.
        """
        found = self._descriptors.get(handle)
        if found is None:
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_HANDLE, "the queue was closed: open it anew"
            )
        return found

    def remove(self, opened: Descriptor) -> None:
        """[MS-MQDMPR] 3.1.7.1.6: an opening is over, and what it denied to others."""
        del self._descriptors[opened.handle]
        opened.queue.descriptors.pop(opened.handle, None)
        opened.cursors.clear()


def check_use(queue: Queue, needed: Access, opened: Descriptor | None) -> None:
    """Refuses what an opening does not allow, or what somebody else has denied.

    Raises:
        MessageQueueError: The text says which.
    """
    if opened is not None:
        if needed not in _ALLOWED[opened.access]:
            raise MessageQueueError(
                HResult.MQ_ERROR_ACCESS_DENIED,
                f"{queue.properties.path_name} was opened to {opened.access.value}: open it to "
                f"{needed.value}",
            )
    elif needed is Access.RECEIVE and any(
        other.share is Share.DENY_RECEIVE for other in queue.descriptors.values()
    ):
        raise MessageQueueError(
            HResult.MQ_ERROR_SHARING_VIOLATION,
            f"{queue.properties.path_name} is open to somebody who denies receiving to others",
        )


def _refuse_access(queue: Queue, access: Access, share: Share) -> None:
    path = queue.properties.path_name
    administrative = access in {Access.RECEIVE_ADMIN, Access.PEEK_ADMIN}
    if queue.is_outgoing and not administrative and access is not Access.SEND:
        raise MessageQueueError(
            HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
            f"{path} is on another computer: here its messages are read with administrative access",
        )
    if administrative and not queue.is_outgoing:
        raise MessageQueueError(
            HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE,
            f"{path} is not an outgoing queue: administrative access is for those",
        )
    if share is Share.DENY_RECEIVE and access in {Access.SEND, Access.MOVE}:
        raise MessageQueueError(
            HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE,
            f"who opens {path} to {access.value} cannot deny receiving to others",
        )


def _refuse_sharing(queue: Queue, access: Access, share: Share) -> None:
    """[MS-MQDMPR] 3.1.7.1.5: whom the openings that there are shut out."""
    receives = access in RECEIVING
    for other in queue.descriptors.values():
        denies = other.share is Share.DENY_RECEIVE
        if denies and other.access in RECEIVING:
            refused = share is Share.DENY_RECEIVE or receives
        elif denies and other.access in PEEKING:
            refused = receives
        else:
            refused = other.access in RECEIVING and share is Share.DENY_RECEIVE
        if refused:
            raise MessageQueueError(
                HResult.MQ_ERROR_SHARING_VIOLATION,
                f"{queue.properties.path_name} is open elsewhere ({other.access.value}, "
                f"{other.share.value}); it cannot be opened to {access.value}, {share.value}",
            )
