"""TLS of service and client with real certificates, over real sockets on loopback."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from io import StringIO
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from kit.certificates import Authority, Pair
from merq.client.security import (
    check_validity,
    client_context,
    harden,
    load_authorities,
    validities,
)
from merq.errors import CertificateError
from merq.service.logs import Log, open_log
from merq.service.sections import LogSettings, TlsSettings
from merq.service.tls import ENDING, server_context

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
PATIENCE_S = 10
HUNG_UP = (ssl.SSLError, ConnectionError)
LOG = Log("merq.service.tests")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


def pair(
    authority: trustme.CA,
    folder: Path,
    name: str = "127.0.0.1",
    *,
    begins: datetime | None = None,
    ends: datetime | None = None,
    stem: str = "service",
) -> Pair:
    return Authority(folder, authority).issue(stem, name, begins=begins, ends=ends)


def self_signed(folder: Path) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "own")])
    address = x509.IPAddress(ip_address("127.0.0.1"))
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    certificate = (
        builder.not_valid_before(NOW - DAY)
        .not_valid_after(NOW + 30 * DAY)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair.written(
        folder,
        "own",
        cert=certificate.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def talked(server: ssl.SSLContext, client: ssl.SSLContext) -> str:
    """The version of TLS that both speak, after a word each way; raises what the client gets."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE_S)

    def serve() -> None:
        plain, _ = listener.accept()
        with plain:
            plain.settimeout(PATIENCE_S)
            try:
                with server.wrap_socket(plain, server_side=True) as secured:
                    secured.sendall(secured.recv(4))
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with (
            socket.create_connection(listener.getsockname(), timeout=PATIENCE_S) as plain,
            client.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
        ):
            secured.sendall(b"word")
            if secured.recv(4) != b"word":
                raise ConnectionResetError("the service has hung up")
            return secured.version() or ""
    finally:
        thread.join(PATIENCE_S)
        listener.close()


def served(settings: TlsSettings) -> ssl.SSLContext:
    return server_context(settings, now=NOW, log=LOG)


