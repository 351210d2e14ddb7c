"""Groups of consumers and what is written in batches, as tables and objects."""

from __future__ import annotations

from dataclasses import replace

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from merq.cli import reservations, stages
from merq.cli.confirming import confirm
from merq.cli.main import merq
from merq.model.reservations import ClaimReport, StageReport

CLAIM = ClaimReport(
    queue=r".\private$\orders",
    group="archive",
    acknowledged=1 << 40,
    reserved_up_to=(1 << 40) + 5,
    ranges=1,
    messages=12_345,
    owner="someone",
    lease_s=3,
)
STAGE = StageReport(
    stage=0x60000000,
    queue=r".\private$\orders",
    writer="replay",
    batch=7,
    part="0",
    messages=2,
    size=300,
    created=1_700_000_000,
)


def printed(*reports: ClaimReport, with_queue: bool = True) -> list[str]:
    console = Console(width=120)
    with console.capture() as shown:
        console.print(reservations.table_of_groups(list(reports), with_queue=with_queue))
    return shown.get().splitlines()


@pytest.mark.parametrize(
    ("owner", "lease_s", "words"),
    [("someone", 3, "at work"), ("someone", 0, "silent"), ("", 0, "none since the start")],
)
def test_a_table_says_whether_somebody_reads(owner: str, lease_s: int, words: str) -> None:
    report = replace(CLAIM, owner=owner, lease_s=lease_s)
    assert reservations.reader_of(report) == words
    assert printed(report)[1].rstrip().endswith(words)


def test_numbers_of_messages_are_not_cut() -> None:
    line = printed(CLAIM)[1].split()
    assert line[:5] == ["orders", "archive", str(1 << 40), "12,345", "1"]


def test_the_groups_of_one_queue_are_shown_without_it() -> None:
    assert "orders" not in "".join(printed(CLAIM, with_queue=False))


def test_names_do_nothing_to_a_terminal() -> None:
    (_, line) = printed(replace(CLAIM, group="\x1b[2J\nx"))
    assert r"\x1b[2J\nx" in line


def test_objects_have_the_short_name_too() -> None:
    assert reservations.object_of(CLAIM)["name"] == "orders"
    assert stages.object_of(STAGE)["name"] == "orders"
    assert stages.object_of(STAGE)["stage"] == 0x60000000


def test_what_is_not_meant_does_not_happen() -> None:
    with pytest.raises(click.ClickException, match="Drop it\\? Nothing was dropped: there is no"):
        confirm("Drop it?", 1, yes=False, otherwise="nothing was dropped")
    confirm("Drop it?", 1, yes=True)
    confirm("Drop it?", 0, yes=False)


@pytest.mark.parametrize("arguments", [["stages", "drop"], ["stages", "drop", "0"]])
def test_a_stage_has_to_be_named(arguments: list[str]) -> None:
    assert CliRunner().invoke(merq, arguments, prog_name="merq").exit_code == 2
