"""Sees to it that there is a Java for Spark: `make run` and `make test` call this.

The machine's own is taken if it is new enough. Otherwise one is installed from Debian packages if
that can be: `apt-get` is there, and this runs as root. Otherwise it says what to do, and fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

from merq.spark.java import DEBIAN_PACKAGE, NoJava, find_java

INSTALL_S: Final = 900.0
"""No installation takes longer."""

_COMMANDS: Final = (
    ("apt-get", "update", "--quiet=2"),
    ("apt-get", "install", "--quiet=2", "--yes", "--no-install-recommends", DEBIAN_PACKAGE),
)


def main() -> int:
    """Finds or installs a Java; gives the exit status."""
    try:
        find_java()
    except NoJava as wrong:
        return install(wrong)
    return 0


def install(why: NoJava) -> int:
    """Installs a Java if that is possible here; gives the exit status."""
    obstacle = _obstacle()
    if obstacle:
        print(f"No Java for Spark: {why}. It cannot be installed here: {obstacle}", file=sys.stderr)
        return 1
    print(f"No Java for Spark yet, so {DEBIAN_PACKAGE} is installed.", file=sys.stderr)
    for command in _COMMANDS:
        try:
            done = subprocess.run(
                command,
                env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=False,
                timeout=INSTALL_S,
            )
        except subprocess.TimeoutExpired:
            print(f"`{' '.join(command)}` took more than {INSTALL_S:g} s", file=sys.stderr)
            return 1
        if done.returncode:
            print(
                f"`{' '.join(command)}` failed with status {done.returncode}. {why}",
                file=sys.stderr,
            )
            return 1
    try:
        found = find_java()
    except NoJava as wrong:
        print(f"{DEBIAN_PACKAGE} was installed, and yet: {wrong}", file=sys.stderr)
        return 1
    print(f"Java {found.version} is installed: {found.program}", file=sys.stderr)
    return 0


def _obstacle() -> str:
    """Why nothing can be installed here; empty if it can."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    # geteuid is not on every system, and where it is not there is no apt-get either.
    if os.geteuid() != 0:
        return f"only root may; try `sudo apt-get install {DEBIAN_PACKAGE}`"
    if os.environ.get("JAVA_HOME"):
        return "JAVA_HOME names another Java, which would still be taken; unset it"
    return ""


if __name__ == "__main__":
    sys.exit(main())
