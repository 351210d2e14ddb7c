"""Reading captures: pcap and pcapng files to the byte streams of MSMQ's conversations.

`files` finds frames in a file (`pcap`, `pcapng` over `source`), `frames` finds TCP and UDP in a
frame, `streams` puts the bytes of connections in order (`reassembly` does it for one direction),
and `reading` is the way through all of them. None of these knows an MSMQ packet: `packets` finds
them in bytes, `captured` in a capture, and `records` makes plain values of them. Nothing here opens
a file.
"""

from merq.capture.events import (
    CaptureEvent,
    Chunk,
    Closed,
    Connection,
    Datagram,
    Direction,
    Ending,
    Gap,
)
from merq.capture.files import is_capture
from merq.capture.frames import Endpoint, SkipReason
from merq.capture.reading import PING_UDP_PORT, SESSION_TCP_PORT, Capture, read_capture
from merq.capture.streams import StreamLimits

__all__ = [
    "PING_UDP_PORT",
    "SESSION_TCP_PORT",
    "Capture",
    "CaptureEvent",
    "Chunk",
    "Closed",
    "Connection",
    "Datagram",
    "Direction",
    "Ending",
    "Endpoint",
    "Gap",
    "SkipReason",
    "StreamLimits",
    "is_capture",
    "read_capture",
]
