"""Files for Spark that are looked at before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from merq.spark.inputs import csv_columns, own_files
from merq.spark.options import BadOption

VARIABLES = ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")


@pytest.fixture(autouse=True)
def _nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (*VARIABLES, "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(each, raising=False)


def test_the_files_of_a_folder_are_those_that_spark_reads(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "_SUCCESS", ".a.csv.crc"):
        (tmp_path / name).write_text("x,y\n1,2\n")
    assert own_files("list", str(tmp_path)) == [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert own_files("list", f"file://{tmp_path}/a.csv") == [tmp_path / "a.csv"]


def test_what_is_not_there_is_told_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"list: .*none\.csv is not there"):
        own_files("list", str(tmp_path / "none.csv"))


@pytest.mark.parametrize("path", ["hdfs:///none.csv", "s3a://bucket/none", "none/*.csv", "{a,b}"])
def test_what_only_spark_can_find_is_left_to_it(path: str) -> None:
    assert own_files("list", path) == []


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_path_may_be_on_another_file_system_where_one_is_configured(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "/somewhere")
    assert own_files("list", "none.csv") == []


def test_the_columns_of_a_list_are_in_the_first_line_that_there_is(tmp_path: Path) -> None:
    empty, full, packed = (tmp_path / name for name in ("a.csv", "b.csv", "c.gz"))
    empty.write_bytes(b"")
    full.write_text('\ufeffurl,"message id"\nx,y\n')
    packed.write_bytes(b"\x1f\x8b")
    assert csv_columns([packed, empty, full]) == ["url", "message id"]
    assert csv_columns([packed, empty]) == []
