"""The Java that Spark runs on: which one this machine has, and what to do if it has none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from merq.errors import MerqError

JAVA_VERSION_MIN: Final = 17
"""Spark 4 asks for this one or a newer."""

PATIENCE_S: Final = 30.0
"""So long `java -version` may take."""

DEBIAN_PACKAGE: Final = "openjdk-17-jre-headless"
"""What Debian and Ubuntu call a Java that serves."""

_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


class NoJava(MerqError):
    """There is no Java that Spark can run on; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that serves.

    Attributes:
        program: Its program.
        version: Its number, 17 or more.
    """

    program: Path
    version: int


def version_in(text: str) -> int | None:
    """The number in what `java -version` says; `1.8` is 8."""
    found = _VERSION.search(text)
    return int(found[1]) if found is not None else None


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java that Spark would take: that of JAVA_HOME, or else the first on the PATH.

    Raises:
        NoJava: There is none, or it is too old; the text says which was found and what to do.
    """
    known = os.environ if environment is None else environment
    home = known.get("JAVA_HOME", "")
    if home:
        program = Path(home) / "bin" / "java"
        if not program.is_file():
            raise NoJava(
                f"JAVA_HOME is {home}, and {program} is not there. Set JAVA_HOME to the folder of "
                f"a Java {JAVA_VERSION_MIN} or newer, or unset it"
            )
        return _checked(program, f"the Java of JAVA_HOME, {home},")
    on_path = shutil.which("java", path=known.get("PATH", ""))
    if on_path is None:
        raise NoJava(f"there is no java on the PATH, and JAVA_HOME is not set. {advice()}")
    return _checked(Path(on_path), f"the Java on the PATH, {on_path},")


def _checked(program: Path, what: str) -> Java:
    try:
        done = subprocess.run(  # noqa: S603 - what the user has installed
            [str(program), "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as wrong:
        raise NoJava(f"{what} does not start: {wrong}. {advice()}") from wrong
    said = done.stderr + done.stdout
    version = version_in(said)
    if done.returncode or version is None:
        first = said.strip().partition("\n")[0]
        raise NoJava(f"{what} does not say its version, but {first!r}. {advice()}")
    if version < JAVA_VERSION_MIN:
        raise NoJava(f"{what} is version {version}. {advice()}")
    return Java(program, version)


def advice() -> str:
    """What to do."""
    return (
        f"Spark needs Java {JAVA_VERSION_MIN} or newer. On Debian and Ubuntu: "
        f"`sudo apt-get install {DEBIAN_PACKAGE}`, which `make run` and `make test` do themselves "
        "where they may; elsewhere install a JRE (Temurin, Corretto and others have them) and set "
        "JAVA_HOME to its folder. Everything of Merq but the pipelines works without"
    )
