"""What happens at limits of sources and flows, without a session of Spark."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import pytest

from merq.spark.flows import capture
from merq.spark.inputs import LINE_CHARACTERS_MAX, csv_columns
from merq.spark.options import BadOption
from merq.spark.overlapping import UNDER_WAY_MAX, Handover

PATIENCE_S = 10.0


@pytest.mark.limit("merq.spark.flows.capture.FILES_MAX")
def test_a_run_takes_only_so_many_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tmp_path / f"{number}.pcap").touch()
    monkeypatch.setattr(capture, "FILES_MAX", 2)
    with pytest.raises(BadOption, match="there are 3 files; at most 2 at once"):
        capture.captures([str(tmp_path)])
    (tmp_path / "0.pcap").unlink()
    assert len(capture.captures([str(tmp_path)])) == 2


@pytest.mark.limit("merq.spark.inputs.LINE_CHARACTERS_MAX")
def test_columns_behind_the_longest_line_are_not_found(tmp_path: Path) -> None:
    path = tmp_path / "messages.csv"
    path.write_text(f"first,{'x' * LINE_CHARACTERS_MAX},last\n")
    assert csv_columns([path])[0] == "first"
    assert "last" not in csv_columns([path])
    path.write_text("first,last\n")
    assert csv_columns([path]) == ["first", "last"]


@pytest.mark.limit("merq.spark.overlapping.UNDER_WAY_MAX")
def test_with_so_many_calls_under_way_the_next_waits_for_the_first() -> None:
    go_on, is_handed_over = Event(), Event()
    with Handover() as handover:
        for _ in range(UNDER_WAY_MAX):
            handover.call(lambda: go_on.wait(PATIENCE_S))

        def hand_over() -> None:
            handover.call(lambda: None)
            is_handed_over.set()

        waiting = Thread(target=hand_over)
        waiting.start()
        assert not is_handed_over.wait(0.1)
        go_on.set()
        assert is_handed_over.wait(PATIENCE_S)
        waiting.join(PATIENCE_S)
        handover.finish()
