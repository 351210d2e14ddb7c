"""Memory that was freed is kept for what comes next.

By default the C library gives every larger block back to the system when it is freed. The next one
then costs a page fault for each 4 KB, and in a virtual machine that takes longer than all that is
done with those bytes: batches of messages are such blocks.
"""

from __future__ import annotations

import ctypes
import platform
from contextlib import suppress
from typing import Final

KEPT_BYTES: Final = 256 << 20
"""Free memory at the end of the heap that is not given back, and the size from which on blocks are
got from the system and given back to it."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Names of glibc's malloc.h."""


def keep_freed_memory() -> None:
    """Tells the C library, where it is one that can be told."""
    if platform.libc_ver()[0] != "glibc":
        return
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, KEPT_BYTES)
        library.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)


def give_back_freed_memory() -> None:
    """Gives back to the system what is free, for when much of it was taken once and will not be."""
    if platform.libc_ver()[0] == "glibc":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
