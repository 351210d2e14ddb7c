"""Commands made of flows: an option for each field of their settings.

A field's type says what the option takes: str, int, float, bool, Path, one of several words
(`Literal`), or a tuple of str, which may be given again and again. What the settings' docstring
says of a field is its help. A field without a default must be given.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from merq.client.secrets import TYPED_ONE
from merq.spark.flows.running import Flow, FlowFailed, Summary, failing, flow_named, flow_names

_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*)$")
_OWN: Final = ("master", "quick", "conf")
_VARIABLES: Final = {
    "url": "MERQ_URL",
    "token": "MERQ_TOKEN",
    "target_url": "MERQ_TARGET_URL",
}
"""What is taken from the environment too, where others do not see it as they see command lines."""

_FOR_PROGRAMMERS: Final = re.compile(r"\n\n(?:Args|Returns|Raises|Yields):\n.*", re.DOTALL)


LINE_S: Final = 10.0
"""How often a file or a log is told how far a flow is; a terminal shows it all the time."""


class Terminal:
    """Tells people on standard error how far a flow is; on a terminal in a line that moves."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._tasks: dict[str, Any] = {}
        self._now = now
        self._told_s = now()
        self._told: dict[str, int] = {}
        if self._console.is_terminal:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}"),
                console=self._console,
                transient=True,
            )

    def say(self, text: str) -> None:
        """A line."""
        self._console.print(text, markup=False, soft_wrap=True)

    def step(self, name: str, done: int, total: int | None) -> None:
        """The line that moves; or another line, if there is news and it is time for one."""
        if self._bar is None:
            if self._now() - self._told_s >= LINE_S and done != self._told.get(name, 0):
                self._told_s, self._told[name] = self._now(), done
                self.say(f"{done:,} {name}" if total is None else f"{done:,} of {total:,} {name}")
            return
        if name not in self._tasks:
            self._bar.start()
            self._tasks[name] = self._bar.add_task(name, total=total)
        self._bar.update(self._tasks[name], completed=done, total=total)

    def close(self) -> None:
        """The line goes."""
        if self._bar is not None:
            self._bar.stop()


def descriptions_of(settings: type[Any]) -> dict[str, str]:
    """What the docstring of settings says of each field."""
    found: dict[str, str] = {}
    name = ""
    text = inspect.getdoc(settings) or ""
    for line in text.partition("Attributes:\n")[2].splitlines():
        begun = _ATTRIBUTE.match(line)
        if begun is not None:
            name = begun[1]
            found[name] = begun[2].strip()
        elif name and line.startswith("        "):
            found[name] += " " + line.strip()
        elif line.strip():
            break
    return found


def _option_of(field: dataclasses.Field[Any], hint: Any, text: str) -> click.Option:
    name = "--" + field.name.replace("_", "-")
    variable = _VARIABLES.get(field.name)
    if get_origin(hint) is tuple:
        text += " May be given again."
    if variable is not None:
        text += f"  [{variable}]"
    given: dict[str, Any] = {"help": text, "envvar": variable}
    if field.default is not dataclasses.MISSING:
        given["default"] = field.default
    elif field.default_factory is not dataclasses.MISSING:
        given["default"] = field.default_factory()
    else:
        given["required"] = True
    if get_origin(hint) in {Union, types.UnionType}:
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if hint is bool:
        return click.Option([f"{name}/--no-{name[2:]}"], show_default=True, **given)
    if get_origin(hint) is tuple:
        shown = bool(given.get("default"))
        return click.Option([name], multiple=True, type=str, show_default=shown, **given)
    if get_origin(hint) is Literal:
        kind: Any = click.Choice(list(get_args(hint)))
    elif hint is Path:
        kind = click.Path(path_type=Path)
    else:
        assert hint in {str, int, float}, f"{field.name} is {hint}: there is no option for that"
        kind = hint
    shown = bool(given.get("default"))
    return click.Option([name], type=kind, show_default=shown, **given)


def options_of(settings: type[Any]) -> list[click.Parameter]:
    """An option for each field."""
    hints, texts = get_type_hints(settings), descriptions_of(settings)
    return [
        _option_of(each, hints[each.name], texts.get(each.name, ""))
        for each in dataclasses.fields(settings)
    ]


