"""Python processes of Spark that start at once.

Spark starts Python for every table that it plans, every part that it reads and every batch that it
writes, by forks of a process that has nothing of what they need: each imports PyArrow, pandas and
the source anew, which takes longer than the rest of a small job. Here all of that is imported
before the first fork. `spark.python.daemon.module` names this module; sessions of
`merq.spark.session` have it.

Spark imports nothing before it forks because libraries may start threads, which a fork would leave
behind. Those that these libraries start are told not to; if there are any nevertheless, Spark's own
way is taken.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Final

from pyspark import daemon

SHARED: Final = (
    "pandas",
    "pyarrow.compute",
    "merq.spark.source",
    "merq.spark.decoding",
    "merq.spark.reading",
    "merq.spark.streaming",
    "merq.spark.writing",
)
"""What most of the processes import."""

WITHOUT_THREADS: Final = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Variables by which libraries are told to start no threads when they are imported."""

_THREADS: Final = Path("/proc/self/task")


def is_alone() -> bool:
    """Whether this process is known to have one thread only."""
    try:
        return len(list(_THREADS.iterdir())) == 1
    except OSError:
        return False


def main() -> None:
    """Imports what is shared, and what Spark says that its processes run; forks when asked to."""
    if is_alone():
        for name, value in WITHOUT_THREADS.items():
            os.environ.setdefault(name, value)
        for name in (*sys.argv[1:2], *SHARED):
            importlib.import_module(name)
    if is_alone():
        daemon.manager()
    else:
        os.execv(sys.executable, [sys.executable, "-m", daemon.__name__, *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()
