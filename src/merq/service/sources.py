"""Where settings come from: a TOML file, MERQ_* variables and flags.

Each function gives what was written by key, with the place where it stands, and tells what it does
not know together with the nearest that it does. Not in here: what the values mean (`kinds`).
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from merq.errors import SettingsError

PREFIX: Final = "MERQ_"

FILE_VARIABLE: Final = "MERQ_CONFIG"
"""Names the TOML file, if no flag does."""

CLIENT_VARIABLES: Final = frozenset(
    {"MERQ_URL", "MERQ_TOKEN", "MERQ_CA", "MERQ_CLIENT_CERT", "MERQ_CLIENT_KEY"}
)
"""What clients read; the service lets them be."""

FILE_BYTES_MAX: Final = 1 << 20
"""A settings file is not larger."""


@dataclass(frozen=True, slots=True)
class Given:
    """A value that somebody wrote, and where."""

    where: str
    value: object


def variable_of(key: str) -> str:
    """The variable that sets a key: `limits.frame_bytes_max` is MERQ_LIMITS_FRAME_BYTES_MAX."""
    return PREFIX + key.replace(".", "_").upper()


def from_file(
    config: Path | None, environment: Mapping[str, str], known: tuple[str, ...], faults: list[str]
) -> dict[str, Given]:
    """What the file says, if there is one; what it should not say goes to `faults`.

    Raises:
        SettingsError: It cannot be read at all.
    """
    origin = ""
    if config is None and (named := environment.get(FILE_VARIABLE)):
        config, origin = Path(named), f", which {FILE_VARIABLE} names,"
    if config is None:
        return {}
    given = {}
    tables = tuple(sorted({key.partition(".")[0] for key in known if "." in key}))
    for key, value in _flat(_parsed(config, origin), known):
        if key in known:
            given[key] = Given(f"{config}: {key}", value)
        elif key in tables:
            faults.append(f"{config}: {key} is {value!r:.40}; a table, [{key}], belongs there")
        else:
            faults.append(f"{config}: there is no key {key:.80}{_nearest(key, known + tables)}")
    return given


def _parsed(config: Path, origin: str) -> dict[str, object]:
    try:
        with config.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as wrong:
        raise SettingsError(
            (f"the settings file {config}{origin} cannot be read: {wrong.strerror}",)
        ) from wrong
    if len(data) > FILE_BYTES_MAX:
        raise SettingsError(
            (f"the settings file {config} has more than {FILE_BYTES_MAX} bytes; is it the right?",)
        )
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise SettingsError((f"the settings file {config} is no TOML: {wrong}",)) from wrong


def _flat(table: Mapping[str, object], known: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Keys with their tables, `limits.frame_bytes_max`; unknown tables as one key."""
    for name, value in table.items():
        if isinstance(value, dict) and any(each.startswith(f"{name}.") for each in known):
            yield from ((f"{name}.{key}", each) for key, each in value.items())
        else:
            yield name, value


def from_environment(
    environment: Mapping[str, str], known: tuple[str, ...], warnings: list[str]
) -> dict[str, Given]:
    """What variables say; an unknown MERQ_* goes to `warnings`, it may be another program's."""
    keys = {variable_of(key): key for key in known}
    given = {}
    for variable, value in sorted(environment.items()):
        if variable in keys:
            if value:
                given[keys[variable]] = Given(variable, value)
        elif variable.startswith(PREFIX) and variable not in {FILE_VARIABLE, *CLIENT_VARIABLES}:
            hint = _nearest(variable, tuple(keys))
            warnings.append(f"the variable {variable!r:.80} sets nothing{hint}")
    return given


def from_flags(
    flags: Mapping[str, object], known: tuple[str, ...], faults: list[str]
) -> dict[str, Given]:
    """What flags say, by the key's name or with _ for the dot; None was not given."""
    keys = {key.replace(".", "_"): key for key in known}
    given = {}
    for name, value in flags.items():
        flag = "--" + name.replace(".", "-").replace("_", "-")
        key = keys.get(name.replace(".", "_"))
        if key is None:
            faults.append(f"there is no flag {flag:.80}{_nearest(name, known)}")
        elif value is not None:
            given[key] = Given(flag, value)
    return given


def _nearest(name: str, known: tuple[str, ...]) -> str:
    """The known one that somebody may have meant, as the end of a sentence."""
    found = difflib.get_close_matches(name, known, n=1)
    if not found:
        # A key may stand in the wrong table, or in none.
        ends = [key for key in known if key.rpartition(".")[2] == name.rpartition(".")[2]]
        found = ends[:1]
    return f"; did you mean {found[0]}?" if found else ""
