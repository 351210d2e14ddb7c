"""Small files of the data folder that are written as a whole and survive power loss."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def replace_durably(path: Path, data: bytes) -> None:
    """Puts a new file in the old one's place: whoever reads sees one or the other, whole.

    Nobody but its owner may read it. Returns when it would survive power loss.

    Raises:
        OSError: It cannot be written; the old one is as it was.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write(unfinished, data)
        unfinished.replace(path)
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
        raise


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if os.geteuid() == 0:
            # The administrator writes it for a service that runs as somebody else.
            owner = path.parent.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
