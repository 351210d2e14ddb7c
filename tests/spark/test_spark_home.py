"""The home of Spark from which its Python processes start quickly."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from merq.spark.home import linked_home, use_quick_home

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    found = tmp_path / "package"
    for name in ("bin", "jars", "sbin", "python", "sql"):
        (found / name).mkdir(parents=True)
    return found


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return monkeypatch


def test_processes_of_spark_import_its_package_and_not_its_zip(spark: SparkSession) -> None:
    def place(_: int) -> str:
        import pyspark

        return pyspark.__file__

    assert spark.sparkContext.parallelize([0], 1).map(place).collect() == [pyspark.__file__]


def test_a_home_has_links_to_what_spark_uses_of_it(package: Path, tmp_path: Path) -> None:
    home = linked_home(package, tmp_path / "cache")
    assert home.stat().st_mode & 0o777 == 0o700
    assert {each.name: each.readlink() for each in home.iterdir()} == {
        name: package / name for name in ("bin", "jars", "sbin")
    }


def test_a_home_is_made_anew_where_it_is_not_as_it_should_be(package: Path, tmp_path: Path) -> None:
    home = linked_home(package, tmp_path)
    (home / "jars").unlink()
    (home / "bin").unlink()
    (home / "bin").symlink_to(tmp_path)
    (home / "conf").symlink_to(tmp_path / "nowhere")
    assert linked_home(package, tmp_path) == home
    assert sorted(each.name for each in home.iterdir()) == ["bin", "jars", "sbin"]
    assert (home / "bin").readlink() == package / "bin"


def test_homes_of_different_packages_are_different(package: Path, tmp_path: Path) -> None:
    assert linked_home(package, tmp_path) != linked_home(package / "sql", tmp_path)


def test_the_home_is_named_to_spark(variables: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_quick_home()
    home = Path(os.environ["SPARK_HOME"])
    variables.setenv("SPARK_HOME", "")  # so that it is taken back
    assert home.is_relative_to(tmp_path)
    assert (home / "jars").resolve() == Path(pyspark.__file__).resolve().parent / "jars"
    assert not (home / "python").exists()


@pytest.mark.parametrize(
    "given",
    [{"SPARK_HOME": "/opt/spark"}, {"PYSPARK_PYTHON": f"{sys.executable}-other"}],
    ids=["home", "python"],
)
def test_who_names_a_home_or_another_python_keeps_it(
    variables: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    for name, value in given.items():
        variables.setenv(name, value)
    use_quick_home()
    assert os.environ.get("SPARK_HOME") == given.get("SPARK_HOME")


def test_without_a_place_for_it_spark_has_its_own_home(
    variables: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    variables.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    use_quick_home()
    assert "SPARK_HOME" not in os.environ
