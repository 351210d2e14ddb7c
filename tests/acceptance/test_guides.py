"""What the guides show runs as it stands: their programs, and the sessions in their terminals."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from kit.pages import ROOT, Block, blocks_of, has_shape, steps_of, terminal_in
from merq.cli.main import merq

GUIDES = ("asyncio", "clients", "embedded", "from-msmq", "from-rabbitmq", "quickstart")
ELSEWHERE = ("commands", "pipelines", "spark", "testing")
"""What is run by tests of its own."""

SERVE = "$ merq serve --name alpha 2> merq.log &\n"
WITH_COMMANDS = [
    *(ROOT / "docs" / "guide").glob("*.md"),
    *(ROOT / each for each in ("README.md", "CONTRIBUTING.md")),
]


def page(name: str) -> Path:
    return ROOT / "docs" / "guide" / f"{name}.md"


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_can_be_followed_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    """In one folder, with one service: the guide's own, or one that is there from the start."""
    blocks = blocks_of(page(name), "console", "python", "text")
    assert blocks
    printed = ""
    with terminal_in(tmp_path) as terminal:
        if not any("merq serve" in each.text for each in blocks) and name != "embedded":
            terminal.run(SERVE)
        for block in blocks:
            match block.language:
                case "console":
                    terminal.run(block.text)
                case "python":
                    printed = terminal.python(block.text)
                case _:
                    assert has_shape(printed, block.text.splitlines()), printed


def test_no_program_of_a_guide_is_left_out() -> None:
    pages = (ROOT / "docs" / "guide").glob("*.md")
    with_programs = {path.stem for path in pages if blocks_of(path, "python", "console")}
    assert with_programs == {*GUIDES, *ELSEWHERE}


def test_what_is_masked_does_not_hide_another_output() -> None:
    shown = ["{3bbc2a44-8b2f-4c88-b0f4-57fdbb3e2a0e}\\1  parcel 1", "…", "  body  8 B"]
    alike = "{00000000-8b2f-4c88-b0f4-57fdbb3e2a0e}\\77 parcel 1\nmore\nlines\nbody 12 B\n"
    assert has_shape(alike, shown)
    assert not has_shape(alike.replace("parcel 1", "parcel 2"), shown)
    assert not has_shape(alike + "one line too many\n", shown)
    assert not has_shape("", shown)


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=lambda path: path.name)
def test_every_command_that_a_page_names_is_one(path: Path) -> None:
    for command in commands_of(path):
        words = command.split()
        found: click.Command = merq
        context = click.Context(merq)
        while words and isinstance(found, click.Group):
            name = words.pop(0).rstrip(",")
            if name.startswith("-") or not re.fullmatch(r"[a-z][a-z-]*", name):
                break
            inner = found.get_command(context, name)
            assert inner is not None, f"{path.name}: there is no merq {name} ({command})"
            found = inner
        options = {each for option in found.params for each in option.opts}
        options |= {each for option in found.params for each in option.secondary_opts}
        named = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", command)) - {"--help"}
        assert named <= options, f"{path.name}: {command}: {named - options}"


def commands_of(path: Path) -> list[str]:
    """Every `merq ...` in blocks for shells and between backticks."""
    found = [
        step.command
        for block in blocks_of(path, "console")
        for step in steps_of(block.text)
        if re.match(r"(\.venv/bin/)?merq ", step.command)
    ]
    lines = [
        line.removeprefix("$ ")
        for block in shell_blocks(path)
        for line in block.text.replace("\\\n", "").splitlines()
    ]
    found += [line for line in lines if line.startswith(("merq ", ".venv/bin/merq "))]
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    found += re.findall(r"`(merq [a-z][^`\n]*)`", text)
    return [re.split(r"[|#&>]", re.sub(r"^\S*merq ", "", each))[0] for each in found]


def shell_blocks(path: Path) -> list[Block]:
    return blocks_of(path, "", "sh")
