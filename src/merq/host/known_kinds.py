"""Which records of the log and sections of a checkpoint this release can read."""

from __future__ import annotations

from typing import Final

from merq.engine.replay import RECORD_KINDS
from merq.engine.snapshot import PACKED, SECTION_KINDS
from merq.store.findings import KnownKinds

KNOWN_KINDS: Final = KnownKinds(records=RECORD_KINDS, sections=SECTION_KINDS, packing=PACKED)
"""For a check or a copy of a store, which know nothing of queues or messages themselves."""
