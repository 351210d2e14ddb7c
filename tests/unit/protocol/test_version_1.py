"""Clients of version 1 refuse fields that they do not know, so they are not told of them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_type_hints
from uuid import UUID

import pytest

from merq.protocol.application.codec import encode_result
from merq.protocol.application.frames import HEADER_SIZE
from merq.protocol.application.reports import (
    FIELDS_OF_VERSION_2,
    SequenceReport,
    Status,
    TransferReport,
)

FORMS = {Status: False, TransferReport: False, SequenceReport: True}
"""Whether each is told in a list."""


def blank(kind: type) -> Any:
    """A report in which nothing is said."""
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        is_plain = hint in (str, bool, tuple, list)
        values[name] = hint() if is_plain else UUID(int=0) if hint is UUID else 0
    return kind(**values)


@pytest.mark.parametrize("kind", FIELDS_OF_VERSION_2, ids=lambda kind: kind.__name__)
def test_version_1_is_told_what_it_knows(kind: type) -> None:
    is_list = FORMS[kind]
    report = blank(kind)
    found = {}
    for version in (1, 2):
        data = encode_result(7, [report] if is_list else report, version)[HEADER_SIZE:]
        (value,) = json.loads(data).values()
        found[version] = set(value[0] if is_list else value)
    assert found[2] - found[1] == FIELDS_OF_VERSION_2[kind]
    assert found[2] == {each.name for each in dataclasses.fields(kind)}
