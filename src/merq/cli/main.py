"""The `merq` command: its groups, and what becomes of failures.

Exit status: 0 done, 1 something was wrong with the input, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path

import click

from merq import __version__
from merq.cli.decode import decode
from merq.cli.names import names
from merq.cli.serve import serve
from merq.cli.store import store
from merq.cli.token import token
from merq.errors import MerqError

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="merq")
def merq() -> None:
    """Message queuing that speaks MSMQ's protocols.

    \b
    merq serve --data ./data            runs a queue manager that serves applications
    merq decode capture.pcapng          what two queue managers said to each other
    merq names explain 'DIRECT=OS:a\\b'  what a name means, part by part
    merq store check DIR                whether a store is what was written
    merq token new NAME                 lets a program connect over TCP
    """


merq.add_command(decode)
merq.add_command(names)
merq.add_command(serve)
merq.add_command(store)
merq.add_command(token)


def main() -> None:
    """Runs the command line: no failure that has a name ends in a traceback."""
    _prepare_output()
    try:
        status = merq.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _discard_output()
        sys.exit(EXIT_FAILED)
    except (MerqError, OSError) as wrong:
        click.echo(f"merq: {wrong}", err=True)
        _discard_output()
        sys.exit(EXIT_FAILED)
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
