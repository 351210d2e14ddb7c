"""What an error says of itself."""

import pytest

from merq.errors import WireError


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (WireError("too short"), "too short"),
        (WireError("too short", field="label"), "label: too short"),
        (WireError("too short", offset=0), "too short (at offset 0)"),
        (WireError("too short", offset=7, field="label"), "label: too short (at offset 7)"),
    ],
)
def test_a_wire_error_names_a_place_only_if_it_is_about_one(wrong: WireError, text: str) -> None:
    assert str(wrong) == text
