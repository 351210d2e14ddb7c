"""The way to other queue managers, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from rich.table import Table

from merq.cli.durations import age
from merq.cli.rendering import count, date_of, printable, table_of
from merq.engine.transfer import HISTORY_MAX
from merq.hresult import HResult
from merq.model.properties import ConnectionStatus
from merq.model.queue import NULL_GUID, OutgoingState
from merq.protocol.application.reports import (
    ConnectionAttempt,
    LinkReport,
    SequencePlace,
    SequenceReport,
    TransferReport,
)

HISTORY_SHOWN_MAX: Final = 12
"""Entries of a connection history that are shown; `--json` gives all."""

LINKS_SHOWN_MAX: Final = 20
"""Connections that are shown; `--json` gives all."""

SEQUENCES_SHOWN_MAX: Final = 20
"""Sequences that are shown; `--json` gives all."""

OFFLINE: Final = "This queue manager is offline: nothing goes to others until `merq online`."

_ESTABLISHED: Final = ConnectionStatus.ESTABLISHED.document_name
_LOST: Final = ConnectionStatus.CONNECTION_NOT_READY.document_name


# For programs.


def object_of_transfer(report: TransferReport) -> dict[str, object]:
    """How far an outgoing queue is; times are seconds since 1970."""
    history = [asdict(each) | {"error_name": error_name(each)} for each in report.history]
    return asdict(report) | {"state": report.state.value, "history": history}


def object_of_link(report: LinkReport) -> dict[str, object]:
    """A connection with another queue manager; who is not known is null."""
    guid = None if report.queue_manager == NULL_GUID else str(report.queue_manager)
    return asdict(report) | {"queue_manager": guid}


def object_of_sequence(report: SequenceReport) -> dict[str, object]:
    """A sequence that comes to a queue."""
    return asdict(report) | {"sender": str(report.sender)}


def error_name(attempt: ConnectionAttempt) -> str | None:
    """The name of the error in an entry, if there was one."""
    if not attempt.error:
        return None
    known = HResult.of(attempt.error)
    return known.name if known is not None else f"0x{attempt.error % (1 << 32):08X}"


# For people.


def facts_of_transfer(report: TransferReport, now: int) -> list[tuple[str, str]]:
    """What is known of the way out of a queue."""
    facts = [
        ("next hops", ", ".join(report.next_hops)),
        ("next attempt", date_of(report.retry_at) if report.retry_at else ""),
        ("under way", f"{report.under_way:,} transmitted, {report.waiting:,} wait to be"),
        ("unacknowledged", _unacknowledged(report)),
        ("not received yet", _unread(report)),
        ("last order ack", _acknowledged(report, now)),
        ("next in order", _place(report.next_place)),
        ("sent again", _resends(report)),
    ]
    return [(name, value) for name, value in facts if value]


def _unacknowledged(report: TransferReport) -> str:
    if not report.unacknowledged:
        return ""
    first, last = report.first_unacknowledged, report.last_unacknowledged
    messages = count(report.unacknowledged, "transactional message")
    if first == last:
        return f"{messages}, {_place(first)}"
    return f"{messages}, from {_place(first)} to {_place(last)}"


def _unread(report: TransferReport) -> str:
    if not report.unread:
        return ""
    return f"{count(report.unread, 'message')} that arrived, by what is known here"


def _acknowledged(report: TransferReport, now: int) -> str:
    if not report.acknowledgments:
        return ""
    ago = age(now - report.acknowledged_at)
    came = "the first" if report.acknowledgments == 1 else f"{report.acknowledgments:,} came"
    return f"{_place(report.last_acknowledged)}, {ago} ago, {came}"


def _resends(report: TransferReport) -> str:
    times = count(report.resends, "time") if report.resends else ""
    if not report.resend_at:
        return times
    after = f"at {date_of(report.resend_at)} without an order ack"
    return f"{times}, and {after}" if times else after


def _place(place: SequencePlace) -> str:
    return f"{place.number:,} of {place.sequence_id:016x}" if place.sequence_id else ""


def table_of_history(report: TransferReport) -> Table:
    """What came of connecting, the newest last."""
    table = table_of("time", "what", "where", "why", name="why")
    for each in report.history[-HISTORY_SHOWN_MAX:]:
        table.add_row(
            f"  {date_of(each.time)}",
            each.status,
            ", ".join(each.addresses),
            printable(each.text, lines=False),
        )
    return table


def table_of_links(links: list[LinkReport]) -> Table:
    """One line a connection."""
    columns = ("session with", "queue manager", "made by", "sends to", "")
    table = table_of(*columns, name="session with")
    for each in links[:LINKS_SHOWN_MAX]:
        marks = ["TLS"] if each.secure else []
        marks += [] if each.open else ["not open yet"]
        marks += [f"{each.unacknowledged:,} unacknowledged"] if each.unacknowledged else []
        table.add_row(
            f"  {each.address}",
            "" if each.queue_manager == NULL_GUID else str(each.queue_manager),
            "us" if each.ours else "them",
            count(each.queue_count, "destination"),
            ", ".join(marks),
        )
    return table


def table_of_sequences(sequences: list[SequenceReport], now: int) -> Table:
    """One line a sequence that comes to a queue."""
    numbers = frozenset({"number", "last", "rejected", "dropped"})
    columns = ("sends in order", "from", "sequence", "number", "last", "rejected", "dropped")
    table = table_of(*columns, numbers=numbers, name="sends in order")
    for each in sequences[:SEQUENCES_SHOWN_MAX]:
        table.add_row(
            f"  {each.sender}",
            each.address,
            f"{each.sequence_id:016x}",
            f"{each.number:,}",
            age(now - each.last_access),
            f"{each.rejects:,}" if each.rejects else "",
            f"{each.dropped:,}" if each.dropped else "",
        )
    return table


def trouble_of(report: TransferReport) -> str:
    """Why a destination is not reached, in a sentence; empty if nothing is wrong with it."""
    failures: list[ConnectionAttempt] = []
    is_whole = len(report.history) < HISTORY_MAX
    for each in reversed(report.history):
        if each.status == _ESTABLISHED:
            is_whole = True
            break
        if each.error or each.status == _LOST:
            failures.append(each)
    if not failures or report.state is OutgoingState.CONNECTED:
        return ""
    last, first = failures[0], failures[-1]
    # The history has room for some entries only: what was before the first may not be known.
    since = f"since {date_of(first.time)}" + ("" if is_whole else " at the latest")
    where = f" at {', '.join(last.addresses)}" if last.addresses else ""
    return f"It cannot be reached{where} {since}: {last.text or last.status} ({last.status})."
