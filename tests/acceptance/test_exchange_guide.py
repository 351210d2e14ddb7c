"""What docs/guide/between-queue-managers.md tells people to write and to run does what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest

from acceptance.service_process import PATIENCE_S, ServiceProcess, environment
from kit.pages import ROOT, blocks_of
from merq.model.properties.values import ConnectionStatus
from merq.model.queue import OutgoingState
from merq.service.peers_file import read_peers
from merq.service.settings import describe, load_settings

GUIDE = ROOT / "docs" / "guide" / "between-queue-managers.md"
INTERNALS = ROOT / "docs" / "internals" / "exchange.md"
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
NETWORK = f"127.0.{60 + WORKER}."
"""Addresses of this worker alone: every queue manager has the same port."""

SOURCE = ROOT / "src" / "merq"


def rows_of(page: str, heading: str) -> list[str]:
    """The first cells of the table with this heading."""
    _, _, rest = page.partition(f"{heading}\n")
    table = rest.partition("\n\n")[0].splitlines()[1:]
    return [row.split("|")[1].strip() for row in table]


def played(folder: Path, text: str) -> list[str]:
    """What the commands of a block print, those aside that start queue managers."""
    script = text.replace("127.0.0.", NETWORK).replace("\\\n", "")
    scripts = Path(sys.executable).parent
    variables = environment(PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}")
    settings = {"exchange.listen": "true", "exchange.offline": "false"}
    printed = []
    with ExitStack() as services:
        for line in script.splitlines():
            made = {each.name for each in folder.iterdir()}
            words = shlex.split(line.partition(" 2> ")[0])
            if words[:2] == ["merq", "serve"]:
                assert words[2] == "--data"
                flags = [str(folder / each) if each in made else each for each in words[4:]]
                service = ServiceProcess(folder / words[3], *flags, settings=settings)
                services.enter_context(service)
                continue
            done = subprocess.run(
                ["sh", "-c", line],  # noqa: S607
                cwd=folder,
                env=variables,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
            )
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            printed.append(done.stdout)
    return printed


def test_two_queue_managers_do_what_the_guide_shows(tmp_path: Path) -> None:
    *_, received, outgoing = played(tmp_path, blocks_of(GUIDE, "sh")[0].text)
    assert "two tins of tea" in received
    assert f"DIRECT=TCP:{NETWORK}3\\PRIVATE$\\orders" in outgoing
    assert "connected" in outgoing


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_two_queue_managers_speak_tls_as_the_guide_shows(tmp_path: Path) -> None:
    *_, received, status = played(tmp_path, blocks_of(GUIDE, "sh")[1].text)
    assert "two tins of tea" in received
    assert re.search(rf"{re.escape(NETWORK)}3 .* us .*TLS", status), status
    assert f"{NETWORK}3" in (tmp_path / "a" / "tls-hosts").read_text().splitlines()


def test_settings_and_peers_in_the_guide_can_be_used_as_they_are(tmp_path: Path) -> None:
    found = []
    for number, block in enumerate(blocks_of(GUIDE, "toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(block.text, encoding="utf-8")
        if "peer" in tomllib.loads(block.text):
            found += read_peers(path)
        else:
            load_settings(path, {}, {})
    assert [(each.name, each.via, each.trust_inbound) for each in found] == [
        ("beta", "", False),
        ("gamma", "beta", False),
        ("laptop", "", True),
        ("winhost", "", False),
        ("headquarters", "", False),
    ]


@pytest.mark.parametrize("page", [GUIDE, INTERNALS], ids=lambda page: page.stem)
def test_every_setting_that_a_page_names_is_one(page: Path) -> None:
    known = {each.key for each in describe()}
    text = page.read_text("utf-8")
    named = set(re.findall(r"\bexchange\.[a-z_]+\b", text)) - {"exchange.md"}
    assert named <= known
    if page == INTERNALS:
        _, _, rest = text.partition("| [MS-MQQB] | what runs out | setting |")
        cells = [row.split("|")[3] for row in rest.partition("\n\n")[0].splitlines()[2:]]
        names = [each for cell in cells for each in re.findall(r"`([a-z_]+)`", cell)]
        whole = [f"resend{each}" if each.startswith("_") else each for each in names]
        assert {f"exchange.{each}" for each in whole} <= known
        assert len(whole) > 10


def test_the_guide_explains_every_status_of_a_connection_history() -> None:
    sources = [*(SOURCE / "exchange").glob("*.py"), *(SOURCE / "net").glob("*.py")]
    names = {
        name
        for path in sources
        for name in re.findall(r"\bConnectionStatus\.([A-Z_]+)", path.read_text("utf-8"))
    }
    noted = {ConnectionStatus[name].document_name for name in names}
    assert len(noted) > 5
    assert set(rows_of(GUIDE.read_text("utf-8"), "| status | means | look at |")) == noted


def test_the_guide_explains_the_states_of_an_outgoing_queue() -> None:
    states = {each.value for each in OutgoingState} - {"disconnecting"}
    assert set(rows_of(GUIDE.read_text("utf-8"), "| state | |")) == states
