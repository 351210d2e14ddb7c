"""The engine on a disk: its effects are performed, one call at a time, without threads or waiting.

Who has threads, an event loop or a simulated world drives a `Host`: asks its engine for something,
lets it perform what comes of that, syncs when there is something to sync, and gets answers. A
`Desk` is where one client's requests are carried out.
"""

from merq.host.batching import PENDING, Pending
from merq.host.desk import Desk
from merq.host.host import CHECKPOINT_BYTES, SECRET_SIZE, Checkpointing, Host, HostSettings
from merq.host.reporting import Hall

__all__ = [
    "CHECKPOINT_BYTES",
    "PENDING",
    "SECRET_SIZE",
    "Checkpointing",
    "Desk",
    "Hall",
    "Host",
    "HostSettings",
    "Pending",
]
