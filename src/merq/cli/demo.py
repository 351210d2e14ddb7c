"""`merq demo`: a queue manager with sample queues that proves itself, and then serves.

In one process: the service, as `merq serve` has it, and a client of it in a thread. Messages that
others have in the sample queues stay untouched: the proof takes its own by their ids.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import merq
from merq.cli.demo_lake import DemoLake
from merq.cli.queue_names import path_name_of
from merq.cli.rendering import count
from merq.cli.why import story_of
from merq.client.manager import Manager
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, ACKNOWLEDGE_RECEIVE
from merq.errors import MerqError, MessageQueueError
from merq.hresult import HResult
from merq.model.message_class import MessageClass, describe_class
from merq.protocol.application.reports import Whereabouts

if TYPE_CHECKING:
    from merq.service.daemon import Service
    from merq.service.settings import ServiceSettings

EXPIRES_S: Final = 1
"""How long the message that nobody receives has."""

PATIENCE_S: Final = 10.0
"""No step of the proof takes longer."""

LOOK_S: Final = 0.1
"""How often it is looked whether the message has expired."""

RECONNECT_S: Final = 0.0
"""Service and client are one process: a connection that is lost does not come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleQueue:
    """A queue that is made if it is not there."""

    name: str
    words: str = ""
    label: str
    transactional: bool = False
    journal: bool = False


ORDERS: Final = SampleQueue(
    name="orders",
    words=" (transactional, with a journal)",
    label="Sample orders",
    transactional=True,
    journal=True,
)
INVOICES: Final = SampleQueue(name="invoices", label="Sample invoices")
ADMIN: Final = SampleQueue(name="admin", label="What became of messages")
SAMPLES: Final = (ORDERS, INVOICES, ADMIN)


@click.command(short_help="Runs a queue manager with sample queues that shows itself at work.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The folder that holds the messages; ./data by default.",
)
@click.option("--name", help="The computer name of the queue manager; the host's by default.")
@click.option(
    "--lake",
    type=click.Path(path_type=Path),
    help="Also archives what was received from orders into this folder, with Spark.",
)
def demo(data: Path | None, name: str | None, lake: Path | None) -> None:
    """Runs a queue manager with sample queues, sends and receives a few messages, and serves.

    The queues are orders, invoices and admin. Those that are there already stay as they are, and so
    do the messages in them. It ends cleanly on Ctrl-C and SIGTERM; `merq serve` goes on with the
    same folder. Settings come from MERQ_* variables too, as for `merq serve`.

    \b
    merq demo
    merq demo --data ./trial --name alpha
    merq demo --lake ./data/lake
    """
    # What only this command and `merq serve` need takes a while to import.
    from merq.service.logs import open_log  # noqa: PLC0415
    from merq.service.settings import load_settings  # noqa: PLC0415

    flags = {"data": data, "name": name}
    # What is printed here is for people; of the log only what is wrong is of interest.
    # Another queue manager may have the one port for others of its kind.
    quiet = {"MERQ_LOG_LEVEL": "warning", "MERQ_EXCHANGE_LISTEN": "false"}
    settings = load_settings(None, flags, quiet | dict(os.environ))
    with open_log(settings.log):
        asyncio.run(_run(settings, lake))
    click.echo(f"\nStopped. What was recoverable is in the folder {settings.data}.")


async def _run(settings: ServiceSettings, lake: Path | None) -> None:
    """The service, and beside it the proof and the archive."""
    archive = None if lake is None else DemoLake(lake, settings.socket_path)
    try:
        await _serve(settings, archive)
    finally:
        if archive is not None:
            await asyncio.to_thread(archive.stop)


async def _serve(settings: ServiceSettings, archive: DemoLake | None) -> None:
    from merq.service.daemon import Service  # noqa: PLC0415

    service = Service(settings)
    serving = asyncio.create_task(service.run())
    if archive is not None:
        serving.add_done_callback(lambda _: archive.abandon())
    starting = asyncio.create_task(service.wait_until_running())
    await asyncio.wait((serving, starting), return_when=asyncio.FIRST_COMPLETED)
    starting.cancel()
    if archive is not None and not serving.done():
        _end_archive_first(archive, service)
    try:
        if not serving.done():
            await asyncio.to_thread(_show, settings, archive)
    except (MerqError, click.ClickException, OSError) as wrong:
        # Who stops the service before everything was shown has done nothing wrong.
        if not _is_gone(wrong):
            service.stop()
            await serving
            raise
    await serving


def _end_archive_first(archive: DemoLake, service: Service) -> None:
    """Ctrl-C ends the archive and then the service, which it reads from; a second one both."""
    ending: list[asyncio.Task[None]] = []

    async def end() -> None:
        await asyncio.to_thread(archive.stop)
        service.stop()

    def hear() -> None:
        if ending:
            service.stop()
        ending.append(asyncio.create_task(end()))

    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, hear)


def _is_gone(wrong: Exception) -> bool:
    """Whether the service ended meanwhile; if it did not mean to, it says so itself."""
    return (
        isinstance(wrong, MessageQueueError)
        and wrong.code == HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE
    )


