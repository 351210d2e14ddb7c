"""Fetches the brokers as Debian's packages and unpacks them into `.build/brokers`.

Nothing is installed: no root is needed, no service is started; removing the folder removes all.
The package lists are fetched into that folder too, because a fresh system has none. apt checks the
signatures as it always does.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from bench.builds import ROOT

PLACE = ROOT / ".build" / "brokers"
NEWER_SUITE = "trixie"
"""Bookworm's nats-server, 2.9, cannot be told to sync; this one's can, and runs on both."""

FETCHING_S_MAX = 300


class Unavailable(Exception):
    """A broker cannot be had here; says why."""


@dataclass(frozen=True, slots=True)
class Packages:
    """What to fetch and unpack together; libraries that every system has are not named."""

    name: str
    parts: tuple[str, ...]
    suite: str | None = None


ERLANG = (
    "asn1 base crypto eldap inets mnesia os-mon parsetools public-key runtime-tools ssl "
    "syntax-tools tools xmerl"
)
RABBITMQ = Packages("rabbitmq", ("rabbitmq-server", *(f"erlang-{part}" for part in ERLANG.split())))
REDIS = Packages("redis", ("redis-server", "redis-tools", "libjemalloc2", "liblzf1", "libatomic1"))
NATS = Packages("nats", ("nats-server",))
NATS_NEWER = Packages("nats-newer", ("nats-server",), NEWER_SUITE)


def unpacked(packages: Packages) -> Path:
    """The folder in which the packages lie as they would under the root; fetched the first time."""
    place = PLACE / packages.name
    done = place / ".ready"
    if done.is_file():
        return place
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise Unavailable(f"{packages.name} comes as Debian's packages; {program} is missing")
    print(f"fetching {packages.name} as Debian packages into {place.relative_to(ROOT)}")
    shutil.rmtree(place, ignore_errors=True)
    fetched = place / "packages"
    fetched.mkdir(parents=True)
    apt = _apt(packages.suite)
    _run([*apt, "download", *packages.parts], fetched)
    for each in sorted(fetched.iterdir()):
        _run(["dpkg-deb", "--extract", str(each), str(place)], place)
    done.touch()
    return place


def versions() -> dict[str, str]:
    """The version of each broker's package, by its name; the newer one if there are two."""
    found = {}
    for packages in (RABBITMQ, NATS, NATS_NEWER, REDIS):
        name = packages.parts[0]
        for path in (PLACE / packages.name / "packages").glob(f"{name}_*"):
            _, version, _ = path.name.split("_")
            found[name] = unquote(version).rpartition(":")[2]
    return found


def _apt(suite: str | None) -> list[str]:
    """apt-get with lists of its own, of this system's suite or of the one that is named."""
    place = PLACE / "apt" / (suite or "own")
    (place / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (place / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    apt = [
        "apt-get",
        "--quiet",
        f"--option=Dir::State::lists={place / 'lists'}",
        f"--option=Dir::Cache={place / 'cache'}",
        # As root, apt would fetch as a user who may not write into this folder.
        "--option=APT::Sandbox::User=",
    ]
    if suite is not None:
        sources = place / "sources.list"
        sources.write_text(f"deb {_mirror()} {suite} main\n", encoding="utf-8")
        apt += [f"--option=Dir::Etc::sourcelist={sources}", "--option=Dir::Etc::sourceparts=-"]
    _run([*apt, "update"], place)
    return apt


def _mirror() -> str:
    """Where this system's own packages come from."""
    said = _run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"], PLACE)
    for line in sorted(set(said.splitlines())):
        codename, _, mirror = line.partition(" ")
        if codename.isalpha() and mirror:
            return mirror
    raise Unavailable("apt-get indextargets names no mirror of this system's own suite")


def _run(command: Sequence[str], folder: Path) -> str:
    """What the command printed.

    Raises:
        Unavailable: It failed, with what it said last.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=FETCHING_S_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{command[0]} took longer than {error.timeout:.0f} s") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise Unavailable(f"{command[0]} ended with {done.returncode}: {' '.join(said)}")
    return done.stdout
