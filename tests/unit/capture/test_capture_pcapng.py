"""The newer capture format."""

import struct
import tracemalloc
from io import BytesIO, FileIO, BufferedReader
from pathlib import Path

import pytest

from merq.capture.files import read_frames
from merq.capture.pcapng import BLOCK_SIZE_MAX, INTERFACE_COUNT_MAX
from merq.capture.source import CAPTURED_LENGTH_MAX, READ_SIZE_MAX, TIME_NS_MAX, CapturedFrame
from merq.errors import CaptureError
from tests.unit.capture.building_captures import (
    block,
    enhanced,
    interface,
    obsolete,
    option,
    pcapng,
    section,
    simple,
)

TSRESOL, TSOFFSET = 9, 14


def frames_and_error(data: bytes) -> tuple[list[CapturedFrame], CaptureError | None]:
    found: list[CapturedFrame] = []
    frames = read_frames(BytesIO(data))
    try:
        found.extend(frame for frame in iter(lambda: next(frames, None), None))
    except CaptureError as error:
        return found, error
    return found, None
