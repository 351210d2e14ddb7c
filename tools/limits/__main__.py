"""Run a command of the register from anywhere: `python tools/limits check`."""

import sys
from importlib import import_module
from pathlib import Path

# Run by its path, Python knows what is in this folder but not the package that the folder is.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.exit(import_module("tools.limits.command").main())
