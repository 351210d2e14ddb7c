import os  # noqa: TID251, RUF100
import re
from collections import Counter
from enum import Enum

import pytest

from merq.model.properties import (
    ConnectionStatus,
    MachineConnection,
    MachineService,
    ObjectKind,
    Property,
    QueueAuthentication,
    QueueFact,
    QueueJournal,
    QueueLocation,
    QueuePrivacy,
    QueueState,
    QueueTransaction,
    QueueType,
)
from merq.model.variant import VariantType, describe


def text_of(name: str, pytestconfig: pytest.Config) -> str:
    specs = pytestconfig.rootpath / os.environ.get("MERQ_SPECS", "../shared/specs")
    path = specs / name / f"{name}.md"
    if not path.is_file():
        pytest.skip(f"the documents are not here: {path} (MERQ_SPECS says where they are)")
    return path.read_text("utf-8")


@pytest.fixture
def document(pytestconfig: pytest.Config) -> str:
    return text_of("MS-MQMQ", pytestconfig)


def section(document: str, number: str) -> str:
    _, _, text = document.partition(f'<a id="Section_{number}"></a>\n')
    return text.partition('<a id="Section_')[0]


@pytest.mark.spec("MS-MQMQ 2.3")
def test_every_property_of_the_document_is_in_the_table(document: str) -> None:
    published = []
    for number, name in re.findall(r"^#### (2\.3\.\d+\.\d+) (PROPID_\w+)$", document, re.MULTILINE):
        text = section(document, number)
        value = re.search(r"^Value: (\d+)\.?$", text, re.MULTILINE)
        types = re.search(r"^Variant type: (.+)$", text, re.MULTILINE)
        assert value is not None, name
        assert types is not None, name
        constants = sorted(re.findall(r"VT_\w+", types[1]), key="VT_VECTOR".__ne__)
        published.append((number, name, int(value[1]), " | ".join(constants)))
    assert published == [
        (known.section, known.name, known.number, describe(known.variant_type))
        for known in Property
    ]


@pytest.mark.spec(
    "MS-MQMQ 2.3.1",
    "MS-MQMQ 2.3.2",
    "MS-MQMQ 2.3.3",
    "MS-MQMQ 2.3.4",
    "MS-MQMQ 2.3.5",
    "MS-MQMQ 2.3.6",
    "MS-MQMQ 2.3.7",
    "MS-MQMQ 2.3.8",
    "MS-MQMQ 2.3.9",
    "MS-MQMQ 2.3.10",
    "MS-MQMQ 2.3.11",
    "MS-MQMQ 2.3.12",
    "MS-MQMQ 2.3.13",
)
def test_the_table_has_186_properties_of_thirteen_kinds_of_object() -> None:
    assert Counter(known.kind for known in Property) == {
        ObjectKind.QUEUE: 27,
        ObjectKind.MACHINE: 39,
        ObjectKind.SITE: 15,
        ObjectKind.CONNECTED_NETWORK: 6,
        ObjectKind.ENTERPRISE: 18,
        ObjectKind.USER: 6,
        ObjectKind.ROUTING_LINK: 13,
        ObjectKind.SETTINGS: 11,
        ObjectKind.MQ_USER: 5,
        ObjectKind.COMPUTER: 8,
        ObjectKind.MANAGEMENT_MACHINE: 6,
        ObjectKind.MANAGEMENT_QUEUE: 27,
        ObjectKind.DELETION_NOTIFICATION: 5,
    }
    assert len(Property) == 186


@pytest.mark.spec("MS-MQMQ 2.3")
@pytest.mark.parametrize("kind", ObjectKind)
def test_the_properties_of_a_kind_are_listed_in_the_documents_order(kind: ObjectKind) -> None:
    listed = Property.of_kind(kind)
    assert [known.section for known in listed] == [
        f"{kind.value}.{place}" for place in range(1, len(listed) + 1)
    ]


