"""[MS-MQDMPR] 3.1.7.3.8: where a format name lets a message go."""

from __future__ import annotations

from merq.errors import MessageQueueError, NameSyntaxError
from merq.hresult import HResult
from merq.model.names import (
    DirectName,
    FormatName,
    MultipleElementName,
    PrivateName,
    PublicName,
    parse_format_name,
)


def parse_destination(text: str) -> tuple[FormatName, ...]:
    """[MS-MQDMPR] 3.1.7.3.8: the names that messages to a format name go to, each once.

    Raises:
        MessageQueueError: It is no format name, or not one to send to.
    """
    try:
        name = parse_format_name(text)
    except NameSyntaxError as wrong:
        raise MessageQueueError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, str(wrong)) from wrong
    if isinstance(name, MultipleElementName):
        name = name.without_duplicates()
    elements = name.elements if isinstance(name, MultipleElementName) else (name,)
    for element in elements:
        if (
            not isinstance(element, DirectName | PublicName | PrivateName)
            or element.is_read_only
            or (isinstance(element, DirectName) and element.subqueue is not None)
        ):
            raise MessageQueueError(
                HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
                f"nothing can be sent to {element}: messages go to DIRECT=, PRIVATE= and PUBLIC= "
                "names that are neither journals nor subqueues",
            )
    return elements
