"""How far a stream is, read from its checkpoint without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from merq.spark.checkpoints import last_offsets
from merq.spark.lake.folder import Folder
from merq.spark.streaming import DataLoss, check_given


@pytest.fixture
def offsets(tmp_path: Path) -> Path:
    found = tmp_path / "checkpoint" / "offsets"
    found.mkdir(parents=True)
    for batch in (2, 9, 10):
        (found / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"a": {batch}}}')
    (found / ".10.crc").write_bytes(b"\0")
    return found


def test_the_last_batch_is_that_with_the_greatest_number(tmp_path: Path, offsets: Path) -> None:
    assert last_offsets(Folder(str(tmp_path)), "checkpoint") == {"a": 10}
    assert last_offsets(Folder(str(tmp_path)), "another") == {}


@pytest.mark.parametrize("text", ["", "v1\n{}\n", 'v1\n{}\n{"a": 1', "v1\n{}\n7"])
def test_what_was_cut_off_or_is_of_another_source_is_left_to_spark(
    tmp_path: Path, offsets: Path, text: str
) -> None:
    (offsets / "11").write_text(text)
    assert last_offsets(Folder(str(tmp_path)), "checkpoint") == {}


def test_a_queue_manager_that_has_not_come_so_far_was_set_back() -> None:
    check_given("a", 5, 5)
    with pytest.raises(DataLoss, match="a is to be read behind 6, and the queue manager is at 5"):
        check_given("a", 6, 5)