@pytest.mark.parametrize(
    ("kind", "number", "name", "said"),
    [
        (ObjectKind.QUEUE, 101, "PROPID_Q_INSTANCE", "VT_CLSID"),
        (ObjectKind.QUEUE, 106, "PROPID_Q_BASEPRIORITY", "VT_I2"),
        (ObjectKind.QUEUE, 1103, "PROPID_Q_SECURITY_INFORMATION", "VT_UI4"),
        (ObjectKind.MACHINE, 205, "PROPID_QM_ENCRYPTION_PK", "VT_VECTOR | VT_UI1"),
        (ObjectKind.MACHINE, 211, "PROPID_QM_PARTITIONID", "VT_CLSID"),
        (ObjectKind.MACHINE, 214, "PROPID_QM_QUOTA", "VT_UI4"),
        (ObjectKind.MACHINE, 223, "PROPID_QM_OUTFRS_DN", "VT_VECTOR | VT_LPWSTR"),
        (ObjectKind.SITE, 303, "PROPID_S_GATES", "VT_VECTOR | VT_CLSID"),
        (ObjectKind.SITE, 310, "PROPID_S_NT4_STUB", "VT_UI2"),
        (ObjectKind.CONNECTED_NETWORK, 1501, "PROPID_CN_SECURITY", "VT_BLOB"),
        (ObjectKind.ENTERPRISE, 615, "PROPID_E_CIPHER_MODE", "VT_UI4"),
        (ObjectKind.ENTERPRISE, 617, "PROPID_E_VERSION", "VT_UI2"),
        (ObjectKind.USER, 702, "PROPID_U_SIGN_CERT", "VT_BLOB"),
        (ObjectKind.ROUTING_LINK, 813, "PROPID_L_GATES", "VT_VECTOR | VT_CLSID"),
        (ObjectKind.SETTINGS, 5112, "PROPID_SET_OLDSERVICE", "VT_UI4"),
        (ObjectKind.MQ_USER, 5405, "PROPID_MQU_DIGEST", "VT_VECTOR | VT_CLSID"),
        (ObjectKind.COMPUTER, 5204, "PROPID_COM_ACCOUNT_CONTROL", "VT_UI4"),
        (ObjectKind.MANAGEMENT_MACHINE, 6, "PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES", "VT_I8"),
        (ObjectKind.MANAGEMENT_QUEUE, 6, "PROPID_MGMT_QUEUE_FOREIGN", "VT_LPWSTR"),
        (
            ObjectKind.MANAGEMENT_QUEUE,
            25,
            "PROPID_MGMT_QUEUE_CONNECTION_HISTORY",
            "VT_VECTOR | VT_VARIANT",
        ),
        (ObjectKind.DELETION_NOTIFICATION, 1404, "PROPID_D_OBJTYPE", "VT_UI1"),
    ],
)
def test_a_property_is_found_by_kind_and_number_and_by_name(
    kind: ObjectKind, number: int, name: str, said: str
) -> None:
    found = Property.of(kind, number)
    assert found is not None
    assert found is Property.named(name)
    assert (found.kind, found.number, found.name) == (kind, number, name)
    assert describe(found.variant_type) == said


@pytest.mark.spec("MS-MQMQ 2.3.11", "MS-MQMQ 2.3.12")
def test_a_number_names_one_property_except_in_management() -> None:
    seen = Counter(known.number for known in Property)
    assert {number for number, times in seen.items() if times > 1} == {1, 2, 3, 4, 5, 6}
    assert Property.of(ObjectKind.MANAGEMENT_MACHINE, 1) is Property.PROPID_MGMT_MSMQ_ACTIVEQUEUES
    assert Property.of(ObjectKind.MANAGEMENT_QUEUE, 1) is Property.PROPID_MGMT_QUEUE_PATHNAME


@pytest.mark.parametrize(
    ("kind", "number"),
    [(ObjectKind.QUEUE, 120), (ObjectKind.QUEUE, 201), (ObjectKind.MANAGEMENT_MACHINE, 7)],
)
def test_a_number_that_the_kind_does_not_have_is_no_property(kind: ObjectKind, number: int) -> None:
    assert Property.of(kind, number) is None


def test_a_name_that_the_document_does_not_have_is_no_property() -> None:
    assert Property.named("PROPID_Q_NOTHING") is None
    assert Property.named("named") is None


@pytest.mark.parametrize("known", Property)
def test_a_property_says_what_it_means_and_has_a_type_that_a_propvariant_carries(
    known: Property,
) -> None:
    assert known.meaning
    assert not known.meaning.endswith(".")
    assert known.variant_type not in {
        VariantType.VT_EMPTY,
        VariantType.VT_NULL,
        VariantType.VT_BSTR,
        VariantType.VT_VARIANT,
    }


def test_a_kind_is_spelled_in_words() -> None:
    assert str(ObjectKind.CONNECTED_NETWORK) == "connected network"


