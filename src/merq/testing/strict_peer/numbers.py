"""Numbers of a strict peer that must never be given twice, whatever fails."""

from __future__ import annotations

from typing import Final

from merq.testing.strict_peer.stable_storage import StableStorage

ORDINAL_BITS: Final = 32
TRANSACTION_BITS: Final = 20
KEY: Final = ("manager",)


class Numbers:
    """Counters that survive.

    Args:
        stable: Where they are kept.
        wall: Seconds since 1970; the first ever is the TimeStamp of all sequences, as note 35 of
            [MS-MQQB] has it: the time of installation.
    """

    def __init__(self, stable: StableStorage, wall: int) -> None:
        self._stable = stable
        self._counts = {"ordinal": 0, "sequence": 0, "order": 0, "transaction": 0}
        self._counts["installed"] = wall
        for record in stable.load(KEY[0]):
            self._counts = {name: int(record.fields[name]) for name in self._counts}

    def _next(self, name: str) -> int:
        self._counts[name] += 1
        self._stable.put(KEY, dict(self._counts))
        return self._counts[name]

    def next_message_id(self) -> int:
        """MessageIdOrdinal ([MS-MQQB] 3.1.1.3)."""
        return self._next("ordinal") & 0xFFFFFFFF

    def next_order(self) -> int:
        """A place behind all others."""
        return self._next("order")

    def next_sequence(self) -> int:
        """OutgoingTxSequenceID, above all before it ([MS-MQQB] 3.1.1.3.1)."""
        return self._counts["installed"] << ORDINAL_BITS | self._next("sequence")

    def next_transaction(self) -> int:
        """TransactionHeader.Flags.ID ([MS-MQMQ] 2.2.20.5)."""
        return self._next("transaction") % (1 << TRANSACTION_BITS)
