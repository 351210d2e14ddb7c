"""Tokens of TCP clients: made, listed, revoked and checked. Only their SHA-256 is kept.

The file `tokens.toml` in the data folder holds them, so that `merq token` and a running service
share nothing else: the service reads it again when it has changed. A damaged file lets nobody in.
Not in here: who may do what with a token, which is everything.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from merq.errors import TokenError
from merq.service.durable_files import replace_durably
from merq.service.logs import Log

TOKEN_PREFIX: Final = "merq_"  # noqa: S105 - what a token begins with, so that people and scanners know it
TOKEN_RANDOM_BYTES: Final = 32
TOKEN_CHARACTERS_MAX: Final = 128
"""What is longer is no token, and not worth hashing."""

TOKENS_FILE: Final = "tokens.toml"
FILE_BYTES_MAX: Final = 1 << 20
"""A file of tokens is not larger."""

TOKENS_MAX: Final = 1000
"""Tokens in a file: a check looks at every one of them."""

FILE_CLOSED: Final = 0o022
FOLDER_CLOSED: Final = 0o002
"""Permissions to write that the file of tokens and its folder must not give. Many systems give each
user a group of his own that may write to his folders."""

FILE_VERSION: Final = 1
NAME_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names of tokens: they stand in logs and in the file."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_HEAD = "# Written by `merq token`. Holds no token, only what recognises one.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known about a token.

    Attributes:
        name: What people call it by.
        digest: Its SHA-256, in hexadecimal digits.
        created: When it was made.
        expires: When it ends, or None.
    """

    name: str
    digest: str = field(repr=False)
    created: datetime
    expires: datetime | None

    def is_over(self, now: datetime) -> bool:
        """Whether it has expired."""
        return self.expires is not None and now >= self.expires


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """Somebody who has shown a token that is good."""

    token: Token

    @property
    def name(self) -> str:
        """What the token is called."""
        return self.token.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A token that lets nobody in.

    Attributes:
        reason: For the log. The peer is told only that it is refused.
    """

    reason: str


class Tokens:
    """The tokens of a data folder, as a running service asks for them."""

    def __init__(self, folder: Path, log: Log) -> None:
        self._path = folder / TOKENS_FILE
        self._log = log
        self._seen: tuple[int, ...] | None = None
        self._tokens: tuple[Token, ...] = ()
        self._damage = ""

    def check(self, token: str, now: datetime) -> TokenHolder | Refusal:
        """Whether the token is good. How long it takes tells nothing about the tokens there are.

        Args:
            token: As the client has sent it.
            now: The time, with its zone.
        """
        if refusal := self._refusal_of_all():
            return refusal
        if len(token) > TOKEN_CHARACTERS_MAX:
            return Refusal(reason=f"the token has more than {TOKEN_CHARACTERS_MAX} characters")
        shown = _digest(token)
        found: Token | None = None
        for each in self._tokens:
            # No way out of the loop: every one is compared, whichever fits.
            if hmac.compare_digest(each.digest, shown):
                found = each
        if found is None:
            return Refusal(reason="there is no such token")
        return self._held(found, now)

    def check_again(self, holder: TokenHolder, now: datetime) -> TokenHolder | Refusal:
        """Whether a token that was good still is, for connections that last."""
        if refusal := self._refusal_of_all():
            return refusal
        for each in self._tokens:
            if each.name == holder.name and each.digest == holder.token.digest:
                return self._held(each, now)
        return Refusal(reason=f"the token {holder.name} was revoked")

    def _held(self, token: Token, now: datetime) -> TokenHolder | Refusal:
        if token.is_over(now):
            return Refusal(reason=f"the token {token.name} has expired at {token.expires}")
        return TokenHolder(token=token)

    def _refusal_of_all(self) -> Refusal | None:
        self._refresh()
        if self._damage:
            return Refusal(reason=self._damage)
        if not self._tokens:
            return Refusal(reason="there are no tokens; `merq token new NAME` makes one")
        return None

    def _refresh(self) -> None:
        """Reads the file again if it is another, or has another time or size."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._seen, self._tokens, self._damage = None, (), ""
            return
        except OSError as wrong:
            self._refuse_all(None, f"{self._path} cannot be read: {wrong.strerror}")
            return
        seen = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev, found.st_size)
        if seen == self._seen:
            return
        try:
            self._tokens, self._damage = load_tokens(self._path.parent), ""
        except TokenError as wrong:
            self._refuse_all(seen, str(wrong))
        else:
            self._log.info("tokens read", file=self._path, tokens=len(self._tokens))
        # Taken before it was read: what changed meanwhile is read again at the next check.
        self._seen = seen

    def _refuse_all(self, seen: tuple[int, ...] | None, reason: str) -> None:
        if reason != self._damage:
            self._log.error("every token is refused", reason=reason)
        self._seen, self._tokens, self._damage = seen, (), reason


