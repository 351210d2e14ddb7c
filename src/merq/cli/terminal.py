"""What the commands print on."""

from __future__ import annotations

import sys

from rich.console import Console

PIPE_WIDTH = 1 << 16
"""Columns where no terminal says how many: no name or value is wrapped."""


def terminal(color: str = "auto") -> Console:
    """Standard output; `color` is auto, always or never."""
    return Console(
        highlight=False,
        force_terminal={"auto": None, "always": True, "never": False}[color],
        # Who asks for colours gets them, whatever TERM and NO_COLOR say.
        color_system="standard" if color == "always" else "auto",
        no_color={"auto": None, "always": False, "never": True}[color],
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
    )
