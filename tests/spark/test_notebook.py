"""The notebook among the examples runs from top to bottom, and shows what it says."""

from __future__ import annotations

import runpy

import pytest
from pyspark.sql import SparkSession

from kit.pages import ROOT

pytestmark = pytest.mark.xdist_group("spark")

EXAMPLES = ROOT / "examples"


def test_the_notebook_shows_what_it_says(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the session that is there, as on a cluster; its name is not that of a program."""
    monkeypatch.delenv("MERQ_URL", raising=False)
    monkeypatch.syspath_prepend(EXAMPLES)
    runpy.run_path(str(EXAMPLES / "spark_notebook.py"), run_name="notebook")
    printed = capsys.readouterr().out
    assert "|honey|    4|" in printed
    assert "|honey  |    10| 75.0|" in printed.replace("|  honey|", "|honey  |")
    assert "0 orders are left in the queue." in printed
    assert r"|MQMSG_CLASS_NACK_Q_PURGED|DIRECT=OS:" in printed
    assert spark.range(1).count() == 1, "the session is not the notebook's to stop"


def test_its_cells_are_those_of_notebooks() -> None:
    text = (EXAMPLES / "spark_notebook.py").read_text("utf-8")
    kinds = [line for line in text.splitlines() if line.startswith("# %%")]
    assert kinds == ["# %% [markdown]", "# %%"] * (len(kinds) // 2)
