"""As much of AMQP 0-9-1 as measuring RabbitMQ takes: frames made beforehand, confirms counted."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bench.brokers.contender import READ_BYTES, connected

METHOD, HEADER, BODY_FRAME = 1, 2, 3
FRAME_END = 0xCE
FRAME_BYTES_MAX = 131_072
"""RabbitMQ's own; a body of 64 KiB fits into one frame."""

START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK, CLOSE = (
    (10, number) for number in (10, 11, 30, 31, 40, 41, 50)
)
CHANNEL_OPEN, CHANNEL_OPEN_OK, CHANNEL_CLOSE = (20, 10), (20, 11), (20, 40)
DECLARE, DECLARE_OK, DELETE, DELETE_OK = (50, 10), (50, 11), (50, 40), (50, 41)
QOS, QOS_OK, CONSUME, CONSUME_OK, CANCEL, CANCEL_OK = (
    (60, number) for number in (10, 11, 20, 21, 30, 31)
)
PUBLISH, DELIVER, ACK, NACK = (60, 40), (60, 60), (60, 80), (60, 120)
CONFIRM, CONFIRM_OK = (85, 10), (85, 11)

TRANSIENT, PERSISTENT = 1, 2
MULTIPLE = 1

_FRAME = struct.Struct(">BHI")
_NUMBERS = struct.Struct(">HH")
_TAG = struct.Struct(">QB")
_CONTENT = struct.Struct(">HHQHB")
_DELIVERY_MODE_PRESENT = 0x1000

Method = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; a method has its numbers, and its arguments as they came."""

    kind: int
    method: Method | None
    payload: bytes


def short(text: str) -> bytes:
    """A short string."""
    data = text.encode()
    return bytes([len(data)]) + data


def long(data: bytes) -> bytes:
    """A long string, or a table that was made already."""
    return struct.pack(">I", len(data)) + data


def framed(kind: int, channel: int, payload: bytes) -> bytes:
    """A frame around its payload."""
    return _FRAME.pack(kind, channel, len(payload)) + payload + bytes([FRAME_END])


def method(numbers: Method, arguments: bytes, channel: int = 1) -> bytes:
    """A method as a frame."""
    return framed(METHOD, channel, _NUMBERS.pack(*numbers) + arguments)


def published(queue: str, body: bytes, mode: int) -> bytes:
    """A message to a queue by the nameless exchange, as its three frames."""
    to = bytes(2) + short("") + short(queue) + bytes(1)
    header = _CONTENT.pack(PUBLISH[0], 0, len(body), _DELIVERY_MODE_PRESENT, mode)
    return method(PUBLISH, to) + framed(HEADER, 1, header) + framed(BODY_FRAME, 1, body)


class Frames:
    """Finds frames in what comes."""

    def __init__(self) -> None:
        self._rest = b""

    def find(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole now."""
        data = self._rest + data
        at, size = 0, len(data)
        while size - at >= _FRAME.size:
            kind, _, length = _FRAME.unpack_from(data, at)
            after = at + _FRAME.size + length + 1
            if after > size:
                break
            start = at + _FRAME.size
            assert data[after - 1] == FRAME_END, f"byte {data[after - 1]:#x} ends a frame"
            at = after
            if kind == METHOD:
                numbers = _NUMBERS.unpack_from(data, start)
                start += _NUMBERS.size
                yield Frame(kind, numbers, data[start : after - 1])
            else:
                yield Frame(kind, None, data[start : after - 1])
        self._rest = data[at:]


