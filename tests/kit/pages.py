"""What pages show: their blocks, and terminal sessions that are run again and compared.

A `console` block is a session: lines with `$` are typed, the others are what was printed. A line
`…` stands for any lines. What is different every time (ids, dates, sizes) is masked on both sides.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from merq import MessageQueueError, connect

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE_S: Final = 30
"""No command of a page takes longer."""

_MARK: Final = "-- the next command --"
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MASKS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "GUID"),
    (re.compile(r"(GUID\}[\\/])\d+"), r"\1N"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( UTC|Z)?"), "TIME"),
    (re.compile(r"\b\d{17,19}\b"), "LOOKUP"),
    (re.compile(r"(?<=\()\d+ s(?=\))"), "AGE"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "AGE"),
    (re.compile(r"\b[\d.]+ ([kMG]?B)\b"), "SIZE"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page, and the line that it starts on."""

    language: str
    text: str
    line: int


@dataclass(slots=True)
class Step:
    """A command that is typed, and what the page shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


def blocks_of(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in _BLOCK.finditer(text)
        if found[1] in languages
    ]


def program_of(page: Path, place: str, actual: str) -> str:
    """The one program of a page that has to do with a place, which is elsewhere here."""
    (found,) = [each.text for each in blocks_of(page, "python") if f'"{place}' in each.text]
    return found.replace(f'"{place}', f'"{actual}')


def steps_of(session: str) -> list[Step]:
    """The commands of a session; one that goes on over several lines ends them with a backslash."""
    steps: list[Step] = []
    is_open = False
    for line in session.splitlines():
        if is_open:
            steps[-1].command += f"\n{line}"
        elif line.startswith("$ "):
            steps.append(Step(line.removeprefix("$ ")))
        else:
            assert steps, f"{line!r} is printed before anything is typed"
            steps[-1].shown.append(line)
        is_open = (is_open or line.startswith("$ ")) and line.endswith("\\")
    return steps


def masked(text: str) -> list[str]:
    """The lines of an output without what is different every time."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def has_shape(printed: str, shown: list[str]) -> bool:
    """Whether an output looks as a page shows it."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(line) + r"\n"
        for line in masked("\n".join(shown))
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in masked(printed))) is not None


class Terminal:
    """A folder in which somebody follows a page, with `merq` on the path and as .venv/bin/merq."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
        scripts = Path(sys.prefix) / "bin"
        kept = {name: each for name, each in os.environ.items() if not name.startswith("MERQ_")}
        self.environment = kept | {
            "MERQ_EXCHANGE_LISTEN": "false",
            "MERQ_EXCHANGE_OFFLINE": "true",
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUTF8": "1",
            "PYTHONWARNINGS": "error",
        }
        self._background: list[subprocess.Popen[bytes]] = []

    def run(self, session: str) -> None:
        """Types a session into one shell; every output must have the shape that is shown."""
        steps = steps_of(session)
        if steps[0].command.endswith("&"):
            self.start(steps.pop(0).command.removesuffix("&"))
        for step, printed in zip(steps, self.type(steps), strict=True):
            assert "Traceback" not in printed, printed
            assert has_shape(printed, step.shown), (
                f"$ {step.command}\nprinted\n{printed}\nbut the page shows\n"
                + "\n".join(step.shown)
            )

    def type(self, steps: list[Step]) -> list[str]:
        """Types commands into one shell; gives what each printed."""
        if not steps:
            return []
        script = "".join(f"{step.command}\necho {_MARK}\n" for step in steps)
        done = subprocess.run(
            ["sh", "-c", script],  # noqa: S607
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE_S * len(steps),
        )
        return done.stdout.split(f"{_MARK}\n")[:-1]

    def python(self, code: str) -> str:
        """Runs a program to its end; gives what it printed."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        assert not done.stderr, done.stderr
        return done.stdout

    def start(self, command: str) -> None:
        """Starts what goes on beside the others, and waits until it serves."""
        self._background.append(
            subprocess.Popen(
                ["sh", "-c", f"exec {command}"],  # noqa: S607
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        wait_for_service(self.folder / "data", self._background[-1])

    def close(self) -> None:
        """Ends what was started, as Ctrl-C does."""
        for process in self._background:
            process.send_signal(signal.SIGINT)
            try:
                assert process.wait(PATIENCE_S) == 0
            finally:
                with suppress(ProcessLookupError):
                    process.kill()


def wait_for_service(data: Path, process: subprocess.Popen[bytes]) -> None:
    """Returns when the service whose data is in the folder answers."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with connect(f"unix:{data / 'merq.sock'}") as manager:
                manager.status()
        except MessageQueueError:
            assert process.poll() is None, f"it ended with {process.returncode}"
            assert time.monotonic() < deadline, "it does not answer"
            time.sleep(0.02)
        else:
            return


@contextmanager
def terminal_in(folder: Path) -> Iterator[Terminal]:
    """Somebody who follows a page in an empty folder, and tidies up behind."""
    terminal = Terminal(folder)
    try:
        yield terminal
    finally:
        terminal.close()
