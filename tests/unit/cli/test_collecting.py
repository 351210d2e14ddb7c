"""How often the service's process looks for garbage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from merq.cli.serve import COLLECTING

SERVE = """
import gc, sys
from merq.cli.serve import serve
try:
    serve.main(["--data", sys.argv[1]], standalone_mode=False)
finally:
    print(gc.get_threshold(), gc.get_freeze_count() > 0)
"""
TIMEOUT_S = 60


def test_the_service_looks_for_garbage_less_often_than_python_does(tmp_path: Path) -> None:
    """In a process of its own, which ends because its folder is a file."""
    folder = tmp_path / "data"
    folder.write_bytes(b"")
    ended = subprocess.run(
        [sys.executable, "-c", SERVE, str(folder)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("MERQ_")},
    )
    assert ended.returncode != 0, "it was not to start"
    assert ended.stdout.splitlines()[-1] == f"{COLLECTING} True", ended.stderr
