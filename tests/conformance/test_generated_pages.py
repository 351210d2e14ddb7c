"""The generated reference is what the declarations say now."""

from __future__ import annotations

from tools import wiredoc

from merq.wire.layout import DECLARED, Layout


def test_the_packet_reference_is_up_to_date() -> None:
    assert wiredoc.PAGE.read_text(encoding="utf-8") == wiredoc.page(), "run make docs"


def test_every_declared_structure_cites_the_section_that_it_was_declared_with() -> None:
    wiredoc.modules()
    for one in DECLARED:
        section = one.LAYOUT.section if issubclass(one, Layout) else one.SECTION
        document, number = section.split()
        cited = (one.__doc__ or "").split(":")[0]
        assert f"[{document}] {number}" in cited, one.__name__


def test_the_packet_reference_has_every_declared_structure() -> None:
    text = wiredoc.page()
    for one in DECLARED:
        assert f"### {one.__name__}\n" in text
    assert "### UserMessage\n" in text
    assert "### MultiQueueFormatHeader\n" in text
