"""[MS-MQQB] appendix A: what the exchange keeps to, with the documented defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from merq.protocol.binary.settings import SessionSettings


class AllowedAdminQueues(Enum):
    """Where administration queues may be that other queue managers' messages name.

    Whoever sends here can name any address, and would have this queue manager call it.
    """

    PEER = "peer"
    """At the address that the message came from."""

    KNOWN = "known"
    """There, where the settings or a session have a queue manager, and where applications send."""

    ANY = "any"
    """Anywhere, as [MS-MQQB] 3.1.7.15 has it."""


class TlsMode(Enum):
    """Whether other queue managers are spoken to inside of TLS, which is Merq's own."""

    AUTO = "auto"
    """Where both can: TLS is tried first, and who was reached so is never spoken to in clear."""

    ALWAYS = "always"
    """Inside of TLS, or not at all."""

    NEVER = "never"
    """In clear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeSettings:
    """How messages travel; times in seconds.

    Attributes:
        session: What each session keeps to.
        retry_s: [MS-MQQB] 3.1.2.3, note 45: between two attempts to connect, at first.
        retry_max_s: The same after several that failed: each time is twice the one before.
        order_ack_s: [MS-MQQB] 3.1.3.2: OrderAckTimeout.
        order_ack_max_s: [MS-MQQB] 3.1.3.2, note 52: MaximumOrderAckDelay.
        order_ack_every: After so many messages an OrderAck does not wait for its time.
        resend_s: [MS-MQQB] 3.1.3.1, note 24: the resend timer table; the last entry stays.
        in_doubt_s: How long after its time a message is given up that was transmitted and of which
            nothing was heard.
        history_size: [MS-MQQB] 3.1.1.3, note 25: identifiers remembered of each queue manager.
        history_s: [MS-MQQB] 3.1.2.8, note 47: for how long.
        insecure_nacks: [MS-MQQB] 3.1.1.3, note 28: whether strangers are told that a queue is not
            here.
        trace_reports: [MS-MQMQ] 2.2.20.8, note 23: whether report messages are sent about messages
            that are traced.
        forwards: Whether messages for others are passed on.
        advertised_host: The name or address by which others reach this computer; empty: the
            address that a connection has here.
        hardened: [MS-MQDMPR] 3.1.1.1: HardenedSecurity; nothing goes or comes this way.
        ping: Whether the other side is asked first if it would take a session.
        held_bytes_max: What all connections together may have under way: bytes that came and are
            not taken care of, and bytes to be written.
        links_max: Connections at the same time that others have made.
        links_per_peer_max: Those of one address.
        dialled_links_max: Connections at the same time that this side has made or is making.
        dials_max: Those of them that are being made.
        trust_inbound_s: How long after this side has connected to a queue manager messages for it
            may also go through a connection that comes from there.
        allowed_admin_queues: Where administration queues may be that others' messages name.
        acknowledgment_lifetime_s: How long administration acknowledgments wait to be sent.
        tls: Whether others are spoken to inside of TLS, where the file of peers does not say.
        is_tls_set_up: This side has a certificate and knows an authority.
        tls_absent_s: How long it is remembered that nobody is at the TLS port of an address.
        outbox_high_bytes: With so much unwritten nothing more is sent on a connection.
    """

    session: SessionSettings = field(default_factory=SessionSettings)
    retry_s: float = 5.0
    retry_max_s: float = 60.0
    order_ack_s: float = 0.5
    order_ack_max_s: float = 10.0
    order_ack_every: int = 1000
    resend_s: tuple[float, ...] = (30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600)
    in_doubt_s: int = 21_600
    history_size: int = 10_000
    history_s: int = 1800
    insecure_nacks: bool = False
    trace_reports: bool = True
    forwards: bool = False
    advertised_host: str = ""
    hardened: bool = False
    ping: bool = False
    links_max: int = 4096
    links_per_peer_max: int = 512
    held_bytes_max: int = 256 << 20
    dialled_links_max: int = 4096
    dials_max: int = 256
    trust_inbound_s: float = 0.0
    allowed_admin_queues: AllowedAdminQueues = AllowedAdminQueues.KNOWN
    acknowledgment_lifetime_s: int = 3 * 86_400
    tls: TlsMode = TlsMode.AUTO
    is_tls_set_up: bool = False
    tls_absent_s: float = 3600.0
    outbox_high_bytes: int = 4 << 20
