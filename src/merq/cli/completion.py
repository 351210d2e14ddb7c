"""`merq completion`: what a shell needs to complete commands, options and queue names."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

VARIABLE: Final = "_MERQ_COMPLETE"
"""The variable through which a shell asks for completions, as click names it."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Prints a script that teaches your shell to complete merq.

    Commands and options are completed, and the names of queues as the service has them.

    \b
    eval "$(merq completion bash)"                    in ~/.bashrc
    eval "$(merq completion zsh)"                     in ~/.zshrc
    merq completion fish > ~/.config/fish/completions/merq.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    root = ctx.find_root()
    click.echo(kind(root.command, {}, "merq", VARIABLE).source())
