"""The file that says where queue managers are which are known by their GUIDs."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from merq.errors import SettingsError
from merq.exchange import Peers, TlsMode
from merq.service.peers_file import read_peers

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
        ("base_priorities = 4", "base_priorities is 4; a table"),
    ],
)
def test_a_base_priority_that_cannot_be_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_peers(peers_file(tmp_path, line))


def test_who_can_only_connect_to_us_needs_no_host(tmp_path: Path) -> None:
    path = tmp_path / "peers.toml"
    path.write_text(f'[[peer]]\nname = "inside"\nguid = "{GUID}"\ntrust_inbound = true\n')
    (peer,) = read_peers(path)
    assert (peer.trust_inbound, peer.host, peer.via) == (True, "", "")
    (peer,) = read_peers(peers_file(tmp_path, "trust_inbound = true"))
    assert (peer.trust_inbound, peer.host) == (True, "10.0.0.8")
    (peer,) = read_peers(peers_file(tmp_path))
    assert not peer.trust_inbound


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["trust_inbound = 1", 'host = "a"'], "trust_inbound is 1; true or false belongs there"),
        ([], "either host or via"),
        (["trust_inbound = false"], "either host or via"),
        (['host = "a"', 'via = "b"', "trust_inbound = true"], "either host or via"),
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


PEER = f'[[peer]]\nname = "beta"\nguid = "{GUID}"\nhost = "10.0.0.8"\n'
OTHER = '[[peer]]\nname = "gamma"\nguid = "c4a9e6d0-1f38-4b7d-b1c5-f08e6a2d7394"\n'

MISTAKES: dict[str, tuple[bytes, str]] = {
    "an unknown key": (
        f'{PEER}hots = "a"\n'.encode(),
        "line 5, peer 1 (beta): hots is unknown; did you mean host?",
    ),
    "a name that it had before": (
        f"{PEER}accepts_inbound = true\n".encode(),
        "line 5, peer 1 (beta): accepts_inbound is unknown; did you mean trust_inbound?",
    ),
    "a wrong type": (
        PEER.replace('"beta"', "7").encode(),
        "line 2, peer 1: name is 7; text, the computer's name, belongs there",
    ),
    "the same name twice": (
        (PEER + OTHER.replace("gamma", "BETA") + 'host = "b"\n').encode(),
        "line 6, peer 2 (BETA): peer 1 has the same name",
    ),
    "the same GUID twice": (
        (PEER + PEER.replace("beta", "gamma")).encode(),
        "line 7, peer 2 (gamma): peer 1 (beta) has the same guid",
    ),
    "an address with a port": (
        PEER.replace("10.0.0.8", "10.0.0.8:1801").encode(),
        "line 4, peer 1 (beta): host is '10.0.0.8:1801'; a host name or an address without a port",
    ),
    "an address that is none": (
        PEER.replace("10.0.0.8", "10.0.0.999").encode(),
        "line 4, peer 1 (beta): host is '10.0.0.999'",
    ),
    "a GUID that is none": (
        PEER.replace(GUID, "7b2f").encode(),
        "line 3, peer 1 (beta): guid is '7b2f'; a GUID such as",
    ),
    "no GUID": (
        b'[[peer]]\nname = "beta"\nhost = "10.0.0.8"\n',
        "line 1, peer 1 (beta): guid is missing",
    ),
    "GUIDs of queues that are none": (
        f"{PEER}public_queues = [7]\n".encode(),
        "line 5, peer 1 (beta): public_queues is [7]; a list of GUIDs",
    ),
    "a next hop that is nobody": (
        (PEER + OTHER + 'via = "delta"\n').encode(),
        "line 8, peer 2 (gamma): via is 'delta', which is no peer of this file",
    ),
    "a table of another name": (b"[[peers]]\n", "peers is unknown; did you mean [[peer]]?"),
    "no list": (b"peer = 7\n", "tables [[peer]] belong there"),
    "no tables": (b"peer = [7]\n", "peer 1: it is 7; a table belongs there"),
    "no TOML": (b"[[peer]\n", "is no TOML: Expected ']]'"),
    "not UTF-8": (b'[[peer]]\nname = "b\xe4r"\n', "is not UTF-8 in line 2: byte 0xe4"),
    "10 MB of anything": (b"x" * (10 << 20), "is no TOML"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_what_belongs_there(
    tmp_path: Path, mistake: str
) -> None:
    content, said = MISTAKES[mistake]
    path = tmp_path / "peers.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        read_peers(path)
    text = str(refused.value)
    assert said in text
    assert str(path) in text
    assert path.read_bytes() == content


def test_a_folder_or_a_missing_file_is_told_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Is a directory; a TOML file belongs there"):
        read_peers(tmp_path)
    with pytest.raises(SettingsError, match="No such file"):
        read_peers(tmp_path / "missing.toml")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "peers.toml"
    path.write_text(PEER.replace(GUID, "x") + OTHER.replace("gamma", ""))
    with pytest.raises(SettingsError) as refused:
        read_peers(path)
    assert len(refused.value.faults) == 2


def test_a_file_that_names_nobody_yet_is_taken(tmp_path: Path) -> None:
    """GUIDs are known only after a first start; the log has a warning."""
    path = tmp_path / "peers.toml"
    for content in ("", "# nobody yet\n"):
        path.write_text(content)
        assert read_peers(path) == []
