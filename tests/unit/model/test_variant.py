import os  # noqa: TID251, RUF100
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merq.model.variant import VT_VECTOR, VariantType, describe


@pytest.mark.spec("MS-MQMQ 2.2.12", "MS-MQMQ 2.2.13.1")
def test_every_type_of_the_document_is_in_the_table(pytestconfig: pytest.Config) -> None:
    specs = pytestconfig.rootpath / os.environ.get("MERQ_SPECS", "../shared/specs")
    document = specs / "MS-MQMQ" / "MS-MQMQ.md"
    if not document.is_file():
        pytest.skip(f"the documents are not here: {document} (MERQ_SPECS says where they are)")
    text = document.read_text("utf-8")
    constants = re.findall(r"^(VT_\w+) = (\w+),$", text, re.MULTILINE)
    published = {name: int(value, 0) for name, value in constants}
    assert published.pop("VT_VECTOR") == VT_VECTOR
    arrays = re.findall(r"^\[case\(VT_VECTOR\|VT_(\w+)\)\]$", text, re.MULTILINE)
    published |= {f"VT_VECTOR_{name}": published[f"VT_{name}"] | VT_VECTOR for name in arrays}
    assert published | {"VT_BSTR": 8} == {known.name: int(known) for known in VariantType}


@pytest.mark.spec("MS-MQMQ 2.2.12", "MS-MQMQ 2.2.13.1")
def test_the_table_has_fifteen_types_eight_arrays_and_text_of_com() -> None:
    assert len(VariantType) == 15 + 8 + 1
    assert sum(1 for known in VariantType if known.is_vector) == 8


@pytest.mark.spec("MS-MQMQ 2.2.12")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "VT_EMPTY"),
        (1, "VT_NULL"),
        (0x0B, "VT_BOOL"),
        (0x13, "VT_UI4"),
        (0x15, "VT_UI8"),
        (0x1F, "VT_LPWSTR"),
        (0x41, "VT_BLOB"),
        (0x48, "VT_CLSID"),
        (0x100C, "VT_VECTOR | VT_VARIANT"),
        (0x1011, "VT_VECTOR | VT_UI1"),
        (0x101F, "VT_VECTOR | VT_LPWSTR"),
        (0x1048, "VT_VECTOR | VT_CLSID"),
    ],
)
def test_a_type_is_described_by_the_constants_it_is_made_of(value: int, said: str) -> None:
    known = VariantType.of(value)
    assert known is not None
    assert describe(value) == said


@pytest.mark.spec("MS-MQQB 4.1.7")
@pytest.mark.spec("E22")
def test_the_body_type_in_the_published_dump_is_known() -> None:
    assert VariantType.of(int.from_bytes(b"\x08\x00\x00\x00", "little")) is VariantType.VT_BSTR


@pytest.mark.spec("MS-MQMQ 2.2.13.1")
def test_an_array_that_no_propvariant_may_carry_is_described_but_has_no_type() -> None:
    assert VariantType.of(0x1002) is None
    assert describe(0x1002) == "VT_VECTOR | VT_I2"


@pytest.mark.parametrize("value", [4, 0x2011, 0x4003, 0x1004, 0xFFFFFFFF])
def test_a_number_that_is_no_type_is_described_as_none(value: int) -> None:
    assert VariantType.of(value) is None
    assert describe(value) == f"0x{value:04X}: not a PROPVARIANT type"


@pytest.mark.spec("MS-MQMQ 2.2.12")
@pytest.mark.parametrize("known", VariantType)
def test_the_element_of_an_array_is_its_type_without_the_vector_bit(known: VariantType) -> None:
    assert not known.element.is_vector
    vector = "VT_VECTOR_" if known.is_vector else "VT_"
    assert known == known.element | (VT_VECTOR if known.is_vector else 0)
    assert known.name == vector + known.element.name.removeprefix("VT_")


@settings(max_examples=200)
@given(st.integers(0, 0xFFFFFFFF))
def test_any_32_bits_have_a_description(value: int) -> None:
    said = describe(value)
    assert said.startswith("VT_") == (VariantType.of(value & ~VT_VECTOR) is not None)
