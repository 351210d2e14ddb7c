"""A plugin of pytest that writes which spec and limit marks the tests of a run have shown.

`pytest --spec-results FILE` writes what `results` reads. A test counts as passed if its setup, the
test itself and its teardown all passed, and nobody expected it to fail; one that was skipped, or
failed as expected, shows nothing. With pytest-xdist the workers hand the marks over with their
reports, and the controller writes the file.
"""

from pathlib import Path

import pytest
from tools.conformance.results import Outcome, Results, Shown, fingerprint, save

MARKS = ("spec", "limit")
"""Sections of the documents, and limits (`tools/limits`): neither has a name that the other has."""
PROPERTY = "shown"
OPTION = "--spec-results"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the option."""
    parser.addoption(
        OPTION, metavar="FILE", help="write which marks the tests have shown, for the registers"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that gets all reports, if it was asked for."""
    if config.getoption(OPTION) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the marks of each test into its reports, which workers send to the controller."""
    for item in items:
        marks = [name for kind in MARKS for mark in item.iter_markers(kind) for name in mark.args]
        if marks:
            item.user_properties.append((PROPERTY, sorted(set(marks))))


class Recorder:
    """Collects reports, and writes the file when the run ends."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.path = config.invocation_params.dir / Path(config.getoption(OPTION))
        self.before = fingerprint(self.root)
        self.marks: dict[str, tuple[str, ...]] = {}
        self.outcomes: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what became of a phase of a test: setup, call or teardown."""
        marks = dict(report.user_properties).get(PROPERTY)
        if not isinstance(marks, list):
            return
        self.marks[report.nodeid] = tuple(str(mark) for mark in marks)
        outcome = _outcome(report)
        known = self.outcomes.get(report.nodeid)
        if outcome is Outcome.FAILED or known is Outcome.FAILED:
            self.outcomes[report.nodeid] = Outcome.FAILED
        elif report.when == "call":
            self.outcomes[report.nodeid] = outcome
        else:
            self.outcomes.setdefault(report.nodeid, Outcome.UNDECIDED)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the file. Sources that changed while the tests ran belong to no fingerprint."""
        after = fingerprint(self.root)
        code = pytest.ExitCode
        finished = exitstatus in (code.OK, code.TESTS_FAILED, code.NO_TESTS_COLLECTED)
        shown = tuple(
            Shown(node=node, marks=self.marks[node], outcome=self.outcomes[node])
            for node in sorted(self.outcomes)
        )
        save(
            self.path,
            Results(
                fingerprint=after if after == self.before else "",
                complete=finished,
                shown=shown,
            ),
        )


def _outcome(report: pytest.TestReport) -> Outcome:
    if report.failed:
        return Outcome.FAILED
    if report.passed and not hasattr(report, "wasxfail"):
        return Outcome.PASSED
    return Outcome.UNDECIDED
