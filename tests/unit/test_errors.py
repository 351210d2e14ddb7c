"""What an error says of itself, here and in another process."""

from __future__ import annotations

import copy
import pickle

import pytest

from merq import errors
from merq.errors import (
    CaptureError,
    CertificateError,
    InDoubt,
    ListenError,
    MerqError,
    MessageQueueError,
    NameSyntaxError,
    ReceiveTimeout,
    SettingsError,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreInUse,
    StoreShort,
    TokenError,
    WireError,
)
from merq.hresult import HResult

ALL = [
    MerqError("wrong"),
    WireError("too short"),
    WireError("too short", offset=7, field="label"),
    NameSyntaxError("a\\b", 2, "a name ends here"),
    CaptureError("no magic", offset=24),
    StoreError("reading failed"),
    StoreInUse("it is open"),
    StoreFull("no room"),
    StoreShort("no descriptor"),
    StoreFailed("the disk failed"),
    StoreCorrupt("00000001.log", 99, "a checksum is wrong"),
    SettingsError(("one", "two")),
    ListenError("127.0.0.1:1801", "it is taken", "end who has it"),
    TokenError("no such token"),
    CertificateError("it has ended"),
    MessageQueueError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, "no such queue"),
    InDoubt("who knows", received=[b"a message"]),
    ReceiveTimeout("none came"),
]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (WireError("too short"), "too short"),
        (WireError("too short", field="label"), "label: too short"),
        (WireError("too short", offset=0), "too short (at offset 0)"),
        (WireError("too short", offset=7, field="label"), "label: too short (at offset 7)"),
    ],
)
def test_a_wire_error_names_a_place_only_if_it_is_about_one(wrong: WireError, text: str) -> None:
    assert str(wrong) == text


@pytest.mark.parametrize("wrong", ALL, ids=lambda each: type(each).__name__)
def test_an_error_from_another_process_is_what_it_was_there(wrong: MerqError) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(wrong, protocol))  # noqa: S301 - it is our own
        assert type(found) is type(wrong)
        assert (str(found), found.args, vars(found)) == (str(wrong), wrong.args, vars(wrong))
    assert str(copy.copy(wrong)) == str(wrong)


def test_every_error_that_has_a_name_is_tried() -> None:
    named = {
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, MerqError)
    }
    assert {type(each) for each in ALL} == named
