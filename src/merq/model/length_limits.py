"""How long texts and lists may be that applications give: declared where the field is.

A field says it in its type, `Annotated[str, LengthLimit(255)]`; whoever carries out what was asked
for looks at all of them first, with `check_lengths`. So nothing longer reaches a log record, whose
lengths have 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin, get_type_hints

from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.names import FORMAT_NAME_LENGTH_MAX

GROUP_NAME_MAX: Final = 255
"""Characters of the name of a group of consumers."""

OWNER_NAME_MAX: Final = 255
"""Characters of the name of who speaks for a group."""

WRITER_NAME_MAX: Final = 255
"""Characters of a writer's name, and of a part's."""

STAGES_AT_ONCE_MAX: Final = 10_000
"""Stages that are published at once."""

UTF8_BYTES_MAX: Final = 4
"""What one character takes in UTF-8 at most."""

RECORD_TEXT_BYTES_MAX: Final = 0xFFFF
"""What a text in a record of the log may take: its length has 16 bits."""


@dataclass(frozen=True, slots=True)
class LengthLimit:
    """How long a text or a list may be.

    Attributes:
        most: Characters of a text, or elements of a list.
        least: As few as that.
    """

    most: int
    least: int = 0

    def __post_init__(self) -> None:
        assert self.most * UTF8_BYTES_MAX <= RECORD_TEXT_BYTES_MAX, "it fits into every record"


QueueNameText: TypeAlias = Annotated[str, LengthLimit(FORMAT_NAME_LENGTH_MAX)]
"""A path name or a format name, before it was read."""

GroupText: TypeAlias = Annotated[str, LengthLimit(GROUP_NAME_MAX)]
OwnerText: TypeAlias = Annotated[str, LengthLimit(OWNER_NAME_MAX)]
WriterText: TypeAlias = Annotated[str, LengthLimit(WRITER_NAME_MAX, least=1)]
AnyWriterText: TypeAlias = Annotated[str, LengthLimit(WRITER_NAME_MAX)]
StageNumbers: TypeAlias = Annotated[tuple[int, ...], LengthLimit(STAGES_AT_ONCE_MAX)]


@cache
def length_limits(kind: type) -> tuple[tuple[str, LengthLimit], ...]:
    """The fields of a class that have a limit, from its declaration or that of `__init__`."""
    hints = get_type_hints(kind, include_extras=True)
    if not hints:
        hints = get_type_hints(vars(kind)["__init__"], include_extras=True)
    return tuple(
        (name, each)
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
        for each in get_args(hint)
        if isinstance(each, LengthLimit)
    )


def check_lengths(value: Any) -> None:
    """Refuses a value of which a field is too long or too short.

    Raises:
        MessageQueueError: The text says which, how long it is, and how long it may be.
    """
    kind: type = type(value)
    for name, limit in length_limits(kind):
        found: Any = getattr(value, name)
        size = len(found)
        if not limit.least <= size <= limit.most:
            unit = "characters" if isinstance(found, str) else "elements"
            raise MessageQueueError(
                HResult.MQ_ERROR_INVALID_PARAMETER,
                f"{name} has {size} {unit}; from {limit.least} to {limit.most} are allowed",
            )
