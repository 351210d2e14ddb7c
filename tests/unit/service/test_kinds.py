from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.service.kinds import (
    GIB,
    Address,
    Choice,
    Computer,
    Count,
    File,
    Kind,
    Mode,
    Seconds,
    Size,
    Switch,
    Text,
    WrongValue,
)

SIZE = Size(0, 1 << 62)
TIME = Seconds(0.0, 1e9)
KINDS: tuple[Kind, ...] = (
    SIZE,
    TIME,
    Address(),
    Choice(("a", "b")),
    Computer(),
    Count(-5, 1 << 64),
    File(),
    Mode(),
    Switch(),
    Text(),
)


def reread(kind: Kind, value: object) -> object:
    """The value after it was shown as TOML and read from there."""
    return kind.read(tomllib.loads(f"x = {kind.show(value)}")["x"])


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (0, 0),
        ("0", 0),
        ("64 MiB", 64 << 20),
        ("64mib", 64 << 20),
        ("1.5 KiB", 1536),
        ("2 kB", 2000),
        ("4611686018427387903", (1 << 62) - 1),
    ],
)
def test_a_size_is_a_number_of_bytes_or_has_a_unit(written: object, size: int) -> None:
    assert SIZE.read(written) == size


@pytest.mark.parametrize(
    "written",
    ["", "MiB", "64 XiB", "1.3 B", "-1", "1e3", True, 1.0, None, [], "9" * 40, "64 MiB 2", "٣"],
)
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(WrongValue):
        SIZE.read(written)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (3, 3.0),
        (0.5, 0.5),
        ("30", 30.0),
        ("30 s", 30.0),
        ("500ms", 0.5),
        ("2 min", 120.0),
        ("12h", 43200.0),
        ("90 d", 7776000.0),
        ("1w", 604800.0),
    ],
)
def test_a_time_is_a_number_of_seconds_or_has_a_unit(written: object, seconds: float) -> None:
    assert TIME.read(written) == seconds


@pytest.mark.parametrize("written", [float("nan"), float("inf"), -1, True, "5 m", "5 years", None])
def test_what_is_no_time_is_refused(written: object) -> None:
    with pytest.raises(WrongValue):
        TIME.read(written)


@pytest.mark.parametrize("written", ["0600", "600", "0o600"])
def test_permissions_are_octal_digits(written: str) -> None:
    assert Mode().read(written) == 0o600


@pytest.mark.parametrize("written", [600, 0o600, "6", "0800", "rw-------", "01777", None])
def test_permissions_are_no_number_whose_base_one_has_to_guess(written: object) -> None:
    with pytest.raises(WrongValue):
        Mode().read(written)


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (Count(1, 5), 0),
        (Count(1, 5), 6),
        (Count(1, 5), "1_0"),
        (Count(0, 1), True),
        (Size(1, GIB), GIB + 1),
        (Seconds(1, 2), 2.1),
        (Choice(("a", "b")), "c"),
        (Switch(), 1),
        (Switch(), "maybe"),
        (Address(), "localhost"),
        (Address(), 2130706433),
        (Address(), "127.0.0.256"),
        (File(), ""),
        (File(), "a\0b"),
        (Text(), "a\nb"),
        (Computer(), "a\\b"),
        (Computer(), "."),
        (Computer(), ""),
    ],
)
def test_what_is_out_of_range_or_of_another_kind_is_refused(kind: Kind, written: object) -> None:
    with pytest.raises(WrongValue):
        kind.read(written)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
@given(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.from_regex(r"[0-9]{1,22}(\.[0-9]{1,3})? ?[kmgt]?i?[bshd]?", fullmatch=True)
    | st.lists(st.integers())
)
def test_whatever_is_written_gives_a_value_that_can_be_shown_and_read_again_or_is_refused(
    kind: Kind, written: object
) -> None:
    try:
        value = kind.read(written)
    except WrongValue:
        assert kind.form
    else:
        assert kind.allows(value)
        assert reread(kind, value) == value
