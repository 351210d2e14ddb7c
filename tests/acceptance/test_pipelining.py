"""Requests that come faster than their answers are taken."""

from __future__ import annotations

import socket
from pathlib import Path

from kit.services import PATIENCE_S, serving
from merq.protocol.application.codec import encode_request
from merq.protocol.application.frames import FrameReader
from merq.protocol.application.greeting import Hello, encode_hello
from merq.protocol.application.requests import AskStatus

REQUESTS = 200


def test_requests_that_were_put_off_are_answered_though_nobody_says_more(tmp_path: Path) -> None:
    config = tmp_path / "merq.toml"
    config.write_text("[limits]\nanswer_bytes_max = 4096\n")
    folder = tmp_path / "data"
    asked = [encode_request(number, AskStatus()) for number in range(1, REQUESTS + 1)]
    reader = FrameReader(1 << 20)
    numbers: list[int] = []
    with serving(folder, "--config", str(config)), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(str(folder / "merq.sock"))
        hello = encode_hello(Hello(protocol="merq", oldest=1, newest=1))
        connection.sendall(hello + b"".join(asked))
        while len(numbers) <= REQUESTS:
            reader.feed(connection.recv(1 << 16))
            while (found := reader.next()) is not None:
                numbers.append(found.number)
    assert numbers == list(range(REQUESTS + 1))
