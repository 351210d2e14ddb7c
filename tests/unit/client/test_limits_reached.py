"""What happens at limits of clients, captures and commands that no other test comes near."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

import merq
from kit.vectors import frame
from merq.aio.queues import Queue as AioQueue
from merq.aio.streams import PREFETCH_MAX
from merq.capture import packets as captured
from merq.cli import bodies
from merq.cli.message_lines import LINE_BYTES_MAX, message_of
from merq.client import packets as building
from merq.client.dialing import PAUSE_DOUBLINGS_MAX, pause_after
from merq.errors import MessageQueueError
from merq.wire.ping import Ping


@pytest.mark.limit("merq.client.dialing.PAUSE_DOUBLINGS_MAX")
def test_the_pause_between_two_attempts_grows_up_to_a_limit() -> None:
    pauses = [pause_after(breaks) for breaks in range(PAUSE_DOUBLINGS_MAX + 1)]
    assert pauses == sorted(pauses)
    assert pause_after(10_000) == pauses[-1]


@pytest.mark.limit("merq.client.packets.TEMPLATES_MAX")
def test_messages_of_many_kinds_are_built_right_though_kinds_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "TEMPLATES_MAX", 2)
    with merq.open(tmp_path / "data") as manager:
        queue = manager.create_queue(r".\private$\q")
        for number in (1, 2, 3, 1, 2, 3):
            queue.send(str(number), label=f"kind {number}")
        found = queue.receive_many(10, timeout=1)
    assert [(each.body, each.label) for each in found] == [
        (str(number), f"kind {number}") for number in (1, 2, 3, 1, 2, 3)
    ]


@pytest.mark.limit("merq.aio.streams.PREFETCH_MAX")
def test_more_messages_at_hand_than_may_be_are_refused() -> None:
    queue = AioQueue.__new__(AioQueue)
    with pytest.raises(MessageQueueError, match=f"{PREFETCH_MAX} are the most"):
        queue.receive_all(prefetch=PREFETCH_MAX + 1)


@pytest.mark.limit("merq.capture.packets.COOKIES_MAX")
def test_answers_to_pings_that_are_not_remembered_are_taken_for_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(captured, "COOKIES_MAX", 1)
    first, second = Ping.parse(frame(1)), Ping.parse(frame(2))
    roles = captured.PingRoles()
    assert roles.kind(first, to_ping_port=None) == "PingRequest"
    assert roles.kind(second, to_ping_port=None) == "PingResponse"
    full = captured.PingRoles()
    monkeypatch.setattr(captured, "COOKIES_MAX", 0)
    assert full.kind(first, to_ping_port=None) == "PingRequest"
    assert full.kind(second, to_ping_port=None) == "PingRequest"


@pytest.mark.limit("merq.cli.bodies.BODY_BYTES_MAX")
def test_a_body_that_no_packet_can_have_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(bytes(bodies.BODY_BYTES_MAX))
    assert len(bodies._bounded(path.read_bytes())) == bodies.BODY_BYTES_MAX
    with pytest.raises(click.ClickException, match=f"larger than {bodies.BODY_BYTES_MAX}"):
        bodies._bounded(bytes(bodies.BODY_BYTES_MAX + 1))


@pytest.mark.limit("merq.cli.message_lines.LINE_BYTES_MAX")
def test_a_line_that_is_too_long_for_a_message_is_refused() -> None:
    with pytest.raises(ValueError, match=f"longer than {LINE_BYTES_MAX}"):
        message_of(b"x" * (LINE_BYTES_MAX + 1))
