"""The checks that tie the register of limits to sources, settings and tests.

`check` reads files alone; `proved` asks what the tests of a run have shown.
"""

from pathlib import Path

from tools.conformance.checks import Finding
from tools.conformance.citing import marked_tests
from tools.conformance.results import Outcome, by_mark, load_all
from tools.limits.declared import Declared
from tools.limits.register import FILE, Entry, Kind, repeated

MARK = "limit"


def line(limit: Declared) -> str:
    """What to add to the register for a limit."""
    return f'{{ name = "{limit.name}", reached = "<what happens there>" }},'


def check(root: Path, entries: list[Entry], known: dict[str, Declared]) -> list[Finding]:
    """Each limit is registered, each entry is a limit, and each says what it has to."""
    registered = {each.name for each in entries}
    findings = [Finding(where=name, what="stands there twice") for name in repeated(entries)]
    findings += [
        Finding(where=each.where, what=f"is not registered; {FILE.as_posix()} needs {line(each)}")
        for each in known.values()
        if each.is_limit and each.name not in registered
    ]
    findings += [
        Finding(where=each.name, what="is registered, but there is no such limit any more")
        for each in entries
        if each.name not in known
    ]
    tests = marked_tests(root, MARK)
    findings += [
        Finding(where=test.where, what=f"is marked with {test.mark!r}, which is not registered")
        for test in tests
        if test.mark not in registered
    ]
    marked = {test.mark for test in tests}
    return findings + [
        Finding(where=each.name, what=fault)
        for each in entries
        if each.name in known
        for fault in _faults(each, known, is_marked=each.name in marked)
    ]


def _faults(entry: Entry, known: dict[str, Declared], *, is_marked: bool) -> list[str]:
    faults: list[str] = []
    if entry.kind is Kind.COPY:
        if entry.of not in known:
            faults.append(f"is a copy of {entry.of or 'nothing'}, which there is not")
        elif _differ(value := known[entry.name].value, other := known[entry.of].value):
            faults.append(f"is {value}, and {entry.of}, which it is a copy of, is {other}")
    elif entry.of:
        faults.append(f"has an `of`, which only a {Kind.COPY} has")
    elif not entry.reached.strip():
        faults.append("does not say what happens when it is reached")
    if entry.unshown and is_marked:
        faults.append("says that no test reaches it, but one is marked with it")
    if entry.kind.is_shown and not entry.unshown and not is_marked:
        faults.append(
            f"no test is marked with it: @pytest.mark.{MARK}({entry.name!r}), "
            'or say why not: unshown = "…"'
        )
    return faults


def _differ(first: int | str, second: int | str) -> bool:
    """Whether two values are known not to be equal: settings are text, with units."""
    return isinstance(first, int) and isinstance(second, int) and first != second


def proved(root: Path, entries: list[Entry]) -> list[Finding]:
    """Each limit that a test has to reach was reached by one that ran and passed."""
    shown = by_mark(load_all(root))
    findings: list[Finding] = []
    for each in entries:
        outcomes = shown.get(each.name, set())
        if Outcome.FAILED in outcomes:
            findings.append(Finding(where=each.name, what="a test marked with it failed"))
        elif each.kind.is_shown and not each.unshown and Outcome.PASSED not in outcomes:
            what = "no test marked with it ran and passed"
            findings.append(Finding(where=each.name, what=what))
    return findings
