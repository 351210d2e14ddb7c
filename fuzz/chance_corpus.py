"""Runs libFuzzer with chance as its first corpus, for targets whose bytes choose what happens.

A finding is written to a file named crash-…, which the same command takes as an argument to show
it again. Without atheris (Linux on x86-64 has it) nothing can be run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import atheris

SEEDS: Final = 40
SEED_BYTES: Final = 400
"""About as many as a run uses up: shorter inputs end before much has happened."""


def fuzz(one_input: Callable[[bytes], None]) -> None:
    """Gives it ever new inputs until the options of the command line say that it is enough."""
    with tempfile.TemporaryDirectory(prefix="merq-corpus-") as folder:
        for seed in range(SEEDS):
            data = Random(seed).randbytes(SEED_BYTES)  # noqa: S311 - repeatable on purpose
            (Path(folder) / f"chance_{seed}").write_bytes(data)
        # A file to show again is run alone; a folder of the user's own comes before the seeds.
        again = any(Path(argument).is_file() for argument in sys.argv[1:])
        options = [sys.argv[0], "-max_len=800", "-len_control=0", *sys.argv[1:]]
        atheris.Setup(options if again else [*options, folder], one_input)
        atheris.Fuzz()
