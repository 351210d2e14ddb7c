"""The files of a lake: on this machine, on a shared file system, or in an object store.

What is written here is on the disk when the method returns, if the file system is this machine's:
messages leave their queue once a batch is committed, and must not be lost by a power failure then.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from pyarrow import fs

from merq.errors import MerqError

_SAFE: Final = re.compile(r"[^\w.-]", re.ASCII)
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile(r"^([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_SAME: Final = {"s3a": "s3", "s3n": "s3"}
"""What Spark calls otherwise than Arrow does."""


class LakeError(MerqError):
    """A lake that is not what it should be; the text says what was found and what to do."""


def escaped(text: str) -> str:
    """A value as part of a path, as Hive writes it: everything odd by its code in hex."""
    return _SAFE.sub(lambda found: _code(found[0]), text)


def _code(character: str) -> str:
    # Spark reads %XX as one character, so what has no such code stays as it is.
    return f"%{ord(character):02X}" if ord(character) < 0x80 else character


def unescaped(text: str) -> str:
    """The value that a part of a path stands for."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


class Folder:
    """A lake's folder; names within it are relative, with `/`.

    Attributes:
        url: As Spark takes it, with its scheme: what has none may be another file system there.
        is_local: It is on a file system of this machine.

    Raises:
        LakeError: It is on a file system that is not known, or cannot be reached.
    """

    def __init__(self, url: str) -> None:
        scheme = _SCHEME.match(url)
        if scheme is None:
            self._files: Any = fs.LocalFileSystem()
            self._root = os.path.abspath(url)  # noqa: PTH100 - links in it stay
            self.url = f"file://{self._root}"
        else:
            name = scheme[1].lower()
            known = f"{_SAME.get(name, name)}://{url[scheme.end() :]}"
            try:
                self._files, self._root = fs.FileSystem.from_uri(known)
            except (OSError, ValueError) as wrong:
                # Behind the first line come all places where something was looked for.
                reason = str(wrong).partition("\n")[0]
                raise LakeError(
                    f"the file system of {url} cannot be reached from here: {reason}"
                ) from wrong
            self.url = url.rstrip("/")
        self.is_local = isinstance(self._files, fs.LocalFileSystem)

    @property
    def files(self) -> Any:
        """The file system, as Arrow has it."""
        return self._files

    def path(self, name: str = "") -> str:
        """A name as the file system takes it."""
        return f"{self._root}/{name}" if name else self._root

    def spark_path(self, name: str) -> str:
        """A name as Spark takes it."""
        return f"{self.url}/{name}"

    # Looking.

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        info = self._files.get_file_info(self.path(name))
        return bool(info.type != fs.FileType.NotFound)

    def files_in(self, name: str = "") -> dict[str, int]:
        """All files below a folder, in order, and their sizes in bytes; none if it is not there."""
        selector = fs.FileSelector(self.path(name), recursive=True, allow_not_found=True)
        start = len(self._root) + 1
        found = {
            info.path[start:]: int(info.size)
            for info in self._files.get_file_info(selector)
            if info.is_file
        }
        return dict(sorted(found.items()))

    def folders_in(self, name: str = "") -> list[str]:
        """The folders directly in a folder, by their own names."""
        selector = fs.FileSelector(self.path(name), allow_not_found=True)
        infos = self._files.get_file_info(selector)
        return sorted(each.base_name for each in infos if each.type == fs.FileType.Directory)

    def read_text(self, name: str) -> str:
        """What a file says."""
        with self._files.open_input_stream(self.path(name)) as stream:
            return str(stream.read(), "utf-8")

    def read_json(self, name: str) -> Any:
        """What a file says; None if it is not there.

        Raises:
            LakeError: It is no JSON.
        """
        try:
            text = self.read_text(name)
        except FileNotFoundError:
            return None
        try:
            return json.loads(text)
        except ValueError as wrong:
            raise LakeError(
                f"{self.url}/{name} is no JSON ({wrong}): somebody else has changed it; put it "
                "back, or begin with another folder"
            ) from wrong

    # Changing.

    def write_json(self, name: str, value: Any) -> None:
        """Writes a file whole: others see the old one or the new one."""
        data = (json.dumps(value, indent=1) + "\n").encode()
        self.make_folder(name.rpartition("/")[0])
        if not self.is_local:
            # An object comes into being when it is complete.
            with self._files.open_output_stream(self.path(name)) as stream:
                stream.write(data)
            return
        passing = self.path(f"{name}.tmp")
        _write_through(passing, data)
        self._files.move(passing, self.path(name))
        self._sync_folder(self.path(name.rpartition("/")[0]))

    def create_json(self, name: str, value: Any, passing: str) -> bool:
        """Writes a file whole unless there is one; of two who try at once one does it.

        On object stores nobody can promise that: there the last one does it.

        Args:
            name: The file.
            value: What it says.
            passing: A file that nobody else has, which may be left after a failure.

        Returns:
            Whether it was this one.
        """
        if not self.is_local:
            if self.exists(name):
                return False
            self.write_json(name, value)
            return True
        for each in (name, passing):
            self.make_folder(each.rpartition("/")[0])
        _write_through(self.path(passing), (json.dumps(value, indent=1) + "\n").encode())
        try:
            # A second name for it: that fails if the name is taken, where renaming would replace.
            os.link(self.path(passing), self.path(name))
        except FileExistsError:
            return False
        self._sync_folder(self.path(name.rpartition("/")[0]))
        return True

    def make_folder(self, name: str) -> None:
        """A folder that is there already stays."""
        self._files.create_dir(self.path(name), recursive=True)

    def move(self, name: str, to: str) -> None:
        """Gives a file another name; what has that name is replaced."""
        self._files.move(self.path(name), self.path(to))

    def remove(self, name: str) -> None:
        """A file goes; one that is not there is no failure."""
        if self.exists(name):
            self._files.delete_file(self.path(name))

    def remove_folder(self, name: str) -> None:
        """A folder goes with everything in it; one that is not there is no failure."""
        with suppress(FileNotFoundError):
            self._files.delete_dir(self.path(name))

    def sync(self, names: Iterable[str]) -> None:
        """Files that others have written, and their names, are on the disk when this returns."""
        if not self.is_local:
            return
        folders = set()
        for name in names:
            path = self.path(name)
            _sync(path)
            folders.add(path.rpartition("/")[0])
        for each in sorted(folders):
            self._sync_folder(each)

    def _sync_folder(self, path: str) -> None:
        # A name is durable once its folder is, and that folder's name likewise.
        while len(path) >= len(self._root):
            _sync(path)
            path = path.rpartition("/")[0]


def _write_through(path: str, data: bytes) -> None:
    """Writes a file; it is on the disk when this returns."""
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
