"""`merq names`: what the names of queues mean."""

from __future__ import annotations

import json

import click
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from merq.cli.terminal import terminal
from merq.errors import NameSyntaxError
from merq.model.names import Explanation, explain


@click.group()
def names() -> None:
    """Path names and format names."""


@names.command("explain")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def explain_name(name: str, *, as_json: bool) -> None:
    """What NAME means, part by part; what is wrong with it, and where.

    NAME is a path name or a format name, also one of several elements. Put it in single quotes, so
    that the shell leaves $ and \\ alone.

    \b
    merq names explain '.\\private$\\orders'
    merq names explain 'DIRECT=TCP:10.0.0.7\\private$\\orders;JOURNAL'
    merq names explain 'DIRECT=https://shop.example/msmq/private$/orders'
    """
    try:
        found = explain(name)
    except NameSyntaxError as wrong:
        if as_json:
            click.echo(json.dumps({"error": wrong.reason, "position": wrong.position}))
        else:
            _show_mistake(wrong)
        raise click.exceptions.Exit(1) from None
    if as_json:
        click.echo(json.dumps(_as_json(found)))
    else:
        _show(found)


def _as_json(found: Explanation) -> dict[str, object]:
    return {
        "kind": found.kind,
        "canonical": found.canonical,
        "parts": [
            {"label": part.label, "value": part.value, "meaning": part.meaning}
            for part in found.parts
        ],
        "notes": list(found.notes),
    }


def _show(found: Explanation) -> None:
    console = terminal()
    console.print(Text.assemble((found.canonical, "bold cyan"), f"  {found.kind}"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    for part in found.parts:
        table.add_row(
            Text(part.label, style="dim"), Text(part.value, style="green"), Text(part.meaning)
        )
    console.print(table)
    for note in found.notes:
        console.print(Text.assemble(("• ", "yellow"), note))


def _show_mistake(wrong: NameSyntaxError) -> None:
    """The name with a mark under the character where it stops making sense."""
    shown = "".join(letter if letter.isprintable() else "�" for letter in wrong.text)
    click.echo(shown, err=True)
    before = cell_len(shown[: wrong.position])
    click.echo(" " * before + click.style("^", fg="red", bold=True), err=True)
    click.echo(wrong.reason, err=True)
