r"""Format names of all kinds: `DIRECT=OS:computer\queue`, `PUBLIC=guid` and the rest."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address
from uuid import UUID

import pytest

from merq.errors import NameSyntaxError
from merq.model.names import (
    DOMAIN_LENGTH_MAX,
    ELEMENTS_MAX,
    FORMAT_NAME_LENGTH_MAX,
    MULTIPLE_ELEMENT_LENGTH_MAX,
    SUFFIXES_BY_FORMAT,
    ConnectorName,
    DirectName,
    DirectProtocol,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PathName,
    PrivateName,
    PublicName,
    QueueFormatType,
    QueueScope,
    QueueSuffixType,
    explain,
    parse_direct_name,
    parse_format_name,
)

GUID = "fd74b8eb-2af7-4ac5-9405-074e315df392"
ID = UUID(GUID)
JOURNAL = QueueSuffixType.JOURNAL


def private_queue(protocol: DirectProtocol, host: str, queue: str) -> DirectName:
    return DirectName(protocol=protocol, host=host, scope=QueueScope.PRIVATE, queue=queue)


def public_queue(protocol: DirectProtocol, host: str, queue: str) -> DirectName:
    return DirectName(protocol=protocol, host=host, scope=QueueScope.PUBLIC, queue=queue)


# Where a document shows the name or its form, with the place-holders filled in.
SHOWN = [
    ("MS-MQMQ 2.1.3", f"PUBLIC={GUID}", PublicName(queue=ID)),
    ("MS-MQMQ 2.2.7", f"PUBLIC={GUID};JOURNAL", PublicName(queue=ID, suffix=JOURNAL)),
    ("MS-MQMQ 2.1.4", rf"PRIVATE={GUID}\0000000a", PrivateName(computer=ID, number=10)),
    (
        "MS-MQMQ 2.1.4",
        rf"PRIVATE={GUID}\ffffffff;JOURNAL",
        PrivateName(computer=ID, number=0xFFFFFFFF, suffix=JOURNAL),
    ),
    ("MS-MQQB 3.1.7.17", rf"PRIVATE={GUID}\00000004", PrivateName(computer=ID, number=4)),
    ("MS-MQMQ 2.1.5", f"DL={GUID}", DistributionListName(identifier=ID)),
    (
        "MS-MQMQ 2.1.5",
        f"DL={GUID}@contoso.com",
        DistributionListName(identifier=ID, domain="contoso.com"),
    ),
    (
        "MC-MQSRM 2.2.4.2",
        "MULTICAST=234.1.1.1:8001",
        MulticastName(address=IPv4Address("234.1.1.1"), port=8001),
    ),
    ("MS-MQMQ 2.1.6", f"MACHINE={GUID}", MachineName(computer=ID)),
    (
        "MS-MQMQ 2.2.7",
        f"MACHINE={GUID};DEADXACT",
        MachineName(computer=ID, suffix=QueueSuffixType.DEADXACT),
    ),
    (
        "MS-MQMQ 2.1.6",
        f"MACHINE={GUID};CONNECTOR",
        MachineName(computer=ID, suffix=QueueSuffixType.CONNECTOR),
    ),
    (
        "MS-MQMQ 2.1.6",
        f"CONNECTOR={GUID};CONNECTOR",
        ConnectorName(connector=ID, suffix=QueueSuffixType.CONNECTOR),
    ),
    ("MS-MQMQ 2.1.6", f"CONNECTOR={GUID}", ConnectorName(connector=ID)),
    (
        "MS-MQMQ 2.2.7",
        f"CONNECTOR={GUID};XACTONLY",
        ConnectorName(connector=ID, suffix=QueueSuffixType.XACTONLY),
    ),
    ("MS-MQQB 4.1.7", r"DIRECT=OS:a04bm02\q", public_queue(DirectProtocol.OS, "a04bm02", "q")),
    (
        "MS-MQQB 3.1.7.17",
        r"DIRECT=TCP:10.0.0.7\PRIVATE$\order_queue$",
        private_queue(DirectProtocol.TCP, "10.0.0.7", "order_queue$"),
    ),
    (
        "MS-MQQB 2.2.4",
        r"DIRECT=TCP:fe80::c0de\PRIVATE$\order_queue$",
        private_queue(DirectProtocol.TCP, "fe80::c0de", "order_queue$"),
    ),
    (
        "MS-MQQB 2.2.4",
        r"DIRECT=SPX:0000002A.00AA00BB00CC\PRIVATE$\order_queue$",
        private_queue(DirectProtocol.SPX, "0000002A.00AA00BB00CC", "order_queue$"),
    ),
    (
        "MC-MQSRM 2.2.4.2",
        "DIRECT=http://destinationhost/msmq/private$/simpleq",
        private_queue(DirectProtocol.HTTP, "destinationhost", "simpleq"),
    ),
    (
        "MC-MQSRM 2.2.4.2",
        "DIRECT=https://myhostname/msmq/private$/sampleq",
        private_queue(DirectProtocol.HTTPS, "myhostname", "sampleq"),
    ),
    (
        "MC-MQSRM 4.4",
        "DIRECT=http://machine1/msmq/private$/receipts?SenderStream=XRntV",
        private_queue(DirectProtocol.HTTP, "machine1", "receipts?SenderStream=XRntV"),
    ),
    (
        "MS-MQMQ 2.1.2",
        r"DIRECT=OS:host\PRIVATE$\orders;JOURNAL",
        DirectName(
            protocol=DirectProtocol.OS,
            host="host",
            scope=QueueScope.PRIVATE,
            queue="orders",
            suffix=JOURNAL,
        ),
    ),
    (
        "MS-MQMQ 2.1.2",
        r"DIRECT=OS:host\SYSTEM$;DEADLETTER",
        DirectName(
            protocol=DirectProtocol.OS,
            host="host",
            scope=QueueScope.SYSTEM,
            suffix=QueueSuffixType.DEADLETTER,
        ),
    ),
    (
        "MS-MQMQ 2.2.7",
        r"DIRECT=OS:host\PRIVATE$\orders;retry",
        DirectName(
            protocol=DirectProtocol.OS,
            host="host",
            scope=QueueScope.PRIVATE,
            queue="orders",
            subqueue="retry",
        ),
    ),
    (
        "MS-MQMQ 2.1.7",
        rf"DIRECT=OS:ComputerAddress\QueueName,PUBLIC={GUID},DL={GUID}",
        MultipleElementName(
            elements=(
                public_queue(DirectProtocol.OS, "ComputerAddress", "QueueName"),
                PublicName(queue=ID),
                DistributionListName(identifier=ID),
            )
        ),
    ),
]

# Other spellings that mean the same, and the one that is printed.
SPELLINGS = [
    (f"public={GUID.upper()};journal", f"PUBLIC={GUID};JOURNAL"),
    (rf"PRIVATE={GUID}\3", rf"PRIVATE={GUID}\00000003"),
    (rf"Private={GUID}\AbC", rf"PRIVATE={GUID}\00000abc"),
    (r"direct=os:Host\private$\Orders", r"DIRECT=OS:Host\PRIVATE$\Orders"),
    (r"DIRECT=TCP:[fe80::1%3]\q", r"DIRECT=TCP:fe80::1%3\q"),
    (r"DIRECT=TCP:::ffff:10.0.0.1\q", r"DIRECT=TCP:::ffff:10.0.0.1\q"),
    (r"DIRECT=IPX:0000002A:00AA00BB00CC\q", r"DIRECT=SPX:0000002A.00AA00BB00CC\q"),
    (r"DIRECT=HTTP://Host/MSMQ\PRIVATE$\q", "DIRECT=http://Host/msmq/private$/q"),
    ("DIRECT=http://host:80/msmq/q", "DIRECT=http://host/msmq/q"),
    ("DIRECT=http://host:/msmq/q", "DIRECT=http://host/msmq/q"),
    ("DIRECT=https://host:0443/msmq/q", "DIRECT=https://host/msmq/q"),
    ("DIRECT=https://host:80/msmq/q", "DIRECT=https://host:80/msmq/q"),
    ("DIRECT=http://[::1]:8080/msmq/q;JOURNAL", "DIRECT=http://[::1]:8080/msmq/q;JOURNAL"),
    ("DIRECT=http://10.0.0.1/msmq/SYSTEM$;journal", "DIRECT=http://10.0.0.1/msmq/system$;JOURNAL"),
    ("DIRECT=http://h/msmq/a/b", "DIRECT=http://h/msmq/a/b"),
    ("DIRECT=OS:.\\private$\\größe", "DIRECT=OS:.\\PRIVATE$\\größe"),
    (r"DIRECT=OS:h\private$x", r"DIRECT=OS:h\private$x"),
    (r"DIRECT=OS:h\private$\my orders;a b", r"DIRECT=OS:h\PRIVATE$\my orders;a b"),
    ("DIRECT=http://h/msmq/private$/my orders", "DIRECT=http://h/msmq/private$/my orders"),
    (r"DIRECT=OS:a\my q,DIRECT=TCP:1.2.3.4\q 2", r"DIRECT=OS:a\my q,DIRECT=TCP:1.2.3.4\q 2"),
    ("multicast=239.255.255.255:0", "MULTICAST=239.255.255.255:0"),
    (f"machine={GUID};Journal", f"MACHINE={GUID};JOURNAL"),
]

MALFORMED = [
    ("", 0, "PUBLIC=, PRIVATE=, DIRECT=, DL=, MULTICAST=, MACHINE=, CONNECTOR="),
    ("DIRECT", 0, "starting with one of"),
    (" PUBLIC=" + GUID, 0, "no spaces"),
    (r"DIRECT=OS:a\q ,DIRECT=OS:b\q", 13, "a queue name does not end with a space"),
    (r"DIRECT=OS:a\q, DIRECT=OS:b\q", 14, "no spaces stand before a name or behind a comma"),
    (f"PUBLISHED={GUID}", 0, "starting with one of"),
    (r"FormatName:DIRECT=OS:h\q", 0, "leave out FormatName:"),
    (r"OS:h\q", 0, "write DIRECT= before OS:"),
    ("http://h/msmq/q", 0, "write DIRECT= before http:"),
    (r"h\private$\q", 0, r"DIRECT=OS:h\private$\q"),
    ("PUBLIC=", 7, "hexadecimal digit of the GUID"),
    (f"PUBLIC={{{GUID}}}", 7, "without braces"),
    (f"PUBLIC={GUID[:-1]}g", 42, "hexadecimal digit of the GUID"),
    (f"PUBLIC={GUID[:-1]}", 42, "found the end"),
    (f"PUBLIC={GUID.replace('-', '')}", 15, "'-' in the GUID"),
    (f"PUBLIC={GUID}0", 43, "expected ';' and a suffix or the end"),
    (f"PUBLIC={GUID};DEADLETTER", 44, "no other suffix"),
    (f"PUBLIC={GUID};retry", 44, "only reached by a DIRECT name"),
    (f"PUBLIC={GUID};JOURNALS", 51, "nothing behind JOURNAL"),
    (f"PUBLIC={GUID};", 44, "expected JOURNAL"),
    (f"PRIVATE={GUID}", 44, r"expected '\'"),
    (f"PRIVATE={GUID}/3", 44, r"expected '\'"),
    (f"PRIVATE={GUID}\\", 45, "number of the private queue"),
    (rf"PRIVATE={GUID}\orders", 45, "number of the private queue"),
    (rf"PRIVATE={GUID}\0x3", 46, "without 0x"),
    (rf"PRIVATE={GUID}\123456789", 53, "at most 8 digits"),
    (rf"PRIVATE={GUID}\3g", 46, "a hexadecimal digit, ';JOURNAL' or the end"),
    (rf"PRIVATE={GUID}\3;DEADXACT", 47, "no other suffix"),
    (f"DL={GUID};JOURNAL", 39, "expected '@' and a domain or the end"),
    (f"DL={GUID}@", 40, "expected a domain name"),
    (f"DL={GUID}@a b", 41, "found a space"),
    (f"DL={GUID}@{'d' * (DOMAIN_LENGTH_MAX + 1)}", 40 + DOMAIN_LENGTH_MAX, "at most 255"),
    ("MULTICAST=223.1.1.1:1", 10, "224.0.0.0 to 239.255.255.255"),
    ("MULTICAST=240.1.1.1:1", 10, "224.0.0.0 to 239.255.255.255"),
    ("MULTICAST=234.1.1:1", 17, "four numbers"),
    ("MULTICAST=234.1.1.256:1", 18, "more than 255"),
    ("MULTICAST=234.01.1.1:1", 14, "leading zero"),
    ("MULTICAST=234.1.1.1", 19, "has a port"),
    ("MULTICAST=234.1.1.1:", 20, "expected a port number"),
    ("MULTICAST=234.1.1.1:65536", 20, "from 0 to 65535"),
    ("MULTICAST=234.1.1.1:080", 20, "no leading zeros"),
    ("MULTICAST=234.1.1.1:80;JOURNAL", 22, "another digit of the port or the end"),
    (rf"MACHINE={GUID},DIRECT=OS:h\q", 0, "to be sent to"),
    (f"MACHINE={GUID};XACTONLY", 45, "no other suffix"),
    (f"CONNECTOR={GUID};JOURNAL", 47, "no other suffix"),
    ("DIRECT=", 7, "one of OS:, TCP:"),
    (r"DIRECT=h\q", 7, "has OS: before it"),
    (r"DIRECT=UDP:h\q", 7, "one of OS:, TCP:"),
    (r"DIRECT=OS\q", 9, "expected ':'"),
    (r"DIRECT=OS:\q", 10, "expected a computer name"),
    ("DIRECT=OS:h", 11, r"expected '\'"),
    ("DIRECT=OS:h/private$/q", 11, "only HTTP names are written with '/'"),
    (r"DIRECT=OS:h:1801\q", 11, "only HTTP and HTTPS names carry a port"),
    (r"DIRECT=OS:h\private$/q", 20, "only HTTP names are written with '/'"),
    (r"DIRECT=OS:h\SYSTEM$;ORDERS", 20, "expected JOURNAL or DEADLETTER or DEADXACT"),
    (r"DIRECT=OS:h\q;JOURNAL;x", 21, "a journal has no subqueues"),
    (r"DIRECT=TCP:host\q", 11, "OS: instead of TCP:"),
    (r"DIRECT=TCP:10.0.0.1:1801\q", 19, "only HTTP and HTTPS names carry a port"),
    (r"DIRECT=TCP:10.0.0\q", 17, "four numbers"),
    (r"DIRECT=TCP:10.0.0.300\q", 18, "more than 255"),
    (r"DIRECT=TCP:1::2::3\q", 16, "group of an IPv6 address"),
    (r"DIRECT=TCP:1:2:3:4:5:6:7\q", 24, "here are 7"),
    (r"DIRECT=TCP:1:2:3:4:5:6:7:8:9\q", 27, "eight groups"),
    (r"DIRECT=TCP:12345::\q", 15, "expected ':'"),
    (r"DIRECT=TCP:[::1\q", 15, "expected ']'"),
    (r"DIRECT=TCP:::1%\q", 15, "zone"),
    (r"DIRECT=SPX:2A.00AA00BB00CC\q", 13, "has 8"),
    (r"DIRECT=SPX:0000002A.00AA\q", 24, "has 12"),
    (r"DIRECT=SPX:0000002A\q", 19, "network.node"),
    ("DIRECT=http:h/msmq/q", 12, "http://computer/msmq/queue"),
    ("DIRECT=http:///msmq/q", 14, "expected a computer name"),
    ("DIRECT=http://h", 15, "expected '/'"),
    ("DIRECT=http://h/q", 16, "expected msmq/"),
    ("DIRECT=http://h/msmq", 20, "expected msmq/"),
    ("DIRECT=http://h/msmq/", 21, "expected a queue name"),
    ("DIRECT=http://h:0/msmq/q", 16, "from 1 to 65535"),
    ("DIRECT=http://h:65536/msmq/q", 16, "from 1 to 65535"),
    ("DIRECT=http://h:" + "9" * 5000 + "/msmq/q", 16, "from 1 to 65535"),
    ("DIRECT=http://h:x/msmq/q", 16, "expected a port number"),
    ("DIRECT=http://fe80::1/msmq/q", 19, "in brackets"),
    ("DIRECT=http://private$/msmq/q", 14, "is not a computer"),
    (r"DIRECT=OS:h\a,b", 14, "a comma stands only between format names"),
    (r"DIRECT=OS:h\a, DIRECT=OS:h\b", 14, "behind a comma"),
    (f"PUBLIC={GUID},", 44, "found the end"),
    (f",PUBLIC={GUID}", 0, "starting with one of"),
    (rf"DIRECT=OS:h\q,DIRECT=OS:h\q;JOURNAL,PUBLIC={GUID}", 27, "cannot contain a journal"),
    (rf"MACHINE={GUID};JOURNAL,DIRECT=OS:h\q", 44, "cannot contain a journal"),
    (r"DIRECT=OS:h\q,DIRECT=OS:h\SYSTEM$;DEADXACT", 33, "dead-letter"),
]


@pytest.mark.spec("MS-MQMQ 2.1.2", "MS-MQMQ 2.1.3", "MS-MQMQ 2.1.4", "MS-MQMQ 2.1.5")
@pytest.mark.spec("MS-MQMQ 2.1.6", "MS-MQMQ 2.1.7", "MS-MQMQ 2.2.7")
@pytest.mark.spec("MS-MQQB 2.2.4", "MS-MQQB 3.1.7.17", "MC-MQSRM 2.2.4.2", "MC-MQSRM 4.4")
@pytest.mark.parametrize(
    ("text", "expected"),
    [(text, expected) for _, text, expected in SHOWN],
    ids=[text for _, text, _ in SHOWN],
)
@pytest.mark.spec("E29")
def test_the_names_that_the_documents_show_are_read_and_printed(
    text: str, expected: FormatName | MultipleElementName
) -> None:
    assert parse_format_name(text) == expected
    assert str(expected) == text
    assert str(parse_format_name(text)) == text


@pytest.mark.spec("MS-MQMQ 2.1.2", "MS-MQMQ 2.1.3", "MS-MQMQ 2.1.4", "MS-MQMQ 2.1.6")
@pytest.mark.parametrize(("text", "printed"), SPELLINGS, ids=[text for text, _ in SPELLINGS])
@pytest.mark.spec("E30", "E33")
def test_other_spellings_are_equal_to_the_one_that_is_printed(text: str, printed: str) -> None:
    assert str(parse_format_name(text)) == printed
    assert parse_format_name(text) == parse_format_name(printed)


@pytest.mark.spec("MS-MQMQ 2.1.2", "MS-MQMQ 2.1.5", "MS-MQMQ 2.1.6", "MS-MQMQ 2.1.7")
@pytest.mark.parametrize(
    ("text", "position", "reason"), MALFORMED, ids=[repr(text[:60]) for text, _, _ in MALFORMED]
)
@pytest.mark.spec("E33")
@pytest.mark.spec("E32")
def test_a_malformed_format_name_is_refused_at_the_character(
    text: str, position: int, reason: str
) -> None:
    with pytest.raises(NameSyntaxError) as caught:
        parse_format_name(text)
    assert caught.value.position == position
    assert reason in caught.value.reason
    assert caught.value.text == text


@pytest.mark.spec("MS-MQMQ 2.2.6")
def test_the_kinds_of_format_names_have_the_numbers_of_the_wire() -> None:
    numbers = {
        f"PUBLIC={GUID}": 1,
        rf"PRIVATE={GUID}\3": 2,
        r"DIRECT=OS:h\q": 3,
        r"DIRECT=OS:h\q;JOURNAL": 3,
        f"MACHINE={GUID};JOURNAL": 4,
        f"CONNECTOR={GUID}": 5,
        f"DL={GUID}": 6,
        "MULTICAST=234.1.1.1:1": 7,
        r"DIRECT=OS:h\q;s": 8,
    }
    for text, number in numbers.items():
        name = parse_format_name(text)
        assert not isinstance(name, MultipleElementName)
        assert name.format_type == number, text
        assert name.suffix_type in SUFFIXES_BY_FORMAT[name.format_type], text
    assert QueueFormatType(0) is QueueFormatType.UNKNOWN


@pytest.mark.spec("MS-MQMQ 2.2.11")
def test_the_suffixes_have_the_numbers_of_the_wire() -> None:
    numbers = {
        r"DIRECT=OS:h\q": 0,
        r"DIRECT=OS:h\q;JOURNAL": 1,
        r"DIRECT=OS:h\SYSTEM$;DEADLETTER": 2,
        f"MACHINE={GUID};DEADXACT": 3,
        f"CONNECTOR={GUID};XACTONLY": 4,
        r"DIRECT=OS:h\q;s": 5,
        "MULTICAST=234.1.1.1:1": 0,
    }
    for text, number in numbers.items():
        name = parse_format_name(text)
        assert not isinstance(name, MultipleElementName)
        assert name.suffix_type == number, text


@pytest.mark.spec("MS-MQMQ 2.2.7")
@pytest.mark.parametrize("suffix", QueueSuffixType)
def test_values_have_the_suffixes_of_their_kind_and_no_others(suffix: QueueSuffixType) -> None:
    made: dict[QueueFormatType, Callable[[], FormatName]] = {
        QueueFormatType.PUBLIC: lambda: PublicName(queue=ID, suffix=suffix),
        QueueFormatType.PRIVATE: lambda: PrivateName(computer=ID, number=1, suffix=suffix),
        QueueFormatType.MACHINE: lambda: MachineName(computer=ID, suffix=suffix),
        QueueFormatType.CONNECTOR: lambda: ConnectorName(connector=ID, suffix=suffix),
    }
    allowed = {
        QueueSuffixType.NONE: {"PUBLIC", "PRIVATE", "MACHINE", "CONNECTOR"},
        QueueSuffixType.JOURNAL: {"PUBLIC", "PRIVATE", "MACHINE"},
        QueueSuffixType.DEADLETTER: {"MACHINE"},
        QueueSuffixType.DEADXACT: {"MACHINE"},
        QueueSuffixType.XACTONLY: {"CONNECTOR"},
        QueueSuffixType.SUBQUEUE: set[str](),
        QueueSuffixType.CONNECTOR: {"MACHINE", "CONNECTOR"},
    }
    for kind, make in made.items():
        if kind.name in allowed[suffix]:
            assert make().suffix_type is suffix
        else:
            with pytest.raises(ValueError, match="cannot have the suffix"):
                make()


@pytest.mark.spec("MS-MQMQ 2.1.7")
def test_journals_and_dead_letter_queues_are_read_only() -> None:
    read_only = [
        f"PUBLIC={GUID};JOURNAL",
        rf"PRIVATE={GUID}\3;JOURNAL",
        f"MACHINE={GUID};DEADLETTER",
        r"DIRECT=OS:h\q;JOURNAL",
        r"DIRECT=OS:h\SYSTEM$;DEADXACT",
    ]
    writable = [f"PUBLIC={GUID}", f"DL={GUID}", f"CONNECTOR={GUID}", r"DIRECT=OS:h\q"]
    for text, expected in [(text, True) for text in read_only] + [(t, False) for t in writable]:
        name = parse_format_name(text)
        assert not isinstance(name, MultipleElementName)
        assert name.is_read_only is expected, text


@pytest.mark.spec("MS-MQMQ 2.2.7", "MS-MQMQ 2.2.18.1.5.2")
def test_a_direct_name_goes_into_packets_and_comes_out_without_its_prefix() -> None:
    name = parse_direct_name(r"OS:a04bm02\q")
    assert name == parse_format_name(r"DIRECT=OS:a04bm02\q")
    assert name.without_prefix() == r"OS:a04bm02\q"
    assert parse_direct_name("http://h:8080/msmq/q").without_prefix() == "http://h:8080/msmq/q"


@pytest.mark.parametrize(
    ("text", "position"), [(r"DIRECT=OS:h\q", 0), (r"OS:h\a,OS:h\b", 6), (r"h\q", 0), ("", 0)]
)
def test_what_is_not_a_direct_name_without_prefix_is_refused(text: str, position: int) -> None:
    with pytest.raises(NameSyntaxError) as caught:
        parse_direct_name(text)
    assert caught.value.position == position


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.26")
@pytest.mark.parametrize(
    ("direct", "path"),
    [
        (r"DIRECT=OS:host\PRIVATE$\q", r"host\private$\q"),
        (r"DIRECT=TCP:10.0.0.1\q;s", r"10.0.0.1\q;s"),
        (r"DIRECT=TCP:fe80::1\SYSTEM$;JOURNAL", r"fe80::1\system$;JOURNAL"),
        ("DIRECT=http://host:8080/msmq/private$/q", r"host\private$\q"),
        (r"DIRECT=SPX:0000002A.00AA00BB00CC\q", r"0000002A.00AA00BB00CC\q"),
    ],
)
def test_the_path_name_of_a_direct_name_has_its_host_as_computer(direct: str, path: str) -> None:
    name = parse_format_name(direct)
    assert isinstance(name, DirectName)
    assert isinstance(name.path_name(), PathName)
    assert str(name.path_name()) == path


@pytest.mark.spec("MS-MQMQ 2.1.2")
def test_the_port_of_an_http_name_is_by_default_that_of_the_scheme() -> None:
    assert parse_direct_name("http://h/msmq/q").effective_port == 80
    assert parse_direct_name("https://h/msmq/q").effective_port == 443
    assert parse_direct_name("https://h:80/msmq/q").effective_port == 80
    assert parse_direct_name(r"OS:h\q").effective_port is None
    assert parse_direct_name("http://h/msmq/q") != parse_direct_name("http://h:443/msmq/q")
    assert parse_direct_name("http://h:443/msmq/q") != parse_direct_name("https://h/msmq/q")


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.8")
def test_format_names_that_differ_only_in_case_are_equal() -> None:
    for one, other in [
        (r"DIRECT=OS:host\private$\q;s", r"direct=os:HOST\PRIVATE$\Q;S"),
        (r"DIRECT=TCP:FE80:0:0::1\q", r"DIRECT=TCP:fe80::1\Q"),
        (r"DIRECT=SPX:0000002a.00aa00bb00cc\q", r"DIRECT=SPX:0000002A.00AA00BB00CC\q"),
        (f"DL={GUID}@contoso.com", f"DL={GUID}@Contoso.COM"),
    ]:
        assert parse_format_name(one) == parse_format_name(other)
        assert hash(parse_format_name(one)) == hash(parse_format_name(other))
    assert parse_format_name(f"DL={GUID}") != parse_format_name(f"DL={GUID}@contoso.com")


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.8")
def test_a_list_is_sorted_and_freed_of_names_that_differ_only_in_case() -> None:
    name = parse_format_name(
        rf"DIRECT=OS:host\q,PUBLIC={GUID},DIRECT=OS:HOST\Q,DIRECT=OS:host\a,PUBLIC={GUID}"
    )
    assert isinstance(name, MultipleElementName)
    assert str(name.without_duplicates()) == (rf"DIRECT=OS:host\a,DIRECT=OS:host\q,PUBLIC={GUID}")


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.8")
def test_a_list_of_one_name_in_different_cases_becomes_that_name() -> None:
    name = parse_format_name(r"DIRECT=OS:host\q,DIRECT=OS:HOST\Q")
    assert isinstance(name, MultipleElementName)
    assert name.without_duplicates() == parse_format_name(r"DIRECT=OS:host\q")


@pytest.mark.limit("merq.model.names.format_names.ELEMENTS_MAX")
@pytest.mark.spec("MS-MQMQ 2.1.7")
def test_a_list_has_a_largest_number_of_elements() -> None:
    element = r"DIRECT=OS:h\q"
    largest = parse_format_name(",".join([element] * ELEMENTS_MAX))
    assert isinstance(largest, MultipleElementName)
    assert len(largest.elements) == ELEMENTS_MAX
    with pytest.raises(NameSyntaxError) as caught:
        parse_format_name(",".join([element] * (ELEMENTS_MAX + 1)))
    assert caught.value.position == ELEMENTS_MAX * (len(element) + 1)
    assert f"at most {ELEMENTS_MAX}" in caught.value.reason


@pytest.mark.limit("merq.model.names.format_names.MULTIPLE_ELEMENT_LENGTH_MAX")
def test_a_format_name_has_a_largest_length() -> None:
    text = "DIRECT=OS:h\\q" + "," * MULTIPLE_ELEMENT_LENGTH_MAX
    with pytest.raises(NameSyntaxError) as caught:
        parse_format_name(text)
    assert caught.value.position == MULTIPLE_ELEMENT_LENGTH_MAX


@pytest.mark.spec("MS-MQMP 2.2.3.2")
def test_the_longest_direct_name_fits_into_the_buffers_of_the_client_protocol() -> None:
    text = rf"DIRECT=OS:{'c' * 256}\PRIVATE$\{'q' * 124};{'s' * 32}"
    assert len(str(parse_format_name(text))) <= FORMAT_NAME_LENGTH_MAX


def test_values_that_no_name_can_have_are_refused() -> None:
    queue = public_queue(DirectProtocol.OS, "h", "q")
    with pytest.raises(NameSyntaxError):
        public_queue(DirectProtocol.TCP, "host", "q")
    with pytest.raises(NameSyntaxError):
        public_queue(DirectProtocol.HTTP, "h/x", "q")
    with pytest.raises(NameSyntaxError):
        DistributionListName(identifier=ID, domain="a,b")
    with pytest.raises(ValueError, match="port 1801 is impossible in a TCP name"):
        DirectName(
            protocol=DirectProtocol.TCP,
            host="10.0.0.1",
            port=1801,
            scope=QueueScope.PUBLIC,
            queue="q",
        )
    with pytest.raises(ValueError, match="not the number"):
        PrivateName(computer=ID, number=0x1_0000_0000)
    with pytest.raises(ValueError, match="not a multicast address"):
        MulticastName(address=IPv4Address("10.0.0.1"), port=1)
    with pytest.raises(ValueError, match="not a port"):
        MulticastName(address=IPv4Address("234.0.0.1"), port=65536)
    with pytest.raises(ValueError, match="expected 2 to"):
        MultipleElementName(elements=(queue,))
    with pytest.raises(ValueError, match="read-only"):
        MultipleElementName(elements=(queue, MachineName(computer=ID, suffix=JOURNAL)))


EXPLAINED = [
    (r"DIRECT=OS:h\private$\q", "direct format name", "delivered over TCP 1801"),
    (r"DIRECT=OS:h\q;JOURNAL", "direct format name", "read-only: messages cannot be sent to it"),
    (r"DIRECT=OS:h\q;s", "direct format name", "not sent to it"),
    (r"DIRECT=SPX:0000002A.00AA00BB00CC\q", "direct format name", "delivered over SPX 876"),
    ("DIRECT=http://h/msmq/q", "direct format name", "SOAP over HTTP (SRMP), port 80"),
    ("DIRECT=https://h/msmq/q", "direct format name", "opened for sending only"),
    (f"PUBLIC={GUID}", "public format name", "needs a directory"),
    (rf"PRIVATE={GUID}\4", "private format name", "needs a directory"),
    (f"DL={GUID}@contoso.com", "distribution list format name", "needs a directory"),
    ("MULTICAST=234.1.1.1:8001", "multicast format name", "SOAP over PGM"),
    (f"MACHINE={GUID};DEADXACT", "machine format name", "read-only"),
    (f"CONNECTOR={GUID};XACTONLY", "connector format name", "foreign system"),
    (rf"PUBLIC={GUID},DIRECT=OS:h\q", "multiple-element format name", "2 destinations"),
]


@pytest.mark.parametrize(
    ("text", "kind", "note"), EXPLAINED, ids=[text for text, _, _ in EXPLAINED]
)
def test_an_explanation_says_the_kind_and_what_follows_from_it(
    text: str, kind: str, note: str
) -> None:
    explanation = explain(text)
    assert explanation.kind == kind
    assert explanation.canonical == str(parse_format_name(text))
    assert any(note in line for line in explanation.notes)
    assert all(part.label and part.value and part.meaning for part in explanation.parts)


def test_an_explanation_of_a_direct_name_shows_its_parts_in_order() -> None:
    explanation = explain("direct=HTTP://web/MSMQ/private$/orders;retry")
    assert [(part.label, part.value) for part in explanation.parts] == [
        ("protocol", "HTTP"),
        ("computer", "web"),
        ("port", "80"),
        ("scope", "private"),
        ("queue", "orders"),
        ("subqueue", "retry"),
    ]


@pytest.mark.spec("MS-MQCN 1.9", "MS-MQQB 2.2.4")
def test_an_explanation_names_the_queues_of_the_queue_managers() -> None:
    assert "notify_queue$" in explain(rf"PRIVATE={GUID}\3").parts[1].meaning
    assert "order_queue$" in explain(rf"PRIVATE={GUID}\4").parts[1].meaning


def test_an_explanation_of_a_list_shows_its_elements() -> None:
    parts = explain(rf"DIRECT=OS:h\q,PUBLIC={GUID}").parts
    assert [(part.label, part.meaning) for part in parts] == [
        ("element 1", "direct format name"),
        ("element 2", "public format name"),
    ]


@pytest.mark.parametrize("text", [r"OS:h\q", "http://h/msmq/q", r"FormatName:DIRECT=OS:h\q"])
@pytest.mark.spec("E32")
def test_what_is_nearly_a_format_name_is_refused_with_advice(text: str) -> None:
    with pytest.raises(NameSyntaxError, match=r"write DIRECT=|leave out FormatName:"):
        explain(text)
