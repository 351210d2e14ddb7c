"""Writes the lock files anew from pyproject.toml: `make lock`.

requirements/test.lock holds what `make test` and `make run` install, requirements/service.lock what
the service alone needs and is built with, requirements/extras.lock what the optional extras add,
requirements/bench.lock what `make bench` measures beside ours, all with
exact versions and hashes, for every supported Python and platform. The resolver is fetched into a
folder of its own; nothing else depends on it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESOLVER = "uv==0.13.7"
OPTIONS = (
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--quiet",
)


def main() -> int:
    """Resolves all files; the extras take the versions that the tests have."""
    place = ROOT / ".build" / "lock"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", f"--target={place}", "--upgrade"]
    subprocess.run([*pip, RESOLVER], check=True)
    compile_ = [str(place / "bin" / "uv"), "pip", "compile", *OPTIONS]
    tests, extras = "requirements/test.lock", "requirements/extras.lock"
    service = "requirements/service.lock"
    for more in (
        ["pyproject.toml", "--group=test", f"--output-file={tests}"],
        ["pyproject.toml", "--group=build", f"--constraint={tests}", f"--output-file={service}"],
        ["pyproject.toml", "--all-extras", f"--constraint={tests}", f"--output-file={extras}"],
        # The peers stand alone: they are installed into a folder of their own.
        ["--group=bench", "--output-file=requirements/bench.lock"],
    ):
        subprocess.run([*compile_, *more], check=True, cwd=ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
