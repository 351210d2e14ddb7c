"""The properties of queues by their identifiers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

import merq
from merq.cli.queue_properties import object_of_properties, properties_of
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.properties import ConnectionStatus, ObjectKind, Property
from merq.model.queue import OutgoingState, PrivacyLevel, QueueKind, QueueProperties
from merq.model.variant import VariantType
from merq.protocol.application.property_values import (
    PropertyValue,
    QueueFacts,
    known_properties,
    queue_property,
)
from merq.protocol.application.reports import (
    ConnectionAttempt,
    QueueReport,
    SequencePlace,
    SequenceReport,
    TransferReport,
)

MANAGER = UUID(int=0xAA)
SENDER = UUID(int=0xBB)
QUEUE_ID = UUID(int=0xCC)
TYPE_ID = UUID(int=0xDD)


def report(kind: QueueKind = QueueKind.PRIVATE, **fields: object) -> QueueReport:
    properties = QueueProperties(
        number=0x10,
        path_name=r".\private$\orders",
        kind=kind,
        identifier=QUEUE_ID,
        created=1_000_000_000,
        modified=1_000_000_100,
        label="Orders",
        type_id=TYPE_ID,
        transactional=True,
        journaling=True,
        quota=2048,
        journal_quota=1024,
        authenticate=True,
        privacy_level=PrivacyLevel.BODY,
    )
    return QueueReport(
        properties=replace(properties, **fields),  # type: ignore[arg-type]
        messages=3,
        size=700,
        locked=1,
        journal_messages=2,
        readers=0,
        openings=0,
        arrived=0,
        left=0,
        oldest=0,
        state=OutgoingState.INACTIVE,
    )


def local(**fields: object) -> QueueFacts:
    journal = replace(report(QueueKind.JOURNAL), messages=2, size=444)
    arrival = SequenceReport(
        sender=SENDER,
        format_name=r"DIRECT=OS:here\PRIVATE$\orders",
        sequence_id=0x1_0000_0002,
        number=9,
        last_access=1_000_000_050,
        rejects=4,
        address="10.0.0.9",
    )
    return QueueFacts(
        queue_manager=MANAGER,
        computer="here",
        report=report(**fields),  # type: ignore[arg-type]
        journal=journal,
        subqueues=("later", "poison"),
        sequences=(arrival,),
    )


LOCAL: Final[dict[str, PropertyValue | None]] = {
    "PROPID_Q_INSTANCE": QUEUE_ID,
    "PROPID_Q_TYPE": TYPE_ID,
    "PROPID_Q_PATHNAME": r"here\private$\orders",
    "PROPID_Q_JOURNAL": 1,
    "PROPID_Q_QUOTA": 2048,
    "PROPID_Q_BASEPRIORITY": 0,
    "PROPID_Q_JOURNAL_QUOTA": 1024,
    "PROPID_Q_LABEL": "Orders",
    "PROPID_Q_CREATE_TIME": 1_000_000_000,
    "PROPID_Q_MODIFY_TIME": 1_000_000_100,
    "PROPID_Q_AUTHENTICATE": 1,
    "PROPID_Q_PRIV_LEVEL": 2,
    "PROPID_Q_TRANSACTION": 1,
    "PROPID_Q_SCOPE": None,
    "PROPID_Q_QMID": MANAGER,
    "PROPID_Q_PARTITIONID": None,
    "PROPID_Q_SEQNUM": None,
    "PROPID_Q_HASHKEY": None,
    "PROPID_Q_LABEL_HASHKEY": None,
    "PROPID_Q_FULL_PATH": None,
    "PROPID_Q_NAME_SUFFIX": None,
    "PROPID_Q_PATHNAME_DNS": None,
    "PROPID_Q_MULTICAST_ADDRESS": None,
    "PROPID_Q_ADS_PATH": None,
    "PROPID_Q_SECURITY": None,
    "PROPID_Q_OBJ_SECURITY": None,
    "PROPID_Q_SECURITY_INFORMATION": None,
    "PROPID_MGMT_QUEUE_PATHNAME": r"here\private$\orders",
    "PROPID_MGMT_QUEUE_FORMATNAME": r"DIRECT=OS:here\PRIVATE$\orders",
    "PROPID_MGMT_QUEUE_TYPE": "PRIVATE",
    "PROPID_MGMT_QUEUE_LOCATION": "LOCAL",
    "PROPID_MGMT_QUEUE_XACT": "YES",
    "PROPID_MGMT_QUEUE_FOREIGN": "NO",
    "PROPID_MGMT_QUEUE_MESSAGE_COUNT": 3,
    "PROPID_MGMT_QUEUE_BYTES_IN_QUEUE": 700,
    "PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT": 2,
    "PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL": 444,
    "PROPID_MGMT_QUEUE_STATE": "LOCAL CONNECTION",
    "PROPID_MGMT_QUEUE_NEXTHOPS": None,
    "PROPID_MGMT_QUEUE_EOD_LAST_ACK": None,
    "PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME": None,
    "PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT": None,
    "PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK": None,
    "PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK": None,
    "PROPID_MGMT_QUEUE_EOD_NEXT_SEQ": None,
    "PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT": None,
    "PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT": None,
    "PROPID_MGMT_QUEUE_EOD_RESEND_TIME": None,
    "PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL": None,
    "PROPID_MGMT_QUEUE_EOD_RESEND_COUNT": None,
    "PROPID_MGMT_QUEUE_EOD_SOURCE_INFO": (
        (r"DIRECT=OS:here\PRIVATE$\orders",),
        (SENDER,),
        (0x1_0000_0002,),
        (9,),
        (1_000_000_050,),
        (4,),
    ),
    "PROPID_MGMT_QUEUE_CONNECTION_HISTORY": None,
    "PROPID_MGMT_QUEUE_SUBQUEUE_COUNT": 2,
    "PROPID_MGMT_QUEUE_SUBQUEUE_NAMES": ("later", "poison"),
}


def place(number: int) -> SequencePlace:
    return SequencePlace(sequence_id=0x1122334455667788, number=number, previous=number - 1)


def blob(number: int) -> bytes:
    return bytes.fromhex("8877665544332211") + bytes([number, 0, 0, 0, number - 1, 0, 0, 0])


TRANSFER = TransferReport(
    state=OutgoingState.CONNECTED,
    next_hops=("10.0.0.2", "fe80::2"),
    history=(
        ConnectionAttempt(
            status="SocketConnectFailure",
            time=1_000_000_001,
            error=0xC00E0069,
            addresses=("10.0.0.2",),
            text="refused",
        ),
        ConnectionAttempt(
            status="Established", time=1_000_000_002, error=0, addresses=("10.0.0.2",), text=""
        ),
    ),
    waiting=5,
    under_way=2,
    first_unacknowledged=place(3),
    last_unacknowledged=place(4),
    unacknowledged=2,
    unread=6,
    last_acknowledged=place(2),
    acknowledgments=7,
    acknowledged_at=1_000_000_003,
    next_place=place(5),
    resends=1,
    resend_interval_s=30,
    resend_at=1_000_000_033,
)


def outgoing(
    name: str = r"DIRECT=TCP:10.0.0.2\PRIVATE$\orders",
    state: OutgoingState = OutgoingState.CONNECTED,
    transfer: TransferReport = TRANSFER,
) -> QueueFacts:
    told = report(QueueKind.OUTGOING, path_name=name, transactional=False, journaling=False)
    return QueueFacts(
        queue_manager=MANAGER,
        computer="here",
        report=replace(told, state=state),
        transfer=transfer,
    )


OUTGOING: Final[dict[str, PropertyValue | None]] = {
    "PROPID_MGMT_QUEUE_PATHNAME": r"10.0.0.2\private$\orders",
    "PROPID_MGMT_QUEUE_FORMATNAME": r"DIRECT=TCP:10.0.0.2\PRIVATE$\orders",
    "PROPID_MGMT_QUEUE_TYPE": "PRIVATE",
    "PROPID_MGMT_QUEUE_LOCATION": "REMOTE",
    "PROPID_MGMT_QUEUE_XACT": "UNKNOWN",
    "PROPID_MGMT_QUEUE_FOREIGN": "NO",
    "PROPID_MGMT_QUEUE_MESSAGE_COUNT": 3,
    "PROPID_MGMT_QUEUE_BYTES_IN_QUEUE": 700,
    "PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT": None,
    "PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL": 0,
    "PROPID_MGMT_QUEUE_STATE": "CONNECTED",
    "PROPID_MGMT_QUEUE_NEXTHOPS": ("IP=10.0.0.2", "IPv6=fe80::2"),
    "PROPID_MGMT_QUEUE_EOD_LAST_ACK": blob(2),
    "PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME": 1_000_000_003,
    "PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT": 7,
    "PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK": blob(3),
    "PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK": blob(4),
    "PROPID_MGMT_QUEUE_EOD_NEXT_SEQ": blob(5),
    "PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT": 6,
    "PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT": 2,
    "PROPID_MGMT_QUEUE_EOD_RESEND_TIME": 1_000_000_033,
    "PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL": 30,
    "PROPID_MGMT_QUEUE_EOD_RESEND_COUNT": 1,
    "PROPID_MGMT_QUEUE_EOD_SOURCE_INFO": None,
    "PROPID_MGMT_QUEUE_CONNECTION_HISTORY": (
        (0x80000004, 2),
        (1_000_000_001, 1_000_000_002),
        (0xC00E0069 - (1 << 32), 0),
        (("10.0.0.2",), ("10.0.0.2",)),
    ),
    "PROPID_MGMT_QUEUE_SUBQUEUE_COUNT": 0,
    "PROPID_MGMT_QUEUE_SUBQUEUE_NAMES": (),
}


@pytest.mark.spec(
    "MS-MQMQ 2.3.1.1",
    "MS-MQMQ 2.3.1.2",
    "MS-MQMQ 2.3.1.3",
    "MS-MQMQ 2.3.1.4",
    "MS-MQMQ 2.3.1.5",
    "MS-MQMQ 2.3.1.7",
    "MS-MQMQ 2.3.1.8",
    "MS-MQMQ 2.3.1.9",
    "MS-MQMQ 2.3.1.10",
    "MS-MQMQ 2.3.1.11",
    "MS-MQMQ 2.3.1.12",
    "MS-MQMQ 2.3.1.13",
    "MS-MQMQ 2.3.1.15",
    "MS-MQMQ 2.3.12.1",
    "MS-MQMQ 2.3.12.2",
    "MS-MQMQ 2.3.12.3",
    "MS-MQMQ 2.3.12.4",
    "MS-MQMQ 2.3.12.5",
    "MS-MQMQ 2.3.12.6",
    "MS-MQMQ 2.3.12.7",
    "MS-MQMQ 2.3.12.8",
    "MS-MQMQ 2.3.12.9",
    "MS-MQMQ 2.3.12.10",
    "MS-MQMQ 2.3.12.11",
    "MS-MQMQ 2.3.12.24",
    "MS-MQMQ 2.3.12.26",
    "MS-MQMQ 2.3.12.27",
)
@pytest.mark.parametrize("name", LOCAL)
def test_a_queue_that_is_here_has_these_properties(name: str) -> None:
    assert queue_property(local(), Property[name]) == LOCAL[name]


def test_the_table_says_something_of_every_property_of_a_queue() -> None:
    kinds = {ObjectKind.QUEUE, ObjectKind.MANAGEMENT_QUEUE}
    assert list(LOCAL) == [each.name for each in Property if each.kind in kinds]
    assert queue_property(local(), Property.PROPID_QM_MACHINE_ID) is None


@pytest.mark.spec(
    "MS-MQMQ 2.3.12.1",
    "MS-MQMQ 2.3.12.3",
    "MS-MQMQ 2.3.12.4",
    "MS-MQMQ 2.3.12.5",
    "MS-MQMQ 2.3.12.6",
    "MS-MQMQ 2.3.12.11",
    "MS-MQMQ 2.3.12.12",
    "MS-MQMQ 2.3.12.13",
    "MS-MQMQ 2.3.12.14",
    "MS-MQMQ 2.3.12.15",
    "MS-MQMQ 2.3.12.16",
    "MS-MQMQ 2.3.12.17",
    "MS-MQMQ 2.3.12.18",
    "MS-MQMQ 2.3.12.19",
    "MS-MQMQ 2.3.12.20",
    "MS-MQMQ 2.3.12.21",
    "MS-MQMQ 2.3.12.22",
    "MS-MQMQ 2.3.12.23",
    "MS-MQMQ 2.3.12.25",
    "MS-MQMQ 2.2.5.1",
    "MS-MQDMPR 3.1.7.1.26",
)
@pytest.mark.parametrize("name", [each for each in LOCAL if "MGMT" in each])
@pytest.mark.spec("E99")
def test_an_outgoing_queue_has_these_properties(name: str) -> None:
    assert queue_property(outgoing(), Property[name]) == OUTGOING[name]


@pytest.mark.spec("MS-MQMQ 2.3.1")
def test_an_outgoing_queue_is_no_queue_object() -> None:
    kinds = {each.kind for each in known_properties(outgoing())}
    assert kinds == {ObjectKind.MANAGEMENT_QUEUE}


_RANGES: Final = {
    VariantType.VT_UI1: (0, 0xFF),
    VariantType.VT_I2: (-(1 << 15), (1 << 15) - 1),
    VariantType.VT_I4: (-(1 << 31), (1 << 31) - 1),
    VariantType.VT_UI4: (0, 0xFFFFFFFF),
}


def fits(value: object, kind: VariantType) -> bool:
    """Whether a value is of a variant type."""
    if kind.is_vector:
        entry = kind.element
        is_any = entry is VariantType.VT_VARIANT
        return isinstance(value, tuple) and (is_any or all(fits(each, entry) for each in value))
    if kind in _RANGES:
        low, high = _RANGES[kind]
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    types = {
        VariantType.VT_LPWSTR: str,
        VariantType.VT_BLOB: bytes,
        VariantType.VT_CLSID: UUID,
    }
    return isinstance(value, types[kind])


@pytest.mark.spec("MS-MQMQ 2.3.1", "MS-MQMQ 2.3.12", "MS-MQMQ 2.2.12")
@pytest.mark.parametrize("facts", [local(), outgoing()], ids=["local", "outgoing"])
def test_every_value_is_of_its_propertys_type(facts: QueueFacts) -> None:
    for which, value in known_properties(facts).items():
        assert fits(value, which.variant_type), (which, value)


@pytest.mark.spec("MS-MQMQ 2.3.12.7", "MS-MQMQ 2.3.12.8")
def test_what_is_too_large_for_its_type_is_the_largest_that_fits() -> None:
    huge = replace(local(), report=replace(report(), messages=1 << 33, size=1 << 40))
    assert queue_property(huge, Property.PROPID_MGMT_QUEUE_MESSAGE_COUNT) == 0xFFFFFFFF
    assert queue_property(huge, Property.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE) == 0xFFFFFFFF


@pytest.mark.spec("MS-MQMQ 2.3.12.10")
def test_the_journal_takes_nothing_while_the_queue_keeps_none() -> None:
    assert queue_property(local(), Property.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL) == 444
    off = local(journaling=False)
    assert queue_property(off, Property.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL) == 0
    assert queue_property(off, Property.PROPID_Q_JOURNAL) == 0


@pytest.mark.spec("MS-MQMQ 2.3.12.11")
@pytest.mark.parametrize(
    ("state", "told"),
    [
        (OutgoingState.INACTIVE, "INACTIVE"),
        (OutgoingState.WAITING, "WAITING"),
        (OutgoingState.NEED_VALIDATION, "NEED VALIDATION"),
        (OutgoingState.ON_HOLD, "ONHOLD"),
        (OutgoingState.CONNECTED, "CONNECTED"),
        (OutgoingState.DISCONNECTING, "DISCONNECTING"),
        (OutgoingState.DISCONNECTED, "DISCONNECTED"),
        (OutgoingState.LOCKED, "LOCKED"),
    ],
)
def test_an_outgoing_queues_state_has_the_documents_words(state: OutgoingState, told: str) -> None:
    assert queue_property(outgoing(state=state), Property.PROPID_MGMT_QUEUE_STATE) == told


@pytest.mark.spec("MS-MQMQ 2.3.12.12")
@pytest.mark.parametrize("state", OutgoingState)
def test_next_hops_are_told_while_connecting_and_connected(state: OutgoingState) -> None:
    told = queue_property(outgoing(state=state), Property.PROPID_MGMT_QUEUE_NEXTHOPS)
    is_known = state in {OutgoingState.CONNECTED, OutgoingState.WAITING}
    assert told == (("IP=10.0.0.2", "IPv6=fe80::2") if is_known else None)


@pytest.mark.spec("MS-MQMQ 2.3.12.3", "MS-MQMQ 2.3.12.1", "MS-MQDMPR 3.1.7.1.26")
@pytest.mark.parametrize(
    ("name", "kind", "path"),
    [
        (r"DIRECT=OS:b\PRIVATE$\q", "PRIVATE", r"b\private$\q"),
        (r"DIRECT=OS:b\q", "PUBLIC", r"b\q"),
        (r"DIRECT=TCP:10.0.0.2\SYSTEM$;DEADLETTER", "MACHINE", r"10.0.0.2\system$;DEADLETTER"),
        ("DIRECT=http://b:81/msmq/private$/q", "PRIVATE", r"b\private$\q"),
        (f"PRIVATE={SENDER}\\10", "PRIVATE", None),
        (f"PUBLIC={SENDER}", "PUBLIC", None),
        ("MULTICAST=234.1.1.1:8001", "MULTICAST", None),
    ],
)
def test_the_type_and_path_of_a_destination_are_what_its_name_says(
    name: str, kind: str, path: str | None
) -> None:
    facts = outgoing(name)
    assert queue_property(facts, Property.PROPID_MGMT_QUEUE_TYPE) == kind
    assert queue_property(facts, Property.PROPID_MGMT_QUEUE_PATHNAME) == path
    is_private = kind == "PRIVATE"
    told = queue_property(facts, Property.PROPID_MGMT_QUEUE_FOREIGN)
    assert told == ("NO" if is_private else "UNKNOWN")


@pytest.mark.spec("MS-MQMQ 2.3.12.3", "MS-MQMQ 2.3.12.6")
def test_the_systems_queues_are_the_machines() -> None:
    facts = local(path_name=r".\system$;DEADXACT", kind=QueueKind.SYSTEM)
    assert queue_property(facts, Property.PROPID_MGMT_QUEUE_TYPE) == "MACHINE"
    assert queue_property(facts, Property.PROPID_MGMT_QUEUE_FOREIGN) == "UNKNOWN"
    expected = r"DIRECT=OS:here\SYSTEM$;DEADXACT"
    assert queue_property(facts, Property.PROPID_MGMT_QUEUE_FORMATNAME) == expected


@pytest.mark.spec("MS-MQMQ 2.3.12.13")
def test_the_last_acknowledged_place_is_told_only_while_something_waits_for_one() -> None:
    quiet = outgoing(transfer=replace(TRANSFER, unacknowledged=0))
    assert queue_property(quiet, Property.PROPID_MGMT_QUEUE_EOD_LAST_ACK) is None


@pytest.mark.spec("MS-MQMQ 2.3.12.25")
@pytest.mark.parametrize("status", ConnectionStatus)
def test_every_status_of_the_history_has_its_number(status: ConnectionStatus) -> None:
    entry = replace(TRANSFER.history[0], status=status.document_name)
    facts = outgoing(transfer=replace(TRANSFER, history=(entry,)))
    told = queue_property(facts, Property.PROPID_MGMT_QUEUE_CONNECTION_HISTORY)
    assert isinstance(told, tuple)
    assert told[0] == (int(status),)


@pytest.mark.spec("MS-MQMQ 2.3.1.22")
def test_the_path_with_a_full_name_is_there_if_the_computer_has_one() -> None:
    full = replace(local(), computer="here.example.org")
    told = queue_property(full, Property.PROPID_Q_PATHNAME_DNS)
    assert told == r"here.example.org\private$\orders"
    assert queue_property(local(), Property.PROPID_Q_PATHNAME_DNS) is None


@pytest.mark.spec("MS-MQMQ 2.3.1.23")
def test_a_multicast_address_is_told_as_it_was_set() -> None:
    facts = local(multicast_address="234.1.1.1:8001", transactional=False)
    assert queue_property(facts, Property.PROPID_Q_MULTICAST_ADDRESS) == "234.1.1.1:8001"


# With a queue manager: what is set is what is told, and what cannot be set is not.


@pytest.mark.spec(
    "MS-MQMQ 2.3.1.2",
    "MS-MQMQ 2.3.1.3",
    "MS-MQMQ 2.3.1.4",
    "MS-MQMQ 2.3.1.6",
    "MS-MQMQ 2.3.1.8",
    "MS-MQMQ 2.3.1.11",
    "MS-MQMQ 2.3.1.12",
    "MS-MQMQ 2.3.1.13",
    "MS-MQMQ 2.3.1.23",
)
def test_what_was_set_is_told_by_its_identifier_and_has_the_documents_defaults(
    tmp_path: Path,
) -> None:
    defaults = {
        "PROPID_Q_TYPE": str(UUID(int=0)),
        "PROPID_Q_JOURNAL": 0,
        "PROPID_Q_QUOTA": 0xFFFFFFFF,
        "PROPID_Q_BASEPRIORITY": 0,
        "PROPID_Q_JOURNAL_QUOTA": 0xFFFFFFFF,
        "PROPID_Q_LABEL": "",
        "PROPID_Q_AUTHENTICATE": 0,
        "PROPID_Q_PRIV_LEVEL": 1,
        "PROPID_Q_TRANSACTION": 0,
    }
    with merq.open(tmp_path) as mq:
        queue = mq.create_queue(r".\private$\orders")
        told = object_of_properties(properties_of(mq, queue, [], []))
        assert {name: told[name] for name in defaults} == defaults
        assert told["PROPID_Q_PATHNAME"] == rf"{mq.name}\private$\orders"
        assert "PROPID_Q_MULTICAST_ADDRESS" not in told
        queue.change(
            label="x" * 124,
            journal=True,
            type_id=TYPE_ID,
            authenticate=True,
            privacy_level=PrivacyLevel.NONE,
            base_priority=5,
            multicast_address="234.1.1.1:8001",
        )
        told = object_of_properties(properties_of(mq, queue, [], []))
        changed = {
            "PROPID_Q_TYPE": str(TYPE_ID),
            "PROPID_Q_JOURNAL": 1,
            "PROPID_Q_BASEPRIORITY": 0,
            "PROPID_Q_LABEL": "x" * 124,
            "PROPID_Q_AUTHENTICATE": 1,
            "PROPID_Q_PRIV_LEVEL": 0,
            "PROPID_Q_MULTICAST_ADDRESS": "234.1.1.1:8001",
        }
        assert {name: told[name] for name in changed} == changed
        for wrong in (
            {"label": "x" * 125},
            {"multicast_address": "10.1.1.1:8001"},
            {"multicast_address": "234.1.1.1"},
        ):
            with pytest.raises(MessageQueueError) as caught:
                queue.change(**wrong)
            assert caught.value.code == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
        for fixed in ("transactional", "path_name"):
            with pytest.raises(MessageQueueError, match=f"{fixed} cannot be changed"):
                queue.change(**{fixed: True})


@pytest.mark.spec("MS-MQMQ 2.3.12.7", "MS-MQMQ 2.3.12.9", "MS-MQMQ 2.3.12.26", "MS-MQMQ 2.3.12.27")
def test_counts_are_those_of_the_queue_its_journal_and_its_subqueues(tmp_path: Path) -> None:
    with merq.open(tmp_path) as mq:
        queue = mq.create_queue(r".\private$\orders", journal=True)
        for _ in range(3):
            queue.send(b"x")
        queue.receive()
        later = queue.subqueue("later")
        first = queue.peek()
        assert first is not None
        queue.move(first, later)
        subqueues = [each.report for each in queue.subqueues()]
        told = object_of_properties(properties_of(mq, queue, subqueues, []))
    assert told["PROPID_MGMT_QUEUE_MESSAGE_COUNT"] == 1
    assert told["PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT"] == 1
    assert told["PROPID_MGMT_QUEUE_BYTES_IN_QUEUE"] == told["PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL"]
    assert told["PROPID_MGMT_QUEUE_SUBQUEUE_COUNT"] == 1
    assert told["PROPID_MGMT_QUEUE_SUBQUEUE_NAMES"] == ["later"]


def test_an_outgoing_queue_tells_its_properties_through_a_queue_manager(tmp_path: Path) -> None:
    with merq.open(tmp_path) as mq:
        mq.send(r"DIRECT=OS:elsewhere\private$\orders", b"x")
        (queue,) = mq.outgoing_queues()
        told = object_of_properties(properties_of(mq, queue, [], []))
    assert told["PROPID_MGMT_QUEUE_LOCATION"] == "REMOTE"
    assert told["PROPID_MGMT_QUEUE_STATE"] == "INACTIVE"
    assert told["PROPID_MGMT_QUEUE_EOD_NEXT_SEQ"] == "00" * 16
