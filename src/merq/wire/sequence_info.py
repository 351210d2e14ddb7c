"""[MS-MQMQ] 2.2.5: a place in a sequence of transactional messages, as management reports it."""

from __future__ import annotations

from merq.wire.layout import Layout, layout, number


@layout("MS-MQMQ 2.2.5.1", size=16)
class SequenceInfo(Layout):
    """[MS-MQMQ] 2.2.5.1: SEQUENCE_INFO.

    The document has the identifier as signed; ours and Windows' begin with a time, so the highest
    bit is clear.
    """

    sequence_id: int = number(8)
    sequence_number: int = number(4)
    previous: int = number(4)
