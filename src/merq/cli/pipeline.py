"""`merq pipeline`: data pipelines on Spark, by name."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from merq.cli.failing import json_option

if TYPE_CHECKING:
    from merq.spark.flows.running import Flow

NEEDED: Final = ("pyspark", "pyarrow", "numpy", "pandas")
"""What `merq[spark]` installs."""


@click.group()
def pipeline() -> None:
    """Data pipelines on Spark: archives, replays, reports.

    \b
    merq pipeline list
    merq pipeline run archive --help
    merq pipeline run archive --queue 'orders;JOURNAL' --lake ./lake
    """


def _check_spark() -> None:
    missing = [each for each in NEEDED if find_spec(each) is None]
    if missing:
        raise click.ClickException(
            f"pipelines need {', '.join(missing)}, which is not installed: pip install merq[spark]"
        )


def _flow(name: str) -> Flow:
    from merq.spark.flows.running import flow_named  # noqa: PLC0415 - needs pyspark

    return flow_named(name)


@pipeline.command(name="list")
@json_option("A JSON object for each pipeline.")
def list_flows(*, as_json: bool) -> None:
    """Which pipelines there are."""
    _check_spark()
    from merq.spark.flows.running import flow_names  # noqa: PLC0415 - needs pyspark

    names = flow_names()
    width = max(map(len, names), default=0)
    for name in names:
        summary = _flow(name).summary
        if as_json:
            click.echo(json.dumps({"name": name, "summary": summary}))
        else:
            click.echo(f"{name:{width}}  {summary}")


class _Flows(click.Group):
    """Each pipeline as a command; imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Their names."""
        _check_spark()
        from merq.spark.flows.running import flow_names  # noqa: PLC0415 - needs pyspark

        return flow_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One of them."""
        if cmd_name not in self.list_commands(ctx):
            return None
        from merq.spark.flows.commands import command_of  # noqa: PLC0415 - needs pyspark

        return command_of(_flow(cmd_name))


@pipeline.command(cls=_Flows)
def run() -> None:
    """Runs a pipeline by its name; --help behind the name shows its options."""
