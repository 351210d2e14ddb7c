"""Who is let in over TCP, with TLS and tokens, and what a stranger learns: nothing."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import UUID

import pytest

import merq
from acceptance.service_process import PATIENCE_S, ServiceProcess, serving, wait_until
from kit.certificates import Authority
from merq.errors import CertificateError
from merq.hresult import HResult
from merq.protocol.application.frames import HEADER, Kind
from merq.protocol.application.greeting import Hello, encode_hello
from merq.service.tokens import revoke_token

NAME: Final = "hiddenname"
THREADS: Final = 8
ROUNDS: Final = 20
BRIEF_S: Final = 3.0
"""How long a certificate counts that ends while the service runs."""
NOBODY: Final = 65534
"""A user who owns nothing."""
TOKEN_CHECK_S: Final = 5.0
"""So often the service looks whether tokens still hold."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.made(tmp_path_factory.mktemp("own") / "ca")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.made(tmp_path_factory.mktemp("other") / "ca")


def tls_flags(authority: Authority, *identities: str) -> list[str]:
    cert, key = authority.issue("server", *(identities or ("localhost",)))
    return ["--tcp-port", "0", "--tls-cert", str(cert), "--tls-key", str(key), "--name", NAME]


@pytest.fixture(scope="module")
def secured(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServiceProcess]:
    """A service with TLS that wants tokens."""
    folder = tmp_path_factory.mktemp("secured")
    with serving(folder / "data", *tls_flags(authority)) as service:
        with service.connect() as manager:
            manager.create_queue(r".\private$\orders", label="hidden label")
        yield service


def url_of(service: ServiceProcess, host: str = "localhost") -> str:
    return f"tls://{host}:{service.tcp_port}"


def refusal(service: ServiceProcess, host: str = "localhost", **how: Any) -> str:
    """What a client is told that is not let in: a clear error, and nothing about who is there."""
    with pytest.raises(merq.MessageQueueError) as refused:
        merq.connect(url_of(service, host), **how)
    text = str(refused.value)
    assert refused.value.code == HResult.MQ_ERROR_ACCESS_DENIED, text
    assert NAME not in text
    assert guid_of(service) not in text
    return text


def guid_of(service: ServiceProcess) -> str:
    return str(service.events("running")[-1]["queue_manager"])


def awaited(service: ServiceProcess, reason: str, before: int = 0) -> None:
    """The log says why."""
    wait_until(
        lambda: sum(reason in each for each in service.reasons()) > before,
        f"{reason!r} is in the log",
    )


# What works.


def test_the_right_token_over_tls_works_from_many_threads(
    secured: ServiceProcess, authority: Authority
) -> None:
    token = secured.new_token("works")
    with merq.connect(url_of(secured), token=token, ca=authority.ca_file) as manager:
        assert manager.name == NAME
        queue = manager.create_queue(r".\private$\threads")
        wrong: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for turn in range(ROUNDS):
                    body = f"{number}.{turn}" * (1 + 3000 * (turn % 3))
                    sent = queue.send(body, recoverable=turn % 2 == 0)
                    assert queue.receive_by_id(sent).body == body
            except BaseException as failed:
                wrong.append(failed)
                raise

        threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not wrong
        assert not any(thread.is_alive() for thread in threads)
        assert len(queue) == 0
        queue.send(b"large " * 500_000)
        assert queue.receive(timeout=0).body == b"large " * 500_000


def test_a_client_with_a_certificate_of_the_right_authority_is_let_in(
    tmp_path: Path, authority: Authority, stranger: Authority
) -> None:
    flags = [*tls_flags(authority), "--tls-client-ca", str(authority.ca_file)]
    with serving(tmp_path / "data", *flags) as service:
        how: dict[str, Any] = {"token": service.new_token("client"), "ca": authority.ca_file}
        cert, key = authority.issue("client", "somebody@example.org")
        with merq.connect(url_of(service), cert=cert, key=key, **how) as manager:
            assert manager.name == NAME
        # The certificate alone is not enough.
        refusal(service, ca=authority.ca_file, cert=cert, key=key, token="")
        awaited(service, "it shows no token")
        refusal(service, **how)
        awaited(service, "peer did not return a certificate")
        cert, key = stranger.issue("client", "somebody@example.org")
        refusal(service, cert=cert, key=key, **how)
        before = sum("certificate verify failed" in each for each in service.reasons())
        assert before
        now = datetime.now(UTC)
        ended = authority.issue(
            "ended",
            "somebody@example.org",
            begins=now - timedelta(days=60),
            ends=now - timedelta(seconds=5),
        )
        heard = said_to_a_stranger(service, authority, ended, str(how["token"]))
        check_reveals_nothing(service, heard)
        awaited(service, "certificate verify failed", before)
        with pytest.raises(CertificateError, match="has expired"):
            merq.connect(url_of(service), cert=ended[0], key=ended[1], **how)


