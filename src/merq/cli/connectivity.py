"""`merq offline` and `merq online`: whether there are sessions with other queue managers."""

from __future__ import annotations

import json

import click

from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.failing import json_option
from merq.cli.rendering import count
from merq.cli.status import object_of


@click.command(short_help="Ends the sessions with other queue managers.")
@json_option("How the queue manager is, as a JSON object.")
@connection_options
def offline(connection: Connection, *, as_json: bool) -> None:
    """Ends the sessions with other queue managers, and allows no new ones.

    Applications go on: what they send to other computers waits in outgoing queues. It lasts until
    `merq online`, or until the service is started anew.

    \b
    merq offline
    merq offline --data ./data
    """
    with connected(connection) as manager:
        manager.take_offline()
        found = manager.status()
    destinations = count(found.outgoing_queues, "destination")
    words = f"offline: what is sent to {destinations} waits until `merq online`"
    click.echo(json.dumps(object_of(found)) if as_json else words)


@click.command(short_help="Allows sessions with other queue managers again.")
@json_option("How the queue manager is, as a JSON object.")
@connection_options
def online(connection: Connection, *, as_json: bool) -> None:
    """Allows sessions with other queue managers again; what waits for them is sent.

    \b
    merq online
    merq online --data ./data
    """
    with connected(connection) as manager:
        manager.bring_online()
        found = manager.status()
    destinations = count(found.outgoing_queues, "destination")
    words = f"online: what waits for {destinations} is sent"
    click.echo(json.dumps(object_of(found)) if as_json else words)
