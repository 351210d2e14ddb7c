r"""[MS-MQMQ] 2.1.2: direct format names, `DIRECT=OS:computer\PRIVATE$\queue`.

They say where the computer is, so that no directory is needed. Not here: the other format names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from merq.model.names.addresses import (
    PORT_MAX,
    host_key,
    scan_computer,
    scan_http_host,
    scan_http_port,
    scan_ipv4,
    scan_ipv6,
    scan_spx_address,
)
from merq.model.names.kinds import DirectProtocol, QueueFormatType
from merq.model.names.path_names import PathName, path_of
from merq.model.names.queues import (
    QueueOnComputer,
    check_queue,
    print_queue,
    queue_key,
    scan_queue,
)
from merq.model.names.scanner import Scanner, read_whole, upper

PREFIX = "DIRECT="
HTTP_FOLDER = "msmq"

PROTOCOL_WORDS = {protocol.value: protocol for protocol in DirectProtocol} | {
    "IPX": DirectProtocol.SPX
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectName(QueueOnComputer):
    r"""[MS-MQMQ] 2.1.2: a queue by the place of its computer, `DIRECT=OS:host\PRIVATE$\orders`.

    Names that differ only in case are equal, and so are HTTP names that differ in saying the
    default port. Printing keeps the spelling of computer and queue.

    Attributes:
        protocol: How `host` is to be understood.
        host: The computer's name or address; an IPv6 address without brackets.
        port: The port of an HTTP or HTTPS name, if it says one.
    """

    protocol: DirectProtocol = field(compare=False)
    host: str = field(compare=False)
    port: int | None = field(default=None, compare=False)
    _key: tuple[object, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        written = bracketed(self.host) if self.protocol.is_http else self.host
        host = read_whole(written, HOST_SCANNERS[self.protocol], "computer's address")
        object.__setattr__(self, "host", host)
        if self.port is not None and not (self.protocol.is_http and 1 <= self.port <= PORT_MAX):
            raise ValueError(f"port {self.port} is impossible in a {self.protocol.value} name")
        check_queue(self)
        place = (self.protocol, self.effective_port, host_key(self.host))
        object.__setattr__(self, "_key", (*place, *queue_key(self)))

    def __str__(self) -> str:
        return f"{PREFIX}{self.without_prefix()}"

    @classmethod
    def of_path(cls, path: PathName) -> DirectName:
        r"""[MC-MQAC] 3.1.6.2: the name `DIRECT=OS:` followed by the path name."""
        return direct_of(path, protocol=DirectProtocol.OS, host=path.computer)

    def path_name(self) -> PathName:
        """[MS-MQDMPR] 3.1.7.1.26: the path name of the same queue, with the host as computer."""
        return self.path_name_on(self.host)

    def path_name_on(self, computer: str) -> PathName:
        """The path name of the same queue on a computer, whatever the host is called."""
        return path_of(self, computer=computer)

    def without_prefix(self) -> str:
        r"""[MS-MQMQ] 2.2.7: the name as packets carry it, `OS:computer\PRIVATE$\queue`.

        The keywords are spelled as the documents spell them: capital letters, but small ones in
        HTTP names, [MC-MQSRM] 2.2.4.2.
        """
        if self.protocol.is_http:
            port = "" if self.effective_port == self.protocol.default_port else f":{self.port}"
            scheme = self.protocol.value.lower()
            queue = print_queue(self, private="private$", system="system$", separator="/")
            return f"{scheme}://{bracketed(self.host)}{port}/{HTTP_FOLDER}{queue}"
        queue = print_queue(self, private="PRIVATE$", system="SYSTEM$", separator="\\")
        return f"{self.protocol.value}:{self.host}{queue}"

    @property
    def effective_port(self) -> int | None:
        """The port of an HTTP or HTTPS name, by default if it does not say one."""
        return self.protocol.default_port if self.port is None else self.port

    @property
    def format_type(self) -> QueueFormatType:
        """[MS-MQMQ] 2.2.7: the kind of name as a QUEUE_FORMAT gives it."""
        return QueueFormatType.DIRECT if self.subqueue is None else QueueFormatType.SUBQUEUE


def parse_direct_name(text: str) -> DirectName:
    r"""[MS-MQMQ] 2.2.7: reads a direct format name without its prefix, `OS:computer\queue`.

    Raises:
        NameSyntaxError: The text is not such a name.
    """
    scanner = Scanner(text)
    if scanner.sees_word(PREFIX):
        scanner.reject(f"found {PREFIX}, expected the name without it")
    return scan_direct_name(scanner)


def scan_direct_name(scanner: Scanner) -> DirectName:
    """[MS-MQMQ] 2.1.2: reads what stands behind `DIRECT=`."""
    protocol = _scan_protocol(scanner)
    if not protocol.is_http:
        host = HOST_SCANNERS[protocol](scanner)
        slashed = "only HTTP names are written with '/'" if scanner.sees("/") else ""
        ported = "only HTTP and HTTPS names carry a port" if scanner.sees(":") else ""
        scanner.expect("\\", slashed or ported)
        queue = scan_queue(scanner, separators="\\")
        return direct_of(queue, protocol=protocol, host=host)
    if not scanner.take_word("//"):
        scanner.fail("'//'", "an HTTP name is written as an URL: http://computer/msmq/queue")
    host = scan_http_host(scanner)
    port = scan_http_port(scanner) if scanner.take(":") else None
    _scan_http_folder(scanner)
    queue = scan_queue(scanner, separators="/\\")
    return direct_of(queue, protocol=protocol, host=host, port=port)


def _scan_protocol(scanner: Scanner) -> DirectProtocol:
    word = scanner.ahead(":\\/" + scanner.ends)
    protocol = PROTOCOL_WORDS.get(upper(word))
    if protocol is None:
        known = ", ".join(f"{known}:" for known in PROTOCOL_WORDS)
        scanner.fail(f"one of {known}", "a computer's name has OS: before it")
    scanner.position += len(word)
    scanner.expect(":")
    return protocol


def _scan_http_folder(scanner: Scanner) -> None:
    scanner.expect("/")
    folder = HTTP_FOLDER.upper()
    if not scanner.take_word(folder) or not scanner.sees("/\\"):
        scanner.fail(f"{HTTP_FOLDER}/", "queues are below that folder of the web server")
    scanner.position += 1


def _scan_tcp_address(scanner: Scanner) -> str:
    candidate = scanner.ahead("\\/" + scanner.ends)
    if candidate.startswith("[") or candidate.count(":") > 1:
        return scan_ipv6(scanner)
    if candidate[:1].isalpha():
        scanner.fail("an IP address", "a computer is named by OS: instead of TCP:")
    return str(scan_ipv4(scanner))


HOST_SCANNERS: dict[DirectProtocol, Callable[[Scanner], str]] = {
    DirectProtocol.OS: scan_computer,
    DirectProtocol.TCP: _scan_tcp_address,
    DirectProtocol.SPX: scan_spx_address,
    DirectProtocol.HTTP: scan_http_host,
    DirectProtocol.HTTPS: scan_http_host,
}


def bracketed(host: str) -> str:
    """The host as it stands in an URL."""
    return f"[{host}]" if ":" in host else host


def direct_of(
    queue: QueueOnComputer, *, protocol: DirectProtocol, host: str, port: int | None = None
) -> DirectName:
    """The direct format name of a queue on the computer at the given place."""
    return DirectName(
        protocol=protocol,
        host=host,
        port=port,
        scope=queue.scope,
        queue=queue.queue,
        subqueue=queue.subqueue,
        suffix=queue.suffix,
    )
