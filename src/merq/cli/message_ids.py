r"""Message ids as people type them: `{guid}\n`, also when a shell has eaten the backslash."""

from __future__ import annotations

import re
from typing import Final

import click

from merq.client.asking import id_bytes
from merq.errors import MessageQueueError

_LOOSE: Final = re.compile(r"\{?([0-9a-fA-F-]{36})\}?[\\/]{0,2}([0-9]{1,10})", re.ASCII)


def normal_id(text: str) -> str:
    r"""The id in its own spelling; `/` may stand for the backslash, which may also be missing."""
    found = _LOOSE.fullmatch(text.strip())
    return f"{{{found[1].lower()}}}\\{found[2]}" if found else text


def message_id(text: object) -> str:
    """The type of an option that is a message id."""
    normal = normal_id(str(text))
    try:
        id_bytes(normal)
    except MessageQueueError as wrong:
        raise click.BadParameter(wrong.text) from wrong
    return normal
