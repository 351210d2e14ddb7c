"""Receiving from a queue manager behind a socket, in two steps.

[MS-MQDMPR] 3.1.7.1.11, 3.1.7.1.12: a message is handed out and held, and goes when the client says
that it has it. So none is lost with a connection: before the second step it goes back to its queue,
and the application gets it only after that step is answered.
"""

from __future__ import annotations

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.delivered import Delivered
from merq.protocol.application.reports import Result
from merq.protocol.application.requests import EndReceive, Read, Request


def is_two_phased(request: Request) -> bool:
    """Whether this takes a message out of a queue, outside of a transaction.

    Who asks for messages to be held, as `Queue.hold` does, takes the second step himself.
    """
    if not isinstance(request, Read) or request.held:
        return False
    return not request.peek and not request.transaction


def removal_of(request: Read, received: Result) -> EndReceive:
    """The second step: the client has got these messages."""
    return EndReceive(request.queue, _lookup_ids(received), delete=True)


def return_of(request: Request, received: Result) -> EndReceive | None:
    """The other second step: nobody wants these messages any more. None if there are none."""
    if not isinstance(request, Read) or not request.held:
        return None
    ids = _lookup_ids(received)
    return EndReceive(request.queue, ids, delete=False) if ids else None


def _lookup_ids(received: Result) -> list[int]:
    messages = received if isinstance(received, list) else [received]
    return [each.lookup_id for each in messages if isinstance(each, Delivered)]


def went_back() -> MessageQueueError:
    """The second step is not taken: the messages went back with their connection."""
    return MessageQueueError(
        HResult.MQ_ERROR_TRANSACTION_SEQUENCE, "the connection was lost, and the message went back"
    )


def is_retaken(wrong: MessageQueueError) -> bool:
    """Whether the second step was refused because the messages went back meanwhile."""
    return wrong.code == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
