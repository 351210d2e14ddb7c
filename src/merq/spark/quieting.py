"""Spark's Java on this machine, started so that people see what it says but for the usual lines.

Whenever it starts it says half a dozen lines that are of no use to anybody, before a session can be
told to log less; some of them are Java's own, which no setting keeps away. Everything else that it
writes to standard error goes there.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

END_S: Final = 5.0
"""So long what a Java that did not start has said is waited for."""

_STANDARD_ERROR: Final = 2
_PROFILE: Final = b"Using Spark's default log4j profile: "
_ALWAYS: Final = re.compile(
    rb"(?:NOTE: )?Picked up (?:_JAVA_OPTIONS|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS): "
    rb"|WARNING: Using incubator modules: "
    rb'|Setting default log level to "'
    rb"|To adjust logging level use sc\.setLogLevel\("
)
_BY_DEFAULT: Final = re.compile(
    rb"\S+ \S+ WARN NativeCodeLoader: Unable to load native-hadoop library "
)


def useful(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without those that Spark says each time.

    Those of its log are left out only if it logs as it does where nobody has said how.
    """
    is_default = False
    for line in lines:
        if line.startswith(_PROFILE):
            is_default = True
        elif not (_ALWAYS.match(line) or (is_default and _BY_DEFAULT.match(line))):
            yield line


def start_quietly(settings: Mapping[str, str]) -> None:
    """Starts Spark's Java for this process, unless it has one; the next session takes it.

    Args:
        settings: What Spark is told, by its names.

    Raises:
        PySparkRuntimeError: It does not start; why, it has said on standard error.
    """
    # They take long to import.
    from pyspark import SparkConf, SparkContext, java_gateway  # noqa: PLC0415
    from pyspark.sql.utils import is_remote  # noqa: PLC0415

    context: Any = SparkContext
    launching: Any = java_gateway  # it has no types
    if context._gateway is not None or is_remote():  # noqa: SLF001 - nobody else says it
        return
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    reading, writing = os.pipe()
    telling = threading.Thread(target=_tell, args=(reading,), name="spark says", daemon=True)
    telling.start()
    is_started = False
    try:
        # What Java says can be had only from who starts it.
        gateway = launching.launch_gateway(conf, {"stderr": writing})
        is_started = True
    finally:
        os.close(writing)
        if not is_started:
            telling.join(END_S)
    context._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as Spark's own shell does


def _tell(descriptor: int) -> None:
    with open(descriptor, "rb") as said:
        for line in useful(said):
            try:
                os.write(_STANDARD_ERROR, line)
            except OSError:
                # Nobody reads it any more; Java must not be stopped by that.
                continue
