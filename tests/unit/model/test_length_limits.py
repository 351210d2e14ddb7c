"""Texts that applications give have limits, declared with the field and looked at in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import uuid4

import pytest

import merq
from merq.errors import MessageQueueError
from merq.hresult import HResult
from merq.model.length_limits import (
    GROUP_NAME_MAX,
    OWNER_NAME_MAX,
    STAGES_AT_ONCE_MAX,
    WRITER_NAME_MAX,
    check_lengths,
    length_limits,
)
from merq.model.names import FORMAT_NAME_LENGTH_MAX
from merq.model.queue import QueueSettings
from merq.protocol.application.requests import (
    Acknowledge,
    CreateQueue,
    CreateStage,
    DropStages,
    FindQueue,
    Publish,
    Request,
    Reserve,
    Send,
    SendManyTo,
)

NAME, GROUP = FORMAT_NAME_LENGTH_MAX, GROUP_NAME_MAX


def own_hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind) or get_type_hints(vars(kind)["__init__"])


@pytest.mark.parametrize("kind", get_args(Request), ids=lambda each: each.__name__)
def test_every_text_of_every_request_has_a_limit(kind: type) -> None:
    texts = {name for name, hint in own_hints(kind).items() if hint is str}
    assert texts == texts & {name for name, _ in length_limits(kind)}


@pytest.mark.limit(
    "merq.model.length_limits.OWNER_NAME_MAX", "merq.model.length_limits.STAGES_AT_ONCE_MAX"
)
@pytest.mark.parametrize(
    ("fitting", "longer"),
    [
        (Publish("w" * WRITER_NAME_MAX, 1, ()), Publish("w" * (WRITER_NAME_MAX + 1), 1, ())),
        (Publish("w", 1, (1,) * STAGES_AT_ONCE_MAX), Publish("w", 1, (1,) * 10_001)),
        (Publish("w", 1, ()), Publish("", 1, ())),
        (CreateStage(1, "w", 1, "p" * 255), CreateStage(1, "w", 1, "p" * 256)),
        (DropStages(""), DropStages("w" * (WRITER_NAME_MAX + 1))),
        (
            Reserve(1, "g" * GROUP, "o" * OWNER_NAME_MAX, 0),
            Reserve(1, "g", "o" * (OWNER_NAME_MAX + 1), 0),
        ),
        (Acknowledge(1, "g" * GROUP, "o", 1), Acknowledge(1, "g" * (GROUP + 1), "o", 1)),
        (FindQueue("q" * NAME), FindQueue("q" * (NAME + 1))),
        (
            CreateQueue("q" * NAME, QueueSettings(), uuid4()),
            CreateQueue("q" * (NAME + 1), QueueSettings(), uuid4()),
        ),
        (Send(1, [b""], 0, "q" * NAME), Send(1, [b""], 0, "q" * (NAME + 1))),
        (SendManyTo("q" * NAME, [b""]), SendManyTo("q" * (NAME + 1), [b""])),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_as_long_as_it_may_be_fits_and_a_little_more_is_refused(
    fitting: Request, longer: Request
) -> None:
    check_lengths(fitting)
    with pytest.raises(MessageQueueError, match=r"(characters|elements); from \d+ to \d+") as error:
        check_lengths(longer)
    assert error.value.code == HResult.MQ_ERROR_INVALID_PARAMETER


def test_an_embedded_queue_manager_refuses_them_and_goes_on(tmp_path: Path) -> None:
    with merq.open(tmp_path / "data") as manager:
        queue = manager.create_queue(r".\private$\q")
        with pytest.raises(MessageQueueError, match="path_name has 70000 characters"):
            manager.queue("." + "x" * 69_999)
        queue.send(b"still here")
        assert queue.receive().body == b"still here"