def _show(settings: ServiceSettings, archive: DemoLake | None) -> None:
    """Everything that is said, from the first line to the last before it just serves."""
    with merq.connect(f"unix:{settings.socket_path}", reconnect_s=RECONNECT_S) as manager:
        click.echo(f"Queue manager {manager.name} runs. Its data is in the folder {settings.data}.")
        click.echo(_prepare(manager))
        # Spark takes some seconds to start; meanwhile there is something to see.
        obstacle = archive.start() if archive is not None else ""
        click.echo("\n1. An order, sent in one transaction and received in another:")
        order, line = _order(manager)
        _tell(line)
        click.echo("\n2. An invoice whose sender wants to know; the queue admin was told:")
        _tell(*_invoice(manager))
        click.echo(f"\n3. An offer that nobody takes within {EXPIRES_S} s; merq why tells:")
        offer, *story = _offer(manager)
        _tell(offer, *story)
    if archive is not None:
        click.echo(
            "\n4. The order on its way into a table; Spark starts for that, which takes a while:"
        )
        _tell(*([f"not now: {obstacle}."] if obstacle else archive.wait_for(order)))
    click.echo("\nTry in another terminal:")
    for line in _next_steps(settings.data, offer):
        click.echo(f"  {line}")
    click.echo("\nServing until Ctrl-C.")


def _prepare(manager: Manager) -> str:
    """Makes the sample queues that are not there; says which were."""
    there = {each.properties.path_name.lower() for each in manager.reports()}
    made, found = [], []
    for sample in SAMPLES:
        path = path_name_of(sample.name)
        if path.lower() in there:
            found.append(sample.name)
            continue
        manager.create_queue(
            path, label=sample.label, transactional=sample.transactional, journal=sample.journal
        )
        made.append(sample.name + sample.words)
    told = [f"It made {', '.join(made)}."] if made else []
    if found:
        kept = count(manager.status().messages, "message")
        told.append(f"It found {', '.join(found)}, and {kept} altogether.")
    return " ".join(told)


def _tell(*lines: str) -> None:
    for line in lines:
        click.echo(f"   {line}")


def _order(manager: Manager) -> tuple[str, str]:
    """Its identifier, and what is to be told of it."""
    orders = manager.queue(path_name_of(ORDERS.name))
    with manager.transaction() as tx:
        message_id = orders.send("two tins of tea", label="sample order", tx=tx)
    with manager.transaction() as tx:
        message = orders.receive_by_id(message_id, tx=tx)
    return message_id, f"{message.id} “{message.label}”: {message.body!r}"


def _invoice(manager: Manager) -> list[str]:
    invoices, admin = (manager.queue(path_name_of(each.name)) for each in (INVOICES, ADMIN))
    message_id = invoices.send(
        "12.50 for tea",
        label="sample invoice",
        recoverable=True,
        acknowledge=ACKNOWLEDGE_ARRIVAL | ACKNOWLEDGE_RECEIVE,
        admin_queue=path_name_of(ADMIN.name),
    )
    invoice = invoices.receive_by_id(message_id)
    told = [admin.receive_by_correlation_id(invoice.id_bytes, timeout=PATIENCE_S) for _ in range(2)]
    return [_meaning(each.message_class) for each in told]


def _meaning(message_class: int) -> str:
    known = MessageClass.of(message_class)
    return describe_class(message_class) if known is None else f"{known.meaning} ({known.name})"


def _offer(manager: Manager) -> list[str]:
    """Waits until a message has expired, and tells its story as `merq why` does."""
    message_id = manager.queue(path_name_of(INVOICES.name)).send(
        "tea at half the price",
        label="sample offer",
        recoverable=True,
        time_to_be_received=EXPIRES_S,
        dead_letter=True,
    )
    until = time.monotonic() + PATIENCE_S
    while True:
        sightings = manager.why(message_id)
        is_dead = any(each.whereabouts is Whereabouts.DEAD_LETTER for each in sightings)
        if is_dead:
            story = story_of(message_id, sightings, manager.guid, manager.status().now)
            return [message_id, *story.sentences]
        if time.monotonic() > until:
            raise click.ClickException(
                f"message {message_id} has {EXPIRES_S} s to be received, and is no dead letter "
                f"after {PATIENCE_S:g} s: this must not be; look at the log"
            )
        time.sleep(LOOK_S)


def _next_steps(data: Path, offer: str) -> list[str]:
    """Commands that work while this runs, in the folder in which it was started."""
    where = "" if data == Path("data") else f" --data {shlex.quote(str(data))}"
    steps = (
        ("queue list", "the queues"),
        ('send orders --body "a pot of honey" --label "order 2"', "one more order"),
        ("receive orders", "takes it out"),
        ('peek "orders;journal" --all', "what was received from orders"),
        ("peek deadletter --all", "what nobody received in time"),
        (f"why '{offer}'", "what became of the offer"),
        ("top", "the queues, live; q ends it"),
        ("send --help", "everything that a message can be told"),
    )
    program = _program()
    commands = [
        f"{program} {words}{'' if words.endswith('--help') else where}" for words, _ in steps
    ]
    width = max(map(len, commands))
    return [
        f"{command:{width}}  # {why}" for command, (_, why) in zip(commands, steps, strict=True)
    ]


def _program() -> str:
    """How this command is called from the folder that we are in."""
    script = Path(sys.executable).parent / "merq"
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m merq"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))
