"""What the measuring programs share: our two builds, the peers' folder, and where they work.

Every measurement runs in a process of its own, with the build that it is to measure on its path.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILED = ROOT / ".build" / "compiled"
PEERS = ROOT / ".build" / "peers"
WORK = ROOT / ".build" / "bench"


def found_builds() -> dict[str, Path]:
    """Our builds by name: the plain one, and the compiled one if it is of the same sources."""
    builds = {"plain": ROOT / "src"}
    if not COMPILED.is_dir():
        print("no compiled build: python tools/compiled.py build", file=sys.stderr)
    elif sources(COMPILED) != sources(ROOT / "src"):
        print(
            "the compiled build is left out: it is of other sources than these; "
            "python tools/compiled.py build",
            file=sys.stderr,
        )
    else:
        builds["compiled"] = COMPILED
    return builds


def sources(build: Path) -> dict[str, bytes]:
    """The text of every module of a build, by its place in the package."""
    package = build / "merq"
    return {str(path.relative_to(package)): path.read_bytes() for path in package.rglob("*.py")}


def environment(build: Path) -> dict[str, str]:
    """The environment of a process that measures `build`."""
    path = os.pathsep.join(str(place) for place in (build, ROOT, PEERS))
    return {**os.environ, "PYTHONPATH": path}


def print_load() -> None:
    """How busy the machine was beforehand: where others work too, figures scatter."""
    if hasattr(os, "getloadavg"):
        print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


@contextmanager
def working_folder(chosen: Path | None) -> Iterator[Path]:
    """An empty folder, by default on the project's own disk: a temporary one may be in memory."""
    place = chosen or WORK
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="merq-bench-", dir=place) as folder:
        yield Path(folder)
