"""`merq stages`: what was written in batches and is not published."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

import click

from merq.cli.confirming import YES, confirm
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import age, size
from merq.cli.failing import json_option
from merq.cli.queue_names import short_name
from merq.cli.rendering import count, printable, table_of
from merq.cli.terminal import terminal
from merq.client.bulk import SEQUENCE_MAX
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.reservations import StageReport

_NUMBERS: Final = frozenset({"stage", "batch", "messages", "size", "age"})


@click.group(short_help="What data pipelines have written and not published.")
def stages() -> None:
    """Stages: messages that were written in parts, to be published all at once.

    Each task of a job writes into a stage of its own, where nobody sees it. When all of them are
    done the writer publishes its batch: all messages are in their queues, or none is. What is
    never published, because its writer died, goes by itself after a while: the setting
    `bulk.stage_keep_s` says when.

    \b
    merq stages list
    merq stages drop 1610612736
    merq stages drop --writer nightly-replay
    """


def object_of(report: StageReport) -> dict[str, object]:
    """A stage for programs."""
    return asdict(report) | {"name": short_name(report.queue)}


@stages.command(name="list")
@json_option("One JSON object a stage, one a line.")
@connection_options
def list_stages(connection: Connection, *, as_json: bool) -> None:
    """Lists stages: for which queue, by whom, of which batch, and since when.

    \b
    merq stages list
    merq stages list --json | jq -r '[.writer, .batch, .messages] | @tsv'
    """
    with connected(connection) as manager:
        reports, now = manager.bulk.stages(), manager.status().now
    if as_json:
        for each in reports:
            click.echo(json.dumps(object_of(each)))
        return
    if not reports:
        click.echo("nothing waits to be published", err=True)
        return
    columns = ("stage", "queue", "writer", "batch", "part", "messages", "size", "age")
    table = table_of(*columns, numbers=_NUMBERS, name="writer")
    for each in reports:
        table.add_row(
            str(each.stage),
            printable(short_name(each.queue), lines=False),
            printable(each.writer, lines=False),
            str(each.batch),
            printable(each.part, lines=False),
            f"{each.messages:,}",
            size(each.size),
            age(now - each.created),
        )
    terminal().print(table)


@stages.command()
@click.argument("stage", type=click.IntRange(1), required=False)
@click.option("--writer", help="All that this writer has not published.")
@YES
@json_option("One JSON object.")
@connection_options
def drop(
    stage: int | None, writer: str | None, connection: Connection, *, yes: bool, as_json: bool
) -> None:
    """Drops a stage, or all of a writer; what is in them was never sent.

    A writer that is still at work fails when it publishes, and writes its batch again if it is
    one that does: Spark does.

    On a terminal it asks first. In a script it refuses if there are messages, unless --yes is
    given.

    \b
    merq stages drop 1610612736
    merq stages drop --writer nightly-replay --yes
    """
    if (stage is None) == (writer is None):
        raise click.UsageError("say which: a STAGE that `merq stages list` shows, or --writer NAME")
    with connected(connection) as manager:
        bulk = manager.bulk
        found = [each for each in bulk.stages() if stage == each.stage or writer == each.writer]
        if not found:
            what = f"stage {stage}" if writer is None else f"stage of the writer {writer}"
            raise MessageQueueError(
                HResult.MQ_ERROR_QUEUE_NOT_FOUND,
                f"there is no {what}: it was published or dropped, or waited for too long",
            )
        lost = sum(each.messages for each in found)
        question = f"Drop {count(len(found), 'stage')} with {count(lost, 'message')}?"
        confirm(question, lost, yes=yes, otherwise="nothing was dropped")
        if writer is not None:
            gone = bulk.drop(writer, SEQUENCE_MAX)
        else:
            gone = bulk.drop_stage(found[0].stage)
    if as_json:
        click.echo(json.dumps({"stages": len(found), "messages": gone}))
    else:
        click.echo(f"dropped {count(len(found), 'stage')} with {count(gone, 'message')}")