def new_token(
    folder: Path, name: str, *, now: datetime, expires: datetime | None = None
) -> tuple[str, Token]:
    """Makes a token and keeps what recognises it. The token itself exists only in the result.

    Raises:
        TokenError: The name is taken or no name, there are too many, or the file is damaged.
    """
    if not NAME_FORM.fullmatch(name):
        raise TokenError(
            f"{name!r:.80} is no name for a token; up to 64 letters, digits, dots, underscores and "
            "hyphens, of which the first is a letter or digit, belong there"
        )
    if expires is not None and expires <= now:
        raise TokenError(f"the token would expire at {expires}, which is over")
    with _changing(folder):
        tokens = load_tokens(folder)
        if any(each.name == name for each in tokens):
            raise TokenError(
                f"there is a token {name} already; revoke it first (`merq token revoke {name}`) "
                "or choose another name"
            )
        if len(tokens) >= TOKENS_MAX:
            raise TokenError(
                f"there are {len(tokens)} tokens, which is the most; revoke some that nobody needs"
            )
        random = urlsafe_b64encode(secrets.token_bytes(TOKEN_RANDOM_BYTES))
        text = TOKEN_PREFIX + random.decode("ascii").rstrip("=")
        ends = None if expires is None else _whole(expires)
        token = Token(name=name, digest=_digest(text), created=_whole(now), expires=ends)
        _write(folder, (*tokens, token))
    return text, token


def revoke_token(folder: Path, name: str) -> Token:
    """Forgets a token: from now on it lets nobody in.

    Raises:
        TokenError: There is none of that name, or the file is damaged.
    """
    with _changing(folder):
        tokens = load_tokens(folder)
        for each in tokens:
            if each.name == name:
                _write(folder, tuple(other for other in tokens if other is not each))
                return each
        known = ", ".join(each.name for each in tokens[:10]) or "none"
        raise TokenError(f"there is no token {name!r:.80} in {folder}; there are: {known}")


def load_tokens(folder: Path) -> tuple[Token, ...]:
    """The tokens that the folder holds, in the order in which they were made.

    Raises:
        TokenError: The file cannot be read, is damaged, or others may write to it.
    """
    path = folder / TOKENS_FILE
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise TokenError(f"{path} is no file: move it away, `merq token` makes one")
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return ()
    except OSError as wrong:
        raise TokenError(f"{path} cannot be read: {wrong.strerror}") from wrong
    if os.name == "posix":
        _check_owner(path, found)
    if len(data) > FILE_BYTES_MAX:
        raise TokenError(f"{path} has more than {FILE_BYTES_MAX} bytes; `merq token` wrote no such")
    try:
        content = tomllib.loads(data.decode("utf-8"))
        return _parsed(content)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, _Damage) as wrong:
        raise TokenError(
            f"{path} is damaged: {wrong}. Put it right or remove it and make new tokens"
        ) from wrong


def _without_waiting(path: str, flags: int) -> int:
    """Opens what may be a pipe, at whose other end nobody is."""
    return os.open(path, flags | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))


