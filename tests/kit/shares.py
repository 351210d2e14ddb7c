"""How much of a search is done: all of it over the plain modules, less over the compiled build.

Both have the same source. What a search finds in it, it finds over the plain modules; the compiled
ones are to show that they do the same.
"""

from __future__ import annotations

import os
from typing import Final

COMPILED_SHARE: Final = 4
"""One in so many seeds and examples is tried again over the compiled build."""


def share_of(count: int) -> int:
    """Of so many seeds or examples, those that are tried now."""
    return count // COMPILED_SHARE if os.environ.get("MERQ_EXPECT_COMPILED") else count
