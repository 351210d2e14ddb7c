"""What a person should know of how the queue manager fares: told once when it changes.

The host has no log. Whoever drives it takes the news and writes them where people look.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

NEWS_MAX: Final = 100
"""News that wait to be taken; of more the oldest are dropped: who drives it may not care."""

Fact: TypeAlias = str | int | UUID | None


class News(NamedTuple):
    """Something happened.

    Attributes:
        text: What.
        facts: The numbers and names in it.
        is_trouble: Somebody should do something.
    """

    text: str
    facts: dict[str, Fact]
    is_trouble: bool


class NewsBox:
    """News in order."""

    def __init__(self) -> None:
        self._news: deque[News] = deque(maxlen=NEWS_MAX)

    def warn(self, text: str, **facts: Fact) -> None:
        """Something that somebody should look after."""
        self._news.append(News(text, facts, is_trouble=True))

    def tell(self, text: str, **facts: Fact) -> None:
        """Something that is well again."""
        self._news.append(News(text, facts, is_trouble=False))

    def take(self) -> list[News]:
        """Everything since the last time."""
        found = list(self._news)
        self._news.clear()
        return found
