"""Messages that have most in common, by columns: what a data pipeline writes.

What all of them say stands in a few templates, which are checked once. What each says of its own
lies in columns, so that whoever has columns needs no work for each message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TEMPLATES_MAX: Final = 256
"""Templates in one batch: a row says which is its own in one byte."""

TAG_SIZE: Final = 28
"""What a row may have of its own in the header: correlation id, body type, application tag."""


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows and their templates. Numbers are little-endian; a column may be empty where it says so.

    Attributes:
        count: How many rows there are.
        templates: Packets without a body.
        kinds: Which template each row has, one byte each; empty if all have the first.
        tags: The correlation id, the body type and the application tag of each, 28 bytes; empty if
            they are as in the template.
        label_sizes: How many characters of UTF-16 each label has, one byte each; empty if they are
            as in the template.
        labels: All labels, in UTF-16, without anything between.
        body_sizes: How long each body is, 4 bytes each.
        bodies: All bodies, without anything between.
    """

    count: int
    templates: tuple[bytes, ...]
    kinds: bytes
    tags: bytes
    label_sizes: bytes
    labels: bytes
    body_sizes: bytes
    bodies: bytes
