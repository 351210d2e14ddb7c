"""`merq queue show --properties`: a queue's properties by the identifiers that MSMQ has."""

from __future__ import annotations

from rich.table import Table

from merq.cli.rendering import printable, table_of
from merq.client.manager import Manager
from merq.client.queues import OutgoingQueue, Queue
from merq.model.properties import Property
from merq.model.queue import QueueKind
from merq.model.variant import describe
from merq.protocol.application.property_values import PropertyValue, QueueFacts, known_properties
from merq.protocol.application.reports import QueueReport, SequenceReport


def properties_of(
    manager: Manager, found: Queue, subqueues: list[QueueReport], sequences: list[SequenceReport]
) -> dict[Property, PropertyValue]:
    """All properties of a queue that have a value."""
    report, status = found.report, manager.status()
    journal = None
    if report.properties.kind is QueueKind.PRIVATE:
        journal = manager.queue(f"{report.properties.path_name};journal").report
    return known_properties(
        QueueFacts(
            queue_manager=status.guid,
            computer=status.name,
            report=report,
            journal=journal,
            subqueues=tuple(each.properties.path_name.rpartition(";")[2] for each in subqueues),
            transfer=found.transfer() if isinstance(found, OutgoingQueue) else None,
            sequences=tuple(sequences),
        )
    )


def object_of_properties(properties: dict[Property, PropertyValue]) -> dict[str, object]:
    """For programs: bytes as hexadecimal digits, GUIDs as text."""
    return {which.name: _plain(value) for which, value in properties.items()}


def table_of_properties(properties: dict[Property, PropertyValue]) -> Table:
    """One line a property: its name, its number, its type, its value."""
    table = table_of("property", "number", "type", "value", numbers=frozenset({"number"}))
    for which, value in properties.items():
        table.add_row(
            which.name,
            str(which.number),
            describe(which.variant_type),
            printable(str(_plain(value)), lines=False),
        )
    return table


def _plain(value: PropertyValue) -> object:
    match value:
        case bytes():
            return value.hex()
        case tuple():
            return [_plain(each) for each in value]
        case int():
            return value
        case _:
            return str(value)