class Confirms:
    """Counts what the broker has confirmed; it may confirm one, or all up to one."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._all_up_to = 0
        self._single: set[int] = set()

    def count(self, data: bytes) -> int:
        """How many more messages these bytes confirm."""
        found = 0
        for frame in self._frames.find(data):
            assert frame.method == ACK, f"{frame} came instead of a confirmation"
            tag, multiple = _TAG.unpack(frame.payload)
            if not multiple:
                self._single.add(tag)
                found += 1
                continue
            before = {each for each in self._single if each <= tag}
            found += max(0, tag - self._all_up_to - len(before))
            self._single -= before
            self._all_up_to = max(self._all_up_to, tag)
        return found


class Channel:
    """A connection with its one channel, on which sends are confirmed."""

    def __init__(self, port: int) -> None:
        self.socket = connected(port)
        self._frames = Frames()
        self._found: list[Frame] = []
        self.confirms = Confirms()
        self._begun = 0
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self.expect(START)
        login = long(b"") + short("PLAIN") + long(b"\x00guest\x00guest") + short("en_US")
        self.socket.sendall(method(START_OK, login, 0))
        self.expect(TUNE)
        # No heartbeats: the frames that come are those that are counted.
        tuned = struct.pack(">HIH", 1, FRAME_BYTES_MAX, 0)
        self.socket.sendall(method(TUNE_OK, tuned, 0))
        self.socket.sendall(method(OPEN, short("/") + short("") + bytes(1), 0))
        self.expect(OPEN_OK)
        self.ask(CHANNEL_OPEN, short(""), CHANNEL_OPEN_OK)
        self.ask(CONFIRM, bytes(1), CONFIRM_OK)

    def ask(self, numbers: Method, arguments: bytes, answer: Method) -> Frame:
        """A method and its answer."""
        self.socket.sendall(method(numbers, arguments))
        return self.expect(answer)

    def expect(self, answer: Method) -> Frame:
        """The next frame, which is to be this method."""
        while not self._found:
            self._found = list(self._frames.find(self.read()))
        frame = self._found.pop(0)
        assert frame.method == answer, f"{frame} came instead of {answer}"
        return frame

    def declare(self, queue: str, *, durable: bool, kind: str) -> None:
        """Makes a queue of that kind."""
        table = short("x-queue-type") + b"S" + long(kind.encode())
        flags = bytes([2 * durable])
        self.ask(DECLARE, bytes(2) + short(queue) + flags + long(table), DECLARE_OK)

    def waiting(self, queue: str) -> int:
        """How many messages wait; answered after everything that this channel asked before."""
        passive = bytes([1])
        frame = self.ask(DECLARE, bytes(2) + short(queue) + passive + long(b""), DECLARE_OK)
        name = frame.payload[0]
        (count,) = struct.unpack_from(">I", frame.payload, 1 + name)
        return int(count)

    def delete(self, queue: str) -> None:
        """Removes a queue with what is in it."""
        self.ask(DELETE, bytes(2) + short(queue) + bytes(1), DELETE_OK)

    def consume(self, queue: str, prefetch: int) -> None:
        """Messages begin to come, so many before they are acknowledged."""
        self.ask(QOS, struct.pack(">IHB", 0, prefetch, 0), QOS_OK)
        self.ask(CONSUME, bytes(2) + short(queue) + short("one") + bytes(1) + long(b""), CONSUME_OK)

    def cancel(self) -> None:
        """No more messages come."""
        self.ask(CANCEL, short("one") + bytes(1), CANCEL_OK)

    def delivered(self) -> tuple[int, int]:
        """How many whole messages came now, and the tag of the last whole one."""
        count = whole = 0
        found, self._found = self._found, []
        for frame in found or self._frames.find(self.read()):
            if frame.kind == BODY_FRAME:
                count += 1
                whole = self._begun
            elif frame.method == DELIVER:
                start = 1 + frame.payload[0]
                self._begun = int.from_bytes(frame.payload[start : start + 8], "big")
            else:
                assert frame.kind == HEADER, f"{frame} came instead of a message"
        return count, whole

    def acknowledge(self, tag: int) -> None:
        """Everything up to this message is done."""
        self.socket.sendall(method(ACK, _TAG.pack(tag, MULTIPLE)))

    def read(self) -> bytes:
        """What comes next."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionError("RabbitMQ hung up")
        return data

    def close(self) -> None:
        """Leaves without ceremony."""
        self.socket.close()
