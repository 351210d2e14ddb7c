"""What a strict peer keeps through process and node failures ([MS-MQQB] 3.1.1.3.2).

`StableStorage` notes what is to be kept; whoever drives the peer takes the changes, makes them
durable, all or none, and only then lets the peer's bytes go out. After a failure a new peer is made
from what was durable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

Key: TypeAlias = tuple[str, ...]
Fields: TypeAlias = dict[str, int | str]

_BETWEEN: Final = b"\0"


class Record(NamedTuple):
    """Something that was kept: its key, small fields, and a packet if there is one."""

    key: Key
    fields: Fields
    packet: bytes


class StableStorage:
    """Keys and values that survive.

    Args:
        content: What was durable when the peer stopped.
    """

    def __init__(self, content: Mapping[Key, bytes] | None = None) -> None:
        self._content = dict(content or {})
        self._changes: dict[Key, bytes | None] = {}

    def put(self, key: Key, fields: Mapping[str, int | str], packet: bytes = b"") -> None:
        """Keeps a record, in the place of an older one with the same key."""
        self._changes[key] = json.dumps(dict(fields)).encode() + _BETWEEN + packet

    def drop(self, key: Key) -> None:
        """Keeps a record no longer."""
        self._changes[key] = None

    def take_changes(self) -> dict[Key, bytes | None]:
        """What is to be made durable before anything goes out; None is dropped."""
        changes, self._changes = self._changes, {}
        return changes

    def load(self, kind: str) -> Iterator[Record]:
        """Gives the records of a kind that survived, in the order of their keys."""
        for key in sorted(each for each in self._content if each[0] == kind):
            fields, _, packet = self._content[key].partition(_BETWEEN)
            yield Record(key, json.loads(fields), packet)

    def forget_content(self) -> None:
        """Everything is loaded."""
        self._content.clear()
