"""`merq trace`: a message that tells its way to a queue."""

from __future__ import annotations

import json
import math
import shlex
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Final

import click
from rich.text import Text

from merq.cli.completing import complete_queue
from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import duration
from merq.cli.failing import EXIT_FAILED, EXIT_TIMEOUT, json_option
from merq.cli.journeys import Hop, Told, hops_of, is_report
from merq.cli.queue_names import destination_of
from merq.cli.rendering import date_of, printable
from merq.cli.terminal import terminal
from merq.cli.ways import OUTSIDE, told_of_way, ways_of
from merq.client.manager import Manager
from merq.client.messages import ACKNOWLEDGE_ARRIVAL, Message, ReceivedMessage
from merq.client.queues import Queue
from merq.client.transactions import Transaction
from merq.errors import MessageQueueError, ReceiveTimeout
from merq.hresult import HResult
from merq.model.message_class import MessageClass

REPORTS: Final = r".\private$\merq_trace"
"""Where reports and acknowledgments about traced messages come; it is made when it is needed."""

LABEL: Final = "merq trace"

LIFETIME_S: Final = 600
"""A traced message that nobody has received goes after this time."""

GRACE_S: Final = 0.5
"""How long a report may be behind the acknowledgment of the same queue manager."""

LEFTOVER_S: Final = 3600
"""Reports of this age, which came when nobody waited any more, are removed."""

LEFTOVERS_MAX: Final = 1000
"""So many are removed at a time."""

_ARRIVED: Final = MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
_NEEDS_TRANSACTION: Final = MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """How far a traced message came.

    Attributes:
        verdict: The class of the acknowledgment that came; None if none came in time.
        seconds: How long that took, or was waited.
        waits: Why it is not there, in sentences.
    """

    message_id: str
    destination: str
    transactional: bool
    hops: list[Hop]
    verdict: int | None
    seconds: float
    waits: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    @property
    def is_there(self) -> bool:
        """Whether it reached its queue."""
        return self.verdict == _ARRIVED

    @property
    def exit_status(self) -> int:
        """0 if it is there, else whether it was refused or nothing was heard."""
        if self.is_there:
            return 0
        return EXIT_TIMEOUT if self.verdict is None else EXIT_FAILED


@click.command(short_help="Shows the way of a message to a queue.")
@click.argument("name", metavar="QUEUE", shell_complete=complete_queue)
@click.option(
    "--transactional",
    is_flag=True,
    help="In a transaction; without saying so where the queue is known to need it.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=duration,
    default="10s",
    show_default=True,
    help="How long to wait for its arrival.",
)
@json_option("One JSON object.")
@connection_options
@click.pass_context
def trace(
    ctx: click.Context,
    name: str,
    connection: Connection,
    timeout_s: float,
    *,
    transactional: bool,
    as_json: bool,
) -> None:
    """Sends a message to QUEUE that reports its way, and draws it.

    Every queue manager on the way says when it has got the message and where it sends it. If it
    does not arrive in time, it is said where it waits and why. The message is real: who reads
    QUEUE gets it; its label is "merq trace", and after 10 minutes it goes by itself. Reports come
    to the queue merq_trace, which is made when it is needed.

    The exit status is 0 if it arrived, 1 if it was refused, 3 if nothing was heard in time.

    \b
    merq trace 'DIRECT=OS:server2\\private$\\orders'
    merq trace 'server2\\private$\\orders' --timeout 1m
    merq trace orders --json | jq .hops
    """
    with connected(connection) as manager:
        tracer = Tracer(manager, destination_of(manager, name), timeout_s)
        journey = tracer.run(transactional=transactional)
        if journey.verdict == _NEEDS_TRANSACTION and not transactional:
            journey = tracer.run(transactional=True)
        own = manager.name
    if as_json:
        click.echo(json.dumps(object_of(journey)))
    else:
        draw(journey, own)
    ctx.exit(journey.exit_status)