@pytest.mark.spec(
    "MS-MQMQ 2.3.1.4",
    "MS-MQMQ 2.3.1.11",
    "MS-MQMQ 2.3.1.12",
    "MS-MQMQ 2.3.1.13",
    "MS-MQMQ 2.3.11.4",
    "MS-MQMQ 2.3.12.3",
    "MS-MQMQ 2.3.12.4",
    "MS-MQMQ 2.3.12.11",
)
@pytest.mark.parametrize(
    ("number", "choice"),
    [
        ("2.3.1.4", QueueJournal),
        ("2.3.1.11", QueueAuthentication),
        ("2.3.1.12", QueuePrivacy),
        ("2.3.1.13", QueueTransaction),
        ("2.3.11.4", MachineConnection),
        ("2.3.12.3", QueueType),
        ("2.3.12.4", QueueLocation),
        ("2.3.12.11", QueueState),
    ],
)
def test_the_values_of_a_property_are_those_of_the_document(
    number: str, choice: type[Enum], document: str
) -> None:
    rows = re.findall(r"^\| (\S.*?) \| (M\w+) \|", section(document, number), re.MULTILINE)
    assert [(value.strip('"'), name) for value, name in rows if value.startswith('"')] == [
        (known.value, known.name) for known in choice if isinstance(known.value, str)
    ]
    assert [(int(value, 16), name) for value, name in rows if not value.startswith('"')] == [
        (known.value, known.name) for known in choice if isinstance(known.value, int)
    ]


@pytest.mark.spec("MS-MQMQ 2.3.2.9", "MS-MQMQ 2.3.12.25")
@pytest.mark.parametrize(
    ("number", "choice"), [("2.3.2.9", MachineService), ("2.3.12.25", ConnectionStatus)]
)
def test_the_unnamed_values_of_a_property_are_those_of_the_document(
    number: str, choice: type[Enum], document: str
) -> None:
    values = re.findall(r"^\| (0x\w{8}) \|", section(document, number), re.MULTILINE)
    none_of_the_flags = {0} if choice is MachineService else set()
    assert {int(value, 16) for value in values} - none_of_the_flags == {
        known.value for known in choice
    }


@pytest.mark.spec("MS-MQMQ 2.3.1.12")
def test_a_queue_that_takes_both_clear_and_encrypted_messages_lies_between_the_others() -> None:
    assert [QueuePrivacy(level).name for level in range(3)] == [
        "MQ_PRIV_LEVEL_NONE",
        "MQ_PRIV_LEVEL_OPTIONAL",
        "MQ_PRIV_LEVEL_BODY",
    ]


@pytest.mark.spec("MS-MQMQ 2.3.2.9")
def test_a_machine_may_do_several_services_at_once() -> None:
    assert MachineService(0x09) == (
        MachineService.ROUTING_SERVER | MachineService.PRIMARY_ENTERPRISE_CONTROLLER
    )


@pytest.mark.spec("MS-MQMQ 2.3.12.5", "MS-MQMQ 2.3.12.6")
def test_a_fact_about_a_queue_may_be_unknown() -> None:
    assert [str(fact) for fact in QueueFact] == ["UNKNOWN", "YES", "NO"]


@pytest.mark.spec("MS-MQMQ 2.3.12.11")
def test_the_state_of_a_queue_is_the_documents_text() -> None:
    assert QueueState("NEED VALIDATION") is QueueState.MGMT_QUEUE_STATE_NEED_VALIDATE
    assert str(QueueState.MGMT_QUEUE_STATE_NONACTIVE) == "INACTIVE"
    assert len(QueueState) == 8


@pytest.mark.spec("MS-MQMQ 2.3.12.25")
def test_three_entries_of_a_connection_history_are_no_failure_and_fourteen_are() -> None:
    assert [status.name for status in ConnectionStatus if not status.is_failure] == [
        "IN_PROCESS",
        "ESTABLISH_PACKET_RECEIVED",
        "ESTABLISHED",
    ]
    assert sum(1 for status in ConnectionStatus if status.is_failure) == 14
    assert all(status.meaning for status in ConnectionStatus)


@pytest.mark.spec("MS-MQDMPR 3.1.1.3")
def test_a_connection_status_is_told_by_the_name_that_the_document_spells() -> None:
    assert ConnectionStatus.SOCKET_CONNECT_FAILURE.document_name == "SocketConnectFailure"
    assert ConnectionStatus.DNS_FAILURE.document_name == "DnsFailure"


@pytest.mark.spec("MS-MQDMPR 3.1.1.3", "MS-MQMQ 2.3.12.25")
def test_numbers_and_names_of_a_connection_history_are_in_the_same_order(
    pytestconfig: pytest.Config,
) -> None:
    text = section(text_of("MS-MQDMPR", pytestconfig), "3.1.1.3")
    _, _, after = text.partition("- **Status**:")
    statuses, _, _ = after.partition("- **ConnectionHistoryTime**:")
    names = re.findall(r"^- \*\*(\w+)\*\*:", statuses, re.MULTILINE)
    assert names == [status.document_name for status in sorted(ConnectionStatus)]
