"""What happens at limits of commands that no other test comes near."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader, BytesIO
from pathlib import Path

import pytest

import merq
from merq.cli import exporting, importing, packets, receiving
from merq.cli.exporting import Export
from merq.cli.message_lines import line_of
from merq.cli.outputs import Output
from merq.cli.progressing import Stopping
from merq.cli.receiving import Wish
from merq.model.selecting import First

BODIES = [b"a" * 100, b"b" * 100, b"c" * 100]


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[merq.Queue]:
    with merq.open(tmp_path / "data") as manager:
        found = manager.create_queue(r".\private$\q")
        found.send_many(BODIES)
        yield found


@pytest.mark.limit("merq.cli.exporting.AT_ONCE_BYTES_MAX")
def test_messages_that_take_much_are_exported_in_pieces(
    queue: merq.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "AT_ONCE_BYTES_MAX", 1)
    file, shown = BytesIO(), list[int]()
    with Stopping.between_steps() as stopping:
        Export(queue, file, shown.append, stopping, own=False).take()
    assert shown == [1, 2, 3]
    assert len(file.getvalue().splitlines()) == len(BODIES)
    assert len(queue) == 0


@pytest.mark.limit("merq.cli.importing.AT_ONCE_BYTES_MAX")
def test_lines_that_take_much_are_sent_in_pieces(
    queue: merq.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b"".join(line_of(each).encode() + b"\n" for each in queue.peek_all())
    assert [len(each) for each in importing.batches_of(BytesIO(lines), 0)] == [3]
    monkeypatch.setattr(importing, "AT_ONCE_BYTES_MAX", 1)
    assert [len(each) for each in importing.batches_of(BytesIO(lines), 0)] == [1, 1, 1]


@pytest.mark.limit("merq.cli.receiving.AT_ONCE_BYTES_MAX")
def test_messages_that_take_much_are_received_in_pieces(
    queue: merq.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Noting(Output):
        """Notes how many were written when they were safe."""

        settled: list[int]

        def settle(self) -> None:
            self.settled.append(self.count)

    monkeypatch.setattr(receiving, "AT_ONCE_BYTES_MAX", 1)
    output = Noting("raw", BytesIO())
    output.settled = []
    receiving._receive(queue, Wish(selection=First(), most=3, timeout=0, follow=False), output)
    assert output.settled == [1, 2, 3]
    assert len(queue) == 0


@pytest.mark.limit("merq.cli.packets.HEX_LINE_MAX")
def test_a_long_line_of_hex_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path("examples/first_session.hex").read_text("ascii")
    line = "".join(each.partition("#")[0].replace("\n", " ") for each in text.splitlines())
    digits = "".join(line.split())
    whole = list(packets.from_hex(BufferedReader(BytesIO(digits.encode()))))
    assert len(whole) > 1
    monkeypatch.setattr(packets, "HEX_LINE_MAX", 64)
    assert list(packets.from_hex(BufferedReader(BytesIO(digits.encode())))) == whole
