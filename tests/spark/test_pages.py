"""Pages and charts that flows leave behind."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.spark.options import BadOption
from merq.spark.pages.charts import BARS_MAX, Spread, bars, columns, spreads
from merq.spark.pages.page import CELL_CHARACTERS, Page, page_path

MADE = datetime(2026, 1, 31, tzinfo=UTC)
EVIL = "</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


class Tags(HTMLParser):
    """Which elements a page has, and what it says."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.said = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.said += data


def page_with(text: str) -> str:
    page = Page(text, MADE)
    page.heading(text)
    page.text(text)
    page.figures({text: text})
    page.table([text], [[text], [1], [2.5], [None], [MADE], [True]])
    page.chart(bars(text, [(text, 1)], text))
    page.chart(columns(text, [(text, 1), (text, 2)]))
    page.chart(spreads(text, [Spread(text, 0, 1, 2)], text))
    return page.html()


KNOWN = Tags(page_with("words"))


@given(st.text())
def test_nothing_that_is_shown_becomes_a_part_of_the_page(text: str) -> None:
    found = Tags(page_with(text))
    assert found.names == KNOWN.names
    assert found.attributes == KNOWN.attributes


def test_hostile_text_is_shown_as_text() -> None:
    found = Tags(page_with(EVIL))
    assert "script" not in found.names
    assert "img" not in found.names
    assert EVIL in found.said


def test_a_page_needs_nothing_else_and_suits_phones_and_the_dark() -> None:
    html = page_with("words")
    assert "script" not in KNOWN.names
    assert not {"src", "href"} & KNOWN.attributes
    assert "default-src 'none'" in html
    assert "prefers-color-scheme:dark" in html
    assert "width=device-width" in html


@pytest.mark.limit("merq.spark.pages.charts.BARS_MAX")
def test_bars_of_one_chart_have_one_scale_and_few_are_shown() -> None:
    chart = bars("t", [("most", 10), ("half", 5), ("none", 0)])
    widths = [float(each.split('"')[0]) for each in chart.split('width="')[1:]]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.1)
    assert widths[2] == 1
    many = bars("t", [(str(number), 1) for number in range(BARS_MAX + 5)])
    assert many.count("<rect") == BARS_MAX + 1
    assert "5 others" in many


def test_a_chart_of_nothing_says_so() -> None:
    for chart in (bars("t", []), spreads("t", [])):
        assert "nothing" in chart
    assert "<svg" in columns("t", [])


def test_steps_that_take_less_than_no_time_are_drawn_inside_the_chart() -> None:
    chart = spreads("t", [Spread("a", -3, -1, 2)])
    assert 'x="-' not in chart.replace('class="range" x="0.0"', "")


def test_long_values_are_cut_off() -> None:
    page = Page("t", MADE)
    page.table(["a"], [["x" * 5000]])
    assert page.html().count("x" * CELL_CHARACTERS) == 0
    assert "…" in page.html()


def test_a_page_is_written_at_once(tmp_path: Path) -> None:
    page = Page("t", MADE)
    page.write(tmp_path / "below" / "report.html")
    assert [each.name for each in (tmp_path / "below").iterdir()] == ["report.html"]


def test_where_a_page_goes_is_said_or_beside_the_tables() -> None:
    assert page_path("", "/data/out") == Path("/data/out/report.html")
    assert page_path("p.html", "s3://bucket/out") == Path("p.html")
    with pytest.raises(BadOption, match="report"):
        page_path("", "s3://bucket/out")
