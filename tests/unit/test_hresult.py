import os  # noqa: TID251, RUF100
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merq.hresult import FACILITY_MSMQ, HResult, describe

NAMED_ELSEWHERE = {
    "MQ_OK",
    "MQ_INFORMATION_REMOTE_OPERATION",
    "MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT",
    "MQ_INFORMATION_QUEUE_OWNED_BY_NT4_PSC",
    "MQ_ERROR_NOT_SUPPORTED",
    "MQDS_WRONG_OBJ_TYPE",
    "MQDS_OBJECT_NOT_FOUND",
    "MQDS_E_NO_MORE_DATA",
    "MQDS_E_CANT_INIT_SERVER_AUTH",
}


@pytest.mark.spec("MS-MQMQ 2.4")
def test_every_code_of_the_document_is_in_the_table(pytestconfig: pytest.Config) -> None:
    specs = pytestconfig.rootpath / os.environ.get("MERQ_SPECS", "../shared/specs")
    document = specs / "MS-MQMQ" / "MS-MQMQ.md"
    if not document.is_file():
        pytest.skip(f"the documents are not here: {document} (MERQ_SPECS says where they are)")
    rows = re.findall(r"^\| (0x\w{8}) (MQ\w+) \|", document.read_text("utf-8"), re.MULTILINE)
    published = {name: int(value, 16) for value, name in rows}
    ours = {code.name: int(code) for code in HResult if code.name not in NAMED_ELSEWHERE}
    assert published == ours


@pytest.mark.spec("MS-MQMQ 2.4")
@pytest.mark.spec("MS-MQMQ note 44")
@pytest.mark.spec("E36")
def test_the_table_has_the_145_codes_of_the_document_and_nine_of_others() -> None:
    assert {code.name for code in HResult} >= NAMED_ELSEWHERE
    assert len(HResult) == 145 + 9
    assert sum(1 for code in HResult if code.name.startswith("MQ_INFORMATION_")) == 9 + 3


@pytest.mark.spec("MS-MQMQ 2.4")
@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0x00000000, "MQ_OK"),
        (0x400E0001, "MQ_INFORMATION_PROPERTY"),
        (0x400E000B, "MQ_INFORMATION_OWNER_IGNORED"),
        (0xC00E0001, "MQ_ERROR"),
        (0xC00E0003, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (0xC00E001B, "MQ_ERROR_IO_TIMEOUT"),
        (0xC00E0025, "MQ_ERROR_ACCESS_DENIED"),
        (0xC00E0050, "MQ_ERROR_TRANSACTION_USAGE"),
        (0xC00E0068, "MQ_CORRUPTED_QUEUE_WAS_DELETED"),
        (0xC00E009C, "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"),
        (0xC00E0504, "MQDS_UNKNOWN_SOURCE"),
    ],
)
def test_a_code_is_found_by_its_number(value: int, name: str) -> None:
    code = HResult.of(value)
    assert code is not None
    assert code.name == name


@pytest.mark.spec("MS-MQMQ 2.4")
@pytest.mark.parametrize("code", [code for code in HResult if code is not HResult.MQ_OK])
def test_every_code_but_success_is_of_the_facility_of_msmq(code: HResult) -> None:
    assert code.facility == FACILITY_MSMQ


@pytest.mark.spec("MS-MQMQ 2.4")
def test_only_codes_from_0xc00e0000_on_are_errors() -> None:
    assert {code for code in HResult if code.is_error} == {
        code for code in HResult if code >= 0xC00E0000
    }
    assert not HResult.MQ_OK.is_error
    assert not HResult.MQ_INFORMATION_OPERATION_PENDING.is_error


@pytest.mark.spec("MS-MQSO 6.7.1", "MS-MQSO 6.7.2")
def test_the_administrator_is_advised_on_the_errors_that_the_overview_names() -> None:
    assert {code for code in HResult if code.advice} == {
        HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE,
        HResult.MQ_ERROR_DTC_CONNECT,
        HResult.MQ_ERROR_NO_DS,
        HResult.MQ_ERROR_CANT_RESOLVE_SITES,
        HResult.MQ_ERROR_DS_LOCAL_USER,
        HResult.MQ_ERROR_MACHINE_EXISTS,
        HResult.MQ_ERROR_CANNOT_JOIN_DOMAIN,
    }


@pytest.mark.parametrize("code", HResult)
def test_a_code_means_something_that_fits_in_a_sentence(code: HResult) -> None:
    assert code.meaning
    assert not code.meaning.endswith(".")
    assert "\n" not in code.meaning + code.advice


@pytest.mark.parametrize("code", HResult)
def test_a_code_is_also_found_as_the_signed_integer_that_rpc_carries(code: HResult) -> None:
    signed = int.from_bytes(int(code).to_bytes(4, "little"), "little", signed=True)
    assert HResult.of(signed) is code
    assert describe(signed) == describe(code)


def test_a_description_gives_number_name_meaning_and_advice() -> None:
    code = HResult.MQ_ERROR_DTC_CONNECT
    assert describe(code) == f"0xC00E004C MQ_ERROR_DTC_CONNECT: {code.meaning}; {code.advice}"


def test_the_description_of_a_code_without_advice_ends_with_its_meaning() -> None:
    assert describe(0) == "0x00000000 MQ_OK: done"


@pytest.mark.spec("MS-MQMQ 1.7")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0xC00E1234, "0xC00E1234: not an MSMQ code that the documents name"),
        (0x80070005, "0x80070005: not an MSMQ code"),
        (-0x7FF8FFFB, "0x80070005: not an MSMQ code"),
        (0xE00E0001, "0xE00E0001: a vendor's own code, not an MSMQ code"),
        (0x1C00E0003, "0x1c00e0003: not an HRESULT, which has 32 bits"),
        (-0x80000001, "-0x80000001: not an HRESULT, which has 32 bits"),
    ],
)
def test_a_code_that_no_document_names_is_described_all_the_same(value: int, said: str) -> None:
    assert HResult.of(value) is None
    assert describe(value) == said


@settings(max_examples=200)
@given(st.integers(0, 0xFFFFFFFF))
def test_any_32_bits_are_described_with_their_number_first(value: int) -> None:
    assert describe(value).startswith(f"0x{value:08X}")
