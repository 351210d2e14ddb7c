"""Structured logs on the standard library's `logging`: an event, and fields with names.

    log = Log("merq.service")
    log.info("connection refused", peer="10.0.0.7:50512", reason="no such token")

`open_log` decides where they go and in which form. What others sent cannot forge a line, a flood of
the same event is counted instead of told, and tokens, keys and bodies do not get in. Not in here:
what is worth telling.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO
from uuid import UUID

from merq.errors import SettingsError

if TYPE_CHECKING:
    # It stands on the engine, which commands that only log or look at tokens need not load.
    from merq.service.sections import LogSettings

Field = str | int | float | bool | bytes | UUID | Path | datetime | BaseException | None
"""What a field may be. Of bytes only their number is told."""

VALUE_CHARACTERS_MAX: Final = 1024
"""Longer values are cut."""

TRACE_CHARACTERS_MAX: Final = 16384
"""Longer traces are cut."""

SECRET_FORM_MAX: Final = 512
"""So far behind the cut a value is searched for secrets, so that none is told in part."""

EVENTS_MAX: Final = 1024
"""Events that are counted apart; more than that within a second are counted together."""

WINDOW_S: Final = 1.0
"""Repetitions are counted within this time."""

COMPLAINT_S: Final = 60.0
"""A log that cannot be written is complained about so often, on standard error."""

HIDDEN: Final = "[hidden]"
SECRET_NAMES: Final = frozenset(
    {"authorization", "body", "key", "passphrase", "password", "private_key", "secret", "token"}
)
"""Fields that would tell what must not be told; their values are replaced."""

ROOTS: Final = ("merq", "asyncio")
"""The loggers whose records are told."""

_RESERVED = frozenset({"time", "level", "event", "logger", "trace"})
_SECRETS = re.compile(
    r"merq_[A-Za-z0-9_-]{32,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_BARE = re.compile(r"[\w.:/+@%,\[\]-]+")
_FIELDS = "merq_fields"


class Log:
    """What the service's modules tell their events to."""

    __slots__ = ("_logger",)

    def __init__(self, name: str = "merq.service") -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, **fields: Field) -> None:
        """Something that only its developers want to know."""
        self._tell(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Field) -> None:
        """Something happened as it should."""
        self._tell(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Field) -> None:
        """Somebody should look at it, some time."""
        self._tell(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Field) -> None:
        """Something does not work."""
        self._tell(logging.ERROR, event, fields)

    def failure(self, event: str, error: BaseException, **fields: Field) -> None:
        """Something failed that should never do so; the trace is told with it."""
        self._tell(logging.ERROR, event, {**fields, "error": error}, error)

    def _tell(
        self, level: int, event: str, fields: dict[str, Field], error: BaseException | None = None
    ) -> None:
        if self._logger.isEnabledFor(level):
            # The event is an argument: logging would look for % in it otherwise.
            self._logger.log(level, "%s", event, extra={_FIELDS: fields}, exc_info=error)


class OpenLog:
    """The log while it is open. Close it, or use it in a `with` block."""

    def __init__(self, throttle: Throttle, level: int) -> None:
        self._throttle = throttle
        self._before = [
            (logger, logger.level, logger.propagate) for logger in map(logging.getLogger, ROOTS)
        ]
        for logger, _, _ in self._before:
            logger.addHandler(throttle)
            logger.setLevel(level)
            logger.propagate = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def tell_counts(self) -> None:
        """Tells how often events were repeated, if that is due: to be called now and then."""
        self._throttle.tell_counts()

    def close(self) -> None:
        """Tells what is still to be told, and gives the file back."""
        for logger, level, propagate in self._before:
            logger.removeHandler(self._throttle)
            logger.setLevel(level)
            logger.propagate = propagate
        self._throttle.close()


