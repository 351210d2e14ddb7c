r"""[MS-MQMQ] 2.1.3 to 2.1.7: format names of all kinds, and lists of them.

`parse_format_name` reads any of them. Direct format names are in `direct_names`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import ClassVar, TypeAlias
from uuid import UUID

from merq.model.names.addresses import (
    MULTICAST_FIRST_OCTETS,
    PORT_MAX,
    scan_multicast_address,
    scan_multicast_port,
)
from merq.model.names.direct_names import PROTOCOL_WORDS, DirectName, scan_direct_name
from merq.model.names.kinds import (
    NAME_SUFFIXES,
    READ_ONLY_SUFFIXES,
    QueueFormatType,
    QueueSuffixType,
)
from merq.model.names.path_names import FORMAT_NAME_PREFIXES
from merq.model.names.queues import scan_suffix
from merq.model.names.scanner import (
    DOMAIN,
    HEX_DIGITS,
    Scanner,
    fold,
    read_whole,
    upper,
)

FORMAT_NAME_LENGTH_MAX = 1024
"""[MS-MQMP] 2.2.3.2: more than any single format name needs, in UTF-16 code units."""

ELEMENTS_MAX = 256
"""The documents leave it to the size of packets, which hold far less than 4 MiB of names."""

MULTIPLE_ELEMENT_LENGTH_MAX = ELEMENTS_MAX * (FORMAT_NAME_LENGTH_MAX + 1)
"""Each element and its comma, in characters."""

PRIVATE_NUMBER_DIGITS_MAX = 8
PRIVATE_NUMBER_MAX = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class SuffixedName:
    """[MS-MQMQ] 2.2.7: a name whose suffix says which queue is meant, as its kind allows.

    Attributes:
        format_type: The kind of name as a QUEUE_FORMAT gives it.
        suffix: The word behind the semicolon, if there is one.
    """

    format_type: ClassVar[QueueFormatType] = QueueFormatType.UNKNOWN

    suffix: QueueSuffixType = QueueSuffixType.NONE

    def __post_init__(self) -> None:
        if self.suffix not in NAME_SUFFIXES[self.format_type]:
            raise ValueError(
                f"a {self.format_type.name} name cannot have the suffix {self.suffix.name}"
            )

    @property
    def suffix_type(self) -> QueueSuffixType:
        """[MS-MQMQ] 2.2.11: the suffix as a QUEUE_FORMAT gives it."""
        return self.suffix

    @property
    def is_read_only(self) -> bool:
        """[MS-MQMQ] 2.1.7: whether applications can read here, but not send."""
        return self.suffix in READ_ONLY_SUFFIXES

    @property
    def suffix_text(self) -> str:
        """The suffix as it is printed."""
        return "" if self.suffix is QueueSuffixType.NONE else f";{self.suffix.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicName(SuffixedName):
    """[MS-MQMQ] 2.1.3: a queue by its identifier in the directory, `PUBLIC=guid`.

    The grammar there has no `;JOURNAL`; [MS-MQMQ] 2.2.7 has.
    """

    format_type: ClassVar[QueueFormatType] = QueueFormatType.PUBLIC

    queue: UUID

    def __str__(self) -> str:
        return f"PUBLIC={self.queue}{self.suffix_text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateName(SuffixedName):
    r"""[MS-MQMQ] 2.1.4: a private queue by its computer's identifier and its number there.

    Printed with eight digits, `PRIVATE=guid\0000000a`, as [MC-MQAC] 3.10.6.1 wants it.
    """

    format_type: ClassVar[QueueFormatType] = QueueFormatType.PRIVATE

    computer: UUID
    number: int

    def __post_init__(self) -> None:
        SuffixedName.__post_init__(self)
        if not 0 <= self.number <= PRIVATE_NUMBER_MAX:
            raise ValueError(f"{self.number:#x} is not the number of a private queue")

    def __str__(self) -> str:
        return f"PRIVATE={self.computer}\\{self.number:08x}{self.suffix_text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineName(SuffixedName):
    """[MS-MQMQ] 2.1.6: one of a computer's own queues, `MACHINE=guid;DEADLETTER`.

    The grammar there has no suffix, [MS-MQMQ] 2.2.7 demands one: without it the computer is named
    and no queue.
    """

    format_type: ClassVar[QueueFormatType] = QueueFormatType.MACHINE

    computer: UUID

    @property
    def is_read_only(self) -> bool:
        """[MS-MQMQ] 2.1.7: nobody sends to a computer's own queues, nor to a computer."""
        return True

    def __str__(self) -> str:
        return f"MACHINE={self.computer}{self.suffix_text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorName(SuffixedName):
    """[MS-MQMQ] 2.1.6: a connector queue, `CONNECTOR=guid`, or its transactional sibling.

    The grammar there has no `;XACTONLY`; [MS-MQMQ] 2.2.7 has.
    """

    format_type: ClassVar[QueueFormatType] = QueueFormatType.CONNECTOR

    connector: UUID

    def __str__(self) -> str:
        return f"CONNECTOR={self.connector}{self.suffix_text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionListName:
    """[MS-MQMQ] 2.1.5: queues by their list in the directory, `DL=guid@domain`.

    Domains that differ only in case are equal.
    """

    format_type: ClassVar[QueueFormatType] = QueueFormatType.DISTRIBUTION_LIST
    suffix_type: ClassVar[QueueSuffixType] = QueueSuffixType.NONE
    is_read_only: ClassVar[bool] = False

    identifier: UUID
    domain: str | None = field(default=None, compare=False)
    _domain_key: str | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = None
        if self.domain is not None:
            read_whole(self.domain, lambda scanner: scanner.take_part(DOMAIN), DOMAIN.what)
            key = fold(self.domain)
        object.__setattr__(self, "_domain_key", key)

    def __str__(self) -> str:
        return f"DL={self.identifier}{'' if self.domain is None else f'@{self.domain}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MulticastName:
    """[MS-MQMQ] 2.1.6: all queues that listen to an address, `MULTICAST=234.1.1.1:8001`."""

    format_type: ClassVar[QueueFormatType] = QueueFormatType.MULTICAST
    suffix_type: ClassVar[QueueSuffixType] = QueueSuffixType.NONE
    is_read_only: ClassVar[bool] = False

    address: IPv4Address
    port: int

    def __post_init__(self) -> None:
        if self.address.packed[0] not in MULTICAST_FIRST_OCTETS:
            raise ValueError(f"{self.address} is not a multicast address")
        if not 0 <= self.port <= PORT_MAX:
            raise ValueError(f"{self.port} is not a port")

    def __str__(self) -> str:
        return f"MULTICAST={self.address}:{self.port}"


