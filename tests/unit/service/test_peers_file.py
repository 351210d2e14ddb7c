"""The file that says where queue managers are which are known by their GUIDs."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from merq.errors import SettingsError
from merq.exchange import Peers, TlsMode
from merq.service.exchanging import read_peers

GUID = "7b2f5c1e-93d4-4f0a-8a61-2d9be0c4f513"
ORDERS = "0f6a1d32-5c1b-4e8e-9a77-61c0b2d8e9f4"


def peers_file(folder: Path, *lines: str) -> Path:
    path = folder / "peers.toml"
    head = ["[[peer]]", 'name = "beta"', f'guid = "{GUID}"', 'host = "10.0.0.8"']
    path.write_text("\n".join([*head, f'public_queues = ["{ORDERS}"]', *lines]))
    return path


@pytest.mark.spec("MS-MQMQ 2.3.1.6")
@pytest.mark.parametrize("value", [-32768, 0, 4, 32767])
def test_a_public_queue_may_have_a_base_priority(tmp_path: Path, value: int) -> None:
    path = peers_file(tmp_path, f'base_priorities = {{ "{ORDERS}" = {value} }}')
    (peer,) = read_peers(path)
    assert peer.base_priorities == {UUID(ORDERS): value}


def test_without_base_priorities_there_are_none(tmp_path: Path) -> None:
    (peer,) = read_peers(peers_file(tmp_path))
    assert peer.base_priorities == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f'base_priorities = {{ "{ORDERS}" = 32768 }}', "from -32768 to 32767"),
        (f'base_priorities = {{ "{ORDERS}" = -32769 }}', "from -32768 to 32767"),
        (f'base_priorities = {{ "{ORDERS}" = true }}', "a number belongs there"),
        (f'base_priorities = {{ "{ORDERS}" = "4" }}', "a number belongs there"),
        (f'base_priorities = {{ "{GUID}" = 4 }}', "not in public_queues"),
        ("base_priorities = 4", "base_priorities is a table"),
    ],
)
def test_a_base_priority_that_cannot_be_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_peers(peers_file(tmp_path, line))


def test_who_can_only_connect_to_us_needs_no_host(tmp_path: Path) -> None:
    path = tmp_path / "peers.toml"
    path.write_text(f'[[peer]]\nname = "inside"\nguid = "{GUID}"\naccepts_inbound = true\n')
    (peer,) = read_peers(path)
    assert (peer.accepts_inbound, peer.host, peer.via) == (True, "", "")
    (peer,) = read_peers(peers_file(tmp_path, "accepts_inbound = true"))
    assert (peer.accepts_inbound, peer.host) == (True, "10.0.0.8")
    (peer,) = read_peers(peers_file(tmp_path))
    assert not peer.accepts_inbound


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["accepts_inbound = 1", 'host = "a"'], "accepts_inbound is true or false"),
        ([], "either host or via"),
        (["accepts_inbound = false"], "either host or via"),
        (['host = "a"', 'via = "b"', "accepts_inbound = true"], "either host or via"),
    ],
)
def test_where_a_peer_is_has_to_be_said(tmp_path: Path, lines: list[str], said: str) -> None:
    path = tmp_path / "peers.toml"
    path.write_text("\n".join(["[[peer]]", 'name = "beta"', f'guid = "{GUID}"', *lines]))
    with pytest.raises(SettingsError, match=said):
        read_peers(path)


@pytest.mark.parametrize("mode", list(TlsMode))
def test_tls_with_a_peer_is_a_word_and_then_its_guid_need_not_be_known(
    tmp_path: Path, mode: TlsMode
) -> None:
    (peer,) = read_peers(peers_file(tmp_path, f'tls = "{mode.value}"'))
    assert peer.tls is mode
    path = tmp_path / "peers.toml"
    path.write_text(
        "".join(
            f'[[peer]]\nname = "{name}"\nhost = "{name}.example"\ntls = "{mode.value}"\n'
            for name in ("beta", "gamma")
        )
    )
    found = read_peers(path)
    assert [(peer.name, peer.guid, peer.tls) for peer in found] == [
        ("beta", UUID(int=0), mode),
        ("gamma", UUID(int=0), mode),
    ]
    peers = Peers(found)
    assert peers.known == frozenset()
    assert peers.find(UUID(int=0)) is None
    assert peers.has_host("gamma.example")


@pytest.mark.parametrize("value", ["true", '"Always"', '"tls"', "1", '""'])
def test_another_word_for_tls_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingsError, match="one of auto, always, never belongs there"):
        read_peers(peers_file(tmp_path, f"tls = {value}"))


@pytest.mark.parametrize("lines", [[], [f'public_queues = ["{ORDERS}"]', 'tls = "auto"']])
def test_who_is_known_for_more_than_tls_needs_a_guid(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "peers.toml"
    path.write_text("\n".join(["[[peer]]", 'name = "beta"', 'host = "10.0.0.8"', *lines]))
    with pytest.raises(SettingsError, match="guid is missing"):
        read_peers(path)
