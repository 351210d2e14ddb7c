"""[MS-MQMQ] 2.2.14: true and false as a number of 16 bits."""

from __future__ import annotations

from typing import Final

from merq.errors import WireError

VARIANT_TRUE: Final = 0xFFFF
VARIANT_FALSE: Final = 0x0000


def pack_variant_bool(value: bool) -> bytes:  # noqa: FBT001 - it is what is packed
    """[MS-MQMQ] 2.2.14: true is all ones."""
    return (VARIANT_TRUE if value else VARIANT_FALSE).to_bytes(2, "little")


def parse_variant_bool(data: bytes) -> bool:
    """[MS-MQMQ] 2.2.14: the value of exactly these bytes; nothing but the two numbers is one."""
    if len(data) != 2:
        raise WireError(f"{len(data)} bytes where 2 belong", offset=0, field="VARIANT_BOOL")
    number_found = int.from_bytes(data, "little")
    if number_found not in (VARIANT_TRUE, VARIANT_FALSE):
        raise WireError(
            f"{number_found:#06x} is neither 0xffff nor 0x0000", offset=0, field="VARIANT_BOOL"
        )
    return number_found == VARIANT_TRUE
