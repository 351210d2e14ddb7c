"""What becomes of failures: the text that people read, the object that programs read, exit status.

0 done, 1 something was wrong, 2 wrong usage, 3 nothing came in time, 130 interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from merq.errors import MerqError, MessageQueueError, ReceiveTimeout
from merq.hresult import HResult

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_TIMEOUT: Final = 3
EXIT_INTERRUPTED: Final = 130

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(slots=True)
class Asked:
    """What the command line asked for that matters also when the command is over.

    Attributes:
        json: Failures are told as an object.
    """

    json: bool = False


def json_option(help_text: str) -> Callable[[_F], _F]:
    """`--json`, which also makes failures objects on standard error."""

    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001
        asked = ctx.find_object(Asked)
        if value and asked is not None:
            asked.json = True
        return value

    # Eager, so that it is known before another option is complained about.
    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=remember, help=help_text
    )


def tell(wrong: Exception, asked: Asked) -> int:
    """Says on standard error what was wrong; gives the exit status."""
    if asked.json:
        click.echo(json.dumps({"error": as_object(wrong)}), err=True)
    elif isinstance(wrong, click.ClickException):
        wrong.show()
        for note in _notes(wrong):
            click.echo(f"merq: {note}", err=True)
    else:
        click.echo(f"merq: {as_text(wrong)}", err=True)
    return status_of(wrong)


def status_of(wrong: Exception) -> int:
    """The exit status that a failure has."""
    if isinstance(wrong, ReceiveTimeout):
        return EXIT_TIMEOUT
    return wrong.exit_code if isinstance(wrong, click.ClickException) else EXIT_FAILED


def as_text(wrong: Exception) -> str:
    """A failure in a sentence or two: the code's name, what happened, what to do."""
    text = "; ".join((str(wrong), *_notes(wrong)))
    if not isinstance(wrong, MessageQueueError):
        return text
    known = HResult.of(wrong.code)
    advice = f"\n      {known.advice}" if known is not None and known.advice else ""
    return f"{_name(wrong.code)}: {text}{advice}"


def as_object(wrong: Exception) -> dict[str, object]:
    """A failure for programs; `hresult` is null if it has no MQ code."""
    hresult: str | None = None
    text = str(wrong)
    if isinstance(wrong, MessageQueueError):
        code, hresult = _name(wrong.code), f"0x{wrong.code % (1 << 32):08X}"
    elif isinstance(wrong, click.ClickException):
        code = "usage" if wrong.exit_code == EXIT_USAGE else "refused"
        text = wrong.format_message()
    else:
        code = type(wrong).__name__ if isinstance(wrong, MerqError) else "system"
    return {"code": code, "hresult": hresult, "text": "; ".join((text, *_notes(wrong)))}


def _notes(wrong: Exception) -> list[str]:
    """What those through whom the failure went had to add."""
    return list(getattr(wrong, "__notes__", ()))


def _name(code: int) -> str:
    known = HResult.of(code)
    return known.name if known is not None else f"0x{code % (1 << 32):08X}"
