"""A coverage-guided fuzz target for the assembled exchange of a queue manager.

    python fuzz/fuzz_exchange.py [libFuzzer options] [corpus folder]

The bytes choose what strangers, the clock, the power and an application do to a queue manager on a
simulated disk; `tests/hostile/exchange_machine.py` says what must hold after each step, and
`chance_corpus.py` how a finding is shown again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris
from chance_corpus import fuzz

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

with atheris.instrument_imports(include=["merq"]):
    from hostile.exchange_machine import one_input

if __name__ == "__main__":
    fuzz(one_input)
