"""Short, seeded runs of the fuzz targets; `make fuzz` runs them for as long as one likes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNS = {
    "fuzz_packets.py": 6_000,
    "fuzz_sessions.py": 6_000,
    # A whole queue manager for each; `tests/hostile/test_machines.py` has more, without coverage.
    "fuzz_exchange.py": 60,
    "fuzz_application.py": 60,
}

needs_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris is only built for Linux on x86-64 and Python up to 3.13",
)


@needs_atheris
@pytest.mark.parametrize("target", RUNS)
def test_a_seeded_run_of_a_fuzz_target_finds_nothing(tmp_path: Path, target: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "fuzz" / target),
            f"-runs={RUNS[target]}",
            "-seed=20260101",
            "-max_len=4096",
            f"-artifact_prefix={tmp_path}/",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"Done {RUNS[target]} runs" in done.stderr
    # Coverage-guided, not blind: libFuzzer must have seen the codec's branches.
    assert "INITED cov:" in done.stderr
