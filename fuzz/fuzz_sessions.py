"""A coverage-guided fuzz target for sessions between queue managers.

    python fuzz/fuzz_sessions.py [libFuzzer options] [corpus folder]

The first byte of an input chooses how far the session is, the second how the rest is cut. No bytes
may raise out of `Session.receive_data`; a cut changes nothing; a session that is closed says why;
what was acknowledged was sent, once; and a closed session says nothing more. The first corpus is
the published example session. A finding is written to a file named crash-…, which the same command
takes as an argument to show it again. Without atheris (Linux on x86-64 has it) nothing can be run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final
from uuid import UUID

import atheris

with atheris.instrument_imports(include=["merq"]):
    from merq.protocol.binary.session import Session, SessionState
    from merq.protocol.binary.settings import SessionSettings

VECTORS: Final = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "MS-MQQB"
SETTINGS: Final = SessionSettings(window=8)
STAGES: Final = 5
"""Accepted, asked, open; and dialled, answered."""

MESSAGES: Final = 6
"""What an open session has sent before, so that there is something to acknowledge."""


class Disagreement(Exception):
    """What must hold for every session does not."""


def frame(number: int) -> bytes:
    """A frame of the published example."""
    (path,) = VECTORS.glob(f"frame_{number}_*.hex")
    return bytes.fromhex(path.read_text(encoding="ascii"))


FRAMES: Final = {number: frame(number) for number in range(3, 9)}
CLIENT: Final = UUID(bytes_le=FRAMES[3][20:36])
SERVER: Final = UUID(bytes_le=FRAMES[3][36:52])
ANSWER: Final = FRAMES[4][:20] + FRAMES[3][20:52] + FRAMES[4][52:]
"""Frame 4 is of another session than frame 3; this is its answer."""


def at_stage(stage: int) -> Session[int]:
    """A session that is so far."""
    if stage < 3:
        session: Session[int] = Session(SERVER, SETTINGS, 0.0, is_initiator=False)
        for number in (3, 5)[:stage]:
            session.receive_data(FRAMES[number], 0.0)
        if stage == 2:
            for token in range(MESSAGES):
                session.send(FRAMES[7], token, 0.0, is_recoverable=token % 2 == 1)
        return session
    session = Session(CLIENT, SETTINGS, 0.0, is_initiator=True, remote_guid=SERVER)
    if stage == 4:
        session.receive_data(ANSWER, 0.0)
    return session


def outcome(stage: int, chunks: list[bytes]) -> tuple[object, ...]:
    """All that can be seen of a session to which these bytes came."""
    session = at_stage(stage)
    if session.closing:
        raise Disagreement(f"stage {stage} cannot be reached: {session.closing}")
    output = session.take_output()
    for chunk in chunks:
        was_closed = bool(session.closing)
        session.receive_data(chunk, 0.0)
        said = session.take_output()
        if was_closed and said:
            raise Disagreement("a closed session goes on")
        output += said
    if (session.state is SessionState.CLOSED) != bool(session.closing):
        raise Disagreement(f"the session is {session.state.value}: {session.closing!r}")
    done = session.acknowledged
    sent = MESSAGES if stage == 2 else 0
    if not set(done) <= set(range(sent)) or len(set(done)) + session.waiting != sent:
        raise Disagreement(f"{done} are acknowledged, {session.waiting} of {sent} wait")
    packets = [view.packet for view in session.take_arrived()]
    if packets:
        session.handled(0.0)
    session.tick(1.0)
    output += session.take_output()
    return session.state, session.closing, packets, done, session.room, b"".join(output)


def one_input(data: bytes) -> None:
    """Everything that must hold for these bytes."""
    if len(data) < 2:
        return
    stage, place, rest = data[0] % STAGES, data[1], data[2:]
    at = len(rest) * place // 256
    if outcome(stage, [rest]) != outcome(stage, [rest[:at], rest[at:]]):
        raise Disagreement("a cut changes what becomes of a session")


def main() -> None:
    """Runs libFuzzer with the example session as its first corpus."""
    with tempfile.TemporaryDirectory(prefix="merq-corpus-") as folder:
        for stage in range(STAGES):
            for number, data in FRAMES.items():
                name = f"stage_{stage}_frame_{number}"
                (Path(folder) / name).write_bytes(bytes([stage, 128]) + data)
        whole = b"".join(FRAMES[number] for number in (3, 5, 7, 8))
        (Path(folder) / "whole").write_bytes(bytes([0, 77]) + whole)
        # A file to show again is run alone; a folder of the user's own comes before the seeds.
        again = any(Path(argument).is_file() for argument in sys.argv[1:])
        atheris.Setup(sys.argv if again else [*sys.argv, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
