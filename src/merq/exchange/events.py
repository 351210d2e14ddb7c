"""Names of events that somebody should look at; guides and logs know them by these texts."""

from __future__ import annotations

from typing import Final

PEER_THROTTLED: Final = "a peer is throttled"
MESSAGES_REJECTED: Final = "messages were rejected"
MESSAGES_DROPPED: Final = "transactional messages were dropped"
OWN_IDENTIFIER: Final = "messages under our own identifier were dropped"
CLAIMED_TWICE: Final = "an identifier is claimed from a second address"

TROUBLES: Final = frozenset(
    {PEER_THROTTLED, MESSAGES_REJECTED, MESSAGES_DROPPED, OWN_IDENTIFIER, CLAIMED_TWICE}
)
"""These are warnings; other events of the exchange are of interest only."""
