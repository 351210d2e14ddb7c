r"""Queue names as people type them.

`orders` is `.\private$\orders`; `orders;poison` a subqueue and `orders;journal` a journal of it;
`deadletter`, `deadxact` and `journal` are the system's. A shell eats backslashes that are not
quoted, so `/` may stand for them: `./private$/orders`. Format names are taken as they are.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from merq.errors import MessageQueueError, NameSyntaxError
from merq.hresult import HResult
from merq.model.names import LOCAL_COMPUTER, PathName, parse_path_name
from merq.model.names.path_names import FORMAT_NAME_PREFIXES
from merq.protocol.application.reports import QueueReport
from merq.protocol.application.requests import Family

if TYPE_CHECKING:
    from merq.client.manager import Manager
    from merq.client.queues import OutgoingQueue, Queue

PRIVATE: Final = ".\\private$\\"
SYSTEM_NAMES: Final = {
    "deadletter": r".\system$;DEADLETTER",
    "deadxact": r".\system$;DEADXACT",
    "journal": r".\system$;JOURNAL",
}
NEAREST_MAX: Final = 3
"""Names that are offered in place of one that is not found."""

_LOCAL: Final = frozenset({".", "localhost"})
_SHORT: Final = {path.lower(): name for name, path in SYSTEM_NAMES.items()}


def is_format_name(text: str) -> bool:
    """Whether it says how to reach a queue, `DIRECT=...`, and not which queue of a computer."""
    prefix, equals, _ = text.partition("=")
    return bool(equals) and prefix.strip().upper() in FORMAT_NAME_PREFIXES


def path_name_of(text: str) -> str:
    """The path name that is meant."""
    if "\\" not in text and "/" not in text:
        return SYSTEM_NAMES.get(text.lower(), f"{PRIVATE}{text}")
    path = text.replace("/", "\\")
    return f".\\{path}" if path.lower().startswith(("private$\\", "system$")) else path


def short_name(path_name: str) -> str:
    """The shortest name that means the queue: what `path_name_of` makes longer."""
    if path_name.lower() in _SHORT:
        return _SHORT[path_name.lower()]
    short = path_name.removeprefix(PRIVATE) if path_name.startswith(PRIVATE) else path_name
    return short if path_name_of(short) == path_name else path_name


def find_queue(manager: Manager, text: str) -> Queue:
    """The queue that a name means; for a format name, the outgoing queue to there.

    Raises:
        MessageQueueError: There is none; the text has the nearest names.
    """
    if is_format_name(text):
        return find_outgoing(manager, text)
    path = path_name_of(text)
    try:
        return manager.queue(path)
    except MessageQueueError as wrong:
        if wrong.code != HResult.MQ_ERROR_QUEUE_NOT_FOUND:
            raise
        names = [short_name(each.properties.path_name) for each in manager.reports(Family.ALL)]
        raise _not_found(f"there is no queue named {path}", text, names) from wrong


def find_outgoing(manager: Manager, text: str) -> OutgoingQueue:
    """An outgoing queue by its destination's format name, or a part of that which only it has.

    Raises:
        MessageQueueError: There is none; the text has the nearest names.
    """
    queues = {each.destination: each for each in manager.outgoing_queues()}
    wanted = (text if is_format_name(text) else text.replace("/", "\\")).lower()
    same = [name for name in queues if name.lower() == wanted]
    found = same or [name for name in queues if wanted in name.lower()]
    if len(found) == 1:
        return queues[found[0]]
    if found:
        raise MessageQueueError(
            HResult.MQ_ERROR_QUEUE_NOT_FOUND,
            f"{text} is in the names of {len(found)} outgoing queues: {', '.join(found)}",
        )
    raise _not_found(f"no outgoing queue goes to {text}", text, list(queues))


def _not_found(what: str, text: str, names: list[str]) -> MessageQueueError:
    known = {name.lower(): name for name in names}
    near = difflib.get_close_matches(text.lower(), list(known), NEAREST_MAX, 0.5)
    hint = f"; near it: {', '.join(known[name] for name in near)}" if near else ""
    if text.lower().startswith((".private$", "private$")) and "\\" not in text:
        hint = r"; the shell may have eaten the backslashes: quote the name, or write / for \ "
    return MessageQueueError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, what + hint.rstrip())


def destination_of(manager: Manager, text: str) -> Queue | str:
    """Where to send: a queue of this queue manager, or a format name."""
    if is_format_name(text):
        return text
    path = _parsed(path_name_of(text))
    if path.computer.lower() in {*_LOCAL, manager.name.lower()}:
        return find_queue(manager, text)
    return f"DIRECT=OS:{path}"


def reference_to(manager: Manager, text: str) -> str:
    """A queue that a message names.

    One of this queue manager stays `.`: on the way to others it becomes an address of its own.
    """
    if not text or is_format_name(text):
        return text
    path = _parsed(path_name_of(text))
    is_here = path.computer.lower() in {*_LOCAL, manager.name.lower()}
    return f"DIRECT=OS:{path.on(LOCAL_COMPUTER) if is_here else path}"


def _parsed(path_name: str) -> PathName:
    try:
        return parse_path_name(path_name)
    except NameSyntaxError as wrong:
        raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, str(wrong)) from wrong


def display_name(report: QueueReport) -> str:
    """A queue's name in a table."""
    return short_name(report.properties.path_name)
