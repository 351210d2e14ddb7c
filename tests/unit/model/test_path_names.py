r"""Path names: `computer\private$\queue`."""

from __future__ import annotations

import dataclasses

import pytest

from merq.errors import NameSyntaxError
from merq.model.names import (
    COMPUTER_LENGTH_MAX,
    QUEUE_LENGTH_MAX,
    SUBQUEUE_LENGTH_MAX,
    DirectName,
    PathName,
    QueueScope,
    QueueSuffixType,
    explain,
    parse_path_name,
)

PATH_NAMES = [
    (
        r".\private$\orders",
        PathName(computer=".", scope=QueueScope.PRIVATE, queue="orders"),
    ),
    (
        r"ComputerName\QueueName",
        PathName(computer="ComputerName", scope=QueueScope.PUBLIC, queue="QueueName"),
    ),
    (
        r"server.contoso.com\private$\orders;retry",
        PathName(
            computer="server.contoso.com",
            scope=QueueScope.PRIVATE,
            queue="orders",
            subqueue="retry",
        ),
    ),
    (
        r"host\private$\orders;JOURNAL",
        PathName(
            computer="host",
            scope=QueueScope.PRIVATE,
            queue="orders",
            suffix=QueueSuffixType.JOURNAL,
        ),
    ),
    (
        r"host\system$;DEADXACT",
        PathName(computer="host", scope=QueueScope.SYSTEM, suffix=QueueSuffixType.DEADXACT),
    ),
    (
        r"host\private$\notify_queue$",
        PathName(computer="host", scope=QueueScope.PRIVATE, queue="notify_queue$"),
    ),
    (
        r"fe80::7%3\private$\order_queue$",
        PathName(computer="fe80::7%3", scope=QueueScope.PRIVATE, queue="order_queue$"),
    ),
    (
        "rechner\\private$\\Bestellungen_Köln_注文",
        PathName(computer="rechner", scope=QueueScope.PRIVATE, queue="Bestellungen_Köln_注文"),
    ),
    (
        r".\private$\my orders;to do",
        PathName(computer=".", scope=QueueScope.PRIVATE, queue="my orders", subqueue="to do"),
    ),
    (
        r"host\a  b c;JOURNAL",
        PathName(
            computer="host",
            scope=QueueScope.PUBLIC,
            queue="a  b c",
            suffix=QueueSuffixType.JOURNAL,
        ),
    ),
    (
        r"host\orders/2024",
        PathName(computer="host", scope=QueueScope.PUBLIC, queue="orders/2024"),
    ),
]

MALFORMED = [
    ("", 0, "expected a computer name"),
    ("orders", 6, r".\private$\queue"),
    ("orders ", 6, "found a space"),
    ("\\", 0, "expected a computer name"),
    (r"\\host\private$\q", 0, "without backslashes before it"),
    ("host\\", 5, "expected a queue name"),
    (r"host\\q", 5, "expected a queue name"),
    ("host/private$/q", 4, "backslashes"),
    (r"host\private$/q", 13, "only HTTP names are written with '/'"),
    (r"host\private$", 13, r"expected '\' behind private$"),
    ("host\\private$\\", 14, "expected a queue name"),
    (r"host\private$;JOURNAL", 13, r"expected '\' behind private$"),
    (r"private$\orders", 0, r"write .\private$ for the local one"),
    (r"host\private$\a\b", 15, "no backslash"),
    (r"host\system$", 12, "expected ';' behind system$"),
    (r"host\system$\JOURNAL", 12, "expected ';' behind system$"),
    (r"host\system$;", 13, "expected JOURNAL or DEADLETTER or DEADXACT"),
    (r"host\system$;orders", 13, "expected JOURNAL or DEADLETTER or DEADXACT"),
    (r"host\system$;XACTONLY", 13, "no other suffix"),
    (r"host\system$;JOURNALS", 20, "nothing behind JOURNAL"),
    ("host\\ queue", 5, "a queue name does not begin with a space"),
    ("host\\queue ", 10, "a queue name does not end with a space"),
    ("host\\queue ;JOURNAL", 10, "a queue name does not end with a space"),
    ("host\\private$\\a  ", 16, "a queue name does not end with a space"),
    ("host\\q; sub", 7, "a subqueue name does not begin with a space"),
    ("host\\q;sub ", 10, "a subqueue name does not end with a space"),
    ("host\\ ", 5, "a queue name does not begin with a space"),
    ("my host\\q", 2, "found a space"),
    ("host\\a\nb", 6, "found U+000A"),
    ("host\\a\u00a0b", 6, "found U+00A0"),
    (r"host\a+b", 6, "no plus, comma or quotation mark"),
    (r"host\a,b", 6, "no plus, comma or quotation mark"),
    (r"host\a" + '"b', 6, "no plus, comma or quotation mark"),
    ("host\\a\tb", 6, "found U+0009"),
    ("host\\a\x7fb", 6, "found U+007F"),
    ("host\\a\ud800b", 6, "found U+D800"),
    ("ho\u00a0st\\q", 2, "found U+00A0"),
    (r"host\q;", 7, "expected a subqueue name"),
    (r"host\q;a;b", 8, "neither a journal nor subqueues"),
    (r"host\q;a;JOURNAL", 8, "neither a journal nor subqueues"),
    (r"host\q;JOURNAL;a", 14, "a journal has no subqueues"),
    (r"host\q;a+b", 8, "no plus, comma or quotation mark"),
    (r"host\q;DEADLETTER", 7, r"write computer\SYSTEM$;DEADLETTER"),
    (r"host\q;XactOnly", 7, "cannot name a subqueue"),
    (r"host:1801\q", 4, "only HTTP and HTTPS names carry a port"),
    (r"DIRECT=OS:host\q", 0, "starts a format name"),
    (r"PRIVAT=host\q", 6, "format names start with PUBLIC, PRIVATE"),
    (r"[::1\q", 4, "expected ']'"),
    ("\\".join(["c" * (COMPUTER_LENGTH_MAX + 1), "q"]), COMPUTER_LENGTH_MAX, "at most 256"),
    ("h\\" + "q" * (QUEUE_LENGTH_MAX + 1), 2 + QUEUE_LENGTH_MAX, "at most 124"),
    ("h\\q;" + "s" * (SUBQUEUE_LENGTH_MAX + 1), 4 + SUBQUEUE_LENGTH_MAX, "at most 32"),
]


