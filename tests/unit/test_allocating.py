"""Freed memory is kept: what comes next costs no page faults."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from merq.allocating import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
bytes(bytearray(8 << 20))
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    bytes(bytearray(8 << 20))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Page faults of twenty large blocks that are freed at once."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this C library cannot be told")
def test_large_blocks_that_come_again_cost_hardly_any_page_faults() -> None:
    assert faults("kept") < 200
    assert faults("given back") > 10_000


GIVING_BACK = """
from pathlib import Path
from merq.allocating import give_back_freed_memory, keep_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

keep_freed_memory()
blocks = [bytes([number]) * (1 << 20) for number in range(100)] + [bytes(1000)]
for at in range(100):
    blocks[at] = b""
before = resident()
give_back_freed_memory()
print((before - resident()) >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this C library cannot be told")
def test_what_was_kept_is_given_back_when_it_is_wanted() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GIVING_BACK], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) > 50
