"""The page of limits, `docs/reference/limits.md`."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from tools.conformance.citing import MarkedTest, marked_tests
from tools.limits.checks import MARK
from tools.limits.declared import Declared
from tools.limits.register import FILE, Entry, Kind

PAGE = Path("docs/reference/limits.md")

HEAD = f"""\
# Limits

Generated from the sources, the settings and `{FILE.as_posix()}` by `make docs`;
[how](../internals/limits.md). Every limit has a name, and what happens when it is reached is said
here and shown by a test. A name of small letters is a [setting](settings.md); the others are
constants.
"""

TITLES: Mapping[Kind, tuple[str, str]] = {
    Kind.FORMAT: (
        "Ranges of formats",
        "The highest value that a field, a name or a file can have.",
    ),
    Kind.DISPLAY: (
        "What is shown at a time",
        "Tables, pages and messages to people are cut there.",
    ),
}


def rendered(root: Path, entries: list[Entry], known: Mapping[str, Declared]) -> str:
    """The whole page."""
    tests: dict[str, list[MarkedTest]] = {}
    for each in marked_tests(root, MARK):
        tests.setdefault(each.mark, []).append(each)
    rows = [each for each in entries if each.name in known and each.kind is not Kind.COPY]
    parts = [HEAD, _count(rows, tests)]
    guards = sorted(
        (each for each in rows if each.kind is Kind.GUARD), key=lambda it: _room(it, known)
    )
    for room, those in groupby(guards, key=lambda it: _room(it, known)):
        parts.append(f"## {room[1]}\n\n" + "\n".join(_table(those, known, tests)) + "\n")
    for kind, (title, words) in TITLES.items():
        table = "\n".join(_table((each for each in rows if each.kind is kind), known, tests))
        parts.append(f"## {title}\n\n{words}\n\n{table}\n")
    return "\n".join(parts)


def _count(rows: list[Entry], tests: Mapping[str, list[MarkedTest]]) -> str:
    guards = [each for each in rows if each.kind is Kind.GUARD]
    shown = sum(each.name in tests for each in guards)
    return (
        f"{len(guards)} limits keep something from growing or from taking for ever: {shown} are "
        f"reached by a test, {len(guards) - shown} not yet, and say why. Besides there are "
        f"{sum(each.kind is Kind.FORMAT for each in rows)} ranges of formats and "
        f"{sum(each.kind is Kind.DISPLAY for each in rows)} limits of what is shown at a time.\n"
    )


def _room(entry: Entry, known: Mapping[str, Declared]) -> tuple[int, str]:
    """Settings first, by table; then the packages."""
    if known[entry.name].is_setting:
        table = entry.name.partition(".")[0]
        return (0, f"Settings: `[{table}]`" if "." in entry.name else "Settings")
    parts = entry.name.split(".")
    depth = 3 if parts[1] == "protocol" else 2
    return (1, f"`{'.'.join(parts[:depth])}`")


def _table(
    rows: Iterable[Entry], known: Mapping[str, Declared], tests: Mapping[str, list[MarkedTest]]
) -> Iterator[str]:
    yield "| limit | default | is | when it is reached | shown by |"
    yield "|---|---:|---|---|---|"
    for each in sorted(rows, key=lambda it: it.name):
        it = known[each.name]
        value = f"{it.value:,}" if isinstance(it.value, int) else f"`{it.value}`"
        shown = "<br>".join(_link(test) for test in tests.get(each.name, []))
        if not shown:
            shown = f"none yet: {each.unshown}" if each.unshown else ""
        cells = (f"`{_short(each.name, it)}`", value, it.says, each.reached, shown)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _short(name: str, it: Declared) -> str:
    return name if it.is_setting else name.removeprefix("merq.")


def _link(test: MarkedTest) -> str:
    return f"[{test.test}](../../{test.where.partition(':')[0]})"
