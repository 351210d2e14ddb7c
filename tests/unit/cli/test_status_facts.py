"""What `merq status` tells of a queue manager."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from merq.cli.status import facts_of
from merq.protocol.application.reports import Status

NOW = 1_800_000_000
WELL = Status(
    name="alpha",
    guid=UUID(int=1),
    version="1",
    started=NOW,
    now=NOW,
    throttled=False,
    low_on_disk=False,
    low_on_memory=False,
    queues=0,
    outgoing_queues=0,
    messages=0,
    message_bytes=0,
    express_bytes=0,
    free_disk_bytes=0,
    log_bytes=0,
    transactions=0,
    prepared=0,
    connections=0,
    readers=0,
    online=True,
    sessions=0,
)


def test_with_whom_tls_fails_is_told_a_line_each() -> None:
    assert "TLS fails with" not in dict(facts_of(WELL))
    failures = ("10.0.0.8: expired", "office.example: another name")
    found = facts_of(replace(WELL, tls_failures=failures))
    assert [value for name, value in found if name == "TLS fails with"] == list(failures)
