r"""[MS-MQMQ] 2.1.1: path names, `computer\private$\queue`.

Not here: format names, which say how to reach a queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from merq.model.names.addresses import host_key, scan_computer
from merq.model.names.queues import (
    QueueOnComputer,
    check_queue,
    print_queue,
    queue_key,
    scan_queue,
)
from merq.model.names.scanner import COMPUTER, Scanner, read_whole, upper

LOCAL_COMPUTER = "."
"""[MC-MQAC] 3.10.6.1: stands for the computer where the name is used."""

FORMAT_NAME_PREFIXES = ("PUBLIC", "PRIVATE", "DIRECT", "DL", "MULTICAST", "MACHINE", "CONNECTOR")
"""[MS-MQMQ] 2.1.2 to 2.1.6: the words before the `=` of a format name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathName(QueueOnComputer):
    r"""[MS-MQMQ] 2.1.1: a queue by its computer and its name, `computer\private$\queue;subqueue`.

    Names that differ only in case are equal. Printing keeps the spelling of computer and queue.

    Attributes:
        computer: The computer's name or address, `.` for the local one.
    """

    computer: str = field(compare=False)
    _key: tuple[object, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        computer = read_whole(self.computer, scan_computer, COMPUTER.what)
        object.__setattr__(self, "computer", computer)
        check_queue(self)
        object.__setattr__(self, "_key", (host_key(self.computer), *queue_key(self)))

    def __str__(self) -> str:
        queue = print_queue(self, private="private$", system="system$", separator="\\")
        return f"{self.computer}{queue}"

    @property
    def is_local(self) -> bool:
        """Whether the computer is named by the point that stands for the local one."""
        return self.computer == LOCAL_COMPUTER

    def on(self, computer: str) -> PathName:
        """[MC-MQAC] 3.10.6.1: the queue of the same name on another computer."""
        return self if computer == self.computer else replace(self, computer=computer)


def parse_path_name(text: str) -> PathName:
    r"""[MS-MQMQ] 2.1.1: reads a path name such as `.\private$\orders`.

    Raises:
        NameSyntaxError: The text is not a path name.
    """
    scanner = Scanner(text)
    prefix, equals, _ = text.partition("=")
    if equals and upper(prefix) in FORMAT_NAME_PREFIXES:
        scanner.reject(f"{prefix}= starts a format name, expected a path name")
    computer = scan_computer(scanner)
    hint = r"a private queue of this computer is .\private$\queue" if scanner.at_end else ""
    if scanner.sees("/"):
        hint = "path names are written with backslashes"
    elif scanner.sees("="):
        hint = f"format names start with {', '.join(FORMAT_NAME_PREFIXES)}"
    scanner.expect("\\", hint)
    queue = scan_queue(scanner, separators="\\")
    return path_of(queue, computer=computer)


def path_of(queue: QueueOnComputer, *, computer: str) -> PathName:
    """The path name of a queue on the given computer."""
    return PathName(
        computer=computer,
        scope=queue.scope,
        queue=queue.queue,
        subqueue=queue.subqueue,
        suffix=queue.suffix,
    )