@pytest.mark.spec("MS-MQMQ 2.1.1", "MS-MQCN 3.2.1.2.1")
@pytest.mark.parametrize(("text", "expected"), PATH_NAMES, ids=[text for text, _ in PATH_NAMES])
@pytest.mark.spec("E31")
def test_a_path_name_is_read_and_printed(text: str, expected: PathName) -> None:
    name = parse_path_name(text)
    assert dataclasses.asdict(name) == dataclasses.asdict(expected)
    assert str(name) == text


@pytest.mark.spec("MS-MQMQ 2.1.1")
@pytest.mark.parametrize(
    ("text", "position", "reason"), MALFORMED, ids=[repr(text[:40]) for text, _, _ in MALFORMED]
)
@pytest.mark.spec("E31")
def test_a_malformed_path_name_is_refused_at_the_character(
    text: str, position: int, reason: str
) -> None:
    with pytest.raises(NameSyntaxError) as caught:
        parse_path_name(text)
    assert caught.value.position == position
    assert reason in caught.value.reason
    assert caught.value.text == text


@pytest.mark.spec("MS-MQMQ 2.1.1")
def test_names_as_long_as_the_limits_are_taken() -> None:
    text = rf"{'c' * 256}\private$\{'q' * 124};{'s' * 32}"
    assert str(parse_path_name(text)) == text


@pytest.mark.spec("E31")
def test_characters_beyond_the_basic_plane_count_twice_as_on_the_wire() -> None:
    assert parse_path_name("h\\" + "🐝" * 62).queue == "🐝" * 62
    with pytest.raises(NameSyntaxError) as caught:
        parse_path_name("h\\" + "🐝" * 63)
    assert caught.value.position == 2 + 62


@pytest.mark.spec("MS-MQMQ 2.1.1")
def test_keywords_are_read_in_any_case_and_printed_in_one() -> None:
    assert str(parse_path_name(r"Host\PRIVATE$\Q;journal")) == r"Host\private$\Q;JOURNAL"
    assert str(parse_path_name(r"Host\System$;DeadLetter")) == r"Host\system$;DEADLETTER"


def test_letters_that_only_resemble_a_keyword_do_not_make_one() -> None:
    assert parse_path_name("h\\\u017fystem$").is_public
    assert parse_path_name("h\\pr\u0131vate$\u0131x").is_public


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.8")
def test_path_names_that_differ_only_in_case_are_equal() -> None:
    small, large = (
        parse_path_name(r"host\private$\köln;s"),
        parse_path_name(r"HOST\PRIVATE$\KÖLN;S"),
    )
    assert small == large
    assert hash(small) == hash(large)
    assert str(small) != str(large)


@pytest.mark.parametrize(
    "other",
    [
        r"other\private$\q",
        r"host\q",
        r"host\private$\q2",
        r"host\private$\q;s",
        r"host\private$\q;JOURNAL",
    ],
)
def test_path_names_of_different_queues_are_not_equal(other: str) -> None:
    assert parse_path_name(r"host\private$\q") != parse_path_name(other)


