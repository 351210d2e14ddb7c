"""[MS-MQQB] 2.2.7: the Ping packet, which asks over UDP whether a session would be accepted.

A request and a response have the same form: only the way they travel tells them apart.
"""

from __future__ import annotations

from uuid import UUID

from merq.wire.layout import (
    BitField,
    Layout,
    bit,
    bit_field,
    constant,
    flag_word,
    guid_field,
    layout,
    number,
    other_bits,
)

PING_SIZE = 24
PING_SIGNATURE = 0x5548


@bit_field("MS-MQQB 2.2.7", width=16)
class PingFlags(BitField):
    """[MS-MQQB] 2.2.7: who asks, and whether a session would be refused."""

    not_server_class: bool = bit(0, "RC", default=False)
    refused: bool = bit(1, "RF", default=False)
    reserved: int = other_bits(default=0)


@layout("MS-MQQB 2.2.7", size=PING_SIZE)
class Ping(Layout):
    """[MS-MQQB] 2.2.7: a ping request or response."""

    flags: PingFlags = flag_word(PingFlags)
    signature: int = constant(2, default=PING_SIGNATURE)
    cookie: int = number(4)
    qm_guid: UUID = guid_field()
