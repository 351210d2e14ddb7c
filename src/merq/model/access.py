"""[MS-MQDMPR] 3.1.1.17: how a queue is opened."""

from __future__ import annotations

from enum import Enum


class Access(Enum):
    """[MS-MQDMPR] 3.1.1.17: QueueAccessType, what an opened queue may be used for."""

    RECEIVE = "receive"
    SEND = "send"
    PEEK = "peek"
    MOVE = "move"
    RECEIVE_ADMIN = "receive (administration)"
    PEEK_ADMIN = "peek (administration)"


class Share(Enum):
    """[MS-MQDMPR] 3.1.1.17: QueueShareMode, what others may do meanwhile."""

    DENY_NONE = "deny none"
    DENY_RECEIVE = "deny receive"
