"""The settings of the service, section by section: each with its kind, default and meaning.

The classes here are the declaration from which everything else follows: what the file, variables
and flags may say, the reference page, and what `merq serve` prints about them. An object of one of
them is never out of range. Not in here: how they are read (`settings`).
"""

# ruff: noqa: RUF009 - `setting` declares a field, as `field` does

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from merq.engine.limits import LEASE_S, STAGE_KEEP_S, WHOLE_PERCENT, Limits
from merq.errors import SettingsError
from merq.host import HostSettings
from merq.host.host import BALLAST_BYTES
from merq.host.packets import CACHE_BYTES
from merq.model.queue import UNLIMITED
from merq.service.kinds import (
    GIB,
    KIB,
    MIB,
    PORT_MAX,
    Address,
    Choice,
    Count,
    File,
    Kind,
    Mode,
    Seconds,
    Size,
    Switch,
)
from merq.store.log import RESERVE_STEP, SEGMENT_SIZE
from merq.store.log import LogSettings as SegmentSettings

_Value = TypeVar("_Value")

BYTES_MAX: Final = 1 << 40
"""No size in the settings is larger than this, a tebibyte."""

DAY_S: Final = 86400.0
SEGMENT_BYTES_MAX: Final = GIB
LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")


def setting(default: _Value, kind: Kind, meaning: str, *, otherwise: str = "") -> _Value:
    """A field that is a setting.

    Args:
        default: What it is if nobody says anything.
        kind: What may be written for it.
        meaning: A sentence for people.
        otherwise: What the default None means.
    """
    metadata = {"kind": kind, "meaning": meaning, "otherwise": otherwise}
    return field(default=default, metadata=metadata)


def settings_of(section: type[Any]) -> Iterator[tuple[str, Kind, dataclasses.Field[Any]]]:
    """The settings that a section has, by name and kind, in their order."""
    for each in dataclasses.fields(section):
        if "kind" in each.metadata:
            yield each.name, each.metadata["kind"], each


