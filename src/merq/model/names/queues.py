r"""The part that path names and direct format names share: `\private$\orders;JOURNAL`.

Not here: the computer that stands before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from merq.model.names.kinds import (
    READ_ONLY_SUFFIXES,
    SYSTEM_QUEUE_SUFFIXES,
    QueueScope,
    QueueSuffixType,
)
from merq.model.names.scanner import QUEUE, SUBQUEUE, Scanner, fold, quoted, read_whole, upper

PRIVATE = "PRIVATE$"
SYSTEM = "SYSTEM$"

SUFFIX_WORDS = {
    suffix.name: suffix
    for suffix in (
        QueueSuffixType.JOURNAL,
        QueueSuffixType.DEADLETTER,
        QueueSuffixType.DEADXACT,
        QueueSuffixType.XACTONLY,
    )
}
"""[MS-MQMQ] 2.2.11: the words that stand behind a semicolon and are not subqueues."""


# The fields do not compare, nor does this class: the names that extend it compare by their keys.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueueOnComputer:
    """[MS-MQMQ] 2.1.1: a queue as its computer knows it, whichever computer that is.

    Attributes:
        scope: Whether the queue is public, private or one of the computer's own.
        queue: The queue's name; empty for the computer's own queues.
        subqueue: The name of the subqueue that is meant, if one is.
        suffix: The journal of the queue, or which of the computer's own queues is meant.
    """

    scope: QueueScope = field(compare=False)
    queue: str = field(default="", compare=False)
    subqueue: str | None = field(default=None, compare=False)
    suffix: QueueSuffixType = field(default=QueueSuffixType.NONE, compare=False)

    @property
    def is_private(self) -> bool:
        """Whether the queue is registered on its computer only, not in the directory."""
        return self.scope is QueueScope.PRIVATE

    @property
    def is_public(self) -> bool:
        """Whether the queue is published in the directory."""
        return self.scope is QueueScope.PUBLIC

    @property
    def is_system(self) -> bool:
        """Whether this is the computer's own journal or one of its dead-letter queues."""
        return self.scope is QueueScope.SYSTEM

    @property
    def is_read_only(self) -> bool:
        """[MS-MQMQ] 2.1.7: whether applications can read here, but not send."""
        return self.suffix in READ_ONLY_SUFFIXES

    @property
    def suffix_type(self) -> QueueSuffixType:
        """[MS-MQMQ] 2.2.7: the suffix as a QUEUE_FORMAT gives it."""
        return self.suffix if self.subqueue is None else QueueSuffixType.SUBQUEUE


def scan_queue(scanner: Scanner, *, separators: str) -> QueueOnComputer:
    """[MS-MQMQ] 2.1.1, 2.1.2: reads what stands behind the computer and its separator."""
    if _take_scope(scanner, SYSTEM, follow=";"):
        suffix = scan_suffix(scanner, SYSTEM_QUEUE_SUFFIXES)
        return QueueOnComputer(scope=QueueScope.SYSTEM, suffix=suffix)
    private = _take_scope(scanner, PRIVATE, follow=separators)
    queue = scan_queue_name(scanner)
    subqueue, suffix = None, QueueSuffixType.NONE
    if scanner.take(";"):
        subqueue, suffix = _scan_subqueue_or_journal(scanner)
    scope = QueueScope.PRIVATE if private else QueueScope.PUBLIC
    return QueueOnComputer(scope=scope, queue=queue, subqueue=subqueue, suffix=suffix)


def _take_scope(scanner: Scanner, word: str, *, follow: str) -> bool:
    """Steps over the word and its follower; `private$x` is a queue's name, `private$` is not."""
    if not scanner.sees_word(word):
        return False
    start = scanner.position
    scanner.position += len(word)
    if scanner.sees(follow):
        scanner.position += 1
        return True
    if scanner.at_end or scanner.sees("\\/;"):
        hint = "only HTTP names are written with '/'" if scanner.sees("/") else ""
        scanner.fail(f"{quoted(follow[0])} behind {word.lower()}", hint)
    scanner.position = start
    return False


def scan_queue_name(scanner: Scanner) -> str:
    """[MS-MQMQ] 2.1.1: the name of a queue, without what may follow a semicolon."""
    name = scanner.take_part(QUEUE)
    if not scanner.sees(";"):
        scanner.expect_end("another character of the queue name, ';'", _hint(scanner))
    return name