def command_of(flow: Flow) -> click.Command:
    """The command that runs a flow."""
    session: list[click.Parameter] = [
        click.Option(
            ["--master"], help="Where Spark runs: local[2], spark://host:7077; local[*] by default."
        ),
        click.Option(
            ["--quick"], is_flag=True, help="Spark starts in half the time, and works slower."
        ),
        click.Option(["--conf"], multiple=True, metavar="NAME=VALUE", help="A setting of Spark's."),
        click.Option(["--json", "as_json"], is_flag=True, help="The summary as a JSON object."),
        click.Option(
            ["--check"],
            is_flag=True,
            help="The exit status is 1 if it found what somebody should look at.",
        ),
    ]

    def callback(*, as_json: bool, check: bool, **given: Any) -> None:
        own = {name: given.pop(name) for name in _OWN}
        typed = click.get_current_context().get_parameter_source("token")
        if typed is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(TYPED_ONE)
        summary = run_flow(flow, flow.settings(**given), **own)
        tell(summary, as_json=as_json, is_checked=check)

    return click.Command(
        flow.name,
        params=[*options_of(flow.settings), *session],
        callback=callback,
        help=_help_of(flow),
        short_help=flow.summary,
        context_settings={"max_content_width": 100},
    )


def tell(summary: Summary, *, as_json: bool, is_checked: bool) -> None:
    """Prints a summary; what is wrong then makes the exit status.

    Args:
        summary: The summary.
        as_json: For programs.
        is_checked: What somebody should look at is wrong too.

    Raises:
        FlowFailed: The text says what.
    """
    click.echo(summary.as_json() if as_json else str(summary))
    wrong = summary.failure or (summary.finding if is_checked else "")
    if wrong:
        raise FlowFailed(wrong)


def _help_of(flow: Flow) -> str:
    """What `run` says of itself, without what only programmers ask; examples keep their lines."""
    text = _FOR_PROGRAMMERS.sub("", inspect.getdoc(flow.run) or flow.summary)
    parts = text.split("\n\n")
    return "\n\n".join(f"\b\n{each}" if each.startswith("merq ") else each for each in parts)


def run_flow(
    flow: Flow,
    settings: Any,
    *,
    master: str | None = None,
    quick: bool = False,
    conf: Sequence[str] = (),
) -> Summary:
    """Runs a flow in a session of its own, and tells people how far it is.

    What can be known to be wrong without Spark is told before that is started.

    Raises:
        BadOption: Spark cannot run there.
        FlowFailed: It could not be done.
        NoJava: Spark cannot start.
    """
    # pyspark takes long to import.
    from merq.spark.managers import passing_connections  # noqa: PLC0415
    from merq.spark.session import check_master, spark_session  # noqa: PLC0415

    wrong = [each for each in conf if "=" not in each]
    if wrong:
        raise FlowFailed(f"--conf {wrong[0]}: NAME=VALUE belongs there")
    extra = dict(each.split("=", 1) for each in conf)
    if master:
        check_master(master)
    # Spark is started by a fork, which should find nothing open; and a queue manager that goes
    # meanwhile is told as one that is not there, not waited for as one that was.
    with passing_connections():
        flow.look(settings)
    terminal = Terminal()
    with failing("Spark does not start"):
        spark = spark_session(
            f"merq {flow.name}",
            master=master,
            quick=quick,
            extra=extra,
            starting=lambda: terminal.say("Spark starts."),
        )
    try:
        with failing():
            return flow.run(spark, settings, terminal)
    finally:
        terminal.close()
        spark.stop()


class Flows(click.Group):
    """All flows, each as a command; one is imported when it is meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Their names."""
        return flow_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """One of them."""
        return command_of(flow_named(cmd_name)) if cmd_name in flow_names() else None


def main(words: Sequence[str] | None = None) -> None:
    """The program for `spark-submit`."""
    from merq.errors import MerqError  # noqa: PLC0415

    program = Flows("flows", help="Pipelines of Merq.", no_args_is_help=True)
    try:
        program.main(
            list(sys.argv[1:] if words is None else words),
            prog_name="merq.spark.flows",
            standalone_mode=False,
        )
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except (MerqError, OSError) as wrong:
        click.echo(f"merq: {wrong}", err=True)
        sys.exit(1)
