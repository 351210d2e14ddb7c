"""`merq why`: where a message is or ended, since when, for what reason, and what to do."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from typing import assert_never
from uuid import UUID

import click
from rich.text import Text

from merq.cli.connecting import Connection, connected, connection_options
from merq.cli.durations import age
from merq.cli.failing import json_option
from merq.cli.message_ids import message_id as id_type
from merq.cli.queue_names import short_name
from merq.cli.rendering import count, date_of, printable
from merq.cli.terminal import terminal
from merq.cli.ways import NO_WAYS, Ways, told_of_way, ways_of
from merq.model.message_class import MessageClass, describe_class
from merq.protocol.application.reports import Sighting, Whereabouts


@dataclass(frozen=True, slots=True)
class Story:
    """What became of a message, in sentences, and what can be done, as commands with a reason."""

    sentences: tuple[str, ...]
    advice: tuple[str, ...]


@click.command(short_help="Tells what became of a message.")
@click.argument("message_id", metavar="MESSAGE-ID", type=id_type)
@json_option("One JSON object.")
@connection_options
def why(message_id: str, connection: Connection, *, as_json: bool) -> None:
    """Tells what became of a message: where it is or ended, when, why, and what to do.

    MESSAGE-ID is what `merq send` printed; quote it, or write / for the backslash.

    \b
    merq why '{2f6d6a9c-31a5-4a8e-9d3b-6e3f9f0c7a11}\\4097'
    merq why {2f6d6a9c-31a5-4a8e-9d3b-6e3f9f0c7a11}/4097
    merq why "$ID" --json | jq .sightings
    """
    with connected(connection) as manager:
        sightings = manager.why(message_id)
        ways = ways_of(manager, sightings)
        now, own = manager.status().now, manager.guid
    story = story_of(message_id, sightings, own, now, ways)
    if as_json:
        told = {
            "id": message_id,
            "queue_manager": str(own),
            "sightings": [object_of(each) for each in sightings],
            "story": list(story.sentences),
            "advice": list(story.advice),
        }
        click.echo(json.dumps(told))
        return
    console = terminal()
    console.print(Text(message_id, "bold cyan"))
    for sentence in story.sentences:
        console.print(Text(printable(sentence, lines=False)))
    for advice in story.advice:
        console.print(Text.assemble(("→ ", "green"), printable(advice, lines=False)))


def object_of(sighting: Sighting) -> dict[str, object]:
    """A sighting for programs."""
    return asdict(sighting) | {
        "whereabouts": sighting.whereabouts.name.lower(),
        "class_meaning": describe_class(sighting.message_class),
    }


def story_of(
    message_id: str, sightings: list[Sighting], own: UUID, now: int, ways: Ways = NO_WAYS
) -> Story:
    """The message first, then its copies, then what was told about it."""
    if not sightings:
        return _nowhere(message_id, own)
    sentences: list[str] = []
    advice: list[str] = []
    first = next((each for each in sightings if not each.about), None)
    if first is not None:
        label = f"“{first.label}” was" if first.label else "It was"
        goal = f" to {first.destination}" if first.destination else ""
        sentences.append(f"{label} sent{goal} on {date_of(first.sent)}.")
    for each in sorted(sightings, key=lambda sighting: (sighting.about, sighting.arrived)):
        told, hints = _told_of_acknowledgment(each) if each.about else _told_of(each, now, ways)
        sentences += told
        advice += hints
    if first is None:
        sentences.append("The message itself and copies of it are nowhere on this queue manager.")
    return Story(tuple(sentences), tuple(dict.fromkeys(advice)))


def _told_of(seen: Sighting, now: int, ways: Ways) -> tuple[list[str], list[str]]:
    since = f"since {date_of(seen.arrived)} ({age(now - seen.arrived)})"
    name = short_name(seen.queue)
    quoted = shlex.quote(name)
    aborted = (
        [f"It was received in a transaction that was aborted, {count(seen.aborts, 'time')}."]
        if seen.aborts
        else []
    )
    look = f"merq peek {quoted} --by-lookup-id {seen.lookup_id}  shows it"
    take = f"merq receive {quoted} --by-lookup-id {seen.lookup_id}  takes it out"
    match seen.whereabouts:
        case Whereabouts.WAITING:
            return [f"It waits in {name} to be received, {since}.", *aborted], [
                *_way_back(seen, quoted),
                look,
                take,
            ]
        case Whereabouts.LOCKED | Whereabouts.RESERVED:
            told, hints = _told_of_locked(seen, name, since)
            return [*told, *aborted], hints
        case Whereabouts.LEAVING:
            return [f"It is leaving {name} at this moment; ask again."], []
        case (
            Whereabouts.OUTGOING
            | Whereabouts.TRANSMITTED
            | Whereabouts.UNORDERED
            | Whereabouts.UNREAD
        ):
            return told_of_way(seen, now, ways)
        case Whereabouts.JOURNAL:
            return _told_of_journal(seen, name, since), [look, _again(seen, quoted)]
        case Whereabouts.DEAD_LETTER:
            dead = f"A copy is in the dead-letter queue {name}, {since}: {_reason(seen)}."
            return [dead], [look, _again(seen, quoted), f"{take}, when it is not needed any more"]
        case Whereabouts.UNSENT | Whereabouts.STAGED:
            return _told_of_unsent(seen, name, since)
        case _:
            assert_never(seen.whereabouts)


def _told_of_locked(seen: Sighting, name: str, since: str) -> tuple[list[str], list[str]]:
    """For a message that somebody has and may give back."""
    quoted = shlex.quote(name)
    if seen.whereabouts is Whereabouts.LOCKED:
        locked = f"It is in {name}, {since}, and somebody is receiving it now."
        back = "It goes back if that is aborted, or if who receives it goes away."
        return [locked, back], [f"merq queue show {quoted}  shows who reads there"]
    reserved = f"It is in {name}, {since}, and a group of consumers has reserved it."
    then = "It goes when the group acknowledges it, and is anybody's again if it is released."
    return [reserved, then], [
        f"merq queue show {quoted}  shows the groups",
        f"merq reservations release {quoted} GROUP  gives back what one has reserved",
    ]


def _told_of_unsent(seen: Sighting, name: str, since: str) -> tuple[list[str], list[str]]:
    """For a message that nobody can receive yet."""
    if seen.whereabouts is Whereabouts.UNSENT:
        unsent = f"It is to go to {name}, in a transaction that is open {since}."
        then = "Until that commits nobody can receive it; if it aborts, it was never sent."
        return [unsent, then], ["merq status  counts the transactions that are open"]
    staged = f"It is to go to {name}: it was written into a stage {since}, and is not published."
    then = "Nobody can receive it until its writer publishes the batch that it is part of."
    return [staged, then], ["merq stages list  shows who wrote it, and for which batch"]


def _way_back(seen: Sighting, quoted: str) -> list[str]:
    """For a message that was set aside in a subqueue."""
    owner, separator, subqueue = seen.queue.partition(";")
    if not separator or subqueue.lower() in {"journal", "deadletter", "deadxact"}:
        return []
    back = shlex.quote(short_name(owner))
    return [f"merq move {quoted} {back} --lookup-id {seen.lookup_id}  puts it back to be received"]


def _told_of_journal(seen: Sighting, name: str, since: str) -> list[str]:
    if seen.queue.lower().endswith("system$;journal"):
        return [f"It was delivered: the copy that its sender asked for is in {name}, {since}."]
    owner = short_name(seen.queue.rpartition(";")[0])
    return [f"It was received from {owner}: a copy is in its journal, {since}."]


def _again(seen: Sighting, quoted: str) -> str:
    """A command that sends it once more, as a new message."""
    goal = shlex.quote(seen.destination) if seen.destination else "QUEUE"
    transactional = " --transactional" if seen.queue.lower().endswith("deadxact") else ""
    return (
        f"merq peek {quoted} --by-lookup-id {seen.lookup_id} --json | "
        f"merq import - {goal}{transactional}  sends it again"
    )


def _reason(seen: Sighting) -> str:
    known = MessageClass.of(seen.message_class)
    if known is None or not known.is_acknowledgment:
        return "for a reason that was not kept"
    return f"{known.meaning} ({known.name})"


def _told_of_acknowledgment(seen: Sighting) -> tuple[list[str], list[str]]:
    known = MessageClass.of(seen.message_class)
    words = describe_class(seen.message_class) if known is None else known.meaning
    name = short_name(seen.queue)
    sentence = f"An acknowledgment in {name}, of {date_of(seen.arrived)}, says: {words}."
    hint = f"merq peek {shlex.quote(name)} --by-lookup-id {seen.lookup_id}  shows it"
    return [sentence], [hint]


def _nowhere(message_id: str, own: UUID) -> Story:
    """Why a message can be nowhere, and how the next one leaves a trace."""
    source = message_id[1:37]
    if source != str(own):
        where = (
            f"Its id is of another queue manager, {source}; this one is {own}. Ask that one, "
            "if you have not meant this one."
        )
        if source == str(UUID(int=0)):
            where = "Its id is empty: no queue manager has sent it."
        possible = "If it ever came here, it was received, or went as below."
    else:
        where = "Its id is of this queue manager, but no queue has it, or a copy of it."
        possible = "So one of these has happened:"
    return Story(
        (
            where,
            possible,
            "• It was received, and its queue keeps no journal.",
            "• It was sent to another computer and arrived there, without --journal.",
            "• Its time was over, or its queue was purged or removed, and it had no --dead-letter.",
            "• It was express, not --recoverable, and the queue manager was started anew.",
            "• It was sent in a transaction that was aborted, or there never was such a message.",
        ),
        (
            "merq queue set QUEUE --journal  keeps what is received from a queue",
            "merq send ... --dead-letter --journal --recoverable  keeps a trace of a message",
            "merq send ... --ack arrival,receive --admin-queue QUEUE  tells what becomes of it",
        ),
    )
