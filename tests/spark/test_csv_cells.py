"""No cell of a CSV file is a formula, and reading it gives back what was there."""

from __future__ import annotations

import csv
from pathlib import Path

from pyspark.sql import SparkSession

from merq.spark.csv_cells import neutral, restored

CELLS = [
    "=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'", "'=1", "''x",
    "plain", "", "a=b", "{guid}\\1", "it's", "\N{SNOWMAN}",
]  # fmt: skip


def test_cells_of_strangers_are_no_formulas_and_come_back_as_they_were(
    spark: SparkSession, tmp_path: Path
) -> None:
    how = {"header": "true", "quote": '"', "escape": '"', "multiLine": "true"}
    table = spark.createDataFrame(
        [(number, cell) for number, cell in enumerate(CELLS)], "n int, c string"
    )
    place = str(tmp_path / "cells")
    table.coalesce(1).select("n", neutral("c")).write.options(**how).csv(place)
    (file,) = Path(place).glob("*.csv")
    with file.open(newline="") as lines:
        written = [row["c"] for row in csv.DictReader(lines)]
    assert len(written) == len(CELLS)
    assert not [each for each in written if each[:1] in {*"=+-@\t\r\n"} and each]
    found = spark.read.schema("n int, c string").options(**how, enforceSchema="false").csv(place)
    back = {row["n"]: row["c"] for row in found.select("n", restored("c")).collect()}
    assert [back[number] or "" for number in range(len(CELLS))] == CELLS