def test_who_trusts_the_right_authority_gets_through_with_tls_1_3(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    server = served(pair(authority, tmp_path).settings())
    assert talked(server, client_context(ca)) == "TLSv1.3"


def test_tls_1_2_is_spoken_and_nothing_older(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    server = served(pair(authority, tmp_path).settings())
    client = client_context(ca)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert talked(server, client) == "TLSv1.2"
    for context in (server, client_context(ca)):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
        names = [each["name"] for each in context.get_ciphers()]
        assert all(re.match("TLS_|ECDHE-.*(GCM|CHACHA20)", name) for name in names)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_the_system_allows_by_default_does_not_matter() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1
    harden(context)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_another_authoritys_service_is_not_trusted(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    server = served(pair(trustme.CA(), tmp_path).settings())
    with pytest.raises(ssl.SSLCertVerificationError):
        talked(server, client_context(ca))


def test_without_an_authority_of_ones_own_the_systems_are_trusted_and_no_other(
    authority: trustme.CA, tmp_path: Path
) -> None:
    server = served(pair(authority, tmp_path).settings())
    with pytest.raises(ssl.SSLCertVerificationError):
        talked(server, client_context())


def test_a_service_of_another_name_is_not_trusted(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    server = served(pair(authority, tmp_path, "queues.example").settings())
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        talked(server, client_context(ca))


def test_a_service_with_an_expired_certificate_is_not_trusted(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    """The service would not start with it: here it expires while it runs."""
    old = pair(authority, tmp_path, begins=NOW - 9 * DAY, ends=NOW - DAY)
    server = server_context(old.settings(), now=NOW - 2 * DAY, log=LOG)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        talked(server, client_context(ca))


def test_a_self_signed_certificate_is_trusted_by_who_was_given_it_alone(
    tmp_path: Path, ca: Path
) -> None:
    made = self_signed(tmp_path)
    server = served(made.settings())
    with pytest.raises(ssl.SSLCertVerificationError):
        talked(server, client_context(ca))
    assert talked(server, client_context(made.cert)) == "TLSv1.3"


def test_with_client_ca_only_clients_with_its_certificates_get_through(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    server = served(pair(authority, tmp_path).settings(client_ca=ca))
    good = pair(authority, tmp_path, "billing", stem="good")
    assert talked(server, client_context(ca, good.cert, good.key)) == "TLSv1.3"
    with pytest.raises(HUNG_UP):
        talked(server, client_context(ca))
    stranger = pair(trustme.CA(), tmp_path, "billing", stem="stranger")
    with pytest.raises(HUNG_UP):
        talked(server, client_context(ca, stranger.cert, stranger.key))
    old = pair(authority, tmp_path, "billing", begins=NOW - 9 * DAY, ends=NOW - DAY, stem="old")
    careless = client_context(ca)
    careless.load_cert_chain(old.cert, old.key)
    with pytest.raises(HUNG_UP):
        talked(server, careless)


def refused(settings: TlsSettings) -> str:
    with pytest.raises(CertificateError) as found:
        served(settings)
    return str(found.value)


def test_a_missing_file_is_named(authority: trustme.CA, ca: Path, tmp_path: Path) -> None:
    good = pair(authority, tmp_path)
    gone = tmp_path / "gone.pem"
    for settings in (
        TlsSettings(cert=gone, key=good.key),
        TlsSettings(cert=good.cert, key=gone),
        good.settings(client_ca=gone),
    ):
        assert f"{gone} cannot be read: No such file" in refused(settings)
    with pytest.raises(CertificateError, match=r"gone\.pem cannot be read"):
        client_context(gone)
    assert "set both" in refused(TlsSettings())


def test_a_file_that_holds_something_else_is_refused(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    good = pair(authority, tmp_path)
    assert "holds no certificate" in refused(TlsSettings(cert=good.key, key=good.key))
    assert "holds no private key" in refused(TlsSettings(cert=good.cert, key=good.cert))
    assert "holds no certificate" in refused(good.settings(client_ca=good.key))
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert "cannot be used" in refused(TlsSettings(cert=damaged, key=good.key))
    assert "cannot be read" in refused(good.settings(client_ca=damaged))


def test_a_key_of_another_certificate_is_refused(authority: trustme.CA, tmp_path: Path) -> None:
    good, other = pair(authority, tmp_path), pair(authority, tmp_path, stem="other")
    told = refused(TlsSettings(cert=good.cert, key=other.key))
    assert f"the key in {other.key} does not belong to the certificate in {good.cert}" in told


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o777])
def test_a_key_that_others_can_read_is_refused_with_the_command_that_closes_it(
    authority: trustme.CA, ca: Path, tmp_path: Path, mode: int
) -> None:
    good = pair(authority, tmp_path)
    good.key.chmod(mode)
    told = refused(good.settings())
    assert f"its mode is {mode:04o}" in told
    assert f"chmod 600 {good.key}" in told
    with pytest.raises(CertificateError, match="chmod 600"):
        client_context(ca, good.cert, good.key)


def test_a_key_with_a_passphrase_is_refused_instead_of_asking_on_the_terminal(
    authority: trustme.CA, tmp_path: Path
) -> None:
    good = pair(authority, tmp_path)
    key = serialization.load_pem_private_key(good.key.read_bytes(), None)
    good.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    assert "has a passphrase" in refused(good.settings())


def test_a_certificate_that_has_ended_or_not_begun_is_refused_with_the_time(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    ends = (NOW - DAY).replace(microsecond=0)
    old = pair(authority, tmp_path, begins=NOW - 9 * DAY, ends=ends, stem="old")
    assert f"has expired at {ends}; have a new one signed" in refused(old.settings())
    with pytest.raises(CertificateError, match="has expired"):
        client_context(ca, old.cert, old.key)
    new = pair(authority, tmp_path, begins=NOW + DAY, ends=NOW + 9 * DAY, stem="new")
    assert "counts from" in refused(new.settings())


def test_authorities_that_have_all_ended_are_refused(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    good = pair(authority, tmp_path)
    old = pair(authority, tmp_path, begins=NOW - 9 * DAY, ends=NOW - DAY, stem="old")
    assert "every authority" in refused(good.settings(client_ca=old.cert))


@pytest.mark.parametrize(("left", "warned"), [(ENDING - DAY, 1), (ENDING + DAY, 0)])
def test_a_certificate_that_ends_within_14_days_is_warned_about(
    authority: trustme.CA, tmp_path: Path, left: timedelta, warned: int
) -> None:
    made = pair(authority, tmp_path, ends=NOW + left)
    stream = StringIO()
    with open_log(LogSettings(format="json"), stream=stream):
        served(made.settings())
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["the certificate ends soon"] * warned
    for line in lines:
        assert line["file"] == str(made.cert)
        assert datetime.fromisoformat(line["ends"]) == (NOW + left).replace(microsecond=0)


def test_a_client_certificate_and_its_key_come_together(
    authority: trustme.CA, ca: Path, tmp_path: Path
) -> None:
    good = pair(authority, tmp_path)
    with pytest.raises(CertificateError, match="certificate is given without its key"):
        client_context(ca, good.cert, None)
    with pytest.raises(CertificateError, match="key is given without its certificate"):
        client_context(ca, None, good.key)


@pytest.mark.parametrize("year", [1965, 1999, 2030, 2049, 2050, 9999])
def test_the_end_of_a_certificate_is_read_in_both_forms_of_time(
    authority: trustme.CA, tmp_path: Path, year: int
) -> None:
    """RFC 5280, 4.1.2.5: two digits of the year until 2049, four after."""
    ends = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    begins = datetime(1960, 1, 1, tzinfo=UTC)
    made = pair(authority, tmp_path, begins=begins, ends=ends)
    assert {each.ends for each in validities(made.cert)} == {ends}
    assert check_validity(made.cert, ends - DAY).begins == begins


@given(st.binary(max_size=200))
def test_any_bytes_in_a_certificate_give_a_validity_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.pem"
    path.write_text(ssl.DER_cert_to_PEM_cert(content), encoding="ascii")
    with pytest.raises(CertificateError, match=r"any\.pem"):
        list(validities(path))
    with pytest.raises(CertificateError, match=r"any\.pem"):
        load_authorities(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), path)
