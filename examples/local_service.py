"""A queue manager for the other examples: one that runs already, or one of their own.

With MERQ_URL set, that one is used; the queues of the example must not be there yet. Otherwise
`merq serve` is started in a temporary folder, and ended with the example.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import merq

PATIENCE_S = 20.0
"""A service that does not answer by then has not started."""


@contextmanager
def local_service() -> Iterator[str]:
    """The URL of a queue manager, for as long as the block lasts."""
    if url := os.environ.get("MERQ_URL"):
        yield url
        return
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        url = f"unix:{data / 'merq.sock'}"
        command = [sys.executable, "-m", "merq", "serve", "--data", str(data)]
        # The one port for other queue managers may be somebody else's; no example needs it.
        alone = os.environ | {"MERQ_EXCHANGE_LISTEN": "false"}
        service = subprocess.Popen([*command, "--log-level", "warning"], env=alone)
        try:
            _wait_for(url, service)
            yield url
        finally:
            service.terminate()
            service.wait()


def _wait_for(url: str, service: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            merq.connect(url).close()
        except merq.MessageQueueError:
            if service.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
