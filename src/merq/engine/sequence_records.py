"""[MS-MQQB] 3.1.1.3.1: how the log keeps how far a sequence from another queue manager is."""

from __future__ import annotations

import struct
from typing import Final

from merq.engine.incoming import REJECTS_MAX, Incoming, Origin, SequenceKey, Sequences

_REJECTED: Final = 1 << 31
_SEQUENCE_1: Final = struct.Struct("<16sQIIH")
_SEQUENCE: Final = struct.Struct("<16sQIII16sH")


def pack_sequence(incoming: Incoming, sequence_id: int, number: int) -> bytes:
    """A sequence as the log keeps it; (0, 0) is one that was forgotten."""
    address = incoming.origin.address.encode("ascii", "replace")
    head = _SEQUENCE.pack(
        incoming.key.source,
        sequence_id,
        number,
        incoming.last_access,
        incoming.rejects | (_REJECTED if incoming.is_rejected else 0),
        incoming.origin.remote,
        len(address),
    )
    return head + address + incoming.key.name.encode("utf-8", "surrogatepass")


def unpack_sequence(data: bytes, sequences: Sequences, *, counts_rejects: bool = True) -> None:
    """Takes what `pack_sequence` wrote; older logs do not count rejects, nor know the session."""
    if counts_rejects:
        form = _SEQUENCE
        source, sequence_id, number, last_access, rejects, remote, size = form.unpack_from(data)
    else:
        form = _SEQUENCE_1
        source, sequence_id, number, last_access, size = form.unpack_from(data)
        rejects, remote = 0, source
    at = form.size
    name = data[at + size :].decode("utf-8", "surrogatepass")
    origin = Origin(data[at : at + size].decode("ascii"), remote)
    found = sequences.learn(
        SequenceKey(source, name),
        (sequence_id, number),
        origin,
        is_rejected=rejects & _REJECTED != 0,
    )
    if found is not None:
        sequences.came(found, origin, last_access)
        found.rejects = rejects & REJECTS_MAX
