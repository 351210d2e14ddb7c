from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merq.errors import TokenError
from merq.service.logs import Log, open_log
from merq.service.sections import LogSettings
from merq.service.tokens import (
    TOKENS_FILE,
    TOKENS_MAX,
    Refusal,
    TokenHolder,
    Tokens,
    load_tokens,
    new_token,
    revoke_token,
)

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def log() -> Iterator[StringIO]:
    stream = StringIO()
    with open_log(LogSettings(format="json"), stream=stream):
        yield stream


def tokens_of(folder: Path) -> Tokens:
    return Tokens(folder, Log("merq.service.tests"))


def refusal(answer: TokenHolder | Refusal) -> str:
    assert isinstance(answer, Refusal)
    return answer.reason


def errors(log: StringIO) -> list[str]:
    found = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line["reason"] for line in found if line["level"] == "error"]


def test_a_token_lets_in_whoever_shows_it(tmp_path: Path) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW)
    answer = tokens_of(tmp_path).check(text, NOW)
    assert isinstance(answer, TokenHolder)
    assert answer.name == "billing"


def test_a_token_has_256_random_bits_and_a_prefix_that_people_recognise(tmp_path: Path) -> None:
    first, _ = new_token(tmp_path, "a", now=NOW)
    second, _ = new_token(tmp_path, "b", now=NOW)
    assert first.startswith("merq_")
    assert len(first) == len("merq_") + 43
    assert first != second


def test_the_token_itself_is_not_kept_and_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    text, token = new_token(tmp_path, "billing", now=NOW, expires=NOW + DAY)
    path = tmp_path / TOKENS_FILE
    assert text.removeprefix("merq_") not in path.read_text("utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token.digest not in repr(token)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["tokens.lock", TOKENS_FILE]
    assert load_tokens(tmp_path) == (token,)


@pytest.mark.limit("merq.service.tokens.TOKEN_CHARACTERS_MAX")
def test_others_are_refused_with_a_reason(tmp_path: Path) -> None:
    tokens = tokens_of(tmp_path)
    assert "there are no tokens" in refusal(tokens.check("x", NOW))
    text, _ = new_token(tmp_path, "billing", now=NOW)
    for wrong in ("", "x", text[:-1], text + "x", text.upper(), "ü", "\udcff", text.encode().hex()):
        assert refusal(tokens.check(wrong, NOW)) == "there is no such token"
    assert "more than 128 characters" in refusal(tokens.check("x" * 129, NOW))


def test_an_expired_token_is_refused_by_its_name(tmp_path: Path) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW, expires=NOW + DAY)
    tokens = tokens_of(tmp_path)
    assert isinstance(tokens.check(text, NOW + DAY - timedelta(seconds=1)), TokenHolder)
    reason = refusal(tokens.check(text, NOW + DAY))
    assert reason == "the token billing has expired at 2026-11-16 12:00:00+00:00"


def test_a_running_service_learns_of_new_and_revoked_tokens_at_once(tmp_path: Path) -> None:
    tokens = tokens_of(tmp_path)
    first, _ = new_token(tmp_path, "first", now=NOW)
    held = tokens.check(first, NOW)
    assert isinstance(held, TokenHolder)
    second, _ = new_token(tmp_path, "second", now=NOW)
    assert isinstance(tokens.check(second, NOW), TokenHolder)
    assert tokens.check_again(held, NOW) == held
    revoke_token(tmp_path, "first")
    assert refusal(tokens.check(first, NOW)) == "there is no such token"
    assert refusal(tokens.check_again(held, NOW)) == "the token first was revoked"
    new_token(tmp_path, "first", now=NOW)
    assert refusal(tokens.check_again(held, NOW)) == "the token first was revoked"
    assert isinstance(tokens.check(second, NOW), TokenHolder)


def test_a_connection_that_lasts_ends_with_its_token(tmp_path: Path) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW, expires=NOW + DAY)
    tokens = tokens_of(tmp_path)
    held = tokens.check(text, NOW)
    assert isinstance(held, TokenHolder)
    assert "has expired" in refusal(tokens.check_again(held, NOW + DAY))


SHA = "0" * 64
MADE = "created = 2026-01-01T00:00:00Z"
ENTRY = f'[[token]]\nname = "a"\nsha256 = "{SHA}"\n{MADE}\n'


@pytest.mark.limit("merq.service.tokens.FILE_BYTES_MAX")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("version = ", "Invalid value"),
        ("", "version is None"),
        ("version = 2", "version is 2"),
        ("version = 1\ntoken = 5", "[[token]]"),
        ("version = 1\ntoken = [5]", "token 1 is no table"),
        (f'version = 1\n[[token]]\nsha256 = "{SHA}"\n{MADE}', "has the name None"),
        (f'version = 1\n[[token]]\nname = "a b"\nsha256 = "{SHA}"\n{MADE}', "the name 'a b'"),
        (f'version = 1\n[[token]]\nname = "a"\nsha256 = "5"\n{MADE}', "64 lower-case"),
        (f'version = 1\n[[token]]\nname = "a"\nsha256 = "{SHA}"', "created of a is None"),
        (f"version = 1\n{ENTRY}expires = 5", "expires of a is 5"),
        (f"version = 1\n{ENTRY}expires = 0", "expires of a is 0"),
        (f"version = 1\n{ENTRY}expires = 2027-01-01T00:00:00", "a time with a zone"),
        (f"version = 1\n{ENTRY}expired = 2027-01-01T00:00:00Z", "nothing is known of 'expired'"),
        (f"version = 1\nmore = 1\n{ENTRY}", "nothing is known of 'more'"),
        (f"version = 1\n{ENTRY}{ENTRY}", "the same name"),
        (f"version = 1\n{'#' * (1 << 20)}", "more than"),
    ],
)
def test_a_damaged_file_refuses_everybody_and_the_log_says_so_once(
    tmp_path: Path, log: StringIO, content: str, reason: str
) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW)
    tokens = tokens_of(tmp_path)
    assert isinstance(tokens.check(text, NOW), TokenHolder)
    path = tmp_path / TOKENS_FILE
    good = path.read_bytes()
    path.write_text(content, encoding="utf-8")
    for _ in range(3):
        assert reason in refusal(tokens.check(text, NOW))
    (told,) = errors(log)
    assert reason in told
    assert str(path) in told
    with pytest.raises(TokenError):
        new_token(tmp_path, "other", now=NOW)
    assert path.read_text("utf-8") == content, "what is damaged is left for people to look at"
    path.write_bytes(good)
    assert isinstance(tokens.check(text, NOW), TokenHolder)


