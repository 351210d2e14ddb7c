"""`merq serve`: the queue manager as a process."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from merq.errors import MerqError

if TYPE_CHECKING:
    from merq.service.logs import OpenLog

COUNTS_S = 1.0
"""How often it is looked whether there are counts of repeated events to be told."""

COLLECTING = (20_000, 20, 50)
"""After how many new objects, and how many of such rounds, Python looks for cycles of garbage."""

SWITCH_S = 0.0005
"""How long the thread that comes back from the disk waits while the event loop is busy."""

_FILE = click.Path(path_type=Path)


@click.command()
@click.option("--config", type=_FILE, help="A TOML file with settings; MERQ_CONFIG.")
@click.option("--data", type=_FILE, help="The folder that holds the messages; ./data by default.")
@click.option("--name", help="The computer name of this queue manager; the host's by default.")
@click.option("--address", help="The address that its protocols listen on; 127.0.0.1 by default.")
@click.option("--socket-path", type=_FILE, help="The Unix socket; DATA/merq.sock by default.")
@click.option("--tcp-port", type=int, help="Serve applications on TCP too; needs TLS.")
@click.option("--tls-cert", type=_FILE, help="PEM file with the service's certificate.")
@click.option("--tls-key", type=_FILE, help="PEM file with its key.")
@click.option("--tls-client-ca", type=_FILE, help="Ask clients for certificates of this CA.")
@click.option("--exchange-tls-cert", type=_FILE, help="PEM file: TLS with other Merqs.")
@click.option("--exchange-tls-key", type=_FILE, help="PEM file with the key of that.")
@click.option("--exchange-tls-ca", type=_FILE, help="PEM file: the CA of other Merqs.")
@click.option("--insecure-tcp", is_flag=True, default=None, help="TCP without TLS; loopback only.")
@click.option("--log-level", help="debug, info, warning or error.")
@click.option("--log-format", help="text or json.")
@click.option(
    "--retry-at-start",
    is_flag=True,
    default=None,
    help="Try a start that fails again, after 2 min, then every 15; otherwise end with status 1.",
)
@click.option("--print-config", is_flag=True, help="Print all settings as they are, and end.")
@click.option("--help-settings", is_flag=True, help="Print what every setting means, and end.")
def serve(
    config: Path | None,
    *,
    print_config: bool,
    help_settings: bool,
    **flags: object,
) -> None:
    """Runs a queue manager that serves applications on this computer.

    Settings come from a TOML file, then MERQ_* variables, then flags; the later wins. It stops
    cleanly on SIGTERM and Ctrl-C, and comes back with everything that it has acknowledged. If it
    cannot start it says why and ends with status 1.

    \b
    merq serve --data ./data                       applications connect to ./data/merq.sock
    merq serve --data /var/lib/merq --name orders1 --config /etc/merq.toml
    merq serve --tcp-port 1888 --tls-cert cert.pem --tls-key key.pem
    merq serve --print-config                      every setting, ready to be saved as a file
    """
    # What only this command needs takes a while to import.
    from merq.allocating import keep_freed_memory  # noqa: PLC0415
    from merq.service.daemon import Service  # noqa: PLC0415
    from merq.service.logs import Log, open_log  # noqa: PLC0415
    from merq.service.settings import as_toml, describe, load_settings  # noqa: PLC0415

    if help_settings:
        for each in describe():
            extent = f", {each.extent}" if each.extent else ""
            click.echo(
                f"{each.key}  ({each.type_name}{extent}; {each.default})\n    {each.meaning}"
            )
        return
    settings = load_settings(config, flags, os.environ)
    if print_config:
        click.echo(as_toml(settings), nl=False)
        return

    async def run(log: OpenLog) -> None:
        counting = asyncio.create_task(_tell_counts(log))
        try:
            await Service(settings).run()
        except (MerqError, OSError) as wrong:
            # What people read on standard error is told by whoever catches it; a log apart, or one
            # that programs read, has it as an event.
            if settings.log.file is not None or settings.log.format == "json":
                Log().error("initialisation failed", error=wrong)
            raise
        finally:
            counting.cancel()

    # Many requests leave no cycles behind: to look for those takes a tenth of the time.
    keep_freed_memory()
    gc.freeze()
    gc.set_threshold(*COLLECTING)
    sys.setswitchinterval(SWITCH_S)
    with open_log(settings.log) as log, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run(log))


async def _tell_counts(log: OpenLog) -> None:
    """Repetitions that were counted are told, also if nothing else happens."""
    while True:
        await asyncio.sleep(COUNTS_S)
        log.tell_counts()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop, where there is one: not on every system."""
    if find_spec("uvloop") is None:
        return None
    import uvloop  # noqa: PLC0415

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
