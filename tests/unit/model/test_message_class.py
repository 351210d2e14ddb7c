import os  # noqa: TID251, RUF100
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merq.model.message_class import (
    CUSTOM_CLASS_MASK,
    ClassKind,
    MessageClass,
    describe_class,
    is_custom_class,
)

ONLY_IN_MQAC = {
    "MQMSG_CLASS_NACK_COULD_NOT_ENCRYPT": 0x8008,
    "MQMSG_CLASS_NACK_SOURCE_COMPUTER_GUID_CHANGED": 0x800C,
    "MQMSG_CLASS_NACK_RECEIVE_TIMEOUT_AT_SENDER": 0xC003,
}


@pytest.mark.spec("MS-MQMQ 2.2.18.1.6", "MC-MQAC 2.2.2.9")
def test_every_class_of_the_documents_is_in_the_table(pytestconfig: pytest.Config) -> None:
    specs = pytestconfig.rootpath / os.environ.get("MERQ_SPECS", "../shared/specs")
    documents = [specs / name / f"{name}.md" for name in ("MS-MQMQ", "MC-MQAC")]
    for document in documents:
        if not document.is_file():
            pytest.skip(f"the documents are not here: {document} (MERQ_SPECS says where they are)")
    rows = re.compile(r"^(MQMSG_CLASS_\w+) = (0x\w+),?$", re.MULTILINE)
    structures, com = (
        {name: int(value, 16) for name, value in rows.findall(document.read_text("utf-8"))}
        for document in documents
    )
    # The same class by another name.
    assert com.pop("MQMSG_CLASS_NACK_PURGED") == structures["MQMSG_CLASS_NACK_DELETED"]
    assert structures | ONLY_IN_MQAC == {known.name: int(known) for known in MessageClass}
    assert structures | com == structures | ONLY_IN_MQAC


@pytest.mark.spec("MS-MQMQ 2.2.18.1.6")
@pytest.mark.spec("E36")
def test_the_table_has_twenty_classes_and_three_that_only_the_com_document_names() -> None:
    assert len(MessageClass) == 20 + 3
    assert {known.name: int(known) for known in MessageClass}.items() >= ONLY_IN_MQAC.items()


@pytest.mark.spec("MS-MQMQ 2.2.18.1.6")
@pytest.mark.parametrize(
    ("value", "name", "kind"),
    [
        (0x0000, "MQMSG_CLASS_NORMAL", ClassKind.ORIGINAL),
        (0x0001, "MQMSG_CLASS_REPORT", ClassKind.REPORT),
        (0x0002, "MQMSG_CLASS_ACK_REACH_QUEUE", ClassKind.ARRIVED),
        (0x00FF, "MQMSG_CLASS_ORDER_ACK", ClassKind.ORDER),
        (0x4000, "MQMSG_CLASS_ACK_RECEIVE", ClassKind.RECEIVED),
        (0x8000, "MQMSG_CLASS_NACK_BAD_DST_Q", ClassKind.NOT_DELIVERED),
        (0x800B, "MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER", ClassKind.NOT_DELIVERED),
        (0xC000, "MQMSG_CLASS_NACK_Q_DELETED", ClassKind.NOT_RECEIVED),
        (0xC004, "MQMSG_CLASS_NACK_RECEIVE_REJECTED", ClassKind.NOT_RECEIVED),
    ],
)
def test_a_class_is_found_by_its_number(value: int, name: str, kind: ClassKind) -> None:
    known = MessageClass.of(value)
    assert known is not None
    assert known.name == name
    assert known.kind is kind


@pytest.mark.spec("MS-MQMQ 2.2.18.1.6")
@pytest.mark.parametrize("known", MessageClass)
def test_the_name_says_whether_a_class_is_positive_or_negative(known: MessageClass) -> None:
    assert known.is_positive == known.name.startswith("MQMSG_CLASS_ACK_")
    assert known.is_negative == known.name.startswith("MQMSG_CLASS_NACK_")
    assert known.is_acknowledgment == (known.is_positive or known.is_negative)


@pytest.mark.spec("MS-MQMQ 2.2.18.1.6")
@pytest.mark.parametrize("known", [known for known in MessageClass if known.is_acknowledgment])
def test_an_acknowledgment_is_about_receipt_exactly_when_bit_14_is_set(known: MessageClass) -> None:
    assert known.is_about_receipt == bool(known & 0x4000)
    assert known.is_about_arrival != known.is_about_receipt


@pytest.mark.spec("MS-MQMQ 2.2.18.1.6")
@pytest.mark.parametrize(
    "known",
    [
        MessageClass.MQMSG_CLASS_NORMAL,
        MessageClass.MQMSG_CLASS_REPORT,
        MessageClass.MQMSG_CLASS_ORDER_ACK,
    ],
)
def test_what_does_not_answer_an_application_is_no_acknowledgment(known: MessageClass) -> None:
    assert not known.is_acknowledgment
    assert not known.is_about_arrival
    assert not known.is_about_receipt


def test_a_class_is_described_by_what_became_of_the_message_and_why() -> None:
    assert describe_class(0x8003) == (
        "0x8003 MQMSG_CLASS_NACK_Q_EXCEED_QUOTA: never reached its queue: the queue is full"
    )


@pytest.mark.spec("MS-MQMQ 2.2.18.1.6")
@pytest.mark.parametrize("value", [0x0003, 0x0100, 0x2000, 0x8123, 0xE1FF])
def test_an_unnamed_class_within_the_mask_is_the_applications_own(value: int) -> None:
    assert MessageClass.of(value) is None
    assert is_custom_class(value)
    assert describe_class(value) == f"0x{value:04X}: a class of the application's own"


@pytest.mark.spec("MS-MQMQ 2.2.18.1.6")
@pytest.mark.parametrize("value", [0x0200, 0x1000, 0x8200, 0x10000])
def test_a_class_with_a_bit_outside_the_mask_is_none(value: int) -> None:
    assert not is_custom_class(value)
    assert "bits outside 0xE1FF" in describe_class(value)


@settings(max_examples=300)
@given(st.integers(0, 0xFFFF))
def test_any_16_bits_are_predefined_or_custom_or_no_class(value: int) -> None:
    predefined = MessageClass.of(value) is not None
    within = value & CUSTOM_CLASS_MASK == value
    assert is_custom_class(value) == (within and not predefined)
    assert within or not predefined
    assert describe_class(value).startswith(f"0x{value:04X}")
