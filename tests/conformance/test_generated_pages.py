"""The generated reference is what the declarations say now."""

from __future__ import annotations

from tools import wiredoc

from merq.wire.layout import DECLARED


def test_the_packet_reference_is_up_to_date() -> None:
    assert wiredoc.PAGE.read_text(encoding="utf-8") == wiredoc.page(), "run make docs"


def test_the_packet_reference_has_every_declared_structure() -> None:
    text = wiredoc.page()
    for one in DECLARED:
        assert f"### {one.__name__}\n" in text
    assert "### UserMessage\n" in text
    assert "### MultiQueueFormatHeader\n" in text
