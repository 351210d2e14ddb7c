"""Names of all kinds: print and read, compare, and survive any text."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from merq.errors import NameSyntaxError
from merq.model.names import (
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
    QueueScope,
    QueueSuffixType,
    explain,
    parse_direct_name,
    parse_format_name,
    parse_path_name,
)
from merq.model.names.kinds import NAME_SUFFIXES, QueueFormatType

QUEUE_JOURNAL = st.sampled_from([QueueSuffixType.NONE, QueueSuffixType.JOURNAL])
COMPUTER_SUFFIX = st.sampled_from(
    [QueueSuffixType.JOURNAL, QueueSuffixType.DEADLETTER, QueueSuffixType.DEADXACT]
)


def visible_text(*, without: str, length_max: int, spaced: bool = False) -> SearchStrategy[str]:
    """Text in letters of all scripts; half the length, as some are two units on the wire."""
    rare = st.characters(exclude_categories=("C", "Z"), exclude_characters=without)
    usual = st.sampled_from([c for c in map(chr, range(0x21, 0x7F)) if c not in without])
    if not spaced:
        return st.text(usual | rare, min_size=1, max_size=length_max // 2)
    found = st.text(usual | rare | st.just(" "), min_size=1, max_size=length_max // 2)
    return found.filter(lambda text: text == text.strip(" "))


def introduces_a_scope(name: str) -> bool:
    return name.lower().startswith(("private$", "system$"))


computers = visible_text(without='\\/;,"=:[', length_max=256).filter(
    lambda name: not introduces_a_scope(name)
)
ipv6_addresses = st.ip_addresses(v=6).map(str) | st.ip_addresses(v=6).map(lambda a: a.exploded)
queues = visible_text(without='\\;+,"', length_max=124, spaced=True)
subqueues = visible_text(without='\\;+,"', length_max=32, spaced=True).filter(
    lambda name: name.upper() not in QueueSuffixType.__members__
)


@st.composite
def queue_parts(draw: st.DrawFn, *, computer: str) -> PathName:
    scope = draw(st.sampled_from(QueueScope))
    if scope is QueueScope.SYSTEM:
        return PathName(computer=computer, scope=scope, suffix=draw(COMPUTER_SUFFIX))
    name = queues
    if scope is QueueScope.PUBLIC:
        name = queues.filter(lambda queue: not introduces_a_scope(queue))
    queue, subqueue = draw(name), draw(st.none() | subqueues)
    suffix = QueueSuffixType.NONE if subqueue is not None else draw(QUEUE_JOURNAL)
    return PathName(computer=computer, scope=scope, queue=queue, subqueue=subqueue, suffix=suffix)


path_names: SearchStrategy[PathName] = (computers | ipv6_addresses).flatmap(
    lambda computer: queue_parts(computer=computer)
)


@st.composite
def _direct_names(draw: st.DrawFn) -> DirectName:
    protocol = draw(st.sampled_from(DirectProtocol))
    digits = "0123456789abcdefABCDEF"
    spx = st.builds(
        "{}.{}".format,
        st.text(digits, min_size=8, max_size=8),
        st.text(digits, min_size=12, max_size=12),
    )
    hosts = {
        DirectProtocol.OS: computers | ipv6_addresses,
        DirectProtocol.TCP: st.ip_addresses(v=4).map(str) | ipv6_addresses,
        DirectProtocol.SPX: spx,
        DirectProtocol.HTTP: computers | ipv6_addresses,
        DirectProtocol.HTTPS: computers | ipv6_addresses,
    }
    queue = draw(queue_parts(computer="."))
    ports = st.none() | st.sampled_from([80, 443]) | st.integers(1, 65535)
    return DirectName(
        protocol=protocol,
        host=draw(hosts[protocol]),
        port=draw(ports) if protocol.is_http else None,
        scope=queue.scope,
        queue=queue.queue,
        subqueue=queue.subqueue,
        suffix=queue.suffix,
    )


direct_names: SearchStrategy[DirectName] = _direct_names()
domains = visible_text(without='\\/;,"=', length_max=255)
multicast_addresses = st.integers(
    int(IPv4Address("224.0.0.0")), int(IPv4Address("239.255.255.255"))
)

format_names: SearchStrategy[FormatName] = st.one_of(
    st.builds(PublicName, queue=st.uuids(), suffix=QUEUE_JOURNAL),
    st.builds(
        PrivateName,
        computer=st.uuids(),
        number=st.integers(0, 0xFFFFFFFF),
        suffix=QUEUE_JOURNAL,
    ),
    direct_names,
    st.builds(DistributionListName, identifier=st.uuids(), domain=st.none() | domains),
    st.builds(
        MulticastName, address=multicast_addresses.map(IPv4Address), port=st.integers(0, 65535)
    ),
    st.builds(
        MachineName,
        computer=st.uuids(),
        suffix=st.sampled_from(sorted(NAME_SUFFIXES[QueueFormatType.MACHINE])),
    ),
    st.builds(
        ConnectorName,
        connector=st.uuids(),
        suffix=st.sampled_from(sorted(NAME_SUFFIXES[QueueFormatType.CONNECTOR])),
    ),
)

lists: SearchStrategy[MultipleElementName] = st.builds(
    MultipleElementName,
    elements=st.lists(
        format_names.filter(lambda name: not name.is_read_only), min_size=2, max_size=4
    ).map(tuple),
)

texts_of_names = (path_names | format_names | lists).map(str)


@st.composite
def spoiled_names(draw: st.DrawFn) -> str:
    """Names with a few characters changed, moved, or left out: nearly right is the hardest."""
    characters = list(draw(texts_of_names))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(characters)))
        stop = draw(st.integers(start, min(len(characters), start + 2)))
        characters[start:stop] = draw(st.text("\\/;:,=$@.-[]%+ \"'0fg;\x00é\ud800🐝", max_size=2))
    return "".join(characters)


any_text = st.text() | spoiled_names() | texts_of_names.map(str.swapcase)


@pytest.mark.spec("MS-MQMQ 2.1.1")
@settings(max_examples=150, deadline=None)
@given(path_names)
def test_any_path_name_reads_back_as_itself(name: PathName) -> None:
    again = parse_path_name(str(name))
    assert again == name
    assert str(again) == str(name)


@pytest.mark.spec("MS-MQMQ 2.1.2", "MS-MQMQ 2.1.3", "MS-MQMQ 2.1.4", "MS-MQMQ 2.1.5")
@pytest.mark.spec("MS-MQMQ 2.1.6", "MS-MQMQ 2.1.7")
@settings(max_examples=200, deadline=None)
@given(format_names | lists)
def test_any_format_name_reads_back_as_itself(name: FormatName | MultipleElementName) -> None:
    again = parse_format_name(str(name))
    assert again == name
    assert hash(again) == hash(name)
    assert str(again) == str(name)


@pytest.mark.spec("MS-MQMQ 2.2.7")
@settings(max_examples=100, deadline=None)
@given(direct_names)
def test_any_direct_name_reads_back_without_its_prefix(name: DirectName) -> None:
    assert parse_direct_name(name.without_prefix()) == name


@pytest.mark.spec("MS-MQDMPR 3.1.7.1.26", "MC-MQAC 3.1.6.2")
@settings(max_examples=100, deadline=None)
@given(direct_names, path_names)
def test_direct_names_and_path_names_become_each_other(direct: DirectName, path: PathName) -> None:
    assert parse_path_name(str(direct.path_name())) == direct.path_name()
    assert DirectName.of_path(path).path_name() == path


def in_other_case(text: str) -> str:
    return "".join(c.swapcase() if c.isascii() else c for c in text)


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.8")
@settings(max_examples=150, deadline=None)
@given(format_names | lists)
def test_case_makes_no_difference_to_equality_or_hash(
    name: FormatName | MultipleElementName,
) -> None:
    other = parse_format_name(in_other_case(str(name)))
    assert other == name
    assert name == other
    assert hash(other) == hash(name)


# Few, and some of them equal; the odd letters have upper and lower cases of unequal kinds.
close_names = st.builds(
    "DIRECT={}://{}/msmq/{}q".format,
    st.sampled_from(["http", "HTTP", "https"]),
    st.sampled_from(["h", "H", "h:80", "h:443"]),
    st.sampled_from(["", "private$/", "PRIVATE$\\"]),
) | st.builds(
    "DIRECT=OS:h\\{}".format,
    st.sampled_from(["\u017f", "s", "S", "\u212a", "k", "K", "\u0130", "i", "\u0131", "ß", "SS"]),
)


@settings(max_examples=300, deadline=None)
@given(close_names, close_names, close_names)
def test_equality_is_an_equivalence_and_agrees_with_hash(a: str, b: str, c: str) -> None:
    x, y, z = map(parse_format_name, (a, b, c))
    assert x == parse_format_name(a)
    assert (x == y) == (y == x)
    if x == y:
        assert hash(x) == hash(y)
    if x == y and y == z:
        assert x == z


def refusal(parse: Callable[[str], object], text: str) -> NameSyntaxError | None:
    try:
        parse(text)
    except NameSyntaxError as error:
        return error
    return None


@settings(max_examples=300, deadline=None)
@given(any_text)
def test_any_text_is_a_name_or_refused_at_one_of_its_characters(text: str) -> None:
    for parse in (parse_path_name, parse_format_name, parse_direct_name, explain):
        error = refusal(parse, text)
        if error is not None:
            assert 0 <= error.position <= len(text)
            assert error.text == text
            assert error.reason


@settings(max_examples=200, deadline=None)
@given(any_text)
def test_what_is_read_from_any_text_reads_back_as_itself(text: str) -> None:
    try:
        name = parse_format_name(text)
    except NameSyntaxError:
        return
    assert parse_format_name(str(name)) == name


@settings(max_examples=150, deadline=None)
@given(path_names | format_names | lists)
def test_any_name_can_be_explained(name: PathName | FormatName | MultipleElementName) -> None:
    explanation = explain(str(name))
    assert explanation.canonical == str(name)
    assert explanation.parts
    assert explanation.notes


@st.composite
def nearly_ipv6_addresses(draw: st.DrawFn) -> str:
    groups = st.sampled_from(["0", "1", "ffff", "12345", "", "1.2.3.4", "1.2.3.256"])
    separators = st.sampled_from([":", ":", ":", "::"])
    text = draw(st.sampled_from(["", "", "::", ":"]))
    for _ in range(draw(st.integers(1, 9))):
        text += draw(groups) + draw(separators)
    return text + draw(groups)


def is_ip_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


@pytest.mark.spec("MS-MQQB 2.2.4")
@settings(max_examples=300, deadline=None)
@given(ipv6_addresses | nearly_ipv6_addresses())
def test_the_ip_addresses_in_names_are_those_of_the_standard(text: str) -> None:
    try:
        name = parse_direct_name(f"TCP:{text}\\q")
    except NameSyntaxError:
        assert not is_ip_address(text)
    else:
        assert is_ip_address(text)
        assert name.host == text
