"""The settings of the service: from a TOML file, MERQ_* variables and flags, the later wins.

`load_settings` reads them and lists everything that is wrong in one error. `describe` gives every
key as data: the reference page and `merq serve --help-settings` are made of it. `as_toml` writes
settings so that they can be read again. Not in here: the settings themselves (`sections`).
"""

# ruff: noqa: RUF009 - `setting` declares a field, as `field` does

from __future__ import annotations

import dataclasses
import os
import reprlib
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from merq.errors import SettingsError
from merq.service.exchanging import ExchangeSection
from merq.service.kinds import Address, Computer, File, Kind, Seconds, Switch, WrongValue
from merq.service.sections import (
    BulkSettings,
    EngineSettings,
    LimitSettings,
    ListenSettings,
    LogSettings,
    RetrySettings,
    SocketSettings,
    StoreSettings,
    TlsSettings,
    check,
    setting,
    settings_of,
)
from merq.service.sources import Given, from_environment, from_file, from_flags, variable_of

__all__ = [
    "BulkSettings",
    "Described",
    "EngineSettings",
    "ExchangeSection",
    "LimitSettings",
    "ListenSettings",
    "LogSettings",
    "RetrySettings",
    "ServiceSettings",
    "SocketSettings",
    "StoreSettings",
    "TlsSettings",
    "as_toml",
    "describe",
    "load_settings",
]

SOCKET_PATH_BYTES_MAX: Final = 107
"""Systems know the path of a Unix socket by at most so many bytes (macOS: 103)."""

