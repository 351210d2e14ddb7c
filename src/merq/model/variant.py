"""What kind of value a property or a message body has: the PROPVARIANT types, in one table.

In it: the type constants of [MS-MQMQ] 2.2.12 and the arrays that [MS-MQMQ] 2.2.13.1 allows. Not in
it: how such values are laid out in bytes.
"""

from enum import IntEnum, unique
from typing import Final, Self

VT_VECTOR: Final = 0x1000
"""[MS-MQMQ] 2.2.12: set in a type that is a counted array; nothing is of this type alone."""


def describe(value: int) -> str:
    """Name a type, also a combination that no PROPVARIANT may carry: `VT_VECTOR | VT_LPWSTR`."""
    element = VariantType.of(value & ~VT_VECTOR)
    if element is None:
        return f"0x{value:04X}: not a PROPVARIANT type"
    return f"VT_VECTOR | {element.name}" if value & VT_VECTOR else element.name


@unique
class VariantType(IntEnum):
    """[MS-MQMQ] 2.2.12: the types by name; an array of VT_X is VT_VECTOR_X.

    A type that is not here stays a plain integer: the type of a message body is the sending
    application's choice.

    Attributes:
        meaning: What a value of the type is.
    """

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        """Take one row of the table."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    @classmethod
    def of(cls, value: int) -> "VariantType | None":
        """Find a type; None where the documents have none of this number."""
        return _BY_VALUE.get(value)

    @property
    def is_vector(self) -> bool:
        """Whether a value is a counted array."""
        return bool(self & VT_VECTOR)

    @property
    def element(self) -> "VariantType":
        """The type of an array's entries; the type itself where it is no array."""
        return _BY_VALUE[self & ~VT_VECTOR]

    VT_EMPTY = 0, "nothing, and of no type"
    VT_NULL = 1, "nothing, on purpose"
    VT_I2 = 2, "a signed integer of 2 bytes"
    VT_I4 = 3, "a signed integer of 4 bytes"
    # Not in [MS-MQMQ] 2.2.12. The bytes of [MS-MQQB] 4.1.7 have it as the BodyType of text, and
    # [MS-OAUT] 2.2.7 gives the number its name.
    VT_BSTR = 8, "UTF-16 text, as the body of a message"
    VT_BOOL = 11, "true or false"
    VT_VARIANT = 12, "a value with its own type; only ever the entry of an array"
    VT_I1 = 16, "an integer of 1 byte"
    VT_UI1 = 17, "an unsigned integer of 1 byte"
    VT_UI2 = 18, "an unsigned integer of 2 bytes"
    VT_UI4 = 19, "an unsigned integer of 4 bytes"
    VT_I8 = 20, "a signed integer of 8 bytes"
    VT_UI8 = 21, "an unsigned integer of 8 bytes"
    VT_LPWSTR = 31, "UTF-16 text up to a null character"
    VT_BLOB = 65, "bytes with their count"
    VT_CLSID = 72, "a GUID"

    # [MS-MQMQ] 2.2.13.1 lays out these arrays and no others.
    VT_VECTOR_I4 = VT_VECTOR | 3, "signed integers of 4 bytes"
    VT_VECTOR_VARIANT = VT_VECTOR | 12, "values, each with its own type"
    VT_VECTOR_UI1 = VT_VECTOR | 17, "unsigned integers of 1 byte"
    VT_VECTOR_UI2 = VT_VECTOR | 18, "unsigned integers of 2 bytes"
    VT_VECTOR_UI4 = VT_VECTOR | 19, "unsigned integers of 4 bytes"
    VT_VECTOR_UI8 = VT_VECTOR | 21, "unsigned integers of 8 bytes"
    VT_VECTOR_LPWSTR = VT_VECTOR | 31, "UTF-16 texts"
    VT_VECTOR_CLSID = VT_VECTOR | 72, "GUIDs"


_BY_VALUE: Final = {int(known): known for known in VariantType}
