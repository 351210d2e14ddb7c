"""Run it from anywhere: `python bench/hostile [--seconds N] [--sessions N] [--json]`."""

import sys
from importlib import import_module
from pathlib import Path

# Run by its path, Python knows what is in this folder but not the package that the folder is, nor
# the packets that strangers write by hand.
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
sys.exit(import_module("bench.hostile.command").main())
