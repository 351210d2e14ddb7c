"""What Spark's Java says when it starts: the usual lines are left out, all others are shown."""

from __future__ import annotations

import pytest

from merq.spark.options import BadOption
from merq.spark.quieting import useful
from merq.spark.session import check_master

NATIVE = (
    b"26/11/16 12:08:20 WARN NativeCodeLoader: Unable to load native-hadoop library for your "
    b"platform... using builtin-java classes where applicable\n"
)
ERROR = b"26/11/16 12:08:21 ERROR SparkContext: Error initializing SparkContext.\n"
TRACE = b"\tat org.apache.spark.SparkContext.<init>(SparkContext.scala:603)\n"
PROFILE = (
    b"Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties\n"
    b'Setting default log level to "WARN".\n'
    b"To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use "
    b"setLogLevel(newLevel).\n"
).splitlines(keepends=True)
JAVAS = (
    b"Picked up JAVA_TOOL_OPTIONS: -Dx=1\n"
    b"NOTE: Picked up JDK_JAVA_OPTIONS: -Dx=1\n"
    b"WARNING: Using incubator modules: jdk.incubator.vector\n"
).splitlines(keepends=True)


def test_what_spark_says_each_time_is_left_out_and_its_errors_are_not() -> None:
    assert list(useful([*JAVAS, *PROFILE, NATIVE])) == []
    assert list(useful([*JAVAS, *PROFILE, NATIVE, ERROR, TRACE, b"half a line"])) == [
        ERROR,
        TRACE,
        b"half a line",
    ]


def test_who_has_settings_of_log4j_sees_all_of_its_log() -> None:
    assert list(useful([*JAVAS, NATIVE, ERROR])) == [NATIVE, ERROR]


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[2]", "local[*]", "local[2,3]", "local-cluster[2,1,1024]"),
        *("spark://host:7077", "k8s://https://host:443", "yarn"),
    ],
)
def test_places_where_spark_can_run_are_taken(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize("master", ["local[x]", "local[", "yarns", "http://host"])
def test_other_places_are_refused_with_what_belongs_there(master: str) -> None:
    with pytest.raises(BadOption, match=r"local\[2\].* belongs there"):
        check_master(master)