FormatName: TypeAlias = (
    PublicName
    | PrivateName
    | DirectName
    | DistributionListName
    | MulticastName
    | MachineName
    | ConnectorName
)
"""[MS-MQMQ] 2.1.2 to 2.1.6: a format name with one element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleElementName:
    """[MS-MQMQ] 2.1.7: two or more format names to send to at once, separated by commas."""

    elements: tuple[FormatName, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.elements) <= ELEMENTS_MAX:
            raise ValueError(f"{len(self.elements)} elements, expected 2 to {ELEMENTS_MAX}")
        for element in self.elements:
            if element.is_read_only:
                raise ValueError(f"{element} is read-only and cannot be in a list")

    def __str__(self) -> str:
        return ",".join(map(str, self.elements))

    def without_duplicates(self) -> FormatName | MultipleElementName:
        """[MS-MQDMPR] 3.1.7.3.8: each element once, in the order of the alphabet."""
        once = dict.fromkeys(sorted(self.elements, key=lambda element: fold(str(element))))
        elements = tuple(once)
        return elements[0] if len(elements) == 1 else MultipleElementName(elements=elements)


def parse_format_name(text: str) -> FormatName | MultipleElementName:
    r"""[MS-MQMQ] 2.1.2 to 2.1.7: reads a format name such as `DIRECT=OS:computer\queue`.

    Raises:
        NameSyntaxError: The text is not a format name.
    """
    scanner = Scanner(text, ends=",")
    if len(text) > MULTIPLE_ELEMENT_LENGTH_MAX:
        scanner.reject(
            f"format names have at most {MULTIPLE_ELEMENT_LENGTH_MAX} characters",
            at=MULTIPLE_ELEMENT_LENGTH_MAX,
        )
    first = _scan_element(scanner)
    if scanner.position == len(text):
        return first
    _refuse_read_only(scanner, first, start=0)
    elements = [first]
    while scanner.take(","):
        if len(elements) == ELEMENTS_MAX:
            scanner.reject(f"a list has at most {ELEMENTS_MAX} format names")
        start = scanner.position
        elements.append(_scan_element(scanner))
        _refuse_read_only(scanner, elements[-1], start=start)
    return MultipleElementName(elements=tuple(elements))


def _scan_element(scanner: Scanner) -> FormatName:
    start = scanner.position
    prefix = scanner.ahead("=" + scanner.ends)
    scanner.position += len(prefix)
    scan = SCANNERS.get(upper(prefix))
    if scan is None or not scanner.take("="):
        scanner.position = start
        known = ", ".join(f"{word}=" for word in FORMAT_NAME_PREFIXES)
        scanner.fail(f"a format name starting with one of {known}", _hint(scanner, prefix))
    return scan(scanner)


def _hint(scanner: Scanner, prefix: str) -> str:
    """What people who start a format name like this have usually overlooked."""
    if scanner.sees_word("FORMATNAME:"):
        return "leave out FormatName:, which belongs to one programming interface"
    if scanner.sees(" "):
        return "no spaces stand before a name or behind a comma"
    if any(scanner.sees_word(f"{word}:") for word in PROTOCOL_WORDS):
        return f"write DIRECT= before {prefix.partition(':')[0]}:"
    if scanner.position == 0 and "\\" in prefix:
        return f"it looks like a path name; as a format name it is DIRECT=OS:{prefix}"
    if scanner.position > 0:
        return "a comma stands only between format names"
    return ""


def _refuse_read_only(scanner: Scanner, element: FormatName, *, start: int) -> None:
    if element.is_read_only:
        suffix = scanner.text.rfind(";", start, scanner.position)
        scanner.reject(
            "a list is to be sent to, and cannot contain a journal or dead-letter queue",
            at=start if suffix < 0 else suffix,
        )


def _scan_public(scanner: Scanner) -> PublicName:
    queue = scanner.take_guid()
    return PublicName(queue=queue, suffix=_scan_suffix(scanner, QueueFormatType.PUBLIC))


def _scan_private(scanner: Scanner) -> PrivateName:
    computer = scanner.take_guid()
    scanner.expect("\\", "behind the computer stands the queue's number in hexadecimal digits")
    digits = scanner.take_run(HEX_DIGITS, length_max=PRIVATE_NUMBER_DIGITS_MAX)
    if not digits:
        scanner.fail("the number of the private queue in hexadecimal digits")
    if scanner.sees(HEX_DIGITS):
        scanner.reject(f"the number has at most {PRIVATE_NUMBER_DIGITS_MAX} digits")
    if not scanner.at_end and not scanner.sees(";"):
        hint = "hexadecimal digits stand without 0x" if scanner.sees("xX") else ""
        scanner.fail("a hexadecimal digit, ';JOURNAL' or the end", hint)
    suffix = _scan_suffix(scanner, QueueFormatType.PRIVATE)
    return PrivateName(computer=computer, number=int(digits, 16), suffix=suffix)


def _scan_distribution_list(scanner: Scanner) -> DistributionListName:
    identifier = scanner.take_guid()
    if not scanner.take("@"):
        scanner.expect_end("'@' and a domain")
        return DistributionListName(identifier=identifier)
    domain = scanner.take_part(DOMAIN)
    scanner.expect_end("another character of the domain name")
    return DistributionListName(identifier=identifier, domain=domain)


def _scan_multicast(scanner: Scanner) -> MulticastName:
    address = scan_multicast_address(scanner)
    scanner.expect(":", "a multicast name has a port, as in MULTICAST=234.1.1.1:8001")
    port = scan_multicast_port(scanner)
    scanner.expect_end("another digit of the port")
    return MulticastName(address=address, port=port)


def _scan_machine(scanner: Scanner) -> MachineName:
    computer = scanner.take_guid()
    return MachineName(computer=computer, suffix=_scan_suffix(scanner, QueueFormatType.MACHINE))


def _scan_connector(scanner: Scanner) -> ConnectorName:
    connector = scanner.take_guid()
    return ConnectorName(
        connector=connector, suffix=_scan_suffix(scanner, QueueFormatType.CONNECTOR)
    )


SCANNERS: dict[str, Callable[[Scanner], FormatName]] = {
    "PUBLIC": _scan_public,
    "PRIVATE": _scan_private,
    "DIRECT": scan_direct_name,
    "DL": _scan_distribution_list,
    "MULTICAST": _scan_multicast,
    "MACHINE": _scan_machine,
    "CONNECTOR": _scan_connector,
}


def _scan_suffix(scanner: Scanner, format_type: QueueFormatType) -> QueueSuffixType:
    if not scanner.take(";"):
        scanner.expect_end("';' and a suffix")
        return QueueSuffixType.NONE
    return scan_suffix(scanner, NAME_SUFFIXES[format_type])
