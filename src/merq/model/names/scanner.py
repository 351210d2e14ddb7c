"""Reading names from left to right, so that an error can point at the character.

Here: the cursor, the alphabets and lengths of the parts, and the comparison that ignores case.
Not here: the grammars, which are in the modules of the kinds of names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NoReturn
from uuid import UUID

from merq.errors import NameSyntaxError

COMPUTER_LENGTH_MAX = 256
"""[MS-MQMQ] 2.1.1, in UTF-16 code units, as all lengths of names."""

QUEUE_LENGTH_MAX = 124
"""[MS-MQMQ] 2.1.1."""

SUBQUEUE_LENGTH_MAX = 32
"""[MS-MQMQ] 2.1.1."""

DOMAIN_LENGTH_MAX = 255
"""[MS-MQMQ] 2.1.5."""

HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
DIGITS = frozenset("0123456789")
GUID_HYPHENS = (8, 13, 18, 23)
GUID_LENGTH = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePart:
    """A stretch of a name that people choose freely: its length and what it cannot contain.

    Attributes:
        has_spaces: Spaces may stand within it, but neither before nor behind it.
    """

    what: str
    length_max: int
    forbidden: frozenset[str]
    has_spaces: bool = False


# The grammar's alphabet for computers is all of ASCII that is visible. Left out are the
# characters that would make the name end elsewhere, and those that no computer's name has.
COMPUTER = NamePart(
    what="computer name", length_max=COMPUTER_LENGTH_MAX, forbidden=frozenset('\\/;,"=')
)
# The grammar has no spaces in the names of queues, but Windows has such queues: E31.
QUEUE = NamePart(
    what="queue name",
    length_max=QUEUE_LENGTH_MAX,
    forbidden=frozenset('\\;+,"'),
    has_spaces=True,
)
SUBQUEUE = NamePart(
    what="subqueue name",
    length_max=SUBQUEUE_LENGTH_MAX,
    forbidden=frozenset('\\;+,"'),
    has_spaces=True,
)
DOMAIN = NamePart(what="domain name", length_max=DOMAIN_LENGTH_MAX, forbidden=frozenset('\\/;,"='))


_WORD = re.compile(r"[A-Za-z0-9_]*")
"""Characters that no part forbids and none ends at."""


class Scanner:
    """A cursor over the text of a name.

    Attributes:
        text: The whole name as it was given.
        position: The character that is read next.
        ends: Characters that end the name as its last character does: the comma, in a list.
    """

    __slots__ = ("ends", "position", "text")

    def __init__(self, text: str, *, ends: str = "") -> None:
        self.text = text
        self.position = 0
        self.ends = ends

    @property
    def at_end(self) -> bool:
        """Whether this name is over: the text, or this element of a list."""
        return self.position >= len(self.text) or self.text[self.position] in self.ends

    def sees(self, characters: Collection[str]) -> bool:
        """Whether the next character is one of these."""
        return self.position < len(self.text) and self.text[self.position] in characters

    def sees_word(self, word: str) -> bool:
        """Whether the word, given in upper case, stands here in any case."""
        return upper(self.text[self.position : self.position + len(word)]) == word

    def take(self, character: str) -> bool:
        """Steps over the character if it stands here."""
        if not self.sees((character,)):
            return False
        self.position += 1
        return True

    def take_word(self, word: str) -> bool:
        """Steps over the word, given in upper case, if it stands here in any case."""
        if not self.sees_word(word):
            return False
        self.position += len(word)
        return True

    def take_run(self, characters: Collection[str], *, length_max: int) -> str:
        """Steps over the characters that are of these, and gives them back."""
        start = self.position
        while self.sees(characters) and self.position - start < length_max:
            self.position += 1
        return self.text[start : self.position]

    def ahead(self, stops: str) -> str:
        """What stands from here to the next of these characters, or to the end."""
        stop = self.position
        while stop < len(self.text) and self.text[stop] not in stops:
            stop += 1
        return self.text[self.position : stop]

    def take_part(self, part: NamePart, *, stops: str = "", hint: str = "") -> str:
        """Steps over a part that people choose; ends before a character that it cannot contain."""
        start = self.position
        # Every part may have these, so that the usual name takes one step.
        run = _WORD.match(self.text, start)
        assert run is not None, "an empty run is one, too"
        units = min(run.end() - start, part.length_max)
        self.position += units
        while not self.at_end and not self.sees(stops):
            character = self.text[self.position]
            is_space = part.has_spaces and character == " "
            if character in part.forbidden or not (is_space or is_visible(character)):
                break
            units += utf16_length(character)
            if units > part.length_max:
                self.reject(f"a {part.what} has at most {part.length_max} characters")
            self.position += 1
        if self.position == start:
            self.fail(f"a {part.what}", hint)
        found = self.text[start : self.position]
        if found.startswith(" "):
            self.reject(f"a {part.what} does not begin with a space", at=start)
        if found.endswith(" "):
            # Nobody would see it, and in a list it may belong to the comma.
            self.reject(f"a {part.what} does not end with a space", at=self.position - 1)
        return found

    def take_guid(self) -> UUID:
        """[MS-MQMQ] 2.1.3: steps over a GUID, which stands without braces."""
        start = self.position
        for offset in range(GUID_LENGTH):
            if offset in GUID_HYPHENS:
                if not self.take("-"):
                    self.fail("'-' in the GUID")
            elif not self.take_run(HEX_DIGITS, length_max=1):
                hint = "GUIDs stand without braces" if self.sees("{") else ""
                self.fail("a hexadecimal digit of the GUID", hint)
        return UUID(self.text[start : self.position])

    def expect(self, character: str, hint: str = "") -> None:
        """Steps over the character, which must stand here."""
        if not self.take(character):
            self.fail(quoted(character), hint)

    def expect_end(self, otherwise: str, hint: str = "") -> None:
        """Refuses anything that still stands here; `otherwise` is what could have."""
        if not self.at_end:
            self.fail(f"{otherwise} or the end", hint)

    def found(self) -> str:
        """The next character, in words that can be printed anywhere."""
        if self.position >= len(self.text):
            return "the end"
        character = self.text[self.position]
        if character == " ":
            return "a space"
        return quoted(character) if is_visible(character) else f"U+{ord(character):04X}"

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        """Refuses the name at this character, saying what should be here."""
        self.reject(f"found {self.found()}, expected {expected}", hint)

    def reject(self, reason: str, hint: str = "", *, at: int | None = None) -> NoReturn:
        """Refuses the name, at this character or at the given one."""
        where = self.position if at is None else at
        raise NameSyntaxError(self.text, where, f"{reason}; {hint}" if hint else reason)


def read_whole(text: str, scan: Callable[[Scanner], str], what: str) -> str:
    """Reads a text that is, from its first to its last character, what `scan` reads."""
    scanner = Scanner(text)
    value = scan(scanner)
    scanner.expect_end(f"another character of the {what}")
    return value


def quoted(character: str) -> str:
    """The character as messages show it, a backslash as one backslash."""
    return f"'{character}'" if character != "'" else '"\'"'


def is_visible(character: str) -> bool:
    """Whether all names may contain it: neither white space nor control nor surrogate.

    [MS-MQMQ] 2.1.1 writes its grammar in ASCII, while names travel as UTF-16 and
    [MS-MQDSSM] 2.2.5 speaks of Unicode queue names; so letters of all scripts are taken. U+007F is
    in the grammar's range for queue names but is a control character, and refused.
    """
    return character != " " and character.isprintable()


def upper(text: str) -> str:
    """The text for comparison with keywords; only ASCII, or a dotless i would pass for an I."""
    return text.upper() if text.isascii() else text


def utf16_length(text: str) -> int:
    """The length that the wire counts: characters beyond U+FFFF are two units."""
    return len(text) if text.isascii() else len(text) + sum(each > "\uffff" for each in text)


def fold(text: str) -> str:
    """The text for comparison: names that differ only in case are the same name.

    [MS-MQDMPR] 3.1.7.3.8 compares so; [MS-MQDSSM] 3.1.6.11.2.1 lowers each character by itself.
    A character whose lower case is longer than itself stays as it is, as one UTF-16 unit must.
    """
    if text.isascii():
        return text.lower()
    return "".join(
        lowered if len(lowered := character.lower()) == 1 else character for character in text
    )