def check(section: object, prefix: str) -> None:
    """What is made by hand keeps to the same ranges as what comes from a file.

    Raises:
        SettingsError: Something does not.
    """
    faults = tuple(
        f"{prefix}{name} is {reprlib.repr(value)}; {kind.form} belongs there"
        for name, kind, declared in settings_of(type(section))
        if (value := getattr(section, name)) is not None or declared.default is not None
        if not kind.allows(value)
    )
    if faults:
        raise SettingsError(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketSettings:
    """The Unix socket, over which applications of this machine are served."""

    path: Path | None = setting(
        None, File(), "Where the Unix socket is.", otherwise="`merq.sock` in the data folder"
    )
    mode: int = setting(
        0o600,
        Mode(),
        "Its permissions: who may connect to it may do everything. `0660` lets a group in.",
    )

    def __post_init__(self) -> None:
        check(self, "socket.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """TCP, over which applications of other machines are served: with TLS and a token."""

    port: int | None = setting(
        None,
        Count(0, PORT_MAX),
        "The TCP port. 0 lets the system choose one, which the log then names.",
        otherwise="no TCP",
    )
    host: str | None = setting(
        None, Address(), "The address it listens on.", otherwise="the same as `address`"
    )

    def __post_init__(self) -> None:
        check(self, "tcp.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Certificates of the TCP listener."""

    cert: Path | None = setting(
        None,
        File(),
        "PEM file: the service's certificate, followed by those between it and its authority.",
        otherwise="no TLS",
    )
    key: Path | None = setting(
        None,
        File(),
        "PEM file: the certificate's private key, without a passphrase, readable by the service "
        "alone (`chmod 600`).",
        otherwise="no TLS",
    )
    client_ca: Path | None = setting(
        None,
        File(),
        "PEM file: authorities of clients. With it every client must show a certificate that one "
        "of them has signed, besides its token.",
        otherwise="clients need no certificate",
    )

    def __post_init__(self) -> None:
        check(self, "tls.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What connections may take, so that none of them harms the others."""

    connections_max: int = setting(
        4096, Count(1, 1 << 20), "Connections at a time. More are refused."
    )
    connections_per_peer_max: int = setting(
        2048,
        Count(1, 1 << 20),
        "Connections at a time from one address, or from one user of this machine.",
    )
    frame_bytes_max: int = setting(
        16 * MIB,
        Size(4 * KIB, GIB),
        "The largest frame that is taken. Messages have up to 4 MiB; what does not fit into a "
        "frame cannot be sent.",
    )
    window_bytes: int = setting(
        16 * MIB,
        Size(4 * KIB, GIB),
        "What a connection may have sent before it was answered. It is read no further then.",
    )
    requests_max: int = setting(
        4096, Count(1, 1 << 20), "Requests of one connection that wait for their answer."
    )
    answer_bytes_max: int = setting(
        8 * MIB,
        Size(4 * KIB, GIB),
        "Answers that wait until a slow client takes them. Until then it gets no more.",
    )
    memory_bytes: int = setting(
        512 * MIB,
        Size(MIB, BYTES_MAX),
        "What all connections together may hold in memory, messages in queues aside.",
    )
    handshake_s: float = setting(
        10.0,
        Seconds(0.1, 600),
        "Who has not said who it is after this time is cut off.",
    )
    keepalive_s: float = setting(
        30.0,
        Seconds(0.1, DAY_S),
        "After this time of silence a connection is asked whether it is still there: by TCP, and "
        "by a ping if its client holds messages, transactions or queues.",
    )
    idle_s: float = setting(
        90.0,
        Seconds(0.2, DAY_S),
        "After this time of silence a connection counts as dead; its transactions are aborted, and "
        "messages that it held go back. A client that is only busy answers pings meanwhile.",
    )

    def __post_init__(self) -> None:
        check(self, "limits.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """[MS-MQDMPR] 3.1.1.1: what the queue manager as a whole keeps to."""

    machine_quota_kb: int | None = setting(
        None,
        Count(0, UNLIMITED),
        f"What all messages together may take, in kilobytes. {UNLIMITED} is no limit.",
        otherwise="half of the disk that the data folder is on, at least 1 GB",
    )
    network_quota_percent: int = setting(
        Limits().network_quota_percent,
        Count(0, WHOLE_PERCENT),
        "What messages of other queue managers may take of `machine_quota_kb` and of "
        "`memory_bytes`, in percent; the rest is for applications alone. One address may take as "
        "much of it as it leaves for others, so one alone the half. With less free room on the "
        "disk than four times `disk_reserve_bytes` no message of theirs is taken. 100 makes no "
        "difference between other queue managers and applications.",
    )
    memory_bytes: int = setting(
        Limits().memory_bytes,
        Size(0, BYTES_MAX),
        "What express messages may take in memory. Beyond it no message is taken before a fifth of "
        "it is free again.",
    )
    disk_reserve_bytes: int = setting(
        Limits().disk_reserve_bytes,
        Size(0, BYTES_MAX),
        "With less free room than this on the disk no message is taken before there is twice as "
        "much.",
    )

    def __post_init__(self) -> None:
        check(self, "engine.")

    def limits(self) -> Limits:
        """What the engine takes."""
        return Limits(
            machine_quota=self.machine_quota_kb,
            network_quota_percent=self.network_quota_percent,
            memory_bytes=self.memory_bytes,
            disk_reserve_bytes=self.disk_reserve_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSettings:
    """Reading and writing in batches, as data pipelines do."""

    lease_s: float = setting(
        float(LEASE_S),
        Seconds(1, DAY_S),
        "So long after it was heard of last nobody else may read for a group of consumers. Then "
        "another reader may take over.",
    )
    stage_keep_s: float = setting(
        float(STAGE_KEEP_S),
        Seconds(60, 365 * DAY_S),
        "So long messages that were written wait to be published. Then they are dropped: who wrote "
        "them is thought dead.",
    )

    def __post_init__(self) -> None:
        check(self, "bulk.")

    def added_to(self, limits: Limits) -> Limits:
        """What the engine takes, in whole seconds."""
        return dataclasses.replace(
            limits, lease_s=math.ceil(self.lease_s), stage_keep_s=math.ceil(self.stage_keep_s)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """How the store is kept."""

    checkpoint_bytes: int = setting(
        HostSettings().checkpoint_bytes,
        Size(MIB, BYTES_MAX),
        "A checkpoint is written when the log has grown by this much, or earlier.",
    )
    cache_bytes: int = setting(
        CACHE_BYTES,
        Size(0, BYTES_MAX),
        "How much of the messages that were written last is kept in memory too.",
    )
    ballast_bytes: int = setting(
        BALLAST_BYTES,
        Size(0, BYTES_MAX),
        "Room kept on the disk for tidying up when there is no other.",
    )
    segment_bytes: int = setting(
        SEGMENT_SIZE,
        Size(MIB, SEGMENT_BYTES_MAX),
        "The log is cut into files of this size.",
    )
    reserve_bytes: int = setting(
        RESERVE_STEP,
        Size(64 * KIB, SEGMENT_BYTES_MAX),
        "Room for the log is reserved in steps of this size.",
    )

    def __post_init__(self) -> None:
        check(self, "store.")

    def host_settings(self) -> HostSettings:
        """What the host takes."""
        return HostSettings(
            log=SegmentSettings(segment_size=self.segment_bytes, reserve_step=self.reserve_bytes),
            checkpoint_bytes=self.checkpoint_bytes,
            cache_bytes=self.cache_bytes,
            ballast_bytes=self.ballast_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What the service tells about itself, and where."""

    level: str = setting("info", Choice(LEVELS), "What is less important is not told.")
    format: str = setting(
        "text", Choice(FORMATS), "Lines for people, or one JSON object a line for programs."
    )
    file: Path | None = setting(
        None,
        File(),
        "The file it is appended to. If it is renamed or removed, a new one is begun.",
        otherwise="standard error",
    )
    repeats_max: int = setting(
        10,
        Count(1, 1 << 20),
        "The same event is told so often a second. The rest is counted, and the count told.",
    )

    def __post_init__(self) -> None:
        check(self, "log.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """[MS-MQSO] 5.1.1.1, 6.6.2: when an initialisation that failed is tried again.

    [MS-MQDMPR] 3.1.1.1 calls it InitializationRetryTimerDuration: 120 s at first, then 900 s.
    """

    at_start: bool = setting(
        default=False,
        kind=Switch(),
        meaning="Whether a start that fails is tried again. Otherwise the service says why and "
        "ends with status 1, so that whoever started it knows. A service that ran before, and has "
        "to open its store anew because the disk failed, always tries again.",
    )

    first_s: float = setting(120.0, Seconds(0.1, DAY_S), "After the first failure.")
    later_s: float = setting(900.0, Seconds(0.1, DAY_S), "After every later one.")

    def __post_init__(self) -> None:
        check(self, "retry.")
