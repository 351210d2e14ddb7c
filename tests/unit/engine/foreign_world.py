"""Messages from and to other queue managers, for the engine's tests."""

from __future__ import annotations

import struct
from uuid import UUID

from merq.engine.arrival_outcomes import Arrived
from merq.engine.arriving import Arrival
from merq.engine.queue import Queue
from merq.engine.transfer import Departure, Transfer
from merq.model.message_class import MessageClass
from merq.model.names import PrivateName
from merq.wire.build import Outline, TransactionPlace, build_packet
from merq.wire.view import MessageView
from unit.engine.engine_world import GUID, START, World

THERE = UUID("99999999-8888-7777-6666-555555555555")
ELSEWHERE = UUID("77777777-0000-0000-0000-000000000007")
ADDRESS = "10.0.0.9"
RECEIVER = THERE.bytes_le
"""Who is at the other end of the session."""

ADMIN = r"TCP:10.0.0.9\private$\admin"
SEQUENCE = 5 << 32 | 1
ORDER_QUEUE = rf"DIRECT=TCP:10.0.0.9\PRIVATE$\order_queue$;{THERE.hex}"
REMOTE = r"DIRECT=TCP:10.0.0.9\private$\orders"


def place(number: int, previous: int | None = None, sequence: int = SEQUENCE) -> TransactionPlace:
    """Where a message stands in its sequence."""
    return TransactionPlace(
        sequence_id=sequence,
        sequence_number=number,
        previous_sequence_number=number - 1 if previous is None else previous,
    )


def foreign(destination: object, ordinal: int = 1, **fields: object) -> bytes:
    """A message of another queue manager: to a queue's name, or to a name by identifiers."""
    if isinstance(destination, str) and ":" not in destination:
        destination = rf"TCP:10.0.0.1\private$\{destination}"
    transaction = fields.get("transaction")
    values: dict[str, object] = {
        "source_queue_manager": THERE.bytes_le,
        "sent_time": START,
        "recoverable": transaction is not None,
    }
    return build_packet(
        Outline(
            destination=destination,  # type: ignore[arg-type]
            message_ordinal=ordinal,
            **(values | fields),  # type: ignore[arg-type]
        )
    )


def arrive(world: World, *packets: bytes, address: str = ADDRESS, guid: UUID = THERE) -> Arrived:
    """Messages come together; what follows from that happens."""
    arrivals = [Arrival(MessageView(packet), address, guid.bytes_le) for packet in packets]
    request = world.next_request()
    arrived = world.engine.arrivals.arrive(request, arrivals)
    world.perform()
    if world.durable_at_once:
        assert request in world.answers
    return arrived


def leaving(world: World) -> dict[str, list[MessageView]]:
    """What waits for other queue managers, by the outgoing queue's name in small letters."""
    found = {
        queue.properties.path_name.lower(): world.messages(queue.number)
        for queue in world.engine.outgoing_queues()
    }
    return {name: views for name, views in found.items() if views}


def asked_for(name: str, asker: UUID = THERE) -> str:
    """The outgoing queue of what is said to a queue about messages of the other queue manager."""
    return f"{name};{asker.hex}"


def classes(views: list[MessageView]) -> list[MessageClass | None]:
    """What acknowledgments say."""
    return [MessageClass.of(view.message_class) for view in views]


def outgoing(world: World, name: str = REMOTE) -> Queue:
    """The outgoing queue to a name."""
    found = world.engine.state.find_outgoing(name)
    assert found is not None
    return found


def transfer(world: World, name: str = REMOTE) -> Transfer:
    """How far it is."""
    found = outgoing(world, name).transfer
    assert found is not None
    return found


def depart(world: World, name: str = REMOTE, most: int = 1000) -> list[Departure]:
    """The next messages leave; whom they are transmitted to is written before that."""
    queue, known = outgoing(world, name), transfer(world, name).remote
    found = world.engine.departures.next(queue, most, 1 << 30, RECEIVER)
    world.perform()
    world.sync()
    if transfer(world, name).remote is not known:
        found += world.engine.departures.next(queue, most - len(found), 1 << 30, RECEIVER)
        world.perform()
    return found


def commit(world: World, *bodies: bytes, name: str = REMOTE, **fields: object) -> None:
    """Sends transactional messages to another queue manager."""
    transaction = world.begin()
    for body in bodies:
        world.send_to(name, transaction, body=body, **fields)
    world.commit(transaction)
    world.sync()


def order_ack(sequence_id: int, number: int, *, name: object = None, ordinal: int = 900) -> bytes:
    """[MS-MQQB] 2.2.4: as the other side makes it."""
    return foreign(
        name or PrivateName(computer=GUID, number=4),
        ordinal,
        priority=0,
        label="QM Ordering Ack",
        message_class=MessageClass.MQMSG_CLASS_ORDER_ACK,
        body=struct.pack("<QII20x", sequence_id, number, number - 1),
    )


def final_ack(
    view: MessageView,
    reason: int = MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    *,
    source: UUID = GUID,
    ordinal: int = 950,
) -> bytes:
    """[MS-MQQB] 2.2.5: what became of one of our messages, as the other side makes it."""
    body = struct.pack(
        "<QII16sI",
        view.tx_sequence_id,
        view.tx_sequence_number,
        view.previous_tx_sequence_number,
        source.bytes_le,
        view.message_ordinal,
    )
    return foreign(
        PrivateName(computer=GUID, number=4),
        ordinal,
        priority=0,
        recoverable=True,
        label="QM Ordering Ack",
        message_class=reason,
        body=body,
    )
