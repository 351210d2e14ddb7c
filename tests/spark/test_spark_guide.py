"""The program of the guide for data engineers runs as it stands, but for where things are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acceptance.service_process import ServiceProcess
from kit.pages import ROOT, blocks_of
from merq.client.manager import Manager

pytestmark = pytest.mark.xdist_group("spark")

PATIENCE_S = 120


def test_the_guide_does_what_it_says(
    spark: SparkSession,
    alpha: ServiceProcess,
    manager: Manager,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    block, within = blocks_of(ROOT / "docs" / "guide" / "spark.md", "python")
    text = block.text.replace("unix:/var/lib/merq/merq.sock", alpha.url)
    program = text.replace('"lake/', f'"{tmp_path}/lake/')
    assert program.count(alpha.url) == 1
    assert program.count(str(tmp_path)) == 2
    orders = manager.create_queue(r".\private$\orders")
    replies = manager.create_queue(r".\private$\replies")
    orders.send_many(["tea", "milk"], label="new", recoverable=True)
    answers = spark.createDataFrame([("yes", "re: tea")], "value string, label string")
    names: dict[str, Any] = {"spark": spark, "replies": answers}
    exec(program, names)  # noqa: S102 - it is our own page
    for query in spark.streams.active:
        assert query.awaitTermination(PATIENCE_S)
    assert "|  new|    2|" in capsys.readouterr().out
    rows = spark.read.parquet(str(tmp_path / "lake" / "orders")).orderBy("sequence").collect()
    assert [row["value"] for row in rows] == ["tea", "milk"]
    assert len(orders) == 0
    assert [(each.label, each.body) for each in replies.peek_all()] == [("re: tea", "yes")]
    exec(within.text, names)  # noqa: S102
    for _ in range(2):
        names["send"](answers, 3)
    assert len(replies) == 2
