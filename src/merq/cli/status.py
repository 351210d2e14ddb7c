"""`merq status`: how the queue manager is, in a few lines."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import age, size
from merq.cli.failing import json_option
from merq.cli.rendering import count, date_of, table_of_facts
from merq.cli.terminal import terminal
from merq.cli.transfers import object_of_link, table_of_links
from merq.protocol.application.reports import Status


@click.command(short_help="Says how the queue manager is.")
@json_option("One JSON object.")
@connection_options
def status(connection: Connection, *, as_json: bool) -> None:
    """Says how the queue manager is: what it holds, how long it runs, what runs low.

    Also with which other queue managers it has sessions, and what it sends through them.

    The exit status is 1 if no service answers.

    \b
    merq status
    merq status --data ./data --json | jq .messages
    merq status --url tls://server:1802 --ca ca.pem
    """
    with connected(connection) as manager:
        found = manager.status()
        links = manager.links()
    if as_json:
        told = object_of(found) | {"links": [object_of_link(each) for each in links]}
        click.echo(json.dumps(told))
        return
    console = terminal()
    console.print(found.name, style="bold cyan", markup=False)
    console.print(table_of_facts(facts_of(found)))
    if links:
        console.print(table_of_links(links))


def object_of(found: Status) -> dict[str, object]:
    """For programs; times are seconds since 1970."""
    told = asdict(found) | {"guid": str(found.guid)}
    # To people a throttled one is a peer (`throttled_peers`); this is about all messages.
    told["refuses_messages"] = told.pop("throttled")
    return told


def facts_of(found: Status) -> list[tuple[str, str]]:
    """For people."""
    facts = [
        ("is", _health(found)),
        ("guid", str(found.guid)),
        ("version", found.version),
        ("runs since", f"{date_of(found.started)}, {age(found.now - found.started)}"),
        ("queues", f"{found.queues:,}, and {found.outgoing_queues:,} to other computers"),
        ("messages", f"{found.messages:,}, {size(found.message_bytes)}"),
        ("quota", _quota(found)),
        ("of other computers", _network(found)),
        ("throttled peers", _throttled(found.throttled_peers)),
        ("in memory only", f"{size(found.express_bytes)} of express messages"),
        ("on disk", f"{size(found.log_bytes)}, {size(found.free_disk_bytes)} free"),
        ("clients", f"{count(found.connections, 'connection')}, {count(found.readers, 'reader')}"),
        ("other computers", count(found.sessions, "session")),
        ("transactions", f"{found.transactions:,} open, {found.prepared:,} prepared"),
        *[("TLS fails with", each) for each in found.tls_failures],
        ("set aside", _set_aside(found.set_aside)),
    ]
    return [(name, value) for name, value in facts if value]


def _quota(found: Status) -> str:
    if not found.quota_bytes:
        return f"{size(found.taken_bytes)}, without a quota"
    return f"{size(found.taken_bytes)} of {size(found.quota_bytes)} used"


def _network(found: Status) -> str:
    taken = f"{size(found.network_bytes)}, {size(found.network_express_bytes)} in memory"
    if not found.network_quota_bytes:
        return taken
    return f"{taken}, of {size(found.network_quota_bytes)} at most"


def _throttled(peers: tuple[str, ...]) -> str:
    if not peers:
        return ""
    return f"{', '.join(peers)}: nothing is read from there until there is room for it"


def _set_aside(messages: int) -> str:
    if not messages:
        return ""
    return f"{count(messages, 'message')} that could not be handled: look into the folder aside"


def _health(found: Status) -> str:
    low = [
        what
        for what, is_low in (("disk", found.low_on_disk), ("memory", found.low_on_memory))
        if is_low
    ]
    if found.throttled:
        return f"short of {' and '.join(low) or 'disk or memory'}: no message is taken"
    return "running" if found.online else "running, and offline until `merq online`"
