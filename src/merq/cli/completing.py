"""Queue names for shells that complete them, asked of the service that is meant."""

from __future__ import annotations

import re
from typing import Final

import click
from click.shell_completion import CompletionItem

from merq.cli.connecting import Connection, connected
from merq.cli.queue_names import short_name
from merq.errors import MerqError
from merq.protocol.application.reports import QueueReport
from merq.protocol.application.requests import Family

NAMES_MAX: Final = 500
"""Names that are offered at once."""

# A shell would take other letters for its own: those names are typed in quotes.
_UNQUOTED: Final = re.compile(r"[\w.@%+:=/-]+")


def complete_queue(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Queues whose names start so; none if nobody answers."""
    return _named(ctx, Family.ALL, incomplete)


def complete_outgoing(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Destinations that start so; none if nobody answers."""
    return _named(ctx, Family.OUTGOING, incomplete)


def _named(ctx: click.Context, family: Family, incomplete: str) -> list[CompletionItem]:
    try:
        with connected(Connection.of(ctx.params)) as manager:
            reports = manager.reports(family)
    except (MerqError, OSError):
        return []  # a shell in the midst of a line is no place to complain
    return names_starting(reports, incomplete)


def names_starting(reports: list[QueueReport], incomplete: str) -> list[CompletionItem]:
    """The names that a shell can put into a line as they are."""
    found = [
        CompletionItem(name, help=each.properties.label or None)
        for each in reports
        if (name := short_name(each.properties.path_name)).lower().startswith(incomplete.lower())
        and _UNQUOTED.fullmatch(name)
    ]
    return sorted(found, key=lambda item: str(item.value))[:NAMES_MAX]