class Tracer:
    """Sends traced messages and waits for what is told about them."""

    def __init__(self, manager: Manager, target: Queue | str, timeout_s: float) -> None:
        self._manager = manager
        self._target = target
        self._timeout_s = timeout_s
        self._reports = reports_queue(manager)
        properties = self._reports.properties
        self._message = Message(
            body=LABEL,
            label=LABEL,
            time_to_reach_queue=LIFETIME_S,
            time_to_be_received=LIFETIME_S,
            acknowledge=ACKNOWLEDGE_ARRIVAL,
            admin_queue=properties.path_name,
            report_queue=properties.identifier,
        )

    def run(self, *, transactional: bool) -> Journey:
        """One message, from here to where it came in time."""
        needed = isinstance(self._target, Queue) and self._target.transactional
        transactional = transactional or needed
        began, sent = time.monotonic(), self._manager.status().now
        message_id = self._send(transactional=transactional)
        told: list[Told] = []
        answer = self._wait(message_id, told, began)
        seconds = time.monotonic() - began
        if answer is not None:
            self._wait_for_reports(message_id, told, answer)
        hops = hops_of(told, self._manager.guid, sent)
        waits: list[str] = []
        advice: list[str] = []
        if answer is None:
            waits, advice = self._find(message_id, hops)
        return Journey(
            message_id=message_id,
            destination=self._target if isinstance(self._target, str) else self._target.path_name,
            transactional=transactional,
            hops=hops,
            verdict=None if answer is None else answer.message_class,
            seconds=seconds,
            waits=waits,
            advice=advice,
        )

    def _send(self, *, transactional: bool) -> str:
        if not transactional:
            return self._sent()
        with self._manager.transaction() as tx:
            return self._sent(tx)

    def _sent(self, tx: Transaction | None = None) -> str:
        if isinstance(self._target, Queue):
            return self._target.send(self._message, tx=tx)
        return self._manager.send(self._target, self._message, tx=tx)

    def _wait(self, message_id: str, told: list[Told], began: float) -> ReceivedMessage | None:
        """The acknowledgment that says how it ended, if it comes; reports on the way there."""
        until = began + self._timeout_s
        while (found := self._next(message_id, until)) is not None:
            if not is_report(found):
                return found
            told.append(Told.of(found))
        return None

    def _wait_for_reports(self, message_id: str, told: list[Told], answer: ReceivedMessage) -> None:
        """Reports that the acknowledgment has overtaken."""
        who = answer.source_machine
        until = time.monotonic() + GRACE_S
        while who != self._manager.guid and not any(each.queue_manager == who for each in told):
            found = self._next(message_id, until)
            if found is None:
                return
            if is_report(found):
                told.append(Told.of(found))

    def _next(self, message_id: str, until: float) -> ReceivedMessage | None:
        left = max(0.0, until - time.monotonic())
        try:
            return self._reports.receive_by_correlation_id(
                message_id, timeout=None if math.isinf(left) else left
            )
        except ReceiveTimeout:
            return None

    def _find(self, message_id: str, hops: list[Hop]) -> tuple[list[str], list[str]]:
        """Where it waits, as far as this queue manager knows."""
        sightings = [each for each in self._manager.why(message_id) if not each.about]
        ways = ways_of(self._manager, sightings)
        now = self._manager.status().now
        sentences: list[str] = []
        advice: list[str] = []
        for each in sightings:
            if each.whereabouts in OUTSIDE:
                told, hints = told_of_way(each, now, ways)
                sentences += told
                advice += hints
        if hops[-1].next_hop or not sentences:
            sentences += _silence(hops[-1])
        return sentences, [*advice, f"merq why {shlex.quote(message_id)}  tells more later"]


def _silence(last: Hop) -> list[str]:
    if not last.next_hop:
        return ["Nothing was heard of it since then."]
    reasons = (
        "There may be no such queue there, which strangers are not told; or that queue manager "
        "sends no reports, or does not know the way back."
    )
    return [f"It left for {last.next_hop}, and nothing more was heard of it.", reasons]


def reports_queue(manager: Manager) -> Queue:
    """The queue that reports come to; what was left there long ago is removed.

    Raises:
        click.ClickException: There is one that cannot take them.
    """
    try:
        queue = manager.queue(REPORTS)
    except MessageQueueError as wrong:
        if wrong.code != HResult.MQ_ERROR_QUEUE_NOT_FOUND:
            raise
        return manager.create_queue(REPORTS, label="What merq trace is told")
    if queue.transactional:
        raise click.ClickException(
            f"{REPORTS} is transactional and takes no reports: remove it, and a new one is made"
        )
    _tidy(queue, manager.status().now)
    return queue


def _tidy(queue: Queue, now: int) -> None:
    old: list[int] = []
    for each in queue.peek_all():
        if now - each.arrived_at.timestamp() < LEFTOVER_S or len(old) == LEFTOVERS_MAX:
            break
        old.append(each.lookup_id)
    for lookup_id in old:
        with suppress(MessageQueueError):  # somebody else tidies up too
            queue.receive_by_lookup_id(lookup_id)


def object_of(journey: Journey) -> dict[str, object]:
    """For programs; times are seconds since 1970."""
    known = None if journey.verdict is None else MessageClass.of(journey.verdict)
    return {
        "id": journey.message_id,
        "destination": journey.destination,
        "transactional": journey.transactional,
        "arrived": journey.is_there,
        "class": journey.verdict,
        "class_name": None if known is None else known.name,
        "seconds": round(journey.seconds, 3),
        "hops": [
            asdict(each) | {"queue_manager": str(each.queue_manager)} for each in journey.hops
        ],
        "waits": journey.waits,
        "advice": journey.advice,
    }


def draw(journey: Journey, own: str) -> None:
    """For people."""
    console = terminal()
    console.print(Text.assemble((journey.message_id, "bold cyan"), f"  to {journey.destination}"))
    for each in journey.hops:
        name = each.address or own
        console.print(Text.assemble(("● ", "green"), (name, "bold"), f"  {each.queue_manager}"))
        if each is journey.hops[0]:
            console.print(f"│   sent {date_of(each.arrived)}", markup=False)
        elif each.arrived:
            console.print(f"│   arrived {date_of(each.arrived)}", markup=False)
        if each.left:
            console.print(f"│   left {date_of(each.left)} for {each.next_hop}", markup=False)
    for sentence in (_verdict(journey), *journey.waits):
        console.print(Text(printable(sentence, lines=False)))
    for advice in journey.advice:
        console.print(Text.assemble(("→ ", "green"), printable(advice, lines=False)))


def _verdict(journey: Journey) -> str:
    how = " in a transaction" if journey.transactional else ""
    if journey.is_there:
        return f"It reached its queue{how}, in {journey.seconds:.2f} s."
    if journey.verdict is None:
        return f"It has not arrived{how}, in {journey.seconds:.0f} s."
    known = MessageClass.of(journey.verdict)
    meaning = f"class {journey.verdict:#x}" if known is None else f"{known.meaning} ({known.name})"
    return f"It was refused{how}, after {journey.seconds:.2f} s: {meaning}."
