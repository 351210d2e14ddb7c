"""The Ping packet."""

from uuid import UUID

import pytest

from merq.errors import WireError
from merq.wire.ping import Ping, PingFlags

pytestmark = pytest.mark.spec("MS-MQQB 2.2.7")

GUID = UUID("33221100-5544-7766-8899-aabbccddeeff")
REST = "4855 04030201 00112233 4455 6677 8899 aabbccddeeff"


@pytest.mark.parametrize(
    ("flags", "not_server", "refused"),
    [("0000", False, False), ("0100", True, False), ("0200", False, True), ("0300", True, True)],
)
def test_a_ping_says_who_asks_and_whether_it_would_be_refused(
    flags: str, not_server: bool, refused: bool
) -> None:
    data = bytes.fromhex(flags + REST)
    ping = Ping(
        flags=PingFlags(not_server_class=not_server, refused=refused),
        cookie=0x01020304,
        qm_guid=GUID,
    )
    assert len(data) == 24
    assert Ping.parse(data) == ping
    assert ping.pack() == data


def test_unused_bits_of_a_ping_are_ignored_and_kept() -> None:
    data = bytes.fromhex("fdff" + REST)
    ping = Ping.parse(data)
    assert ping == Ping.parse(bytes.fromhex("0100" + REST))
    assert ping.flags.reserved == 0xFFFC
    assert ping.pack() == data


@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        ("0000 5548" + REST[4:], 2, "Ping.signature"),
        ("0000 0000" + REST[4:], 2, "Ping.signature"),
        ("0000 4955" + REST[4:], 2, "Ping.signature"),
        ("0000" + REST[:-2], 0, "Ping"),
        ("0000" + REST + "00", 24, "Ping"),
        ("", 0, "Ping"),
    ],
)
def test_what_is_not_a_ping_is_refused(data: str, offset: int, field: str) -> None:
    with pytest.raises(WireError) as caught:
        Ping.parse(bytes.fromhex(data))
    assert (caught.value.offset, caught.value.field) == (offset, field)


def test_a_ping_with_another_signature_is_not_written() -> None:
    with pytest.raises(WireError, match="only 0x5548 may stand"):
        Ping(flags=PingFlags(), signature=0x4855, cookie=1, qm_guid=GUID).pack()
