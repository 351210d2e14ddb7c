"""Run from anywhere: `python tools/mutants --package engine --sample 300 --seed 1`."""

import sys
from importlib import import_module
from pathlib import Path

# Run by its path, Python knows what is in this folder but not the package that the folder is.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.exit(import_module("tools.mutants.command").main())
