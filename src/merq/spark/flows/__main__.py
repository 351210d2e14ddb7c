"""The program that `spark-submit` is given; also `python -m merq.spark.flows NAME --option ...`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Who runs this file by its path has its folder first on the path, and in that our `trace`
    # would be taken for Python's.
    if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
        del sys.path[0]
    from merq.spark.flows.commands import main

    main()
