"""`archive.json`: what a lake is. Later versions may add columns, and never take one away.

Files that were written before a column was there do not have it; reading gives null for it then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from merq.spark.columns import BY_NAME
from merq.spark.lake.folder import Folder, LakeError

NAME: Final = "archive.json"
VERSION: Final = 1
"""The version of the lake's layout that this writes; it reads all up to it."""

PARQUET, DELTA, ICEBERG = "parquet", "delta", "iceberg"
FORMATS: Final = (PARQUET, DELTA, ICEBERG)

DAY: Final = "day"
QUEUE: Final = "queue"
ALWAYS: Final = (
    *("queue", "message_id", "sequence", "arrived_time", "body", "body_type", "value", "body_text"),
)
"""Columns that every lake has: days and replays are made of them, and people look for texts."""

OWN: Final = {DAY: "date"}
"""Columns that the archive adds, and their types in SQL."""

_ARROW: Final = {
    "string": pa.string(),
    "binary": pa.binary(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}


@dataclass(frozen=True, slots=True)
class Description:
    """What a lake is.

    Attributes:
        format: parquet, delta or iceberg.
        columns: Its columns in order, and their types in SQL.
        version: The version of its layout.
    """

    format: str
    columns: dict[str, str]
    version: int = VERSION

    @property
    def arrow(self) -> Any:
        """The columns as Arrow has them."""
        return pa.schema([pa.field(name, _ARROW[kind]) for name, kind in self.columns.items()])

    def of_messages(self) -> list[str]:
        """The columns that come from the source."""
        return [name for name in self.columns if name not in OWN]


def described(wanted_format: str, names: tuple[str, ...]) -> Description:
    """A lake of messages with these columns."""
    chosen = [name for name in BY_NAME if name in names or name in ALWAYS]
    columns = {name: BY_NAME[name].kind for name in chosen}
    return Description(wanted_format, {**columns, **OWN})


def read_description(folder: Folder) -> Description | None:
    """What a folder's file says; None if there is none.

    Raises:
        LakeError: It is of a later version, or not such a file.
    """
    found = folder.read_json(NAME)
    if found is None:
        return None
    try:
        made = Description(str(found["format"]), dict(found["columns"]), int(found["version"]))
    except (KeyError, TypeError, ValueError) as wrong:
        raise LakeError(f"{folder.url}/{NAME} does not describe an archive: {wrong!r}") from wrong
    if made.version > VERSION:
        raise LakeError(
            f"{folder.url}/{NAME} is of version {made.version}, and this Merq knows up to "
            f"{VERSION}: use a newer Merq"
        )
    if made.format not in FORMATS or not set(made.columns.values()) <= set(_ARROW):
        raise LakeError(f"{folder.url}/{NAME} has a format or a type that is not known")
    return made


def settle(folder: Folder, wanted: Description) -> Description:
    """Makes the lake have these columns beside those that it has; gives what it is then.

    Raises:
        LakeError: It is in another format, or has one of them in another type.
    """
    there = read_description(folder)
    both = agreed(folder, there, wanted)
    if both != there:
        _write(folder, both)
    return both


def agreed(folder: Folder, there: Description | None, wanted: Description) -> Description:
    """What a lake would be that has these columns beside those that it has; changes nothing.

    Raises:
        LakeError: It is in another format, or has one of them in another type.
    """
    if there is None:
        return wanted
    if there.format != wanted.format:
        raise LakeError(
            f"the archive {folder.url} is in the format {there.format}, and {wanted.format} was "
            "asked for: leave the format out, or name another folder"
        )
    for name, kind in wanted.columns.items():
        if there.columns.get(name, kind) != kind:
            raise LakeError(
                f"the archive {folder.url} has the column {name} as {there.columns[name]}, and it "
                f"is {kind} now: name another folder"
            )
    return Description(there.format, {**there.columns, **wanted.columns})


def _write(folder: Folder, made: Description) -> None:
    folder.write_json(
        NAME, {"version": made.version, "format": made.format, "columns": made.columns}
    )
