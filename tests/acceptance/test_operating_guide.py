"""What docs/guide/operating.md tells people to write and to run does what it says."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import threading
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from merq.client.security import client_context
from merq.service.logs import Log
from merq.service.settings import TlsSettings, describe, load_settings
from merq.service.tls import server_context

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guide" / "operating.md").read_text(encoding="utf-8")
UNIT = (ROOT / "docs" / "deploy" / "merq.service").read_text(encoding="utf-8")
CONTAINER = (ROOT / "docs" / "deploy" / "Containerfile").read_text(encoding="utf-8")
PATIENCE_S = 30


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_settings_in_the_guide_are_settings(tmp_path: Path) -> None:
    config = tmp_path / "merq.toml"
    for block in blocks("toml"):
        assert tomllib.loads(block)
        config.write_text(block, encoding="utf-8")
        load_settings(config, {}, {})
    assert load_settings(config, {}, {}).tls.cert == Path("service.pem")


@pytest.mark.parametrize("text", [GUIDE, UNIT, CONTAINER], ids=["guide", "unit", "container"])
def test_every_variable_that_is_written_down_is_one(text: str) -> None:
    known = {each.variable for each in describe()}
    known |= {"MERQ_CONFIG", "MERQ_URL", "MERQ_TOKEN", "MERQ_CA"}
    known |= {"MERQ_CLIENT_CERT", "MERQ_CLIENT_KEY", "MERQ_TOKEN_FILE"}
    found = set(re.findall(r"\bMERQ_[A-Z_]+\b", text))
    assert found - {"MERQ_"} <= known


def test_the_unit_gives_a_stop_more_time_than_the_service_takes() -> None:
    found = re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert found
    assert int(found[1]) > load_settings(None, {}, {}).stop_s


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_commands_of_the_guide_make_certificates_that_work(tmp_path: Path) -> None:
    (commands,) = blocks("sh")
    subprocess.run(
        ["sh", "-e", "-c", commands],  # noqa: S607
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    settings = TlsSettings(cert=tmp_path / "service.pem", key=tmp_path / "service.key")
    server = server_context(settings, now=datetime.now(UTC), log=Log())
    client = client_context(tmp_path / "ca.pem")
    # What newer versions of Python ask of certificates by default.
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)

        def serve() -> None:
            plain, _ = listener.accept()
            with server.wrap_socket(plain, server_side=True) as secured:
                secured.sendall(b"word")

        thread = threading.Thread(target=serve)
        thread.start()
        with (
            socket.create_connection(listener.getsockname(), timeout=PATIENCE_S) as plain,
            client.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            assert secured.recv(4) == b"word"
        thread.join(PATIENCE_S)


def test_guides_and_images_install_exact_versions_whose_hashes_are_checked() -> None:
    pages = [ROOT / "docs" / "deploy" / "Containerfile", *(ROOT / "docs" / "guide").glob("*.md")]
    for page in pages:
        text = page.read_text(encoding="utf-8").replace("\\\n", "")
        for line in text.splitlines():
            if re.match(r"\s*(?:RUN |&& |\$ )?\S*pip install ", line):
                locked = "--require-hashes --requirement" in re.sub(r"\s+", " ", line)
                assert "--no-deps" in line, (page.name, line)
                assert locked or "--no-build-isolation" in line, (page.name, line)
