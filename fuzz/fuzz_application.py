"""A coverage-guided fuzz target for the assembled service of applications.

    python fuzz/fuzz_application.py [libFuzzer options] [corpus folder]

The bytes choose what applications ask for, in whole frames and damaged ones, and when the power
fails; `tests/hostile/application_machine.py` says what must hold after each step, and
`chance_corpus.py` how a finding is shown again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris
from chance_corpus import fuzz

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

with atheris.instrument_imports(include=["merq"]):
    from hostile.application_machine import one_input

if __name__ == "__main__":
    fuzz(one_input)
