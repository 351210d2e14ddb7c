"""Connects to another queue manager: in clear, or inside of TLS at the port for that.

Thin: whether it is to be inside of TLS is decided in the exchange. Here it is found out whether
nobody is at that port, which is all that lets the exchange go on in clear. Whoever takes the
connection and then fails to prove who it is, is somebody: that is a failure.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from merq.exchange import Link
from merq.model.properties import ConnectionStatus

TOO_LONG: Final = "no answer in time"

_NOBODY: Final = frozenset(
    {
        errno.ECONNREFUSED,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.ETIMEDOUT,
    }
)
"""What the network says if nobody is at a port. What goes wrong on this side, such as too few
descriptors, is not among it: strangers may cause that, and would have messages sent in clear."""

_NO_MERQ: Final = (
    'Only if there is no Merq with TLS any more, say tls = "never" for it in the file that '
    "exchange.peers names: then messages for it can be read on the way"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingSettings:
    """Where to listen and how to connect.

    Attributes:
        host: The address to listen on, and to connect from unless it stands for all of them.
        port: The TCP port, here and everywhere.
        listens: Whether others may connect.
        connect_s: How long a connection may take to be made.
        lookup_s: How long the name service may take for a host name.
        tls_port: The port for sessions inside of TLS, here and everywhere; None if there is none.
        tls_connect_s: How long it is waited for somebody at that port who may not be there.
        server_context: What this side shows to who connects there.
        client_context: What it shows and demands when it connects.
        ping_port: [MS-MQQB] 2.1.2: the UDP port for ping messages.
        answers_ping: Whether they are answered.
    """

    host: str
    port: int
    listens: bool = True
    connect_s: float = 20.0
    lookup_s: float = 20.0
    tls_port: int | None = None
    tls_connect_s: float = 1.5
    server_context: ssl.SSLContext | None = None
    client_context: ssl.SSLContext | None = None
    ping_port: int = 3527
    answers_ping: bool = True


@dataclass(frozen=True, slots=True)
class DialFailure:
    """Why there is no connection.

    Attributes:
        status: What the connection history calls it.
        text: What was found, what was expected, and what to do, for people.
        is_tls_absent: Nobody is at the TLS port, and it may be tried in clear.
        is_certain: That was said by the network: it is not that nobody answered in time.
    """

    status: ConnectionStatus
    text: str
    is_tls_absent: bool = False
    is_certain: bool = True


async def dial(
    link: Link, settings: LinkingSettings, factory: Callable[[], asyncio.Protocol]
) -> DialFailure | None:
    """Connects; gives what went wrong, if something did."""
    local = (settings.host, 0) if _is_way(settings.host, link.address) else None
    if link.is_secure:
        return await _dial_tls(link, settings, local, factory)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(settings.connect_s):
            await loop.create_connection(factory, link.address, settings.port, local_addr=local)
    except (OSError, TimeoutError) as wrong:
        return DialFailure(ConnectionStatus.SOCKET_CONNECT_FAILURE, str(wrong) or TOO_LONG)
    return None


async def _dial_tls(
    link: Link,
    settings: LinkingSettings,
    local: tuple[str, int] | None,
    factory: Callable[[], asyncio.Protocol],
) -> DialFailure | None:
    """First the connection, then the handshake: they fail for different reasons."""
    port, context = settings.tls_port, settings.client_context
    if port is None or context is None:
        text = (
            "it is to be reached inside of TLS, for which no certificate is set up: set "
            "exchange.tls_cert, exchange.tls_key and exchange.tls_ca"
        )
        return DialFailure(ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, text)
    loop = asyncio.get_running_loop()
    wait_s = settings.connect_s
    if link.may_be_clear:
        wait_s = min(wait_s, settings.tls_connect_s)
    try:
        async with asyncio.timeout(wait_s):
            connected = await _connected(link.address, port, local)
    except TimeoutError:
        return _nobody(link, port, f"{TOO_LONG}, {wait_s:g} s", is_certain=False)
    except OSError as wrong:
        if wrong.errno in _NOBODY:
            is_certain = wrong.errno != errno.ETIMEDOUT
            return _nobody(link, port, str(wrong), is_certain=is_certain)
        if isinstance(wrong, ConnectionError):  # it was there, and was reset at once
            return _no_handshake(port, str(wrong))
        return DialFailure(ConnectionStatus.SOCKET_CONNECT_FAILURE, str(wrong))
    host = link.host or link.address
    try:
        async with asyncio.timeout(settings.connect_s):
            await loop.create_connection(factory, sock=connected, ssl=context, server_hostname=host)
    except ssl.SSLCertVerificationError as wrong:
        text = (
            f"{wrong}. Expected at port {port}: a certificate that holds, for {host}, of an "
            "authority in exchange.tls_ca. Have a right one issued there"
        )
        return DialFailure(ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, text)
    except (OSError, TimeoutError, ValueError) as wrong:  # ValueError: no name for a certificate
        connected.close()
        return _no_handshake(port, str(wrong) or TOO_LONG)
    return None


def _no_handshake(port: int, found: str) -> DialFailure:
    return DialFailure(ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, tls_refusal(port, found))


def tls_refusal(port: int | None, found: str) -> str:
    """What people are told if somebody at the TLS port does not speak TLS with us."""
    return (
        f"{found}. Expected at port {port}: a Merq that speaks TLS and takes the certificate in "
        "exchange.tls_cert. Look into its log"
    )


def _nobody(link: Link, port: int, found: str, *, is_certain: bool) -> DialFailure:
    """Nobody took a connection to the TLS port."""
    status = ConnectionStatus.SOCKET_CONNECT_FAILURE
    if link.may_be_clear:
        text = f"nobody at the TLS port {port}: {found}"
        return DialFailure(status, text, is_tls_absent=True, is_certain=is_certain)
    text = (
        f"{found}. Expected at port {port}: TLS, inside of which it was reached before or is to be "
        "reached by the settings, so nothing goes to it in clear. See whether it runs, listens "
        f"there, and no firewall is between. {_NO_MERQ}"
    )
    return DialFailure(status, text)


async def _connected(address: str, port: int, local: tuple[str, int] | None) -> socket.socket:
    """A TCP connection."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)  # noqa: FBT003 - its name
        if local is not None:
            made.bind(local)
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made


def _is_way(host: str, address: str) -> bool:
    """Whether it can be connected from one address to another: acknowledgments come back there."""
    ours, other = ip_address(host), ip_address(address)
    if ours.is_unspecified or ours.version != other.version:
        return False
    return ours.is_loopback == other.is_loopback
