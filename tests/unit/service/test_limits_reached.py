"""What happens at limits of settings and their files that no other test comes near."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from merq.client.security import FILE_BYTES_MAX, load_pair
from merq.errors import CertificateError, SettingsError
from merq.service import peers_file
from merq.service.kinds import (
    DIGITS_MAX,
    HOST_LENGTH_MAX,
    TEXT_LENGTH_MAX,
    Count,
    ReachableHost,
    Text,
    WrongValue,
)
from merq.service.peers_file import read_peers


@pytest.mark.limit("merq.service.peers_file.PEERS_MAX")
def test_a_file_of_too_many_peers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_file, "PEERS_MAX", 2)
    path = tmp_path / "peers.toml"
    tables = [
        f'[[peer]]\nname = "p{number}"\nguid = "{number:032x}"\nhost = "10.0.0.{number}"\n'
        for number in range(1, 4)
    ]
    path.write_text("".join(tables[:2]))
    assert len(read_peers(path)) == 2
    path.write_text("".join(tables))
    with pytest.raises(SettingsError, match="at most 2 tables"):
        read_peers(path)


@pytest.mark.limit("merq.service.peers_file.PEERS_FILE_BYTES_MAX")
def test_a_file_of_peers_that_is_too_large_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "peers.toml"
    with path.open("wb") as file:
        file.truncate(peers_file.PEERS_FILE_BYTES_MAX + 1)
    with pytest.raises(SettingsError, match="is it the right file"):
        read_peers(path)


@pytest.mark.limit("merq.service.peers_file.FAULTS_MAX")
def test_of_many_mistakes_in_a_file_of_peers_the_first_are_told_and_the_others_counted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "peers.toml"
    path.write_text("[[peer]]\n" * (peers_file.FAULTS_MAX + 7))
    with pytest.raises(SettingsError) as refused:
        read_peers(path)
    assert len(refused.value.faults) == peers_file.FAULTS_MAX + 1
    assert refused.value.faults[-1].endswith("and 7 more mistakes")


@pytest.mark.limit("merq.service.kinds.TEXT_LENGTH_MAX")
def test_a_text_that_is_too_long_is_refused() -> None:
    assert Text().read("x" * TEXT_LENGTH_MAX) == "x" * TEXT_LENGTH_MAX
    with pytest.raises(WrongValue):
        Text().read("x" * (TEXT_LENGTH_MAX + 1))


@pytest.mark.limit("merq.service.kinds.HOST_LENGTH_MAX")
def test_a_host_name_that_is_too_long_is_refused() -> None:
    label = "a" * 50 + "."
    longest = (label * 5)[: HOST_LENGTH_MAX - 1].rstrip(".") + "b"
    assert ReachableHost().read(longest) == longest
    with pytest.raises(WrongValue):
        ReachableHost().read(label * 5)


@pytest.mark.limit("merq.service.kinds.DIGITS_MAX")
def test_a_number_with_too_many_digits_is_refused_without_being_read() -> None:
    assert Count(0, 10).read("0" * (DIGITS_MAX - 1) + "7") == 7
    with pytest.raises(WrongValue):
        Count(0, 10).read("0" * DIGITS_MAX + "7")


@pytest.mark.limit("merq.client.security.FILE_BYTES_MAX")
def test_a_file_that_is_too_large_for_a_certificate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cert.pem"
    path.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    path.chmod(0o600)
    with pytest.raises(CertificateError, match=f"more than {FILE_BYTES_MAX} bytes"):
        load_pair(ssl_context(), path, path)


def ssl_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