# What does not.


def test_a_client_without_the_right_token_is_refused_with_a_reason_in_the_log_alone(
    secured: ServiceProcess, authority: Authority
) -> None:
    ended = secured.new_token("ended", expires=datetime.now(UTC) + timedelta(seconds=1))
    gone = secured.new_token("gone")
    revoke_token(secured.data, "gone")
    texts = {refusal(secured, ca=authority.ca_file, token=each) for each in ("", "wrong", gone)}
    time.sleep(1.1)
    texts.add(refusal(secured, ca=authority.ca_file, token=ended))
    assert len(texts) == 1, "a stranger can tell one refusal from another"
    awaited(secured, "it shows no token")
    awaited(secured, "expired")
    assert ended not in secured.output
    assert gone not in secured.output


@pytest.mark.parametrize("token", ["", "merq_" + "A" * 43, "x" * 512, "\ud800"])
def test_a_stranger_hears_nothing_but_that_he_is_not_let_in(
    secured: ServiceProcess, authority: Authority, token: str
) -> None:
    check_reveals_nothing(secured, said_to_a_stranger(secured, authority, None, token))


def test_a_stranger_who_asks_before_he_is_let_in_hears_nothing(
    secured: ServiceProcess, authority: Authority
) -> None:
    for data in (
        b"GET / HTTP/1.1\r\n\r\n" * 4,
        HEADER.pack(32, Kind.ASK, 0, 0, 1, 0) + b'{"ask_status":{}}'.ljust(16),
        b"\x00" * 64,
    ):
        assert heard_after(secured, authority, None, data) == b""


def said_to_a_stranger(
    service: ServiceProcess,
    authority: Authority,
    pair: tuple[Path, Path] | None,
    token: str,
) -> bytes:
    hello = encode_hello(Hello(protocol="merq", oldest=1, newest=1, client="raw", token=token))
    status = HEADER.pack(16 + 17, Kind.ASK, 0, 0, 1, 0) + b'{"ask_status":{}}'
    return heard_after(service, authority, pair, hello + status)


