"""The `merq` command: its groups, and what becomes of failures.

Exit status: 0 done, 1 something was wrong, 2 wrong usage, 3 nothing came in time, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Final

import click

from merq import __version__
from merq.cli.failing import EXIT_FAILED, EXIT_INTERRUPTED, Asked, tell
from merq.errors import MerqError

# Imported when they are used: a command, and a shell that completes one, should not wait for all.
_COMMANDS: Final = {
    "completion": ("merq.cli.completion", "completion"),
    "decode": ("merq.cli.decode", "decode"),
    "demo": ("merq.cli.demo", "demo"),
    "export": ("merq.cli.exporting", "export"),
    "import": ("merq.cli.importing", "import_messages"),
    "move": ("merq.cli.moving", "move"),
    "names": ("merq.cli.names", "names"),
    "offline": ("merq.cli.connectivity", "offline"),
    "online": ("merq.cli.connectivity", "online"),
    "outgoing": ("merq.cli.outgoing", "outgoing"),
    "peek": ("merq.cli.receiving", "peek"),
    "pipeline": ("merq.cli.pipeline", "pipeline"),
    "queue": ("merq.cli.queues", "queue"),
    "receive": ("merq.cli.receiving", "receive"),
    "reservations": ("merq.cli.reservations", "reservations"),
    "send": ("merq.cli.sending", "send"),
    "serve": ("merq.cli.serve", "serve"),
    "stages": ("merq.cli.stages", "stages"),
    "status": ("merq.cli.status", "status"),
    "store": ("merq.cli.store", "store"),
    "token": ("merq.cli.token", "token"),
    "top": ("merq.cli.top", "top"),
    "trace": ("merq.cli.trace", "trace"),
    "why": ("merq.cli.why", "why"),
}


class Commands(click.Group):
    """The commands of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in order."""
        return sorted({*_COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One of them, imported now."""
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, attribute = _COMMANDS[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="merq")
def merq() -> None:
    """Message queuing that speaks MSMQ's protocols.

    \b
    merq demo                           shows a queue manager at work, and goes on serving
    merq serve --data ./data            runs a queue manager that serves applications
    merq queue new orders               a queue on it
    merq send orders --body hello       a message into it
    merq receive orders                 and out of it
    merq why MESSAGE-ID                 what became of a message
    merq trace 'server2\\private$\\q'   the way of a message to another computer
    merq token new NAME                 lets a program connect over TCP
    merq decode capture.pcapng          what two queue managers said to each other
    merq names explain 'DIRECT=OS:a\\b'  what a name means, part by part
    merq store check DIR                whether a store is what was written
    merq pipeline list                  data pipelines on Spark
    """


def main() -> None:
    """Runs the command line: no failure that has a name ends in a traceback."""
    _prepare_output()
    asked = Asked()
    try:
        status = merq.main(prog_name="merq", standalone_mode=False, obj=asked)
        sys.stdout.flush()
    except click.exceptions.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as wrong:
        sys.exit(tell(wrong, asked))
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _discard_output()
        sys.exit(EXIT_FAILED)
    except (MerqError, OSError) as wrong:
        status = tell(wrong, asked)
        _discard_output()
        sys.exit(status)
    sys.exit(status if isinstance(status, int) else 0)


def _prepare_output() -> None:
    """Output must never fail for want of a letter, or of somebody who reads it."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """What could not be written must not be tried, and complained about, again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
