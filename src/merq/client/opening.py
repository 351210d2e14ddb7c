"""`merq.open`: a queue manager in this process."""

from __future__ import annotations

import socket
from pathlib import Path

from merq.client.arguments import of_kind
from merq.client.embedded import Driver
from merq.client.manager import Manager
from merq.engine.limits import Limits
from merq.errors import MessageQueueError, NameSyntaxError
from merq.host import HostSettings
from merq.hresult import HResult
from merq.model.names import parse_path_name
from merq.store.disk import FileDisk


def open_manager(
    path: str | Path,
    *,
    name: str | None = None,
    limits: Limits | None = None,
    settings: HostSettings | None = None,
) -> Manager:
    """Opens the queue manager whose data is in a folder, and makes it if there is none.

    Args:
        path: The folder. One process at a time can have it open.
        name: The computer name that other names call this queue manager by; the host's by default.
        limits: Quotas, and when disk or memory counts as running low.
        settings: How the store is kept: sizes of segments, checkpoints and cache.

    Raises:
        StoreInUse: Another process has the folder open.
        StoreCorrupt: The folder's data is damaged; the text says where.
    """
    computer = of_kind("name", name or socket.gethostname().partition(".")[0] or "localhost", str)
    try:
        parse_path_name(rf"{computer}\private$\q")
    except NameSyntaxError as wrong:
        raise MessageQueueError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"name is no computer name: {wrong}"
        ) from wrong
    of_kind("limits", limits or Limits(), Limits)
    of_kind("settings", settings or HostSettings(), HostSettings)
    folder = path if isinstance(path, Path) else Path(of_kind("path", path, str))
    return Manager(Driver(FileDisk(folder), computer, limits or Limits(), settings))
