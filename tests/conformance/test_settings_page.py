"""The generated page of settings is what the declarations say now."""

from __future__ import annotations

from tools import settingsdoc

from merq.service.settings import describe


def test_the_settings_reference_is_up_to_date() -> None:
    assert settingsdoc.PAGE.read_text(encoding="utf-8") == settingsdoc.page(), "run make docs"


def test_the_settings_reference_has_every_key_and_variable() -> None:
    text = settingsdoc.page()
    for each in describe():
        assert f"| `{each.key}` |" in text
        assert f"| `{each.variable}` |" in text
