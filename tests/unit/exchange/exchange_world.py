"""The towns that the exchange's tests are about."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from kit.exchange import Manager, Town
from merq.exchange import ExchangeSettings, Peer

ONE, TWO, THREE = "10.0.0.1", "10.0.0.2", "10.0.0.3"
GUIDS = {
    address: UUID(int=0xAAAA0000 + number)
    for number, address in enumerate((ONE, TWO, THREE), start=1)
}
PLAIN = r"DIRECT=TCP:10.0.0.2\private$\q"
ORDERED = r"DIRECT=TCP:10.0.0.2\private$\tx"
QUEUE, TX = 0x10, 0x11
"""What the receiving side's two queues are numbered."""


def manager(
    address: str, settings: ExchangeSettings | None = None, *, peers: tuple[Peer, ...] = ()
) -> Manager:
    """A queue manager at an address."""
    return Manager(
        name=f"m{address[-1]}",
        address=address,
        guid=GUIDS[address],
        settings=settings or ExchangeSettings(),
        peers=peers,
    )


def pair(
    settings: ExchangeSettings | None = None, other: ExchangeSettings | None = None
) -> tuple[Town, Manager, Manager]:
    """A sender, and a receiver with a queue and a transactional queue."""
    sender, receiver = manager(ONE, settings), manager(TWO, other or settings)
    assert receiver.create("q") == QUEUE
    assert receiver.create("tx", transactional=True) == TX
    return Town(sender, receiver), sender, receiver


def changed(**fields: object) -> ExchangeSettings:
    """The defaults but for these."""
    return replace(ExchangeSettings(), **fields)  # type: ignore[arg-type]