SECTIONS: Final[Mapping[str, type[Any]]] = {
    "socket": SocketSettings,
    "tcp": ListenSettings,
    "tls": TlsSettings,
    "exchange": ExchangeSection,
    "limits": LimitSettings,
    "engine": EngineSettings,
    "bulk": BulkSettings,
    "store": StoreSettings,
    "log": LogSettings,
    "retry": RetrySettings,
}
"""The tables of the file, in the order of the reference page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Everything that the service can be told. Made by `load_settings`, or by hand in tests.

    Attributes:
        warnings: What is odd about where they came from, for the log.
    """

    data: Path = setting(Path("data"), File(), "The folder that holds the messages.")
    name: str | None = setting(
        None,
        Computer(),
        "The computer name that other names call this queue manager by.",
        otherwise="the host's name",
    )
    address: str = setting(
        "127.0.0.1",
        Address(),
        "The address of this queue manager, on which its protocols listen.",
    )
    insecure_tcp: bool = setting(
        default=False,
        kind=Switch(),
        meaning="Serves TCP without TLS, on a loopback address only. Tokens are still asked for.",
    )
    stop_s: float = setting(
        5.0, Seconds(0.1, 600), "How long a stop may take until connections are cut off."
    )
    socket: SocketSettings = field(default_factory=SocketSettings)
    tcp: ListenSettings = field(default_factory=ListenSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    exchange: ExchangeSection = field(default_factory=ExchangeSection)
    limits: LimitSettings = field(default_factory=LimitSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    bulk: BulkSettings = field(default_factory=BulkSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    log: LogSettings = field(default_factory=LogSettings)
    retry: RetrySettings = field(default_factory=RetrySettings)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check(self, "")
        if found := tuple(_contradictions(self)):
            raise _Contradicting(found)

    @property
    def computer_name(self) -> str:
        """The queue manager's name: the host's, if none was given."""
        return self.name or socket.gethostname().partition(".")[0] or "localhost"

    @property
    def socket_path(self) -> Path:
        """Where the Unix socket is."""
        return self.socket.path or self.data / "merq.sock"

    @property
    def tcp_host(self) -> str:
        """The address that TCP listens on, if there is a port."""
        return self.tcp.host or self.address


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One key, for people: everything is text as it would be written.

    Attributes:
        key: As the file has it, with its table: `limits.frame_bytes_max`.
        variable: The name of the variable that sets it.
        flag: The flag of `merq serve`, where there is one, follows this name.
        type_name: What kind of value it takes.
        extent: From where to where it may go; empty if there is no such range.
        default: What it is otherwise.
        is_value: Whether the default is written like this, and not a sentence about it.
        meaning: A sentence.
    """

    key: str
    variable: str
    flag: str
    type_name: str
    extent: str
    default: str
    is_value: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class _Contradiction:
    """Settings that do not go together, each in its range."""

    keys: tuple[str, ...]
    sentence: str


class _Contradicting(SettingsError):
    """Settings that do not go together, and which they are."""

    def __init__(self, contradictions: tuple[_Contradiction, ...]) -> None:
        super().__init__(tuple(each.sentence for each in contradictions))
        self.contradictions = contradictions

    def __reduce__(self) -> tuple[type[SettingsError], tuple[tuple[str, ...]]]:
        return SettingsError, (self.faults,)


def load_settings(
    config: Path | None, flags: Mapping[str, object], environment: Mapping[str, str]
) -> ServiceSettings:
    """Reads the settings: of file, variables and flags the later wins.

    Args:
        config: The TOML file, or None for the one that MERQ_CONFIG names, if any.
        flags: By the key's name, `tcp.port` or `tcp_port`; None was not given.
        environment: Variables; those that are empty, or do not start with MERQ_, do not count.

    Raises:
        SettingsError: Something is wrong; it lists all of it.
    """
    faults: list[str] = []
    warnings: list[str] = []
    kinds = {key: kind for key, kind, _ in _keys()}
    given = from_file(config, environment, tuple(kinds), faults)
    given |= from_environment(environment, tuple(kinds), warnings)
    given |= from_flags(flags, tuple(kinds), faults)

    values: dict[str, object] = {}
    wrong: set[str] = set()
    for key, each in given.items():
        try:
            values[key] = kinds[key].read(each.value)
        except WrongValue:
            found = reprlib.repr(each.value)
            faults.append(f"{each.where} is {found}; {kinds[key].form} belongs there")
            wrong.add(key)
    try:
        settings = _built(values)
    except _Contradicting as contradicting:
        # Not those with a value that is wrong by itself: it took no part.
        faults += [
            _with_places(each, given)
            for each in contradicting.contradictions
            if wrong.isdisjoint(each.keys)
        ]
        raise SettingsError(tuple(faults)) from None
    if faults:
        raise SettingsError(tuple(faults))
    return dataclasses.replace(settings, warnings=(*warnings, *_oddities(settings)))


def _built(values: Mapping[str, object]) -> ServiceSettings:
    arguments: dict[str, Any] = {key: each for key, each in values.items() if "." not in key}
    for name, section in SECTIONS.items():
        own = {key: f"{name}.{key}" for key, _, _ in settings_of(section)}
        arguments[name] = section(
            **{key: values[full] for key, full in own.items() if full in values}
        )
    return ServiceSettings(**arguments)


def _with_places(contradiction: _Contradiction, given: Mapping[str, Given]) -> str:
    places = [given[key].where for key in contradiction.keys if key in given]
    return f"{contradiction.sentence} ({', '.join(places)})" if places else contradiction.sentence


def _contradictions(settings: ServiceSettings) -> Iterator[_Contradiction]:
    """What each may be alone, but not together."""
    tls, limits = settings.tls, settings.limits
    if (tls.cert is None) != (tls.key is None):
        there, missing = ("tls.key", "tls.cert") if tls.cert is None else ("tls.cert", "tls.key")
        yield _Contradiction(
            (there, missing), f"{there} is given without {missing}; TLS takes both or none"
        )
    elif tls.client_ca is not None and tls.cert is None:
        yield _Contradiction(
            ("tls.client_ca", "tls.cert", "tls.key"),
            "tls.client_ca is given without tls.cert and tls.key, which TLS cannot do without",
        )
    yield from _tcp_contradictions(settings)
    for keys, sentence in settings.exchange.contradictions():
        yield _Contradiction(keys, sentence)
    if limits.keepalive_s >= limits.idle_s:
        yield _Contradiction(
            ("limits.keepalive_s", "limits.idle_s"),
            f"limits.keepalive_s is {limits.keepalive_s:g} s; less than limits.idle_s, "
            f"{limits.idle_s:g} s, belongs there, or silent connections die before they are asked",
        )
    if settings.store.reserve_bytes > settings.store.segment_bytes:
        yield _Contradiction(
            ("store.reserve_bytes", "store.segment_bytes"),
            "store.reserve_bytes is larger than store.segment_bytes; at most that belongs there",
        )
    size = len(os.fsencode(settings.socket_path))
    if size > SOCKET_PATH_BYTES_MAX:
        yield _Contradiction(
            ("socket.path", "data"),
            f"the path of the Unix socket, {reprlib.repr(str(settings.socket_path))}, has {size} "
            f"bytes; at most {SOCKET_PATH_BYTES_MAX} are possible. Set socket.path to a shorter",
        )


def _tcp_contradictions(settings: ServiceSettings) -> Iterator[_Contradiction]:
    """TCP is served with TLS, or on purpose without it and then to this machine alone."""
    has_tls = settings.tls.cert is not None or settings.tls.key is not None
    if settings.insecure_tcp and has_tls:
        yield _Contradiction(
            ("insecure_tcp", "tls.cert", "tls.key"),
            "insecure_tcp is true and TLS is set up; remove one of them",
        )
    elif settings.insecure_tcp and not ip_address(settings.tcp_host).is_loopback:
        yield _Contradiction(
            ("insecure_tcp", "tcp.host", "address"),
            f"insecure_tcp is true and TCP would listen on {settings.tcp_host}; without TLS only "
            "a loopback address such as 127.0.0.1 belongs there. Set up tls.cert and tls.key",
        )
    elif settings.tcp.port is not None and not has_tls and not settings.insecure_tcp:
        yield _Contradiction(
            ("tcp.port", "tls.cert", "tls.key", "insecure_tcp"),
            "tcp.port is given without TLS; set tls.cert and tls.key, or, on a loopback address "
            "only, insecure_tcp = true",
        )


def _oddities(settings: ServiceSettings) -> Iterator[str]:
    """What is allowed, but surely not what somebody meant."""
    if settings.tcp.port is None and (settings.tls.cert is not None or settings.insecure_tcp):
        yield "TLS or insecure_tcp is set, but no tcp.port: nothing listens on TCP"
    if settings.insecure_tcp and settings.tcp.port is not None:
        yield "insecure_tcp is true: tokens and messages on TCP can be read on their way"
    if settings.socket.mode & 0o007:
        yield (
            f"socket.mode is {settings.socket.mode:04o}: every user of this machine may do "
            "everything"
        )


def _keys() -> Iterator[tuple[str, Kind, dataclasses.Field[Any]]]:
    yield from settings_of(ServiceSettings)
    for name, section in SECTIONS.items():
        for key, kind, declared in settings_of(section):
            yield f"{name}.{key}", kind, declared


def describe() -> tuple[Described, ...]:
    """Every key, in the order of the reference page."""
    return tuple(
        Described(
            key=key,
            variable=variable_of(key),
            flag="--" + key.replace(".", "-").replace("_", "-"),
            type_name=kind.type_name,
            extent=kind.extent,
            default=declared.metadata["otherwise"] or kind.show(declared.default),
            is_value=declared.default is not None,
            meaning=declared.metadata["meaning"],
        )
        for key, kind, declared in _keys()
    )


def as_toml(settings: ServiceSettings) -> str:
    """Settings as a file that says the same; what is not set stands there as a comment."""
    lines = [_line(settings, *each) for each in settings_of(ServiceSettings)]
    for name, section in SECTIONS.items():
        lines += ["", f"[{name}]"]
        lines += [_line(getattr(settings, name), *each) for each in settings_of(section)]
    return "\n".join(lines) + "\n"


def _line(section: object, key: str, kind: Kind, declared: dataclasses.Field[Any]) -> str:
    value = getattr(section, key)
    if value is None:
        return f"# {key}: {declared.metadata['otherwise']}"
    return f"{key} = {kind.show(value)}"
