"""The register's file, `conformance/limits.toml`: one line a limit.

limits = [
  { name = "merq.engine.incoming.SEQUENCES_MAX", reached = "What happens there." },
]
"""

import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from tools.conformance.register import RegisterError

FILE = Path("conformance/limits.toml")


class Kind(StrEnum):
    """What a limit is there for."""

    GUARD = "guard"
    """Keeps something from growing, or from taking for ever: a test reaches it."""
    FORMAT = "format"
    """The highest value that a field, a file or a name can have: tests of its codec reach it."""
    DISPLAY = "display"
    """How much of something is shown at a time."""
    COPY = "copy"
    """The number of another limit, written down again: that one's test counts."""

    @property
    def is_shown(self) -> bool:
        """Whether a test of its own has to reach it."""
        return self is Kind.GUARD


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A limit as the register has it.

    Attributes:
        name: A constant, `merq.engine.incoming.SEQUENCES_MAX`, a field of a class,
            `merq.service.reception.Limits.conversations_max`, or a setting, `exchange.links_max`.
        reached: A sentence: what happens when it is reached.
        unshown: Why no test reaches it yet; empty if one does.
        of: The limit that a copy is a copy of.
    """

    name: str
    kind: Kind = Kind.GUARD
    reached: str = ""
    unshown: str = ""
    of: str = ""


_KEYS = frozenset(each.name for each in fields(Entry))


def load(root: Path) -> list[Entry]:
    """Read the register.

    Raises:
        RegisterError: It cannot be read, or has what an entry has not.
    """
    path = root / FILE
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return [_entry(each) for each in table["limits"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RegisterError(f"{path}: {type(error).__name__}: {error}") from error


def _entry(table: dict[str, Any]) -> Entry:
    if unknown := sorted(table.keys() - _KEYS):
        raise ValueError(f"{', '.join(unknown)} is unknown; an entry has {sorted(_KEYS)}")
    texts = {key: value for key, value in table.items() if key != "kind"}
    if wrong := sorted(key for key, value in texts.items() if not isinstance(value, str)):
        raise TypeError(f"{', '.join(wrong)} of {table.get('name')!r} is no text")
    return Entry(**texts, kind=Kind(table.get("kind", Kind.GUARD)))


def repeated(entries: Iterable[Entry]) -> list[str]:
    """Names that stand there more than once."""
    count = Counter(each.name for each in entries)
    return [name for name in count if count[name] > 1]
