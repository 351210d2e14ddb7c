"""`merq token` as an administrator runs it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from merq.client.secrets import read_token_file
from merq.errors import MessageQueueError
from merq.service.logs import Log
from merq.service.tokens import TokenHolder, Tokens

MERQ = Path(sys.executable).parent / "merq"
PATIENCE_S = 30


def token(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith("MERQ_")}
    done = subprocess.run(
        [MERQ, "token", *arguments],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        encoding="utf-8",
        env={**others, "PYTHONUTF8": "1", **environment},
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


def is_good(folder: Path, text: str) -> bool:
    answer = Tokens(folder, Log()).check(text, datetime.now(UTC))
    return isinstance(answer, TokenHolder)


def test_a_token_is_printed_once_alone_on_standard_output(tmp_path: Path) -> None:
    done = token("new", "billing", "--data", tmp_path)
    assert done.returncode == 0
    (text,) = done.stdout.splitlines()
    assert text.startswith("merq_")
    assert "only time that token billing is shown" in done.stderr
    assert text not in done.stderr
    assert is_good(tmp_path, text)
    listed = token("list", "--data", tmp_path)
    assert listed.stdout.split()[:3] == ["name", "created", "expires"]
    assert "billing" in listed.stdout
    assert "never" in listed.stdout
    assert text not in listed.stdout


def test_a_token_in_json_has_its_name_and_times(tmp_path: Path) -> None:
    done = token("new", "billing", "--expires", "90d", "--data", tmp_path, "--json")
    made = json.loads(done.stdout)
    assert done.stderr == ""
    assert is_good(tmp_path, made.pop("token"))
    lasts = datetime.fromisoformat(made["expires"]) - datetime.fromisoformat(made["created"])
    assert lasts == timedelta(days=90)
    assert json.loads(token("list", "--json", "--data", tmp_path).stdout) == [made]
    assert made["expired"] is False


def test_a_token_is_written_to_a_file_of_its_owner_alone_which_clients_take(
    tmp_path: Path,
) -> None:
    file = tmp_path / "billing.token"
    done = token("new", "billing", "--data", tmp_path, "--output", file)
    assert done.stdout == f"wrote {file}\n"
    assert "MERQ_TOKEN_FILE" in done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = read_token_file(file)
    assert is_good(tmp_path, text)
    assert text not in done.stdout + done.stderr
    other = tmp_path / "other.token"
    told = token("new", "other", "--data", tmp_path, "--output", other, "--json")
    made = json.loads(told.stdout)
    assert made["file"] == str(other)
    assert "token" not in made


def test_a_file_that_is_there_is_not_overwritten_and_no_token_is_made(tmp_path: Path) -> None:
    file = tmp_path / "precious"
    file.write_text("mine")
    done = token("new", "billing", "--data", tmp_path, "--output", file)
    assert done.returncode == 1
    assert "not overwritten" in done.stderr
    assert file.read_text() == "mine"
    assert "There are no tokens" in token("list", "--data", tmp_path).stderr
    taken = tmp_path / "taken"
    assert token("new", "a", "--data", tmp_path).returncode == 0
    assert token("new", "a", "--data", tmp_path, "--output", taken).returncode == 1
    assert not taken.exists(), "nothing is left of a token that was not made"


def test_a_token_that_a_shell_put_into_an_open_file_is_told_how_to_be_mended(
    tmp_path: Path,
) -> None:
    file = tmp_path / "open.token"
    with file.open("w") as output:
        file.chmod(0o644)
        done = subprocess.run(
            [MERQ, "token", "new", "a", "--data", tmp_path],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
    assert "chmod 600" in done.stderr
    assert "--output" in done.stderr
    with pytest.raises(MessageQueueError, match=f"`chmod 600 {file}`"):
        read_token_file(file)


def test_a_revoked_token_is_gone(tmp_path: Path) -> None:
    text = token("new", "billing", "--data", tmp_path).stdout.strip()
    assert token("revoke", "billing", "--data", tmp_path).stdout == "revoked billing\n"
    assert not is_good(tmp_path, text)
    listed = token("list", "--data", tmp_path)
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "There are no tokens" in listed.stderr
    again = token("revoke", "billing", "--data", tmp_path)
    assert again.returncode == 1
    assert again.stderr.startswith("merq: there is no token 'billing'")


def test_the_data_folder_is_the_services_own(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    config = tmp_path / "merq.toml"
    config.write_text(f'data = "{data}"\n', encoding="utf-8")
    assert token("new", "a", "--config", config).returncode == 0
    assert token("new", "b", MERQ_CONFIG=str(config)).returncode == 0
    assert token("new", "c", MERQ_DATA=str(data)).returncode == 0
    names = [each["name"] for each in json.loads(token("list", "--json", "--data", data).stdout)]
    assert names == ["a", "b", "c"]


def test_wrong_settings_do_not_keep_from_revoking(tmp_path: Path) -> None:
    token("new", "billing", "--data", tmp_path)
    wrong = {"MERQ_TCP_PORT": "x"}
    assert token("revoke", "billing", **wrong).returncode == 1
    assert token("revoke", "billing", "--data", tmp_path, **wrong).returncode == 0


@pytest.mark.parametrize("expires", ["", "5 years", "0", "-1d", "99999d", "1e400"])
def test_what_is_no_time_is_wrong_usage(tmp_path: Path, expires: str) -> None:
    done = token("new", "billing", "--expires", expires, "--data", tmp_path)
    assert done.returncode == 2
    assert "belongs there" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text("version = ", encoding="utf-8")
    for arguments in (("new", "a"), ("list",), ("revoke", "a")):
        done = token(*arguments, "--data", tmp_path)
        assert done.returncode == 1
        assert "is damaged" in done.stderr
    assert path.read_text("utf-8") == "version = "


def test_without_the_folder_nothing_is_made(tmp_path: Path) -> None:
    done = token("new", "a", "--data", tmp_path / "none")
    assert done.returncode == 1
    assert "there is no folder" in done.stderr
    assert not list(tmp_path.iterdir())
