"""What the commands print on."""

from __future__ import annotations

import sys

from rich.console import Console

PIPE_WIDTH = 400
"""Columns where no terminal says how many: nothing is wrapped."""


def terminal(color: str = "auto") -> Console:
    """Standard output; `color` is auto, always or never."""
    return Console(
        highlight=False,
        force_terminal={"auto": None, "always": True, "never": False}[color],
        no_color=True if color == "never" else None,
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
    )
