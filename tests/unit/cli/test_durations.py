"""Times and sizes as people write them."""

from __future__ import annotations

import math

import pytest

from merq.cli.durations import age, parse_duration, parse_kilobytes, quota, size
from merq.model.queue import UNLIMITED


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("1.5", 1.5),
        ("500ms", 0.5),
        ("5s", 5),
        ("10m", 600),
        ("10 min", 600),
        ("1h30m", 5400),
        ("1H 30M", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("forever", math.inf),
    ],
)
def test_a_time_is_read_with_or_without_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "-5s", "1h30", "5s!", "1e9", "٣s", "s"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; write 500ms"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "kilobytes"),
    [("7", 7), ("512KB", 512), ("64 mb", 65_536), ("2G", 2_097_152), ("unlimited", UNLIMITED)],
)
def test_a_size_is_read_in_kilobytes(text: str, kilobytes: int) -> None:
    assert parse_kilobytes(text) == kilobytes


@pytest.mark.parametrize("text", ["", "lots", "-1", "1.5MB", "5TB", "99999999GB"])
def test_what_is_no_quota_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no size|is more than a quota can be"):
        parse_kilobytes(text)


def test_ages_and_sizes_are_told_in_units_that_say_something() -> None:
    told = [age(each) for each in (-3, 0, 119, 120, 7199, 7200, 172_799, 172_800)]
    assert told == ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"]
    assert [size(0), size(1), size(1500)] == ["0 B", "1 B", "1.5 kB"]
    assert (quota(UNLIMITED), quota(2048)) == ("unlimited", "2,048 KB")
