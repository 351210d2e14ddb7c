"""Settings of the exchange with other queue managers. Not in here: the file of peers.

Defaults come from [MS-MQQB] appendix A; where Windows has a registry value for it, the meaning
says its name.
"""

# ruff: noqa: RUF009 - `setting` declares a field, as `field` does

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from merq.client.security import harden, load_authorities, load_pair
from merq.exchange import AllowedAdminQueues, ExchangeSettings, Peers, TlsMode
from merq.exchange.dials import SLICE_S
from merq.net.dialling import LinkingSettings
from merq.protocol.binary.settings import MERQ_WINDOW, STANDARD_PORT, WINDOW, SessionSettings
from merq.service.kinds import (
    MIB,
    PORT_MAX,
    Address,
    Choice,
    Count,
    File,
    ReachableHost,
    Seconds,
    Size,
    Switch,
    Text,
)
from merq.service.peers_file import read_peers
from merq.service.sections import BYTES_MAX, DAY_S, check, setting

TLS_PORT: Final = 1803
"""Where Merqs listen for sessions inside of TLS: both sides have to agree on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeSection:
    """[MS-MQQB]: messages from and to other queue managers."""

    listen: bool = setting(
        default=True, kind=Switch(), meaning="Whether other queue managers may connect in clear."
    )
    offline: bool = setting(
        default=False,
        kind=Switch(),
        meaning="Whether it begins offline: messages to others wait until it is brought online.",
    )
    host: str | None = setting(
        None, Address(), "The address it listens on.", otherwise="the same as `address`"
    )
    port: int = setting(
        STANDARD_PORT, Count(1, PORT_MAX), "The TCP port, here and at all other queue managers."
    )
    aliases: str | None = setting(
        None,
        Text(),
        "Other names and addresses of this computer, separated by commas: messages to them stay "
        "here.",
        otherwise="its name, host name and address",
    )
    advertised_host: str | None = setting(
        None,
        ReachableHost(),
        "The name or address by which other queue managers reach this one, behind NAT say: they "
        "are told it for administration and response queues that are named `.\\private$\\queue`.",
        otherwise="the address of the connection",
    )
    peers: Path | None = setting(
        None,
        File(),
        "TOML file with a table `[[peer]]` for each queue manager that is known by its GUID.",
        otherwise="only direct names lead elsewhere",
    )
    hardened: bool = setting(
        default=False,
        kind=Switch(),
        meaning="HardenedSecurity: nothing goes or comes by this protocol.",
    )
    forwards: bool = setting(
        default=False,
        kind=Switch(),
        meaning="Whether messages for other queue managers are passed on to them.",
    )
    insecure_nacks: bool = setting(
        default=False,
        kind=Switch(),
        meaning="Whether senders are told that a queue is not here or not theirs to send to, "
        "which tells strangers what there is (Windows: PermitInsecureNacks).",
    )
    trace_reports: bool = setting(
        default=True,
        kind=Switch(),
        meaning="Whether report messages are sent about traced messages that come through here "
        "(Windows: EnableReportMessages, off).",
    )
    window: int = setting(
        WINDOW,
        Count(1, 0xFFFF),
        "Messages that may be without a session acknowledgment, with anything but another Merq; "
        "the lower of both sides counts (Windows: MaxUnackedPacket, 64).",
    )
    merq_window: int = setting(
        MERQ_WINDOW, Count(1, 0xFFFF), "The same with another Merq, which both sides recognise."
    )
    allowed_admin_queues: str = setting(
        AllowedAdminQueues.KNOWN.value,
        Choice(tuple(each.value for each in AllowedAdminQueues)),
        "At which addresses other queue managers' messages may have acknowledgments sent to their "
        "administration queue: `peer`, where the message came from; `known`, also where the file "
        "of peers or a session has a queue manager and where applications send; `any`, anywhere.",
    )
    acknowledgment_lifetime_s: float = setting(
        3 * DAY_S,
        Seconds(1, 365 * DAY_S),
        "How long administration acknowledgments wait here until they can be sent.",
    )
    links_max: int = setting(
        4096, Count(1, 1 << 20), "Connections at a time that others have made."
    )
    links_per_peer_max: int = setting(
        512,
        Count(1, 1 << 20),
        "Connections at a time that one address may have made, or one /64 network of IPv6.",
    )
    memory_bytes: int = setting(
        256 * MIB,
        Size(16 * MIB, BYTES_MAX),
        "What all connections together may have under way: bytes that came and are not taken care "
        "of, half packets included, and bytes to be written. From half of it on each has one "
        "packet at a time; beyond it, who keeps most for longest is cut off.",
    )
    stall_s: float = setting(
        30.0,
        Seconds(1, 3600),
        "A packet that is not whole after this time, and a second more for each KiB of it that "
        "came, ends its session.",
    )
    dialled_links_max: int = setting(
        4096, Count(1, 1 << 20), "Connections at a time that this side has made or is making."
    )
    dials_max: int = setting(
        256,
        Count(4, 1 << 16),
        "Connections that are being made at a time. Where the last attempt failed has at most half "
        "of them, what only acknowledgments wait for a quarter.",
    )
    trust_inbound_s: float = setting(
        0.0,
        Seconds(0, DAY_S),
        "How long an inbound connection in clear is trusted to be the queue manager that this side "
        "has reached before at the same address and under the same identifier: messages for it "
        "may go through it then. 0: never, this side always connects itself.",
    )
    connect_s: float = setting(
        20.0, Seconds(0.1, 3600), "How long a connection may take to be made."
    )
    retry_s: float = setting(
        5.0,
        Seconds(0.05, DAY_S),
        "Between two attempts to connect, at first (Windows: TryConnectInterval).",
    )
    retry_max_s: float = setting(
        60.0,
        Seconds(0.05, DAY_S),
        "The longest time between two attempts: it doubles with each that fails.",
    )
    lookup_s: float = setting(
        20.0, Seconds(0.1, 3600), "How long the name service may take for a host name."
    )
    initialization_s: float = setting(
        60.0, Seconds(0.1, 3600), "How long a session may take to be open."
    )
    cleanup_s: float = setting(
        300.0,
        Seconds(0.1, DAY_S),
        "A session over which nothing goes is closed after this time (Windows: CleanupInterval).",
    )
    ack_wait_s: float = setting(
        20.0, Seconds(20, 120), "How long a session acknowledgment is waited for."
    )
    order_ack_s: float = setting(
        0.5, Seconds(0.01, 3600), "How long an order acknowledgment waits for further messages."
    )
    order_ack_max_s: float = setting(
        10.0,
        Seconds(0.01, 3600),
        "The longest that it waits while messages come (Windows: SeqMaxAckDelay).",
    )
    order_ack_every: int = setting(
        1000, Count(1, 1 << 20), "After so many messages it waits no longer."
    )
    resend_short_s: float = setting(
        30.0,
        Seconds(0.1, DAY_S),
        "Transactional messages without an order acknowledgment are sent again after this time, "
        "three times (Windows: SeqResend13Time).",
    )
    resend_medium_s: float = setting(
        300.0, Seconds(0.1, DAY_S), "Then three times after this (Windows: SeqResend46Time)."
    )
    resend_long_s: float = setting(
        1800.0, Seconds(0.1, DAY_S), "Then three times after this (Windows: SeqResend79Time)."
    )
    resend_final_s: float = setting(
        21_600.0, Seconds(0.1, 30 * DAY_S), "Then after this, always (Windows: SeqResend10Time)."
    )
    in_doubt_s: float = setting(
        21_600.0,
        Seconds(1, 365 * DAY_S),
        "A message that was transmitted and of which nothing was heard is given up this long "
        "after its time.",
    )
    history_size: int = setting(
        10_000,
        Count(100, 1 << 24),
        "Messages of each queue manager by which duplicates are known (Windows: "
        "RemoveDuplicateSize).",
    )
    history_s: float = setting(
        1800.0,
        Seconds(1, 30 * DAY_S),
        "For how long they are known (Windows: RemoveDuplicateCleanup).",
    )
    ping: bool = setting(
        default=False,
        kind=Switch(),
        meaning="Whether others are asked by UDP before it is connected to them.",
    )
    ping_answer: bool = setting(
        default=True,
        kind=Switch(),
        meaning="Whether who asks so is answered (Windows: EnablePingService).",
    )
    ping_port: int = setting(
        3527, Count(1, PORT_MAX), "The UDP port for that (Windows: MsmqIpPingPort)."
    )
    tls: str = setting(
        TlsMode.AUTO.value,
        Choice(tuple(each.value for each in TlsMode)),
        "Whether other queue managers are spoken to inside of TLS, where the file of peers does "
        "not say: `auto`, where both can, which is tried first if `tls_cert`, `tls_key` and "
        "`tls_ca` are given, and who was reached so is never spoken to in clear; `always`, nothing "
        "is said in clear, neither listened to nor connected to; `never`, this side connects in "
        "clear.",
    )
    tls_port: int = setting(
        TLS_PORT,
        Count(1, PORT_MAX),
        "The port for sessions inside of TLS, here and at the others. Between Merq only.",
    )
    tls_cert: Path | None = setting(
        None, File(), "PEM file: what this side shows, both ways.", otherwise="no TLS"
    )
    tls_key: Path | None = setting(
        None, File(), "PEM file: the certificate's private key (`chmod 600`).", otherwise="no TLS"
    )
    tls_ca: Path | None = setting(
        None, File(), "PEM file: the authorities that the others' must be of.", otherwise="no TLS"
    )
    tls_connect_s: float = setting(
        1.5,
        Seconds(0.1, SLICE_S),
        "With `auto`, how long it is waited for somebody at the TLS port of who was never reached "
        "inside of TLS; after three times in a row it is connected to in clear.",
    )
    tls_absent_s: float = setting(
        3600.0,
        Seconds(0, 30 * DAY_S),
        "With `auto`, how long after that it is connected to in clear at once.",
    )

    def __post_init__(self) -> None:
        check(self, "exchange.")

    @property
    def names(self) -> list[str]:
        """The other names of this computer."""
        aliases = [each.strip() for each in (self.aliases or "").split(",") if each.strip()]
        return [*aliases, self.advertised_host] if self.advertised_host else aliases

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Keys that do not go together, and a sentence why."""
        tls = ("exchange.tls_cert", "exchange.tls_key", "exchange.tls_ca")
        given = [getattr(self, key.removeprefix("exchange.")) is not None for key in tls]
        if any(given) and not all(given):
            missing = ", ".join(key for key, there in zip(tls, given, strict=True) if not there)
            yield tls, f"TLS between queue managers needs {missing} too: all three or none"
        if self.tls == TlsMode.ALWAYS.value and not any(given):
            sentence = (
                'exchange.tls is "always", and TLS between queue managers is not set up: set '
                f"{', '.join(tls)}"
            )
            yield ("exchange.tls", *tls), sentence
        if self.tls_port == self.port:
            sentence = f"exchange.tls_port and exchange.port are both {self.port}"
            yield ("exchange.tls_port", "exchange.port"), sentence

    def exchange_settings(self) -> ExchangeSettings:
        """What the exchange takes."""
        short, medium, long = self.resend_short_s, self.resend_medium_s, self.resend_long_s
        return ExchangeSettings(
            session=SessionSettings(
                window=self.window,
                merq_window=self.merq_window,
                initialization_s=self.initialization_s,
                cleanup_s=self.cleanup_s,
                ack_wait_s=self.ack_wait_s,
                stall_s=self.stall_s,
            ),
            retry_s=self.retry_s,
            retry_max_s=self.retry_max_s,
            order_ack_s=self.order_ack_s,
            order_ack_max_s=self.order_ack_max_s,
            order_ack_every=self.order_ack_every,
            resend_s=(*[short] * 3, *[medium] * 3, *[long] * 3, self.resend_final_s),
            in_doubt_s=int(self.in_doubt_s),
            history_size=self.history_size,
            history_s=int(self.history_s),
            insecure_nacks=self.insecure_nacks,
            trace_reports=self.trace_reports,
            forwards=self.forwards,
            advertised_host=self.advertised_host or "",
            hardened=self.hardened,
            ping=self.ping,
            links_max=self.links_max,
            held_bytes_max=self.memory_bytes,
            links_per_peer_max=self.links_per_peer_max,
            dialled_links_max=self.dialled_links_max,
            dials_max=self.dials_max,
            trust_inbound_s=self.trust_inbound_s,
            allowed_admin_queues=AllowedAdminQueues(self.allowed_admin_queues),
            acknowledgment_lifetime_s=int(self.acknowledgment_lifetime_s),
            tls=TlsMode(self.tls),
            is_tls_set_up=self.tls_cert is not None,
            tls_absent_s=self.tls_absent_s,
        )

    def linking_settings(self, address: str) -> LinkingSettings:
        """What the sockets take.

        Raises:
            CertificateError: A file is missing, or not what it should be.
        """
        server = client = None
        if self.tls_cert is not None and self.tls_key is not None and self.tls_ca is not None:
            server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            server.verify_mode = ssl.CERT_REQUIRED
            client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            for context in (server, client):
                harden(context)
                load_pair(context, self.tls_cert, self.tls_key)
                load_authorities(context, self.tls_ca)
        return LinkingSettings(
            host=self.host or address,
            port=self.port,
            listens=self.listen and self.tls != TlsMode.ALWAYS.value and not self.hardened,
            connect_s=self.connect_s,
            lookup_s=self.lookup_s,
            tls_port=None if self.hardened or server is None else self.tls_port,
            tls_connect_s=self.tls_connect_s,
            server_context=server,
            client_context=client,
            ping_port=self.ping_port,
            answers_ping=self.ping_answer,
        )

    def known_peers(self) -> Peers:
        """The queue managers that the file names.

        Raises:
            SettingsError: The file cannot be read, or says what it cannot mean; all of it.
        """
        return Peers([] if self.peers is None else read_peers(self.peers))
