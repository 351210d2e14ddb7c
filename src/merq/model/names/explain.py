"""What a name means, part by part, for people.

`explain` takes path names and format names alike. Not here: how it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from merq.errors import NameSyntaxError
from merq.model.names.direct_names import PROTOCOL_WORDS, DirectName
from merq.model.names.format_names import (
    ConnectorName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PrivateName,
    PublicName,
    parse_format_name,
)
from merq.model.names.kinds import DirectProtocol, QueueScope, QueueSuffixType
from merq.model.names.path_names import FORMAT_NAME_PREFIXES, PathName, parse_path_name
from merq.model.names.queues import QueueOnComputer
from merq.model.names.scanner import upper

BINARY_PORT = 1801
SPX_PORT = 876
"""[MS-MQQB] 2.1.1: where queue managers listen for each other."""

EXAMPLES = (
    r"a path name looks like .\private$\orders or computer\queue, "
    r"a format name like DIRECT=OS:computer\private$\orders or PUBLIC=guid"
)

QUEUE_SUFFIX_MEANINGS = {
    QueueSuffixType.JOURNAL: "copies of the messages that were taken from the queue",
    QueueSuffixType.XACTONLY: "the connector's queue for transactional messages",
    QueueSuffixType.CONNECTOR: "the connector's queue for messages outside transactions",
}

COMPUTER_SUFFIX_MEANINGS = {
    QueueSuffixType.JOURNAL: "copies of the messages that the computer sent",
    QueueSuffixType.DEADLETTER: "messages that could not be delivered",
    QueueSuffixType.DEADXACT: "transactional messages that could not be delivered",
    QueueSuffixType.CONNECTOR: "the queue that a connector application reads",
}

SCOPE_MEANINGS = {
    QueueScope.PUBLIC: "public: published in the directory",
    QueueScope.PRIVATE: "private: known to its computer only",
    QueueScope.SYSTEM: "one of the queues that every computer has",
}

PROTOCOL_MEANINGS = {
    DirectProtocol.OS: "the computer is found by its name",
    DirectProtocol.TCP: "the computer is found by its IP address",
    DirectProtocol.SPX: "the computer is found by its IPX address",
    DirectProtocol.HTTP: "the computer is a web server",
    DirectProtocol.HTTPS: "the computer is a web server that encrypts",
}

PRIVATE_NUMBER_MEANINGS = {
    3: "the notification queue, notify_queue$",
    4: "the order queue, order_queue$",
}
"""[MS-MQCN] 1.9 and [MS-MQQB] 2.2.4: queue managers talk to each other through these."""

KINDS: dict[type, str] = {
    PathName: "path name",
    PublicName: "public format name",
    PrivateName: "private format name",
    DirectName: "direct format name",
    DistributionListName: "distribution list format name",
    MulticastName: "multicast format name",
    MachineName: "machine format name",
    ConnectorName: "connector format name",
    MultipleElementName: "multiple-element format name",
}

READ_ONLY = "read-only: messages cannot be sent to it"
NEEDS_DIRECTORY = "needs a directory"
SUBQUEUE_NOTE = "a subqueue: messages are moved there from its queue, not sent to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPart:
    """One part of a name: what it is, how it is written, and what that means."""

    label: str
    value: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A name taken apart.

    Attributes:
        kind: Which kind of name it is.
        canonical: The name as it is printed everywhere.
        parts: What it consists of, from left to right.
        notes: What follows for whoever uses it.
    """

    kind: str
    canonical: str
    parts: tuple[ExplainedPart, ...]
    notes: tuple[str, ...]


def explain(text: str) -> Explanation:
    """[MS-MQMQ] 2.1: takes a path name or a format name apart.

    Raises:
        NameSyntaxError: The text is neither.
    """
    name = _parse(text)
    return Explanation(
        kind=KINDS[type(name)],
        canonical=str(name),
        parts=tuple(_parts(name)),
        notes=tuple(dict.fromkeys(_notes(name))),
    )


def _parse(text: str) -> PathName | FormatName | MultipleElementName:
    prefix, equals, _ = text.partition("=")
    known = bool(equals) and upper(prefix) in FORMAT_NAME_PREFIXES
    # What nearly is a format name gets that parser's advice, which knows the usual slips.
    scheme, colon, _ = text.partition(":")
    nearly = bool(colon) and upper(scheme) in (*PROTOCOL_WORDS, "FORMATNAME")
    if known or nearly:
        return parse_format_name(text)
    try:
        return parse_path_name(text)
    except NameSyntaxError as error:
        if "\\" in text:
            raise
        raise NameSyntaxError(text, error.position, f"{error.reason}; {EXAMPLES}") from None


def _parts(name: PathName | FormatName | MultipleElementName) -> list[ExplainedPart]:
    match name:
        case PathName():
            meaning = "the local computer" if name.is_local else "where the queue is"
            return [_part("computer", name.computer, meaning), *_queue_parts(name)]
        case DirectName():
            return [*_place_parts(name), *_queue_parts(name)]
        case MulticastName():
            return [
                _part("address", str(name.address), "the group that queues listen to"),
                _part("port", str(name.port), "the port that they listen on"),
            ]
        case MultipleElementName():
            return [
                _part(f"element {number}", str(element), KINDS[type(element)])
                for number, element in enumerate(name.elements, start=1)
            ]
        case _:
            return _identifier_parts(name)


