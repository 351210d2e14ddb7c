"""A client's token comes from files that are its own, and goes nowhere in clear."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

import pytest

import merq
import merq.aio
from merq.cli.connecting import Connection
from merq.client.addresses import parse_address, redacted
from merq.client.dialing import dialing
from merq.client.secrets import read_token_file
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.protocol.application.greeting import TOKEN_CHARACTERS_MAX

TOKEN: Final = "merq_secret"  # noqa: S105 - nobody's


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MERQ_"):
            monkeypatch.delenv(name)


def file_with(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "token"
    path.write_text(text)
    path.chmod(mode)
    return path


# Over the network.


@pytest.mark.parametrize("host", ["example.com", "192.0.2.1", "[2001:db8::1]", "127.0.0.1.example"])
def test_a_token_does_not_travel_in_clear_to_another_computer(host: str) -> None:
    with pytest.raises(MessageQueueError, match="connect with tls://") as error:
        merq.connect(f"tcp://{host}:1888", token=TOKEN)
    assert error.value.code == HResult.MQ_ERROR_ACCESS_DENIED
    assert TOKEN not in str(error.value)
    assert dialing(f"tcp://{host}:1888", token=TOKEN, allow_clear_token=True).token == TOKEN
    assert dialing(f"tls://{host}:1888", token=TOKEN).token == TOKEN
    assert dialing(f"tcp://{host}:1888").token == "", "without a token there is nothing to lose"


def test_nor_does_one_from_the_environment_unless_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def connect() -> None:
        await merq.aio.connect("tcp://192.0.2.1:1")

    monkeypatch.setenv("MERQ_TOKEN", TOKEN)
    with pytest.raises(MessageQueueError, match="in clear to tcp://192"):
        asyncio.run(connect())
    monkeypatch.setenv("MERQ_ALLOW_CLEAR_TOKEN", "1")
    assert dialing("tcp://192.0.2.1:1").token == TOKEN


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.35.1.1", "[::1]"])
def test_on_this_computer_a_token_may_be_in_clear(host: str) -> None:
    assert dialing(f"tcp://{host}:1888", token=TOKEN).token == TOKEN


# In files.


def test_a_token_in_a_file_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_with(tmp_path, f"{TOKEN}\n")
    assert dialing("tcp://127.0.0.1:1", token_file=path).token == TOKEN
    monkeypatch.setenv("MERQ_TOKEN_FILE", str(path))
    assert dialing("tcp://127.0.0.1:1").token == TOKEN
    with pytest.raises(MessageQueueError, match="both given"):
        dialing("tcp://127.0.0.1:1", token=TOKEN, token_file=path)


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o602, 0o660, 0o777])
def test_a_token_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = file_with(tmp_path, TOKEN, mode)
    with pytest.raises(MessageQueueError, match=f"mode {mode:04o}.*chmod 600"):
        read_token_file(path)
    path.chmod(0o640)
    assert read_token_file(path) == TOKEN


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_token_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = file_with(tmp_path, TOKEN)
    os.chown(path, 12_345, -1)
    with pytest.raises(MessageQueueError, match="belongs to user 12345"):
        read_token_file(path)


def test_what_is_no_token_is_refused(tmp_path: Path) -> None:
    for text in ("", " \n", "x" * (TOKEN_CHARACTERS_MAX + 1)):
        with pytest.raises(MessageQueueError, match="than a token"):
            read_token_file(file_with(tmp_path, text))
    assert len(read_token_file(file_with(tmp_path, "x" * TOKEN_CHARACTERS_MAX))) == 512
    with pytest.raises(MessageQueueError, match="cannot be read"):
        read_token_file(tmp_path / "nowhere")
    with pytest.raises(MessageQueueError, match="is no file"):
        read_token_file(Path("/dev/null"))


# In texts.


@pytest.mark.parametrize(
    "url",
    [
        f"tcp://{TOKEN}@host:1",
        f"tls://user:{TOKEN}@host:1",
        f"tls://host:1?token={TOKEN}",
        f"tls://host:1/#{TOKEN}",
        f"tcp://host:{TOKEN}",
        f"http://{TOKEN}@host",
        f"tcp:{TOKEN}@host",
        f"{TOKEN}@host:1888",
    ],
)
def test_a_url_that_is_refused_is_shown_without_what_may_be_secret(url: str) -> None:
    with pytest.raises(MessageQueueError) as error:
        parse_address(url)
    assert TOKEN not in f"{error.value!r} {error.value} {error.value.__cause__}"


def test_a_url_without_secrets_is_shown_as_it_is() -> None:
    assert redacted("tls://host:1802") == "tls://host:1802"
    assert redacted("unix:/a/b.sock") == "unix:/a/b.sock"


def test_what_has_a_token_does_not_show_it() -> None:
    shown = repr(Connection(token=TOKEN)) + repr(dialing("tcp://127.0.0.1:1", token=TOKEN))
    assert TOKEN not in shown