def heard_after(
    service: ServiceProcess, authority: Authority, pair: tuple[Path, Path] | None, data: bytes
) -> bytes:
    """Everything that the service says to somebody who says this, inside of TLS."""
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    if pair is not None:
        context.load_cert_chain(*pair)
    heard = b""
    with (
        socket.create_connection(("localhost", service.tcp_port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
        suppress(ssl.SSLError, ConnectionError),  # how it ends is its own business
    ):
        secure.sendall(data)
        while more := secure.recv(1 << 16):
            heard += more
    return heard


def check_reveals_nothing(service: ServiceProcess, heard: bytes) -> None:
    guid = UUID(guid_of(service))
    for secret in (NAME.encode(), NAME.encode("utf-16-le"), str(guid).encode(), guid.bytes):
        assert secret not in heard
    assert guid.bytes_le not in heard
    for word in (b"orders", b"hidden", b"token", b"expire", b"revoke"):
        assert word not in heard


def test_a_service_that_is_not_whom_the_client_trusts_is_refused_by_the_client(
    secured: ServiceProcess, authority: Authority, stranger: Authority
) -> None:
    token = secured.new_token("careful")
    before = len(secured.events("TLS connection refused"))
    text = refusal(secured, token=token, ca=stranger.ca_file)
    assert "certificate verify failed" in text
    wait_until(lambda: len(secured.events("TLS connection refused")) > before, "it is in the log")
    # The system's authorities do not know ours either.
    assert "certificate verify failed" in refusal(secured, token=token)
    text = refusal(secured, "127.0.0.1", token=token, ca=authority.ca_file)
    assert "127.0.0.1" in text


def test_a_mistake_in_connecting_is_told_with_what_to_do(
    secured: ServiceProcess, authority: Authority, tmp_path: Path
) -> None:
    ca, token = authority.ca_file, secured.new_token("mistaken")
    assert "MERQ_CA" in refusal(secured, token=token)
    assert "subjectAltName" in refusal(secured, "127.0.0.1", token=token, ca=ca)
    assert "MERQ_TOKEN_FILE" in refusal(secured, token="x" * 40, ca=ca)
    with pytest.raises(merq.MessageQueueError, match="connect with tls://"):
        merq.connect(f"tcp://127.0.0.1:{secured.tcp_port}", token=token)
    with serving(tmp_path / "clear", "--tcp-port", "0", "--insecure-tcp") as clear:
        url = f"tls://127.0.0.1:{clear.tcp_port}"
        with pytest.raises(merq.MessageQueueError, match=r"no TLS is spoken there.*tcp://"):
            merq.connect(url, token=token, ca=ca)


def test_a_socket_of_somebody_else_is_told_as_closed_and_not_as_absent() -> None:
    # Folders of tests are closed to others; here it is the socket that is to be.
    with TemporaryDirectory() as folder, serving(Path(folder) / "data") as service:
        for each in (Path(folder), service.data):
            each.chmod(0o755)
        text = _connected_as_nobody(service.url)
        assert f"it is user {os.geteuid()}'s" in text
        assert "socket.mode" in text
        assert "is `merq serve` running" not in text


def _connected_as_nobody(url: str) -> str:
    """What a client is told that may not use the socket."""
    user = os.geteuid()
    if user:
        Path(url.removeprefix("unix:")).chmod(0)
    else:
        os.seteuid(NOBODY)
    try:
        with pytest.raises(merq.MessageQueueError) as refused:
            merq.connect(url)
    finally:
        os.seteuid(user)
    assert refused.value.code == HResult.MQ_ERROR_ACCESS_DENIED
    return str(refused.value)


def test_a_certificate_that_ends_while_the_service_runs_is_refused_by_clients(
    tmp_path: Path, authority: Authority
) -> None:
    ends = datetime.now(UTC) + timedelta(seconds=BRIEF_S)
    cert, key = authority.issue("brief", "localhost", ends=ends)
    flags = ["--tcp-port", "0", "--tls-cert", str(cert), "--tls-key", str(key), "--name", NAME]
    began = time.monotonic()
    with serving(tmp_path / "data", *flags) as service:
        assert service.events("the certificate ends soon")
        token = service.new_token("late")
        time.sleep(max(0.0, began + BRIEF_S + 1 - time.monotonic()))
        assert "expired" in refusal(service, token=token, ca=authority.ca_file)
        awaited(service, "expired")
    again = ServiceProcess(tmp_path / "data", *flags)
    again.start(is_awaited=False)
    assert again.ended() == 1
    assert "has expired" in again.output.splitlines()[-1]


def test_who_is_connected_goes_when_his_token_is_revoked_or_ends(
    secured: ServiceProcess, authority: Authority
) -> None:
    how: dict[str, Any] = {"ca": authority.ca_file, "reconnect_s": 0}
    now = datetime.now(UTC)
    ending = secured.new_token("ending", expires=now + timedelta(seconds=2))
    with (
        merq.connect(url_of(secured), token=secured.new_token("staying"), **how) as stays,
        merq.connect(url_of(secured), token=secured.new_token("leaving"), **how) as leaves,
        merq.connect(url_of(secured), token=ending, **how) as ends,
    ):
        for each in (stays, leaves, ends):
            assert each.status().name == NAME
        revoke_token(secured.data, "leaving")
        for gone in (leaves, ends):
            with pytest.raises(merq.MessageQueueError, match="does not let this client in"):
                gone.queue(r".\private$\orders").receive(timeout=TOKEN_CHECK_S * 2)
        assert stays.status().name == NAME
    awaited(secured, "revoked")
    awaited(secured, "expired")


# What is refused before anybody can connect.


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tcp-port", "0"], "without TLS"),
        (["--tcp-port", "0", "--address", "0.0.0.0", "--insecure-tcp"], "loopback"),  # noqa: S104
        (["--tcp-port", "0", "--tls-cert", "nowhere.pem"], "tls.key"),
        (["--tls-client-ca", "nowhere.pem"], "tls.cert"),
    ],
)
def test_settings_that_would_not_be_safe_are_refused(
    tmp_path: Path, flags: list[str], words: str
) -> None:
    service = ServiceProcess(tmp_path / "data", *flags)
    service.start(is_awaited=False)
    try:
        assert service.ended() == 1
    finally:
        service.end()
    assert words in service.output
    assert not (tmp_path / "data" / "merq.sock").exists()


def test_a_key_that_others_can_read_is_refused(tmp_path: Path, authority: Authority) -> None:
    cert, key = authority.issue("open", "localhost")
    key.chmod(0o644)
    flags = ("--tcp-port", "0", "--tls-cert", str(cert), "--tls-key", str(key))
    service = ServiceProcess(tmp_path / "data", *flags)
    service.start(is_awaited=False)
    assert service.ended() == 1
    assert "chmod 600" in service.output


def test_tcp_without_tls_on_loopback_wants_a_token_too(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--tcp-port", "0", "--insecure-tcp") as service:
        url = f"tcp://127.0.0.1:{service.tcp_port}"
        assert service.tcp_ports == [service.tcp_port]
        assert any("insecure_tcp" in str(each.get("text")) for each in service.log())
        with pytest.raises(merq.MessageQueueError, match="does not let this client in"):
            merq.connect(url)
        with merq.connect(url, token=service.new_token("local")) as manager:
            assert manager.status().connections == 1
        assert os.environ.get("MERQ_TOKEN") is None
