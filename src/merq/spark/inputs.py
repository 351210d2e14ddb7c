"""Files that Spark is to read, looked at before it is started, where it is sure which are meant.

A path without a scheme is one of this machine's, unless Hadoop is configured to mean another file
system by it. What cannot be known here is left to Spark.
"""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path
from typing import Final

from merq.spark.options import BadOption

_CONFIGURED: Final = (
    *("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"),
    "PYSPARK_GATEWAY_PORT",
)
"""Where one of these is set, a path may mean another file system."""

LINE_CHARACTERS_MAX: Final = 65_536
"""So much is read of a file to find its columns."""

_HERE: Final = "file://"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATTERN: Final = re.compile(r"[*?\[{]")
"""What Spark takes for the names of several files."""


def own_files(option: str, path: str) -> list[Path]:
    """The files that are meant, if they are surely on this machine; else none.

    Raises:
        BadOption: They would be on this machine, and are not.
    """
    is_here = path.startswith(_HERE)
    is_unsure = any(os.environ.get(each) for each in _CONFIGURED) or _SCHEME.match(path)
    if _PATTERN.search(path) or (is_unsure and not is_here):
        return []
    place = Path(path.removeprefix(_HERE))
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise BadOption(
            f"{option}: {path} is not there; what is on another file system is named by its whole "
            "URL, such as hdfs:///folder"
        )
    return sorted(each for each in place.iterdir() if each.is_file() and each.name[0] not in "._")


def csv_columns(files: list[Path]) -> list[str]:
    """The columns of the first CSV file that has any, by its first line; none if no file has."""
    for each in files:
        if each.suffix.lower() == ".csv":  # others may be compressed
            with each.open(encoding="utf-8-sig", errors="replace", newline="") as file:
                line = file.readline(LINE_CHARACTERS_MAX)
            if line:
                return next(csv.reader([line]))
    return []