def _check_owner(path: Path, found: os.stat_result) -> None:
    """Who can change the file, or put another in its place, can let himself in."""
    folder = path.parent.stat()
    trusted = {0, os.geteuid()}
    if os.geteuid() == 0:
        trusted.add(folder.st_uid)  # the administrator looks after somebody else's service
    for place, its, closed, right in (
        (path, found, FILE_CLOSED, "600"),
        (path.parent, folder, FOLDER_CLOSED, "700"),
    ):
        if its.st_uid not in trusted:
            raise TokenError(
                f"{place} belongs to user {its.st_uid}, who could let himself in; look at what is "
                f"in {path}, then `chown {os.geteuid()} {place}`"
            )
        # In a folder with the sticky bit others can add files, but not replace this one.
        if its.st_mode & closed and not its.st_mode & stat.S_ISVTX:
            raise TokenError(
                f"{place} can be written by others than its owner, who could let themselves in; "
                f"look at what is in {path}, then `chmod {right} {place}`"
            )


class _Damage(ValueError):
    """What is wrong in the file, and in which entry."""


def _parsed(content: Mapping[str, object]) -> tuple[Token, ...]:
    if content.get("version") != FILE_VERSION:
        raise _Damage(f"version is {content.get('version')!r:.40}, {FILE_VERSION} was expected")
    entries = content.get("token", [])
    if not isinstance(entries, list) or len(entries) > TOKENS_MAX:
        raise _Damage(f"at most {TOKENS_MAX} entries [[token]] were expected")
    tokens = tuple(_entry(number, each) for number, each in enumerate(entries, 1))
    if len({each.name for each in tokens}) != len(tokens):
        raise _Damage("two tokens have the same name")
    if unknown := set(content) - {"version", "token"}:
        raise _Damage(f"nothing is known of {min(unknown)!r:.40}")
    return tokens


def _entry(number: int, entry: object) -> Token:
    if not isinstance(entry, dict):
        raise _Damage(f"token {number} is no table")
    name, digest = entry.get("name"), entry.get("sha256")
    created, expires = entry.get("created"), entry.get("expires")
    if not isinstance(name, str) or not NAME_FORM.fullmatch(name):
        raise _Damage(f"token {number} has the name {name!r:.40}")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise _Damage(f"the sha256 of {name} is not 64 lower-case hexadecimal digits")
    if not isinstance(created, datetime) or created.tzinfo is None:
        raise _Damage(f"created of {name} is {created!r:.40}; a time with a zone was expected")
    # An end that cannot be read must not become none at all.
    if "expires" in entry and (not isinstance(expires, datetime) or expires.tzinfo is None):
        raise _Damage(f"expires of {name} is {expires!r:.40}; a time with a zone was expected")
    if unknown := set(entry) - {"name", "sha256", "created", "expires"}:
        raise _Damage(f"nothing is known of {min(unknown)!r:.40} in {name}")
    return Token(name=name, digest=digest, created=created, expires=expires)


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _whole(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    """One change at a time: two that read, add and write would lose one of their tokens."""
    import fcntl  # noqa: PLC0415 - where it is missing, so is this kind of lock

    try:
        descriptor = os.open(folder / "tokens.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError as wrong:
        raise TokenError(
            f"there is no folder {folder}; name the data folder of the service with --data"
        ) from wrong
    except OSError as wrong:
        raise TokenError(f"tokens in {folder} cannot be changed: {wrong.strerror}") from wrong
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(folder: Path, tokens: tuple[Token, ...]) -> None:
    """Puts a new file in the old one's place: whoever reads sees one or the other, whole."""
    lines = [_HEAD, f"version = {FILE_VERSION}"]
    for each in tokens:
        lines += ["", "[[token]]", f'name = "{each.name}"', f'sha256 = "{each.digest}"']
        lines.append(f"created = {each.created.isoformat()}")
        if each.expires is not None:
            lines.append(f"expires = {each.expires.isoformat()}")
    try:
        replace_durably(folder / TOKENS_FILE, ("\n".join(lines) + "\n").encode("ascii"))
    except OSError as wrong:
        raise TokenError(f"tokens in {folder} cannot be written: {wrong.strerror}") from wrong