def test_a_file_that_others_may_write_refuses_everybody(tmp_path: Path, log: StringIO) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW)
    tokens = tokens_of(tmp_path)
    assert isinstance(tokens.check(text, NOW), TokenHolder)
    (tmp_path / TOKENS_FILE).chmod(0o620)
    assert "chmod 600" in refusal(tokens.check(text, NOW))
    assert len(errors(log)) == 1


def test_a_folder_that_others_may_write_refuses_everybody(tmp_path: Path, log: StringIO) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW)
    tmp_path.chmod(0o777)
    assert f"chmod 700 {tmp_path}" in refusal(tokens_of(tmp_path).check(text, NOW))
    assert len(errors(log)) == 1
    tmp_path.chmod(0o1777)
    assert isinstance(tokens_of(tmp_path).check(text, NOW), TokenHolder), "nobody can replace it"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_refuses_everybody(tmp_path: Path, log: StringIO) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW)
    os.chown(tmp_path / TOKENS_FILE, 12_345, -1)
    assert "belongs to user 12345" in refusal(tokens_of(tmp_path).check(text, NOW))
    assert len(errors(log)) == 1
    os.chown(tmp_path, 12_345, -1)
    assert isinstance(tokens_of(tmp_path).check(text, NOW), TokenHolder), "it is his service"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_refuses_everybody(tmp_path: Path, log: StringIO) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW)
    (tmp_path / TOKENS_FILE).chmod(0)
    assert "Permission denied" in refusal(tokens_of(tmp_path).check(text, NOW))
    assert len(errors(log)) == 1


def test_a_folder_in_the_files_place_refuses_everybody(tmp_path: Path, log: StringIO) -> None:
    (tmp_path / TOKENS_FILE).mkdir()
    assert "cannot be read" in refusal(tokens_of(tmp_path).check("x", NOW))
    assert len(errors(log)) == 1


def test_a_folder_that_is_none_refuses_everybody_and_the_log_says_so_once(
    tmp_path: Path, log: StringIO
) -> None:
    (tmp_path / "file").touch()
    tokens = tokens_of(tmp_path / "file")
    for _ in range(3):
        assert "Not a directory" in refusal(tokens.check("x", NOW))
    assert len(errors(log)) == 1


@pytest.mark.parametrize("name", ["", "a b", "-a", "a\n", "ü", "a" * 65, 'a"', "../a"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TokenError, match="is no name for a token"):
        new_token(tmp_path, name, now=NOW)
    assert not list(tmp_path.iterdir())


def test_a_name_stands_for_one_token(tmp_path: Path) -> None:
    new_token(tmp_path, "billing", now=NOW)
    with pytest.raises(TokenError, match="there is a token billing already; revoke it first"):
        new_token(tmp_path, "billing", now=NOW)
    with pytest.raises(TokenError, match=r"no token 'biling' in .*; there are: billing"):
        revoke_token(tmp_path, "biling")


def test_a_token_that_is_over_already_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="which is over"):
        new_token(tmp_path, "billing", now=NOW, expires=NOW)


@pytest.mark.limit("merq.service.tokens.TOKENS_MAX")
def test_there_are_not_too_many_tokens(tmp_path: Path) -> None:
    entries = "".join(ENTRY.replace('"a"', f'"a{number}"') for number in range(TOKENS_MAX))
    path = tmp_path / TOKENS_FILE
    path.write_text(f"version = 1\n{entries}", encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(TokenError, match="revoke some"):
        new_token(tmp_path, "billing", now=NOW)


def test_without_the_folder_one_is_told_to_name_it(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="name the data folder of the service with --data"):
        new_token(tmp_path / "none", "billing", now=NOW)


def test_tokens_made_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    threads = [
        threading.Thread(target=new_token, args=(tmp_path, f"t{number}"), kwargs={"now": NOW})
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert {each.name for each in load_tokens(tmp_path)} == {f"t{n}" for n in range(16)}


def test_the_log_never_holds_the_token(tmp_path: Path, log: StringIO) -> None:
    text, _ = new_token(tmp_path, "billing", now=NOW)
    Log().info("mistake", reason=f"got {text}")
    assert text not in log.getvalue()
    assert "[hidden]" in log.getvalue()


@given(
    st.binary(max_size=300)
    | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_in_the_file_let_nobody_in(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = folder / TOKENS_FILE
    path.write_bytes(content)
    path.chmod(0o600)
    assert refusal(tokens_of(folder).check("x", NOW))
