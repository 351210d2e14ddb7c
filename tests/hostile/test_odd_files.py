"""A folder, link, pipe or socket with the name of a file of the store: said, not touched."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from uuid import UUID

import pytest

from merq.engine.limits import Limits
from merq.errors import StoreError, TokenError
from merq.host.host import BALLAST, RELIEF, Host
from merq.service.logs import Log
from merq.service.tls_hosts import TLS_HOSTS_FILE, TlsHostsFile
from merq.service.tokens import load_tokens
from merq.store.backup import back_up
from merq.store.checkpoints import checkpoint_name
from merq.store.disk import FileDisk
from merq.store.inspection import inspect
from merq.store.log import segment_name
from merq.store.recovery import Identity

PATIENCE_S = 5
"""Whoever takes longer waits at a pipe."""


@contextmanager
def not_hanging() -> Iterator[None]:
    def ring(_: int, __: FrameType | None) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(folder: Path) -> None:
    """Opens a store, starts it, writes a checkpoint and closes it."""
    disk = FileDisk(folder)
    disk.lock()
    try:
        host = Host(disk, Identity(store_id=UUID(int=7), created=1), "here", Limits())
        try:
            host.start(1_000_000, UUID(int=1))
            writing, _ = host.begin_checkpoint()
            assert writing is not None
            writing.run()
            host.end_checkpoint(writing)
        finally:
            host.close()
    finally:
        disk.unlock()


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "something").write_text("of somebody's")


def make_link(path: Path) -> None:
    target = path.with_name("elsewhere")
    target.write_text("not ours")
    path.symlink_to(target)


def make_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


ODD: dict[str, Callable[[Path], None]] = {
    "folder": make_folder,
    "symbolic link": make_link,
    "dangling link": make_dangling_link,
    "named pipe": os.mkfifo,
    "socket": make_socket,
}
NAMES = ("lock", "identity", BALLAST, RELIEF, segment_name(1), checkpoint_name(1))


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Kind and content of all there is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, content)
    return found


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", NAMES)
def test_what_has_the_name_of_a_file_of_the_store_is_named_and_left_alone(
    tmp_path: Path, name: str, kind: str
) -> None:
    folder = tmp_path / "store"
    run(folder)
    (folder / name).unlink()
    ODD[kind](folder / name)
    before = everything(folder)
    with not_hanging(), pytest.raises(StoreError, match="move it away") as wrong:
        run(folder)
    assert name in str(wrong.value)
    assert kind.rpartition(" ")[2] in str(wrong.value)
    after = everything(folder)
    for each in ("lock",) if name != "lock" else ():
        before.pop(each, None)  # it has the number of the process
        after.pop(each, None)
    if name in {BALLAST, RELIEF}:
        assert before.items() <= after.items()
    else:
        assert after == before


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", ["identity", segment_name(1), checkpoint_name(1)])
def test_a_check_and_a_backup_say_so_too(tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "store"
    run(folder)
    (folder / name).unlink()
    ODD[kind](folder / name)
    before = everything(folder)
    for attempt in (lambda: inspect(folder), lambda: back_up(folder, tmp_path / "copy")):
        with not_hanging(), pytest.raises(StoreError, match="move it away") as wrong:
            attempt()
        assert name in str(wrong.value)
    assert everything(folder) == before
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("kind", ["folder", "named pipe", "socket"])
def test_what_has_the_name_of_the_token_file_is_no_token_file(tmp_path: Path, kind: str) -> None:
    ODD[kind](tmp_path / "tokens.toml")
    with not_hanging(), pytest.raises(TokenError, match=r"tokens\.toml"):
        load_tokens(tmp_path)


@pytest.mark.parametrize("kind", ["folder", "symbolic link", "named pipe", "socket"])
def test_what_has_the_name_of_the_file_of_tls_hosts_does_not_keep_the_service_from_starting(
    tmp_path: Path, kind: str
) -> None:
    ODD[kind](tmp_path / TLS_HOSTS_FILE)

    async def load() -> tuple[str, ...]:
        return TlsHostsFile(tmp_path, Log()).load()

    with not_hanging():
        assert asyncio.run(load()) == ()
    assert not (tmp_path / TLS_HOSTS_FILE).exists()


@pytest.mark.parametrize("folder", ["log", "checkpoints", "aside"])
def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path, folder: str) -> None:
    run(tmp_path / "store")
    path = tmp_path / "store" / folder
    if path.exists():
        path.rename(tmp_path / "moved")
    path.write_text("not ours")
    with not_hanging(), pytest.raises(StoreError, match=folder):
        run(tmp_path / "store")
    assert path.read_text() == "not ours"