def open_log(
    settings: LogSettings,
    *,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> OpenLog:
    """Opens the log where the settings say.

    Args:
        settings: What is told, how and where.
        stream: Where to instead of standard error, if no file is set.
        clock: Seconds that never go back, for counting repetitions.

    Raises:
        SettingsError: The file cannot be written to.
    """
    target: logging.Handler
    if settings.file is None:
        target = _Stream(stream or sys.stderr)
    else:
        try:
            target = _File(settings.file)
        except OSError as wrong:
            raise SettingsError(
                (f"log.file is {settings.file}, which cannot be opened: {wrong.strerror}",)
            ) from wrong
    target.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    return OpenLog(Throttle(target, settings.repeats_max, clock), level)


class JsonLines(logging.Formatter):
    """One JSON object a line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "event": _event_of(record),
            "logger": record.name,
        }
        line |= _fields_of(record)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """A line for people: time, level, event, and fields as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        parts = [_time_of(record), f"{record.levelname.lower():7}", _printable(_event_of(record))]
        parts += [f"{name}={_text_value(value)}" for name, value in _fields_of(record).items()]
        return " ".join(parts)


class Throttle(logging.Handler):
    """Passes events on, the first few a second of each; counts the others, and tells the count."""

    def __init__(
        self, target: logging.Handler, repeats_max: int, clock: Callable[[], float]
    ) -> None:
        super().__init__()
        self._target = target
        self._repeats_max = repeats_max
        self._clock = clock
        self._seen: dict[tuple[str, str], _Repeated] = {}
        self._began = clock()

    def emit(self, record: logging.LogRecord) -> None:
        """Passes a record on, or counts it."""
        now = self._clock()
        self._tell_if_due(now)
        key = (record.name, _template_of(record))
        if key not in self._seen and len(self._seen) >= EVENTS_MAX:
            key = ("merq", "events of many kinds")
        repeated = self._seen.setdefault(key, _Repeated())
        repeated.count += 1
        if repeated.count <= self._repeats_max:
            self._target.handle(record)
        else:
            repeated.level = max(repeated.level, record.levelno)

    def tell_counts(self) -> None:
        """Tells the counts of a second that is over."""
        self.acquire()
        try:
            self._tell_if_due(self._clock())
        finally:
            self.release()

    def close(self) -> None:
        """Tells what was counted so far, and closes the target too."""
        self.acquire()
        try:
            self._tell_all()
            self._target.close()
        finally:
            self.release()
        super().close()

    def _tell_if_due(self, now: float) -> None:
        if now - self._began >= WINDOW_S:
            self._tell_all()
            self._began = now

    def _tell_all(self) -> None:
        for (name, event), repeated in self._seen.items():
            if repeated.count > self._repeats_max:
                held = repeated.count - self._repeats_max
                extra = {_FIELDS: {"repeated": held}}
                logger = logging.getLogger(name)
                self._target.handle(
                    logger.makeRecord(
                        name, repeated.level, "", 0, "%s", (event,), None, extra=extra
                    )
                )
        self._seen.clear()


class _Repeated:
    """How often an event came within a second, and how bad the worst was that was not told."""

    __slots__ = ("count", "level")

    def __init__(self) -> None:
        self.count = 0
        self.level = logging.DEBUG


class _Complaining(logging.Handler):
    """A log that cannot be written must not stop the service, but somebody has to know."""

    _complained = -math.inf

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        now = time.monotonic()
        if now - self._complained >= COMPLAINT_S:
            self._complained = now
            wrong = sys.exc_info()[1]
            # Standard error may be what cannot be written; then nobody can be told.
            with suppress(OSError, ValueError, AttributeError):
                sys.stderr.write(
                    f"merq: the log cannot be written, {record.levelname.lower()} events are "
                    f"lost: {_printable(str(wrong))}\n"
                )


class _Stream(_Complaining, logging.StreamHandler[TextIO]):
    pass


class _File(_Complaining, logging.handlers.WatchedFileHandler):
    """A file that others may rename to put it away; it is for its owner and group alone."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")

    def _open(self) -> TextIOWrapper:
        def opener(path: str, flags: int) -> int:
            return os.open(path, flags | os.O_CLOEXEC, 0o640)

        return open(
            self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=opener
        )


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _template_of(record: logging.LogRecord) -> str:
    """What repetitions have in common: the event, or what others log before its arguments."""
    return record.getMessage() if hasattr(record, _FIELDS) else str(record.msg)


def _event_of(record: logging.LogRecord) -> str:
    return _cut(record.getMessage(), VALUE_CHARACTERS_MAX)


def _fields_of(record: logging.LogRecord) -> dict[str, str | int | float | bool | None]:
    fields: dict[str, Field] = getattr(record, _FIELDS, {})
    told = {
        (f"{name}_" if name in _RESERVED else name): (
            HIDDEN if name in SECRET_NAMES else _value(value)
        )
        for name, value in fields.items()
    }
    if record.exc_info and record.exc_info[0] is not None:
        trace = logging.Formatter().formatException(record.exc_info)
        told["trace"] = _cut(trace, TRACE_CHARACTERS_MAX)
    return told


def _value(value: object) -> str | int | float | bool | None:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes() | bytearray() | memoryview():
            return f"{len(value)} bytes"
        case datetime():
            return value.isoformat()
        case BaseException():
            return _cut(f"{type(value).__name__}: {value}", VALUE_CHARACTERS_MAX)
        case _:
            return _cut(str(value), VALUE_CHARACTERS_MAX)


def _cut(text: str, most: int) -> str:
    told = _SECRETS.sub(HIDDEN, text[: most + SECRET_FORM_MAX])
    return told if len(told) <= most else f"{told[:most]}… of {len(text)} characters"


def _text_value(value: str | float | None) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _BARE.fullmatch(value) and value.isprintable():
        return value
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_printable(quoted)}"'


def _printable(text: str) -> str:
    """Text in which whatever could move a cursor, break a line or turn it around is escaped."""
    return text if text.isprintable() else "".join(_escaped(text))


def _escaped(text: str) -> Iterator[str]:
    for character in text:
        if character.isprintable():
            yield character
        else:
            yield character.encode("unicode_escape", "backslashreplace").decode("ascii")