def test_spellings_of_one_ipv6_address_are_equal() -> None:
    assert parse_path_name(r"[FE80:0::1]\q") == parse_path_name(r"fe80::1\q")
    assert parse_path_name(r"fe80::1\q") != parse_path_name(r"fe80::1%2\q")


@pytest.mark.spec("MS-MQMQ 2.1.1", "MS-MQMQ 2.1.7")
def test_a_path_name_knows_its_scope_and_whether_it_can_be_sent_to() -> None:
    private = parse_path_name(r".\private$\q")
    public = parse_path_name(r"host\q")
    journal = parse_path_name(r"host\q;JOURNAL")
    dead_letters = parse_path_name(r"host\system$;DEADLETTER")
    assert private.is_private
    assert private.is_local
    assert not private.is_read_only
    assert public.is_public
    assert not public.is_local
    assert journal.is_public
    assert journal.is_read_only
    assert dead_letters.is_system
    assert dead_letters.is_read_only
    assert parse_path_name(r"host\q;s").suffix_type is QueueSuffixType.SUBQUEUE


@pytest.mark.spec("MC-MQAC 3.1.6.2")
@pytest.mark.parametrize(
    ("path", "direct"),
    [
        (r"host\private$\q", r"DIRECT=OS:host\PRIVATE$\q"),
        (r"host\q;s", r"DIRECT=OS:host\q;s"),
        (r".\system$;JOURNAL", r"DIRECT=OS:.\SYSTEM$;JOURNAL"),
        (r"fe80::1\q;JOURNAL", r"DIRECT=OS:fe80::1\q;JOURNAL"),
    ],
)
def test_a_path_name_becomes_a_direct_format_name(path: str, direct: str) -> None:
    name = DirectName.of_path(parse_path_name(path))
    assert str(name) == direct
    assert name.path_name() == parse_path_name(path)


@pytest.mark.spec("MC-MQAC 3.10.6.1")
def test_the_point_for_the_local_computer_is_replaced_by_its_name() -> None:
    assert str(parse_path_name(r".\private$\q;s").on("SERVER1")) == r"SERVER1\private$\q;s"


def test_parts_that_no_name_can_contain_are_refused_in_values_too() -> None:
    with pytest.raises(NameSyntaxError):
        PathName(computer="a b", scope=QueueScope.PUBLIC, queue="q")
    with pytest.raises(NameSyntaxError):
        PathName(computer="h", scope=QueueScope.PUBLIC, queue="private$")
    with pytest.raises(NameSyntaxError):
        PathName(computer="h", scope=QueueScope.PUBLIC, queue="a;b")
    with pytest.raises(NameSyntaxError):
        PathName(computer="h", scope=QueueScope.PUBLIC, queue="q", subqueue="JOURNAL")


def test_parts_that_contradict_each_other_are_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="suffix and nothing else"):
        PathName(computer="h", scope=QueueScope.SYSTEM, queue="q")
    with pytest.raises(ValueError, match="no DEADXACT"):
        PathName(computer="h", scope=QueueScope.PUBLIC, queue="q", suffix=QueueSuffixType.DEADXACT)
    with pytest.raises(ValueError, match="no journal"):
        PathName(
            computer="h",
            scope=QueueScope.PUBLIC,
            queue="q",
            subqueue="s",
            suffix=QueueSuffixType.JOURNAL,
        )


def test_an_explanation_of_a_path_name_shows_its_parts_in_order() -> None:
    explanation = explain(r".\PRIVATE$\orders;journal")
    assert explanation.kind == "path name"
    assert explanation.canonical == r".\private$\orders;JOURNAL"
    assert [(part.label, part.value) for part in explanation.parts] == [
        ("computer", "."),
        ("scope", "private"),
        ("queue", "orders"),
        ("suffix", "JOURNAL"),
    ]
    assert explanation.parts[0].meaning == "the local computer"
    assert "read-only: messages cannot be sent to it" in explanation.notes


def test_an_explanation_of_a_public_path_name_mentions_the_private_one() -> None:
    notes = explain(r"host\orders").notes
    assert notes[0] == (
        r"needs a directory; the private queue of that name is host\private$\orders"
    )


@pytest.mark.parametrize("text", ["", "orders", "host/orders", "nonsense = 7"])
def test_what_is_no_name_at_all_is_refused_with_examples_of_both_kinds(text: str) -> None:
    with pytest.raises(NameSyntaxError) as caught:
        explain(text)
    assert r".\private$\orders" in caught.value.reason
    assert "DIRECT=OS:" in caught.value.reason
