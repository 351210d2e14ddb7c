"""`merq store`: what is in a store's folder, and copies of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from merq.cli.terminal import terminal
from merq.errors import StoreCorrupt, StoreError
from merq.host.known_kinds import KNOWN_KINDS
from merq.store.backup import BackupReport, back_up
from merq.store.backup import restore as put_back
from merq.store.findings import CheckpointReport, End, Report, SegmentReport, Verdict
from merq.store.findings import Progress as Told
from merq.store.inspection import inspect

PATIENCE_S = 1.0
"""What takes longer shows on a terminal how far it is."""

_FOLDER = click.Path(path_type=Path)
_VERDICTS = {
    Verdict.SOUND: ("sound", "bold green"),
    Verdict.TORN: ("sound, with a torn tail that opening will cut off", "bold yellow"),
    Verdict.CORRUPT: ("corrupt", "bold red"),
}


_ASIDE = {
    "torn": "cut off by an earlier opening",
    "checkpoint": "damaged: an earlier opening did without it",
}


@click.group()
def store() -> None:
    """The folder that holds the messages: check it, copy it, put a copy back."""


@store.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
def check(folder: Path, *, as_json: bool) -> None:
    """Reads every byte of the store in DIR and says whether it is what was written.

    Nothing is changed, and the store may be in use meanwhile. The exit status is 0 if the store is
    sound, also with a torn tail, which a crash leaves and the next opening cuts off. It is 1 if
    something is corrupt: each such place is listed with file and offset.

    \b
    merq store check DIR
    merq store check --json DIR | jq .verdict
    """
    try:
        with _progress("checking") as progress:
            found = inspect(folder, progress, known=KNOWN_KINDS)
    except StoreError as wrong:
        if not as_json:
            raise
        click.echo(json.dumps({"error": str(wrong)}))
        raise click.exceptions.Exit(1) from None
    if as_json:
        click.echo(json.dumps(_as_json(found)))
    else:
        _show(found)
    raise click.exceptions.Exit(1 if found.verdict is Verdict.CORRUPT else 0)


@store.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.argument("target", type=_FOLDER)
def backup(folder: Path, target: Path) -> None:
    """Copies the store in DIR, which may be in use, to TARGET, a new or empty folder.

    The copy holds everything that was durable when the backup began. It is checked before it gets
    its name; a backup that is interrupted leaves nothing in TARGET.

    \b
    merq store backup DIR backups/monday
    """
    with _refusing(folder), _progress("copying") as progress:
        done = back_up(folder, target, progress, known=KNOWN_KINDS)
    click.echo(f"{_summary(done)}, checked")
    if done.aside:
        click.echo(
            f"Not in the copy: {_count(done.aside, 'file')} in {folder / 'aside'}, of what was "
            "damaged or could not be handled, kept there for a person.",
            err=True,
        )


@store.command()
@click.argument("source", metavar="BACKUP", type=_FOLDER)
@click.argument("folder", metavar="DIR", type=_FOLDER)
def restore(source: Path, folder: Path) -> None:
    """Checks BACKUP and copies it to DIR, a new or empty folder.

    The store keeps its identity, so only one copy of it may ever run: two would each deliver the
    same messages.

    \b
    merq store restore backups/monday DIR
    """
    with _refusing(source), _progress("copying") as progress:
        done = put_back(source, folder, progress, known=KNOWN_KINDS)
    click.echo(f"{_summary(done)}, checked")
    click.echo(
        f"Warning: only one copy of store {done.store_id} may run. If the store that this backup "
        "was made of, or another copy, is still started anywhere, messages will be delivered "
        "twice. What was sent or received after the backup was made is not in it.",
        err=True,
    )


@contextmanager
def _refusing(source: Path) -> Iterator[None]:
    """Says of which folder it is that something in it is corrupt, and what to do."""
    try:
        yield
    except StoreCorrupt as wrong:
        raise StoreError(
            f"in {source}, {wrong}; nothing was copied. `merq store check {source}` lists all of it"
        ) from wrong


def _summary(done: BackupReport) -> str:
    last = f" up to frame {done.last_sequence}" if done.last_sequence is not None else ""
    return (
        f"{done.target}: store {done.store_id}, {_count(done.segments, 'segment')}, "
        f"{_count(done.frames, 'frame')}{last}, {decimal(done.size)}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@contextmanager
def _progress(doing: str) -> Iterator[Told | None]:
    """A bar on standard error, if that is a terminal, and only for what takes its time."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    bar = Progress(
        TextColumn(doing),
        BarColumn(),
        DownloadColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(doing)
    began = time.monotonic()

    def show(done: int, total: int) -> None:
        if time.monotonic() - began > PATIENCE_S:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()