def scan_subqueue_name(scanner: Scanner) -> str:
    """[MS-MQMQ] 2.1.1: the name of a subqueue, which is none of the suffixes."""
    start = scanner.position
    name = scanner.take_part(SUBQUEUE)
    if upper(name) in SUFFIX_WORDS:
        scanner.reject(f"{name} is a suffix and cannot name a subqueue", at=start)
    return name


def _scan_subqueue_or_journal(scanner: Scanner) -> tuple[str | None, QueueSuffixType]:
    word = scanner.ahead(";" + scanner.ends)
    if upper(word) == "JOURNAL":
        scanner.position += len(word)
        scanner.expect_end("nothing behind the journal", "a journal has no subqueues")
        return None, QueueSuffixType.JOURNAL
    if upper(word) in ("DEADLETTER", "DEADXACT"):
        scanner.reject(
            f"{word} belongs to a computer, not to a queue",
            f"write computer\\{SYSTEM};{upper(word)}",
        )
    subqueue = scan_subqueue_name(scanner)
    hint = "a subqueue has neither a journal nor subqueues" if scanner.sees(";") else ""
    scanner.expect_end("another character of the subqueue name", hint or _hint(scanner))
    return subqueue, QueueSuffixType.NONE


def _hint(scanner: Scanner) -> str:
    """What people who write this character have usually overlooked."""
    if scanner.sees('+,"'):
        return "names of queues contain no plus, comma or quotation mark"
    if scanner.sees("\\"):
        return "names of queues contain no backslash; only private$ stands before them"
    return ""


def scan_suffix(scanner: Scanner, allowed: frozenset[QueueSuffixType]) -> QueueSuffixType:
    """[MS-MQMQ] 2.2.7: reads the word behind a semicolon, one of those that this name may have."""
    words = [suffix.name for suffix in sorted(allowed) if suffix is not QueueSuffixType.NONE]
    word = next(filter(scanner.take_word, words), None)
    if word is None:
        hint = ""
        if upper(scanner.ahead(";" + scanner.ends)) in SUFFIX_WORDS:
            hint = "names of this kind have no other suffix"
        elif QueueSuffixType.JOURNAL in allowed and QueueSuffixType.NONE in allowed:
            hint = "a subqueue is only reached by a DIRECT name"
        scanner.fail(" or ".join(words), hint)
    scanner.expect_end(f"nothing behind {word}")
    return QueueSuffixType[word]


def check_queue(name: QueueOnComputer) -> None:
    """Refuses fields that contradict each other, or that no name can be written with."""
    if name.scope is QueueScope.SYSTEM:
        if name.queue or name.subqueue is not None or name.suffix not in SYSTEM_QUEUE_SUFFIXES:
            raise ValueError("one of the computer's own queues has a suffix and nothing else")
        return
    if name.suffix not in (QueueSuffixType.NONE, QueueSuffixType.JOURNAL):
        raise ValueError(f"a queue has no {name.suffix.name}")
    if name.suffix is not QueueSuffixType.NONE and name.subqueue is not None:
        raise ValueError("a subqueue has no journal")
    if name.is_public:
        # A public queue cannot be called what introduces the other scopes.
        _take_scope(Scanner(name.queue), SYSTEM, follow=";")
        _take_scope(Scanner(name.queue), PRIVATE, follow="\\")
    read_whole(name.queue, lambda scanner: scanner.take_part(QUEUE), QUEUE.what)
    if name.subqueue is not None:
        read_whole(name.subqueue, scan_subqueue_name, SUBQUEUE.what)


def print_queue(name: QueueOnComputer, *, private: str, system: str, separator: str) -> str:
    """What stands behind the computer, with the scopes' words as the kind of name spells them."""
    if name.scope is QueueScope.SYSTEM:
        return f"{separator}{system};{name.suffix.name}"
    scope = f"{separator}{private}" if name.is_private else ""
    suffix = "" if name.suffix is QueueSuffixType.NONE else f";{name.suffix.name}"
    subqueue = "" if name.subqueue is None else f";{name.subqueue}"
    return f"{scope}{separator}{name.queue}{subqueue}{suffix}"


def queue_key(name: QueueOnComputer) -> tuple[object, ...]:
    """What two spellings of a queue have in common if they mean the same."""
    subqueue = None if name.subqueue is None else fold(name.subqueue)
    return (name.scope, fold(name.queue), subqueue, name.suffix)
