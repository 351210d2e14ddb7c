"""The optional compiled build: `python tools/compiled.py build|check|test`.

Builds a wheel with mypyc from a copy of the sources, so that no compiled module stays beside them,
and unpacks it to .build/compiled. `check` runs the tests of the codec and of the engine over it:
the same source must behave the same, compiled or not. `test` builds without optimising, which takes
half the time, and checks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / ".build" / "source"
TARGET = ROOT / ".build" / "compiled"
SOURCES = ("src", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
OPTIMISED = 'opt_level = "3"'
UNOPTIMISED = 'opt_level = "0", debug_level = "0"'
RESULTS = ".build/conformance/compiled.json"
TESTS = (
    "tests/unit/wire",
    "tests/vectors",
    "tests/unit/engine",
    "tests/unit/store",
    "tests/unit/host",
    "tests/unit/protocol",
    "tests/unit/service",
    "tests/model",
    "tests/simulation",
)
"""The conftest of each room's unit tests refuses to run them where its modules are not compiled."""


def compiler() -> str | None:
    """A C compiler, if the machine has one."""
    return shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")


def build(*, optimised: bool = True) -> None:
    """Makes .build/compiled from the sources as they are now."""
    for place in (COPY, TARGET):
        shutil.rmtree(place, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(source, COPY / name, ignore=ignored)
        else:
            shutil.copy2(source, COPY / name)
    if not optimised:
        project = COPY / "pyproject.toml"
        text = project.read_text("utf-8")
        assert text.count(OPTIMISED) == 1, f"pyproject.toml does not say {OPTIMISED}"
        project.write_text(text.replace(OPTIMISED, UNOPTIMISED), encoding="utf-8")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    install.append("--disable-pip-version-check")
    environment = {**os.environ, "HATCH_BUILD_HOOK_ENABLE_MYPYC": "1"}
    subprocess.run(
        [*install, "--no-build-isolation", f"--target={TARGET}", str(COPY)],
        check=True,
        env=environment,
    )


def test() -> None:
    """Runs the tests of what is compiled over the compiled build."""
    environment = {**os.environ, "PYTHONPATH": str(TARGET), "MERQ_EXPECT_COMPILED": "1"}
    _check_modules(environment)
    options = ["--quiet", "--numprocesses=2", "--dist=worksteal", f"--spec-results={RESULTS}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *TESTS], check=True, env=environment, cwd=ROOT
    )


def _check_modules(environment: dict[str, str]) -> None:
    """What pyproject.toml lists as compiled must be so for whoever imports it."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        wheel = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]
    for path in wheel["hooks"]["mypyc"]["include"]:
        module = path.removeprefix("/src/").removesuffix(".py").replace("/", ".")
        script = f"import {module} as it; assert it.__file__.endswith(('.so', '.pyd')), it.__file__"
        subprocess.run([sys.executable, "-c", script], check=True, env=environment, cwd=ROOT)


def main() -> int:
    """Builds, and tests if asked to."""
    if sys.argv[1:] not in (["build"], ["check"], ["test"]):
        print(__doc__, file=sys.stderr)
        return 2
    if compiler() is None:
        print("no C compiler on this machine: the compiled build is skipped")
        return 0
    try:
        if sys.argv[1] != "check":
            build(optimised=sys.argv[1] == "build")
        if sys.argv[1] != "build":
            test()
    except subprocess.CalledProcessError as failed:
        return failed.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