def _identifier_parts(
    name: PublicName | PrivateName | MachineName | ConnectorName | DistributionListName,
) -> list[ExplainedPart]:
    match name:
        case PublicName():
            parts = [_part("queue", str(name.queue), "the queue's identifier in the directory")]
            return parts + _suffix_parts(name.suffix, QUEUE_SUFFIX_MEANINGS)
        case PrivateName():
            number = PRIVATE_NUMBER_MEANINGS.get(name.number, "the queue's number on its computer")
            return [
                _part("computer", str(name.computer), "the identifier of the queue manager"),
                _part("number", f"{name.number:08x}", number),
                *_suffix_parts(name.suffix, QUEUE_SUFFIX_MEANINGS),
            ]
        case MachineName():
            parts = [_part("computer", str(name.computer), "the identifier of the queue manager")]
            return parts + _suffix_parts(name.suffix, COMPUTER_SUFFIX_MEANINGS)
        case ConnectorName():
            parts = [_part("connector", str(name.connector), "the identifier of the connector")]
            return parts + _suffix_parts(name.suffix, QUEUE_SUFFIX_MEANINGS)
        case DistributionListName():
            parts = [_part("list", str(name.identifier), "the list's identifier in the directory")]
            if name.domain is not None:
                parts.append(_part("domain", name.domain, "the domain whose directory has it"))
            return parts
        case _:
            assert_never(name)


def _notes(name: PathName | FormatName | MultipleElementName) -> list[str]:
    match name:
        case PathName():
            return _path_notes(name)
        case DirectName():
            return _direct_notes(name)
        case PublicName() | PrivateName() | MachineName():
            notes = [f"{NEEDS_DIRECTORY} to find the computer"]
            if isinstance(name, MachineName) and name.suffix is QueueSuffixType.NONE:
                return ["names a computer, not one of its queues", *notes]
            return [READ_ONLY, *notes] if name.is_read_only else notes
        case DistributionListName():
            return [f"{NEEDS_DIRECTORY} to find the queues of the list"]
        case MulticastName():
            return ["sent as SOAP over PGM (SRMP) to all queues that listen to the address"]
        case ConnectorName():
            return ["read by a connector application, which passes messages to a foreign system"]
        case MultipleElementName():
            count = f"each message is sent to {len(name.elements)} destinations"
            return [count, *(note for element in name.elements for note in _notes(element))]
        case _:
            assert_never(name)


def _path_notes(name: PathName) -> list[str]:
    notes = _queue_notes(name)
    if name.is_public:
        private = PathName(
            computer=name.computer,
            scope=QueueScope.PRIVATE,
            queue=name.queue,
            subqueue=name.subqueue,
            suffix=name.suffix,
        )
        notes.append(f"{NEEDS_DIRECTORY}; the private queue of that name is {private}")
    notes.append(f"as a format name: {DirectName.of_path(name)}")
    return notes


def _direct_notes(name: DirectName) -> list[str]:
    notes = _queue_notes(name)
    if name.protocol.is_http:
        notes.append("can be opened for sending only")
    if not notes or name.protocol.is_http:
        notes.append(_transport_note(name))
    return notes


def _transport_note(name: DirectName) -> str:
    match name.protocol:
        case DirectProtocol.OS | DirectProtocol.TCP:
            return f"delivered over TCP {BINARY_PORT}"
        case DirectProtocol.SPX:
            return f"delivered over SPX {SPX_PORT}, a transport of early releases of MSMQ"
        case DirectProtocol.HTTP | DirectProtocol.HTTPS:
            scheme = name.protocol.value
            return f"delivered as SOAP over {scheme} (SRMP), port {name.effective_port}"
        case _:
            assert_never(name.protocol)


def _queue_notes(name: QueueOnComputer) -> list[str]:
    if name.is_read_only:
        return [READ_ONLY]
    return [] if name.subqueue is None else [SUBQUEUE_NOTE]


def _place_parts(name: DirectName) -> list[ExplainedPart]:
    parts = [
        _part("protocol", name.protocol.value, PROTOCOL_MEANINGS[name.protocol]),
        _part("computer", name.host, "where the queue is"),
    ]
    if name.effective_port is not None:
        meaning = "by default" if name.port is None else "where the web server listens"
        parts.append(_part("port", str(name.effective_port), meaning))
    return parts


def _queue_parts(name: QueueOnComputer) -> list[ExplainedPart]:
    parts = [_part("scope", name.scope.value, SCOPE_MEANINGS[name.scope])]
    if name.queue:
        parts.append(_part("queue", name.queue, "the queue's name"))
    if name.subqueue is not None:
        parts.append(_part("subqueue", name.subqueue, "a compartment of the queue"))
    meanings = COMPUTER_SUFFIX_MEANINGS if name.is_system else QUEUE_SUFFIX_MEANINGS
    return parts + _suffix_parts(name.suffix, meanings)


def _suffix_parts(
    suffix: QueueSuffixType, meanings: dict[QueueSuffixType, str]
) -> list[ExplainedPart]:
    if suffix is QueueSuffixType.NONE:
        return []
    return [_part("suffix", suffix.name, meanings[suffix])]


def _part(label: str, value: str, meaning: str) -> ExplainedPart:
    return ExplainedPart(label=label, value=value, meaning=meaning)
