"""A home for Spark on this machine, from which its Python processes start in a third of the time.

Spark puts `python/lib/pyspark.zip` of its home before everything else that they import. There is no
bytecode in there, so each of them compiles PySpark anew, for more than a second. Where PySpark is
installed as a package that is needless: the home made here has the package's programs and jars, as
links, and no such file.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zlib import crc32

HOME: Final = "SPARK_HOME"
PYTHON: Final = "PYSPARK_PYTHON"
LINKED: Final = ("bin", "conf", "jars", "sbin")
"""What Spark uses of its home, where it is there."""

_ZIP: Final = Path("python", "lib", "pyspark.zip")


def use_quick_home() -> None:
    """Names such a home to the Spark that is started next.

    Not if somebody has named a home, or another Python than this one, which may have no PySpark.
    """
    if HOME in os.environ or os.environ.get(PYTHON, sys.executable) != sys.executable:
        return
    spec = find_spec("pyspark")
    package = Path(spec.origin).parent if spec is not None and spec.origin else None
    if package is None or not (package / _ZIP).is_file() or os.name == "nt":
        return
    try:
        os.environ[HOME] = str(linked_home(package, _cache()))
    except (OSError, RuntimeError):
        return  # there is no room, no leave or no home of the user's; Spark's own serves as well


def linked_home(package: Path, cache: Path) -> Path:
    """A folder with links to what Spark uses of its package, made if it is not there.

    Raises:
        OSError: It cannot be made.
    """
    found = cache / f"spark-{crc32(os.fsencode(package)):08x}"
    found.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in LINKED:
        target, link = package / name, found / name
        if not target.exists():
            link.unlink(missing_ok=True)
        elif not link.is_symlink() or link.readlink() != target:
            # Another process may do the same at this moment: either of the two links serves.
            new = found / f"{name}.{os.getpid()}"
            new.unlink(missing_ok=True)
            new.symlink_to(target)
            new.replace(link)
    return found


def _cache() -> Path:
    known = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(known) if known else Path.home() / ".cache") / "merq"
