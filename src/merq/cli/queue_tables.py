"""Queues as tables, as facts and as JSON objects."""

from __future__ import annotations

from typing import Final

from rich.table import Table
from rich.text import Text

from merq.cli.durations import age, quota, size
from merq.cli.queue_names import display_name, short_name
from merq.cli.rendering import count, date_of, printable, table_of
from merq.model.queue import NULL_GUID, UNLIMITED, QueueKind
from merq.protocol.application.reports import QueueReport

_NUMBERS: Final = frozenset({"messages", "size", "oldest", "readers"})


def object_of(report: QueueReport) -> dict[str, object]:
    """A queue and how it stands, for programs; a quota of null is unlimited."""
    properties = report.properties
    return {
        "name": display_name(report),
        "path_name": properties.path_name,
        "kind": properties.kind.value,
        "number": properties.number,
        "identifier": str(properties.identifier),
        "label": properties.label,
        "transactional": properties.transactional,
        "journal": properties.journaling,
        "quota_kb": _limited(properties.quota),
        "journal_quota_kb": _limited(properties.journal_quota),
        "base_priority": properties.base_priority,
        "poison_after": properties.poison_after,
        "authenticate": properties.authenticate,
        "privacy": properties.privacy_level.name.lower(),
        "multicast_address": properties.multicast_address,
        "type_id": str(properties.type_id),
        "created": properties.created,
        "modified": properties.modified,
        "messages": report.messages,
        "size_bytes": report.size,
        "locked": report.locked,
        "journal_messages": report.journal_messages,
        "readers": report.readers,
        "openings": report.openings,
        "arrived": report.arrived,
        "left": report.left,
        "oldest": report.oldest or None,
        "state": report.state.value if properties.kind is QueueKind.OUTGOING else None,
    }


def _limited(kilobytes: int) -> int | None:
    return None if kilobytes >= UNLIMITED else kilobytes


def table_of_queues(reports: list[QueueReport], now: int) -> Table:
    """One line a queue. T is transactional, J journals what is received."""
    table = table_of("name", "label", "", "messages", "size", "oldest", "readers", numbers=_NUMBERS)
    for each in reports:
        table.add_row(
            printable(display_name(each), lines=False),
            Text(printable(each.properties.label, lines=False), "dim"),
            marks(each),
            f"{each.messages:,}",
            size(each.size),
            oldest(each, now),
            str(each.readers or ""),
        )
    return table


def marks(report: QueueReport) -> str:
    """T for transactional, J for journaling, A for authenticated messages only."""
    properties = report.properties
    return "".join(
        mark
        for mark, is_so in (
            ("T", properties.transactional),
            ("J", properties.journaling),
            ("A", properties.authenticate),
        )
        if is_so
    )


def oldest(report: QueueReport, now: int) -> str:
    """How long the first message waits."""
    return age(now - report.oldest) if report.oldest else ""


def facts_of(report: QueueReport, subqueues: list[QueueReport], now: int) -> list[tuple[str, str]]:
    """Everything that is known of a queue."""
    properties = report.properties
    waiting = f"{count(report.messages, 'message')}, {size(report.size)}"
    waiting += f", {report.locked:,} being received" if report.locked else ""
    waiting += f", the oldest {age(now - report.oldest)}" if report.oldest else ""
    journal = "kept" if properties.journaling else "not kept"
    kept = count(report.journal_messages, "message")
    facts = [
        ("path name", properties.path_name),
        ("label", properties.label),
        ("kind", properties.kind.value),
        ("transactional", "yes" if properties.transactional else "no"),
        ("messages", waiting),
        ("quota", quota(properties.quota)),
        (
            "journal",
            f"{journal}, {kept}, quota {quota(properties.journal_quota)}",
        ),
        ("readers", f"{report.readers} waiting, {count(report.openings, 'opening')}"),
        ("since start", f"{report.arrived:,} arrived, {report.left:,} left"),
        ("poison after", count(properties.poison_after, "aborted receive")),
        ("base priority", str(properties.base_priority)),
        ("authenticate", "signed messages only" if properties.authenticate else "no"),
        ("privacy", properties.privacy_level.name.lower()),
        ("multicast", properties.multicast_address),
        ("type id", "" if properties.type_id == NULL_GUID else str(properties.type_id)),
        ("identifier", str(properties.identifier)),
        ("number", str(properties.number)),
        ("created", f"{date_of(properties.created)}, changed {date_of(properties.modified)}"),
        ("subqueues", ", ".join(_subqueue(each) for each in subqueues)),
    ]
    if properties.kind is QueueKind.OUTGOING:
        facts.insert(3, ("state", report.state.value))
    unset = {"poison after": "0 aborted receives"}
    return [(name, value) for name, value in facts if value and unset.get(name) != value]


def _subqueue(report: QueueReport) -> str:
    return f"{short_name(report.properties.path_name)} ({report.messages:,})"
