"""The columns of a queue's messages: what they are called, and of which type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from merq.spark.options import BadOption


class Column(NamedTuple):
    """A column.

    Attributes:
        name: As SQL has it.
        kind: Its type, in SQL.
        meaning: For people.
    """

    name: str
    kind: str
    meaning: str


COLUMNS: Final = (
    Column("queue", "string", "the queue's path name, with its computer"),
    Column("message_id", "string", r"`{guid}\number`"),
    Column("lookup_id", "bigint", "its place in the queue; the high byte is its priority"),
    Column("sequence", "bigint", "the order in which messages came to the queue manager"),
    Column("label", "string", ""),
    Column("body", "binary", "as it was sent"),
    Column("body_type", "int", "[MS-MQMQ] 2.2.12: VT_LPWSTR is 31, bytes are 0x2011"),
    Column("value", "string", "the body as text where its type says that it is"),
    Column("priority", "int", "0 to 7"),
    Column("delivery", "string", "express, recoverable or transactional"),
    Column("class", "string", "MQMSG_CLASS_NORMAL, or which acknowledgment it is"),
    Column("correlation_id", "binary", "20 bytes"),
    Column("sent_time", "timestamp", "by the clock of who sent it, to the second"),
    Column("arrived_time", "timestamp", "by the clock of the queue manager, to the second"),
    Column("source_qm", "string", "the GUID of the queue manager that it was sent from"),
    Column("response_queue", "string", "a format name"),
    Column("admin_queue", "string", "a format name"),
    Column("app_tag", "bigint", "the number that the application gave it"),
    Column("sender_id", "binary", "the SID of who sent it"),
    Column("transaction_id", "string", r"`{guid}\number`"),
    Column("first_in_xact", "boolean", "it is the first of its transaction"),
    Column("last_in_xact", "boolean", "it is the last of its transaction"),
    Column("extension", "binary", "bytes that applications agree on"),
    Column("abort_count", "int", "how often receiving it was aborted"),
    Column("move_count", "int", "how often it was moved to a subqueue, or back"),
    Column("soap_envelope", "string", "of messages that came over SOAP"),
    Column("destination", "string", "where it was sent, a format name"),
    Column("body_text", "string", "the body as text wherever that makes sense"),
)
"""All columns, in their order."""

BY_NAME: Final = {each.name: each for each in COLUMNS}
RARE: Final = frozenset(
    {
        *("sender_id", "extension", "abort_count", "move_count", "soap_envelope", "destination"),
        "body_text",
    }
)
"""Columns that are there only if they are asked for."""

USUAL: Final = tuple(each.name for each in COLUMNS if each.name not in RARE)


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Columns that were asked for by name; `*` is all of them, and none means the usual ones.

    Raises:
        BadOption: One is not known.
    """
    found: list[str] = []
    for name in names:
        if name == "*":
            found += [each.name for each in COLUMNS if each.name not in found]
        elif name.lower() not in BY_NAME:
            raise BadOption(
                f"option columns: {name!r} is not a column; there are {', '.join(BY_NAME)}"
            )
        elif name.lower() not in found:
            found.append(name.lower())
    return tuple(found) or USUAL


def ddl(names: Iterable[str]) -> str:
    """These columns as Spark reads a schema."""
    return ", ".join(f"`{name}` {BY_NAME[name].kind}" for name in names)
