"""Bad input of every kind through the public API.

Each is refused by an error of ours with the right code and a text that names what was found; the
queue manager goes on, and nothing in it has changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import merq
from merq.hresult import HResult
from merq.model.selecting import Seek
from unit.client.bad_input_bench import GUID, PLAIN, REMOTE, SAFE, Bench, check, opened_bench

BODIES = "str, bytes, bool, int, float, UUID, datetime or None"


ILLEGAL_PATH = HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
ILLEGAL_FORMAT = HResult.MQ_ERROR_ILLEGAL_FORMATNAME
UNSUPPORTED = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
ILLEGAL_VALUE = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
ILLEGAL_TYPE = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
USAGE = HResult.MQ_ERROR_TRANSACTION_USAGE
RESOURCES = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
NOT_FOUND = HResult.MQ_ERROR_MESSAGE_NOT_FOUND


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with opened_bench(tmp_path_factory.mktemp("bad")) as made:
        yield made


@pytest.mark.parametrize(
    ("path_name", "code", "said"),
    [
        ("", ILLEGAL_PATH, "found the end"),
        ("orders", ILLEGAL_PATH, "orders"),
        (r".\private$", ILLEGAL_PATH, "private$"),
        (".\\private$\\", ILLEGAL_PATH, "queue name"),
        (r".\private$\a;b;c", ILLEGAL_PATH, "a;b;c"),
        (r".\private$\orders;sub", ILLEGAL_PATH, "private queue"),
        (r".\private$\orders;JOURNAL", ILLEGAL_PATH, "private queue"),
        (r".\system$;DEADLETTER", ILLEGAL_PATH, "private queue"),
        (r".\public", ILLEGAL_PATH, "directory"),
        (r"elsewhere\private$\orders", ILLEGAL_PATH, "elsewhere"),
        (rf"DIRECT=OS:{PLAIN}", ILLEGAL_PATH, "DIRECT="),
        (".\\private$\\a\0b", ILLEGAL_PATH, "U+0000"),
        (".\\private$\\\ud800", ILLEGAL_PATH, "U+D800"),
        (".\\private$\\" + "x" * 1000, ILLEGAL_PATH, "124 characters"),
        (PLAIN, HResult.MQ_ERROR_QUEUE_EXISTS, PLAIN),
        (PLAIN.upper(), HResult.MQ_ERROR_QUEUE_EXISTS, "exists already"),
        (None, INVALID, "NoneType"),
        (5, INVALID, "str belongs there"),
        (b"x", INVALID, "bytes"),
        ([], INVALID, "list"),
    ],
)
def test_names_that_no_new_queue_can_have(
    bench: Bench, path_name: Any, code: int, said: str
) -> None:
    check(bench, code, lambda: bench.mq.create_queue(path_name), said)


@pytest.mark.parametrize(
    ("path_name", "code", "said"),
    [
        (r".\private$\missing", HResult.MQ_ERROR_QUEUE_NOT_FOUND, "missing"),
        (r".\private$\plain;missing", HResult.MQ_ERROR_QUEUE_NOT_FOUND, "missing"),
        (r".\private$\gone", HResult.MQ_ERROR_QUEUE_NOT_FOUND, "gone"),
        (r"there\private$\plain", ILLEGAL_PATH, "here"),
        ("nonsense", ILLEGAL_PATH, "nonsense"),
        (7, INVALID, "7"),
        (None, INVALID, "None"),
    ],
)
def test_names_that_find_no_queue(bench: Bench, path_name: Any, code: int, said: str) -> None:
    check(bench, code, lambda: bench.mq.queue(path_name), said)
    check(bench, code, lambda: bench.mq.open_queue(path_name), said)


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"label": 5}, ILLEGAL_TYPE),
        ({"label": b"x"}, ILLEGAL_TYPE),
        ({"label": "x" * 125}, ILLEGAL_VALUE),
        ({"journal": 1}, ILLEGAL_TYPE),
        ({"journal": "yes"}, ILLEGAL_TYPE),
        ({"quota_kb": -1}, ILLEGAL_VALUE),
        ({"quota_kb": 1 << 32}, ILLEGAL_VALUE),
        ({"quota_kb": 1.5}, ILLEGAL_TYPE),
        ({"quota_kb": True}, ILLEGAL_TYPE),
        ({"journal_quota_kb": "many"}, ILLEGAL_TYPE),
        ({"base_priority": 40_000}, ILLEGAL_VALUE),
        ({"type_id": GUID}, ILLEGAL_TYPE),
        ({"poison_after": -1}, ILLEGAL_VALUE),
        ({"poison_after": [3]}, ILLEGAL_TYPE),
        ({"poison_after": None}, ILLEGAL_TYPE),
    ],
)
def test_properties_that_no_queue_can_have(
    bench: Bench, properties: dict[str, Any], code: int
) -> None:
    (name,) = properties
    said = {"journal": "journaling"}.get(name, name.removesuffix("_kb"))
    check(bench, code, lambda: bench.mq.create_queue(r".\private$\new", **properties), said)
    check(bench, code, lambda: bench.plain.change(**properties), said)


@pytest.mark.parametrize("name", ["transactional", "colour", "identifier", "path_name"])
def test_properties_that_cannot_be_changed(bench: Bench, name: str) -> None:
    check(bench, ILLEGAL_VALUE, lambda: bench.plain.change(**{name: "x"}), name)


@pytest.mark.parametrize(
    ("properties", "code", "said"),
    [
        ({"label": 5}, ILLEGAL_TYPE, "label is 5"),
        ({"label": ["unhashable"]}, ILLEGAL_TYPE, "list"),
        ({"label": "x" * 250}, HResult.MQ_ERROR_LABEL_TOO_LONG, "250 characters"),
        ({"label": "a\0b"}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, "null character"),
        ({"priority": 8}, ILLEGAL_VALUE, "0..7"),
        ({"priority": -1}, ILLEGAL_VALUE, "-1"),
        ({"priority": True}, ILLEGAL_TYPE, "bool"),
        ({"priority": "3"}, ILLEGAL_TYPE, "int belongs there"),
        ({"recoverable": 1}, ILLEGAL_TYPE, "recoverable"),
        ({"time_to_reach_queue": -1}, ILLEGAL_VALUE, "time_to_reach_queue"),
        ({"time_to_reach_queue": 1 << 32}, ILLEGAL_VALUE, "time_to_reach_queue"),
        ({"time_to_be_received": 1.5}, ILLEGAL_TYPE, "float"),
        ({"time_to_be_received": dt.timedelta(1)}, ILLEGAL_TYPE, "timedelta"),
        ({"journal": None}, ILLEGAL_TYPE, "journal"),
        ({"dead_letter": {}}, ILLEGAL_TYPE, "dict"),
        ({"acknowledge": 16}, ILLEGAL_VALUE, "acknowledgments"),
        ({"acknowledge": "all"}, ILLEGAL_TYPE, "acknowledge"),
        ({"admin_queue": 5}, ILLEGAL_TYPE, "admin_queue"),
        ({"admin_queue": "bad;;name"}, ILLEGAL_FORMAT, "bad;;name"),
        ({"response_queue": "DIRECT="}, ILLEGAL_FORMAT, "expected"),
        ({"response_queue": {1: set()}}, ILLEGAL_TYPE, "response_queue"),
        ({"correlation_id": b"short"}, ILLEGAL_VALUE, "correlation_id"),
        ({"correlation_id": "x" * 20}, ILLEGAL_TYPE, "correlation_id"),
        ({"correlation_id": bytearray(20)}, ILLEGAL_TYPE, "bytearray"),
        ({"app_specific": 1 << 32}, ILLEGAL_VALUE, "application_tag"),
        ({"app_specific": -1}, ILLEGAL_VALUE, "-1"),
        ({"extension": "text"}, ILLEGAL_TYPE, "extension"),
        ({"extension": bytes(5 << 20)}, RESOURCES, "may travel"),
        ({"dead_letter_queue": 5}, ILLEGAL_TYPE, "dead_letter_queue"),
        ({"dead_letter_queue": []}, ILLEGAL_TYPE, "dead_letter_queue"),
        ({"dead_letter_queue": PLAIN}, ILLEGAL_VALUE, "dead_letter=True"),
        ({"dead_letter_queue": "nonsense", "dead_letter": True}, ILLEGAL_PATH, "nonsense"),
        (
            {"dead_letter_queue": r".\private$\missing", "dead_letter": True},
            ILLEGAL_PATH,
            "missing",
        ),
        ({"dead_letter_queue": r"far\private$\orders", "dead_letter": True}, ILLEGAL_PATH, "this"),
    ],
)
def test_properties_that_no_message_can_have(
    bench: Bench, properties: dict[str, Any], code: int, said: str
) -> None:
    message = merq.Message(body="x", **properties)
    asks: list[Callable[[], object]] = [
        lambda: bench.plain.send("x", **properties),
        lambda: bench.plain.send(message),
        lambda: bench.plain.send_many(["a", message]),
        lambda: bench.plain.send_many(["a", "b"], **properties),
        lambda: bench.safe.send("x", tx=bench.tx, **properties),
        lambda: bench.mq.send(REMOTE, "x", **properties),
        lambda: bench.mq.send(f"{REMOTE},DIRECT=OS:{PLAIN}", message),
    ]
    for ask in asks:
        if ask is asks[2] and "dead_letter_queue" in properties:
            continue  # two dead-letter queues in one batch are another mistake
        check(bench, code, ask, said)


def test_one_batch_has_one_dead_letter_queue(bench: Bench) -> None:
    message = merq.Message(body="x", dead_letter=True, dead_letter_queue=PLAIN)
    check(bench, ILLEGAL_VALUE, lambda: bench.plain.send_many(["a", message]), "plain")


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ([1], ILLEGAL_TYPE, BODIES),
        ({}, ILLEGAL_TYPE, "dict"),
        (object(), ILLEGAL_TYPE, "object"),
        (bytearray(b"x"), ILLEGAL_TYPE, "bytearray"),
        (1 << 64, ILLEGAL_VALUE, "64 bits"),
        (-(1 << 63) - 1, ILLEGAL_VALUE, "64 bits"),
        (dt.datetime(2020, 1, 1), ILLEGAL_VALUE, "time zone"),  # noqa: DTZ001 - the mistake
        (dt.date(2020, 1, 1), ILLEGAL_TYPE, "date"),
        (bytes(5 << 20), RESOURCES, "may travel"),
        ("x" * (3 << 20), RESOURCES, "may travel"),
    ],
)
def test_bodies_that_no_message_can_have(bench: Bench, body: Any, code: int, said: str) -> None:
    asks: list[Callable[[], object]] = [
        lambda: bench.plain.send(body),
        lambda: bench.plain.send(merq.Message(body=body)),
        lambda: bench.plain.send_many(["good", body]),
        lambda: bench.safe.send(body, tx=bench.tx),
        lambda: bench.mq.send(REMOTE, body),
    ]
    for ask in asks:
        check(bench, code, ask, said)


@pytest.mark.parametrize(
    ("format_name", "code", "said"),
    [
        ("", ILLEGAL_FORMAT, "expected"),
        ("nonsense", ILLEGAL_FORMAT, "nonsense"),
        (PLAIN, ILLEGAL_FORMAT, "expected"),
        (f"{REMOTE},", ILLEGAL_FORMAT, "expected"),
        (f"{REMOTE};JOURNAL", UNSUPPORTED, "JOURNAL"),
        (f"{REMOTE};sub", UNSUPPORTED, "sub"),
        (f"MACHINE={GUID};DEADXACT", UNSUPPORTED, "MACHINE"),
        (f"DL={GUID}", UNSUPPORTED, "DL="),
        ("MULTICAST=234.1.1.1:8001", UNSUPPORTED, "MULTICAST"),
        (f"PUBLIC={GUID}", UNSUPPORTED, "directory"),
        (r"DIRECT=OS:.\private$\missing", HResult.MQ_ERROR_QUEUE_NOT_FOUND, "missing"),
        (rf"DIRECT=OS:{PLAIN},DIRECT=OS:.\private$\missing", HResult.MQ_ERROR_QUEUE_NOT_FOUND, ""),
        (f"DIRECT=OS:{SAFE}", USAGE, "transactional"),
        (f"DIRECT=OS:{PLAIN};sub", UNSUPPORTED, "sub"),
        (None, INVALID, "format_name"),
        (5, INVALID, "format_name"),
        (["DIRECT=OS:x"], INVALID, "list"),
    ],
)
def test_names_that_nothing_can_be_sent_to(
    bench: Bench, format_name: Any, code: int, said: str
) -> None:
    check(bench, code, lambda: bench.mq.send(format_name, "x"), said)


NOT_SECONDS: list[Any] = ["1", b"1", [], {}, True, 10**400, dt.timedelta(1)]


@pytest.mark.parametrize("timeout", NOT_SECONDS, ids=lambda value: repr(value)[:20])
def test_timeouts_that_are_no_seconds(bench: Bench, timeout: Any) -> None:
    asks: list[Callable[[], object]] = [
        lambda: bench.plain.receive(timeout=timeout),
        lambda: bench.plain.receive_many(3, timeout=timeout),
        lambda: bench.plain.peek(timeout=timeout),
        lambda: bench.plain.receive_by_correlation_id(bytes(20), timeout=timeout),
        lambda: bench.plain.peek_by_correlation_id(bytes(20), timeout=timeout),
        lambda: bench.safe.receive(timeout=timeout, tx=bench.tx),
        lambda: bench.cursor.peek(timeout=timeout),
        lambda: bench.cursor.peek_next(timeout=timeout),
        lambda: bench.cursor.receive(timeout=timeout),
    ]
    for ask in asks:
        check(bench, INVALID, ask, "timeout")


@pytest.mark.spec("MS-MQDMPR 3.1.7.3.1")
def test_a_time_that_is_over_is_not_waited_for(bench: Bench) -> None:
    for timeout in (0, -1, -0.5, float("-inf"), float("nan")):
        check(
            bench,
            HResult.MQ_ERROR_IO_TIMEOUT,
            partial(bench.sub.receive, timeout=timeout),
            "in time",
        )


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "3", None, 100_001])
def test_counts_that_are_none(bench: Bench, most: Any) -> None:
    check(bench, INVALID, lambda: bench.plain.receive_many(most, timeout=0), str(most))


@pytest.mark.parametrize("bodies", ["text", b"bytes", 5, None])
def test_bodies_that_are_not_several(bench: Bench, bodies: Any) -> None:
    check(bench, INVALID, lambda: bench.plain.send_many(bodies), type(bodies).__name__)


@pytest.mark.parametrize("lookup_id", ["1", 1.5, None, True, b"1"])
def test_lookup_identifiers_of_other_types(bench: Bench, lookup_id: Any) -> None:
    check(bench, INVALID, lambda: bench.plain.peek_by_lookup_id(lookup_id), "lookup_id")
    check(bench, INVALID, lambda: bench.plain.receive_by_lookup_id(lookup_id), "lookup_id")
    check(bench, INVALID, lambda: bench.plain.move(lookup_id, bench.sub), "message")


@pytest.mark.parametrize("lookup_id", [-1, 0, 12345, 1 << 63, 1 << 70])
def test_lookup_identifiers_of_no_message(bench: Bench, lookup_id: int) -> None:
    check(bench, NOT_FOUND, lambda: bench.plain.peek_by_lookup_id(lookup_id), "lookup identifier")
    check(bench, NOT_FOUND, lambda: bench.plain.receive_by_lookup_id(lookup_id), hex(lookup_id))
    check(bench, NOT_FOUND, lambda: bench.plain.move(lookup_id, bench.sub), hex(lookup_id))


@pytest.mark.parametrize("seek", ["next", None, 1])
def test_directions_that_are_none(bench: Bench, seek: Any) -> None:
    for ask in (bench.plain.peek_by_lookup_id, bench.plain.receive_by_lookup_id):
        check(bench, INVALID, partial(ask, bench.lookup_id, seek), "Seek belongs there")


def test_there_is_nothing_beyond_the_ends(bench: Bench) -> None:
    for seek in (Seek.NEXT, Seek.PREVIOUS):
        check(
            bench,
            NOT_FOUND,
            partial(bench.plain.peek_by_lookup_id, bench.lookup_id, seek),
            seek.value,
        )


@pytest.mark.parametrize(
    "message_id",
    [
        "",
        "nonsense",
        GUID,
        f"{{{GUID}}}",
        f"{{{GUID}}}\\",
        f"{{{GUID}}}\\x",
        f"{{{GUID}}}\\-1",
        f"{{{GUID}}}\\1_0",
        f"{{{GUID}}}\\ 1",
        f"{{{GUID}}}\\4294967296",
        f"{{{GUID}}}\\{'9' * 5000}",
        f"{{{GUID}}}\\1\\2",
        f"{{{GUID[:-1]}}}\\1",
        f"}}{GUID}{{\\1",
        f"urn:uuid:{GUID}\\1",
        f"{{{GUID}}}\\\u0661",
        5,
        None,
        b"x" * 20,
    ],
)
def test_message_ids_that_are_none(bench: Bench, message_id: Any) -> None:
    check(bench, ILLEGAL_VALUE, lambda: bench.plain.peek_by_id(message_id), "message id")
    check(bench, ILLEGAL_VALUE, lambda: bench.plain.receive_by_id(message_id), "message id")


def test_a_message_id_of_nobody_finds_nothing(bench: Bench) -> None:
    for ask in (bench.plain.peek_by_id, bench.plain.receive_by_id):
        check(bench, NOT_FOUND, partial(ask, f"{{{GUID}}}\\1"), "no such message")


@pytest.mark.parametrize("correlation_id", [b"", bytes(19), bytes(21), "x" * 20, None, 5])
def test_correlation_ids_that_are_none(bench: Bench, correlation_id: Any) -> None:
    for ask in (bench.plain.peek_by_correlation_id, bench.plain.receive_by_correlation_id):
        wanted = "message id" if isinstance(correlation_id, str) else "20 bytes"
        check(bench, ILLEGAL_VALUE, partial(ask, correlation_id), wanted)


def test_a_reply_is_found_by_the_text_of_the_requests_id(bench: Bench) -> None:
    request = bench.plain.send("how much?")
    asked = bench.plain.receive_by_id(request)
    bench.plain.send("so much", correlation_id=asked.id_bytes)
    assert bench.plain.peek_by_correlation_id(request).body == "so much"
    assert bench.plain.receive_by_correlation_id(request).body == "so much"


@pytest.mark.parametrize(
    "name", ["", "a;b", "a\\b", "JOURNAL", "a\0b", "a\nb", "\ud800", "x" * 999]
)
def test_names_that_no_subqueue_can_have(bench: Bench, name: str) -> None:
    check(bench, ILLEGAL_PATH, lambda: bench.plain.subqueue(name), "")


@pytest.mark.parametrize("name", [5, None, b"x", []])
def test_subqueue_names_of_other_types(bench: Bench, name: Any) -> None:
    check(bench, INVALID, lambda: bench.plain.subqueue(name), "str belongs there")


def test_after_all_of_this_everything_works(bench: Bench) -> None:
    assert bench.plain.peek(timeout=0).body == "one"
    with bench.mq.transaction() as tx:
        assert bench.safe.receive(timeout=0, tx=tx).body == "two"
        bench.safe.send("three", tx=tx)
    assert [message.body for message in bench.safe.peek_all()] == ["three"]
    bench.tx.commit()
    bench.prepared.abort()
