"""The tests that mutants are tried on, as one pytest session inside this process.

`SuitePlugin` is what the modules that run tests have in common: it collects the tests as `pytest`
would, and gives its subclass the collected items in place of running them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[2]
# Everything that runs the three packages inside the process of the test. Tests that start services
# and programs would run the unchanged source there.
FOLDERS = (
    "tests/unit/protocol",
    "tests/unit/exchange",
    "tests/unit/engine",
    "tests/unit/host",
    "tests/unit/testing",
    "tests/unit/client",
    "tests/vectors",
    "tests/model",
    "tests/simulation",
)
ARGUMENTS = (
    "--quiet",
    "--tb=no",
    "--capture=no",
    "--continue-on-collection-errors",
    "-p",
    "no:xdist",
    # This process has imported hypothesis already, which is nobody's concern here.
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)


class SuitePlugin:
    """Collects tests, then hands them to `loop`."""

    def __init__(self, loop: Callable[[Suite], object]) -> None:
        self._loop = loop
        self._suite = Suite()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """A failing example is not made smaller: that it fails is all that is asked."""
        phases = [phase for phase in Phase if phase not in {Phase.shrink, Phase.explain}]
        settings.register_profile(
            "mutants", settings(), phases=phases, report_multiple_bugs=False, print_blob=False
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Stands in the place of pytest's own loop over the tests."""
        self._suite.items = {item.nodeid: item for item in session.items}
        self._suite.unreadable = session.testsfailed > 0
        self._loop(self._suite)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remembers whether the test that runs has failed."""
        if report.failed:
            self._suite.has_failed = True


class Suite:
    """The collected tests."""

    def __init__(self) -> None:
        self.items: dict[str, pytest.Item] = {}
        self.has_failed = False
        # A test module could not be imported.
        self.unreadable = False

    def run(self, name: str, following: str | None) -> float | None:
        """Runs one test; gives the processor time that it took, or None if it failed."""
        item = self.items[name]
        self.has_failed = False
        started = time.process_time()
        item.config.hook.pytest_runtest_protocol(
            item=item, nextitem=self.items[following] if following else None
        )
        return None if self.has_failed else time.process_time() - started

    def run_all(self, names: list[str]) -> dict[str, float | None]:
        """Runs tests one after the other; the processor time of each, None for those that fail."""
        return {
            name: self.run(name, following)
            for name, following in zip(names, [*names[1:], None], strict=True)
        }


def run_pytest(loop: Callable[[Suite], object], paths: Iterable[str], log: str = os.devnull) -> int:
    """Collects the tests of the paths and hands them to `loop`; what is printed goes to the log."""
    quiet = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.dont_write_bytecode = True
    # The sources beside this tool, whatever is installed.
    sys.path.insert(0, str(ROOT / "src"))
    os.chdir(ROOT)
    present = [path for path in paths if (ROOT / path).exists()]
    return int(pytest.main([*ARGUMENTS, *present], plugins=[SuitePlugin(loop)]))
