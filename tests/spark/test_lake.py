"""Lakes without Spark: batches that are committed once, whatever fails; compaction; columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from merq.model.body import encode_body
from merq.spark.lake import compacting
from merq.spark.lake.committing import RECORDS_KEPT, Committer, NewFile, place_of
from merq.spark.lake.compacting import COMPACTING, compact
from merq.spark.lake.description import FORMATS, described, read_description, settle
from merq.spark.lake.folder import Folder, LakeError, escaped, unescaped
from merq.spark.lake.reading import find_message
from merq.spark.lake.tables import ParquetTable, table_of
from merq.spark.texts import text_of
from spark.lake_files import DAY, QUEUE, description, ids_by_glob, put, staging

WRITER = "011ff0cb-048e-4c00-833e-44f8f2541574"


class PowerCut(Exception):
    """The driver is gone."""


def failing_write(_path: str) -> None:
    raise PowerCut


class Cut(Folder):
    """A folder whose machine loses power at the n-th change."""

    def __init__(self, url: str, after: int) -> None:
        super().__init__(url)
        self.left = after

    def _pass(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise PowerCut

    def write_json(self, name: str, value: Any) -> None:
        self._pass()
        super().write_json(name, value)

    def create_json(self, name: str, value: Any, passing: str) -> bool:
        self._pass()
        return super().create_json(name, value, passing)

    def move(self, name: str, to: str) -> None:
        self._pass()
        super().move(name, to)

    def remove(self, name: str) -> None:
        self._pass()
        super().remove(name)

    def remove_folder(self, name: str) -> None:
        self._pass()
        super().remove_folder(name)


def rows_in_table(lake: Path, form: str) -> list[str]:
    """What the table has, by its own log."""
    folder = Folder(str(lake))
    if form == "parquet":
        return ids_by_glob(lake)
    if form == "delta":
        return sorted(DeltaTable(str(lake)).to_pyarrow_table()["message_id"].to_pylist())
    paths = table_of(folder, form).paths() or []
    return sorted(
        each for path in paths for each in pq.ParquetFile(path).read()["message_id"].to_pylist()
    )


@pytest.mark.parametrize("form", FORMATS)
def test_a_batch_that_comes_again_is_not_added_again(tmp_path: Path, form: str) -> None:
    folder, what = Folder(str(tmp_path)), description(form)
    table = table_of(folder, form)
    table.prepare(what)
    first = Committer(folder, table, WRITER).commit(0, staging(what, ["a", "b"], ["c"]))
    assert first.is_new
    assert first.rows == 3
    versions = len(list(tmp_path.glob("_delta_log/*.json")))
    again = Committer(folder, table_of(folder, form), WRITER).commit(0, failing_write)
    assert not again.is_new
    assert len(list(tmp_path.glob("_delta_log/*.json"))) == versions
    Committer(folder, table, WRITER).commit(1, staging(what, ["d"]))
    assert rows_in_table(tmp_path, form) == ["a", "b", "c", "d"]
    assert not any((tmp_path / "_staging" / WRITER).iterdir())


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_wherever_the_power_goes_each_message_is_there_once_after_the_next_attempt(
    tmp_path: Path, form: str
) -> None:
    what = description(form)
    cuts = 0
    for after in range(20):
        lake = tmp_path / str(after)
        lake.mkdir()
        table = table_of(Folder(str(lake)), form)
        table.prepare(what)
        Committer(Folder(str(lake)), table, WRITER).commit(0, staging(what, ["before"]))
        cut = Cut(str(lake), after)
        try:
            Committer(cut, table_of(cut, form), WRITER).commit(1, staging(what, ["a"], ["b"]))
        except PowerCut:
            cuts += 1
            seen = ids_by_glob(lake)
            assert len(set(seen)) == len(seen)
        Committer(Folder(str(lake)), table, WRITER).commit(1, staging(what, ["a"], ["b"]))
        assert rows_in_table(lake, form) == ["a", "b", "before"]
        if cut.left >= 0:
            break
    assert cuts == 4, "the record, two files, the staging folder"


class Forgetful(ParquetTable):
    """A table that fails before its log has the batch."""

    def add(self, files: Sequence[NewFile], writer: str, batch: int) -> None:  # noqa: ARG002
        raise PowerCut


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_s_log_gets_what_it_missed(tmp_path: Path, form: str) -> None:
    folder, what = Folder(str(tmp_path)), description(form)
    table = table_of(folder, form)
    table.prepare(what)
    with pytest.raises(PowerCut):
        Committer(folder, Forgetful(), WRITER).commit(0, staging(what, ["a"]))
    assert rows_in_table(tmp_path, form) == []
    Committer(folder, table, WRITER).commit(0, failing_write)
    assert rows_in_table(tmp_path, form) == ["a"]


def test_two_writers_do_not_take_each_other_s_batches_for_their_own(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    for writer, text in (("one", "a"), ("two", "b")):
        Committer(folder, ParquetTable(), writer).commit(0, staging(what, [text]))
    assert ids_by_glob(tmp_path) == ["a", "b"]


def test_a_number_that_stands_for_other_messages_than_before_is_refused(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    committer = Committer(folder, ParquetTable(), WRITER)
    committer.commit(0, staging(what, ["a"]), "from 0 to 1")
    with pytest.raises(LakeError, match=r"\(from 0 to 1\) than now \(from 0 to 2\)"):
        committer.commit(0, staging(what, ["b"]), "from 0 to 2")
    assert ids_by_glob(tmp_path) == ["a"]


def test_what_an_attempt_has_left_is_not_part_of_the_next(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    cut = Cut(str(tmp_path), 0)  # the staged files are there, the record is not
    with pytest.raises(PowerCut):
        Committer(cut, ParquetTable(), WRITER).commit(0, staging(what, ["x"], ["y"]))
    assert ids_by_glob(tmp_path) == []
    Committer(folder, ParquetTable(), WRITER).commit(0, staging(what, ["z"]))
    assert ids_by_glob(tmp_path) == ["z"]
    assert not any((tmp_path / "_staging" / WRITER).iterdir())


class Overtaken:
    """A driver that was thought dead: another does its batch at some point of its own commit."""

    def __init__(self, lake: Path, *, is_before: bool) -> None:
        self._lake = lake
        self._is_before = is_before

    def __call__(self, path: str) -> None:
        what = description()
        own = staging(what, ["a"], ["b"])
        if self._is_before:
            own(path)
        Committer(Folder(str(self._lake)), ParquetTable(), WRITER).commit(
            0, staging(what, ["a", "b"])
        )
        if not self._is_before:
            own(path)


@pytest.mark.parametrize("is_before", [False, True])
def test_a_driver_that_was_thought_dead_does_not_add_its_batch_again(
    tmp_path: Path, *, is_before: bool
) -> None:
    folder = Folder(str(tmp_path))
    late = Committer(folder, ParquetTable(), WRITER)
    found = late.commit(0, Overtaken(tmp_path, is_before=is_before))
    assert not found.is_new
    assert ids_by_glob(tmp_path) == ["a", "b"]
    assert not any((tmp_path / "_staging" / WRITER).iterdir())


def test_a_batch_whose_record_went_long_ago_is_not_added_again(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    committer = Committer(folder, ParquetTable(), WRITER)
    for batch in (0, RECORDS_KEPT):
        committer.commit(batch, staging(what, [str(batch)]))
    with pytest.raises(LakeError, match=r"batch 0 is to be added to the archive, and \S+ is there"):
        committer.commit(0, staging(what, ["0"]))
    assert ids_by_glob(tmp_path) == ["0", str(RECORDS_KEPT)]


def test_of_two_who_write_a_record_at_once_one_does(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    assert folder.create_json("records/1.json", {"by": "first"}, "passing/first.json")
    assert not folder.create_json("records/1.json", {"by": "second"}, "passing/second.json")
    assert folder.read_json("records/1.json") == {"by": "first"}


def test_old_records_of_batches_go(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    for batch in (0, 1, RECORDS_KEPT):
        Committer(folder, ParquetTable(), WRITER).commit(batch, staging(what, [str(batch)]))
    kept = [path.stem for path in (tmp_path / "_commits" / WRITER).iterdir()]
    assert sorted(map(int, kept)) == [1, RECORDS_KEPT]


def test_files_are_found_by_day_and_queue_in_folders_that_every_system_can_have() -> None:
    assert place_of(DAY, QUEUE) == "day=2026-11-16/queue=alpha%5Cprivate%24%5Corders%3BJOURNAL"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_folder_names_say_which_queue_it_is(name: str) -> None:
    assert unescaped(escaped(name)) == name
    assert not set(escaped(name)) & set('/\\:*?"<>|=$ ')


def test_a_message_is_found_without_spark(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    assert find_message(str(tmp_path), "a") is None
    Committer(folder, ParquetTable(), WRITER).commit(0, staging(what, ["a", "b"]))
    found = find_message(str(tmp_path), "b")
    assert found is not None
    assert found[0].startswith(f"day={DAY}/queue=")
    assert found[1]["body_text"] == "text of b"


# Compaction.


def test_small_files_of_a_day_and_queue_become_one(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    for each in "abc":
        put(folder, what, each, [each])
    done = compact(folder, what)
    assert (done.removed, done.added, done.rows) == (3, 1, 3)
    assert ids_by_glob(tmp_path) == ["a", "b", "c"]
    assert compact(folder, what).removed == 0


def test_files_that_are_large_enough_stay(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    for each in "abcd":
        put(folder, what, each, [each])
    size = next(iter(folder.files_in(f"day={DAY}").values()))
    assert compact(folder, what, target_bytes=size).removed == 0
    assert compact(folder, what, target_bytes=size * 5 // 2).added == 2


def test_wherever_the_power_goes_in_a_compaction_no_message_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    what = description()
    cuts = 0
    for after in range(20):
        lake = tmp_path / str(after)
        lake.mkdir()
        for each in "abc":
            put(Folder(str(lake)), what, each, [each])
        cut = Cut(str(lake), after)
        try:
            compact(cut, what)
        except PowerCut:
            cuts += 1
            seen = ids_by_glob(lake)
            assert len(set(seen)) == len(seen)
        compact(Folder(str(lake)), what)
        assert ids_by_glob(lake) == ["a", "b", "c"]
        assert not list((lake / COMPACTING).glob("*.json"))
        if cut.left >= 0:
            break
    assert cuts > 4


def test_two_do_not_compact_at_once(tmp_path: Path) -> None:
    folder, what = Folder(str(tmp_path)), description()
    with (
        compacting._alone(folder),
        pytest.raises(LakeError, match="somebody else compacts"),
    ):
        compact(folder, what)


def test_a_compaction_gives_old_files_the_new_columns(tmp_path: Path) -> None:
    folder, old, new = Folder(str(tmp_path)), description(names=("label",)), description()
    put(folder, old, "old", ["a"])
    put(folder, new, "new", ["b"])
    compact(folder, new)
    (path,) = tmp_path.glob("day=*/queue=*/*.parquet")
    table = pq.ParquetFile(path).read()
    assert table.schema.names == list(new.columns)
    assert sorted(table["message_id"].to_pylist()) == ["a", "b"]


# What a lake is.


def test_a_lake_gets_columns_and_loses_none(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    settle(folder, described("parquet", ("label", "priority")))
    both = settle(folder, described("parquet", ("label", "app_tag")))
    assert {"label", "priority", "app_tag", "message_id", "day", "body_text"} <= set(both.columns)
    assert read_description(folder) == both


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_gets_new_columns(tmp_path: Path, form: str) -> None:
    folder = Folder(str(tmp_path))
    old, new = description(form, ("label",)), description(form, ("label", "app_tag"))
    table = table_of(folder, form)
    table.prepare(old)
    Committer(folder, table, WRITER).commit(0, staging(old, ["a"]))
    table.prepare(new)
    table.prepare(new)
    Committer(folder, table, WRITER).commit(1, staging(new, ["b"]))
    assert rows_in_table(tmp_path, form) == ["a", "b"]


def test_another_format_is_refused(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    settle(folder, description("parquet"))
    with pytest.raises(LakeError, match="is in the format parquet, and delta was asked for"):
        settle(folder, description("delta"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"version": 99, "format": "parquet", "columns": {}}', "use a newer Merq"),
        ('{"version": 1}', "does not describe an archive"),
        ('{"version": 1, "format": "orc", "columns": {}}', "not known"),
        ("{", "is no JSON"),
    ],
)
def test_what_is_no_description_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "archive.json").write_text(text)
    with pytest.raises(LakeError, match=reason):
        read_description(Folder(str(tmp_path)))


def test_a_type_that_changed_is_refused(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    settle(folder, description())
    path = tmp_path / "archive.json"
    found = json.loads(path.read_text())
    found["columns"]["label"] = "bigint"
    path.write_text(json.dumps(found))
    with pytest.raises(LakeError, match="the column label as bigint, and it is string now"):
        settle(folder, description())


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    folder.write_json("a/b.json", {"x": 1})
    folder.write_json("a/b.json", {"x": 2})
    assert folder.read_json("a/b.json") == {"x": 2}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.json"]


# Bodies as text.


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("höher", "höher"),
        (5, "5"),
        (2.5, "2.5"),
        (True, "true"),
        (None, None),
        (UUID(int=7), str(UUID(int=7))),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
        (b'{"a": 1}\n', '{"a": 1}\n'),
        (b"<a>\xc3\xb6</a>", "<a>ö</a>"),
        (b"\xef\xbb\xbf<a/>", "<a/>"),
        ("<a>ö</a>".encode("utf-16"), "<a>ö</a>"),
        (b"\x00\x01\x02", None),
        (b"\xff\xd8\xff", None),
        (b"", None),
    ],
)
def test_bodies_are_text_where_that_makes_sense(value: Any, text: str | None) -> None:
    assert (text_of(*encode_body(value)) or None) == text


def test_a_body_that_is_not_what_it_says_has_no_text() -> None:
    assert text_of(3, b"\x01") is None
