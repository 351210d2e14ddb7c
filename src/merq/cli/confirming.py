"""What cannot be undone is asked for first."""

from __future__ import annotations

import sys
from typing import Final

import click

YES: Final = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def confirm(question: str, lost: int, *, yes: bool, otherwise: str = "nothing was removed") -> None:
    """Asks, if somebody is there; else goes on only if nothing is lost.

    Args:
        question: What is about to happen.
        lost: How many messages it is about.
        yes: It was said beforehand that it is meant.
        otherwise: What is told if it is not.

    Raises:
        click.ClickException: It is not meant.
    """
    if yes:
        return
    if sys.stdin is not None and sys.stdin.isatty():
        if not click.confirm(question, err=True):
            raise click.ClickException(otherwise)
    elif lost:
        told = otherwise[0].upper() + otherwise[1:]
        raise click.ClickException(f"{question} {told}: there is no terminal to ask on; say --yes")