def _as_json(found: Report) -> dict[str, object]:
    return {
        "folder": str(found.folder),
        "verdict": found.verdict.value,
        "store_id": str(found.store_id) if found.store_id else None,
        "created": found.created,
        "segments": [_segment_as_json(segment) for segment in found.segments],
        "checkpoints": [_checkpoint_as_json(checkpoint) for checkpoint in found.checkpoints],
        "aside": [{"file": aside.file, "size": aside.size} for aside in found.aside],
        "corruptions": [
            {
                "file": each.file,
                "offset": each.offset,
                "reason": each.reason,
                "read_at_opening": each.read_at_opening,
            }
            for each in found.corruptions
        ],
        "notes": list(found.notes),
    }


def _segment_as_json(segment: SegmentReport) -> dict[str, object]:
    return {
        "number": segment.number,
        "file": segment.file,
        "size": segment.size,
        "used": segment.used,
        "frames": segment.frames,
        "records": segment.records,
        "records_by_kind": {str(kind): count for kind, count in segment.kinds},
        "first_sequence": segment.first_sequence,
        "last_sequence": segment.last_sequence,
        "end": segment.end.value,
        "torn_at": segment.used if segment.end is End.TORN else None,
    }


def _checkpoint_as_json(checkpoint: CheckpointReport) -> dict[str, object]:
    position = checkpoint.position
    return {
        "number": checkpoint.number,
        "file": checkpoint.file,
        "size": checkpoint.size,
        "segment": None if position is None else position >> 32,
        "offset": None if position is None else position & 0xFFFFFFFF,
        "next_sequence": checkpoint.next_sequence,
        "sections": [{"kind": kind, "size": size} for kind, size in checkpoint.sections],
        "whole": checkpoint.whole,
    }


def _show(found: Report) -> None:
    console = terminal()
    created = "" if found.created is None else f"  created {_date(found.created)}"
    console.print(Text.assemble(("store ", "dim"), (f"{found.store_id or 'unknown'}", "bold cyan")))
    console.print(Text(f"{found.folder}{created}", style="dim"))
    if found.segments:
        console.print(_segment_table(found.segments))
    if found.checkpoints:
        console.print(_checkpoint_table(found.checkpoints))
    for aside in found.aside:
        kind = aside.file.rpartition(".")[2]
        why = _ASIDE.get(kind, "of a message that was damaged, or could not be handled")
        console.print(Text(f"{aside.file}  {decimal(aside.size)} {why}"))
    for note in found.notes:
        console.print(Text.assemble(("• ", "yellow"), note))
    for each in found.corruptions:
        unread = "" if each.read_at_opening else " (opening does not read this place)"
        console.print(Text.assemble(("✗ ", "red"), f"{each}{unread}"))
    words, style = _VERDICTS[found.verdict]
    console.print(Text(words, style=style))


def _segment_table(segments: tuple[SegmentReport, ...]) -> Table:
    table = _table("segment", "size", "used", "frames", "records", "by kind", "sequence", "end")
    for each in segments:
        kinds = " ".join(f"{kind}:{count}" for kind, count in each.kinds)
        sequence = "" if each.frames == 0 else f"{each.first_sequence}..{each.last_sequence}"
        end = f"torn at {each.used}" if each.end is End.TORN else each.end.value
        style = "" if each.end in {End.CLEAN, End.GROWING} else "yellow"
        numbers = (each.number, each.size, each.used, each.frames, each.records)
        table.add_row(*(str(number) for number in numbers), kinds, sequence, Text(end, style))
    return table


def _checkpoint_table(checkpoints: tuple[CheckpointReport, ...]) -> Table:
    table = _table("checkpoint", "size", "contains up to", "next frame", "sections", "checksums")
    for each in checkpoints:
        place = ""
        if each.position is not None:
            place = f"segment {each.position >> 32}, offset {each.position & 0xFFFFFFFF}"
        following = "" if each.next_sequence is None else str(each.next_sequence)
        sections = " ".join(f"{kind}:{decimal(size)}" for kind, size in each.sections)
        state = Text("ok", "green") if each.whole else Text("wrong", "red")
        table.add_row(str(each.number), str(each.size), place, following, sections, state)
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        is_number = column in {"segment", "checkpoint", "size", "used", "frames", "records"}
        table.add_column(column, justify="right" if is_number else "left")
    return table


def _date(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds} seconds after 1970"
