r"""Orders from a laptop that is not always connected: Example 1 of Microsoft's overview of MSMQ.

    python examples/disconnected_data_entry.py

Two queue managers, each a process with an address of its own, speak to each other by the port that
queue managers have. A laptop takes orders while the office is switched off; they wait in an
outgoing queue, whatever happens to the laptop. They arrive when the office is there, each once, in
order. One has little time: the office is off again, and it ends as a dead letter at the laptop.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import merq

ORDERS, DEAD_LETTERS = r".\private$\orders", r".\system$;DEADXACT"
PATIENCE_S = 20.0


class Computer:
    """A computer with a queue manager: it can be switched on, and off without a warning."""

    def __init__(self, folder: Path, name: str, address: str) -> None:
        self.name, self.address = name, address
        self._data = folder / name
        self._process: subprocess.Popen[bytes] | None = None

    def switch_on(self) -> None:
        """Starts its queue manager."""
        flags = ["--data", str(self._data), "--name", self.name, "--address", self.address]
        command = [sys.executable, "-m", "merq", "serve", *flags, "--log-level", "error"]
        self._process = subprocess.Popen(command)
        self.connect().close()

    def switch_off(self) -> None:
        """Ends it as a power failure would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def connect(self) -> merq.Manager:
        """A connection for an application that runs there."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return merq.connect(f"unix:{self._data / 'merq.sock'}")
            except merq.MessageQueueError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def enter(laptop: Computer, office: Computer, order: str, lifetime_s: int = 600) -> None:
    """The application at the laptop: sends an order, and wants to know if it comes to nothing."""
    name = rf"DIRECT=TCP:{office.address}\private$\orders"
    with laptop.connect() as mq, mq.transaction() as tx:
        mq.send(name, label=order, tx=tx, dead_letter=True, time_to_reach_queue=lifetime_s)
    print(f"laptop: entered {order}")


def process(office: Computer, count: int) -> None:
    """The application at the office: takes orders, as they come."""
    with office.connect() as mq:
        orders = mq.queue(ORDERS)
        for _ in range(count):
            with mq.transaction() as tx:
                order = orders.receive(timeout=PATIENCE_S, tx=tx)
            print(f"office: got {order.label}")
        print(f"office: {len(orders)} left")


def main() -> None:
    """A day of a salesperson."""
    with tempfile.TemporaryDirectory() as folder:
        laptop = Computer(Path(folder), "laptop", "127.0.5.2")
        office = Computer(Path(folder), "office", "127.0.5.3")
        try:
            office.switch_on()
            with office.connect() as mq:
                mq.create_queue(ORDERS, transactional=True)
            office.switch_off()

            laptop.switch_on()
            enter(laptop, office, "order 1")
            enter(laptop, office, "order 2")
            laptop.switch_off()  # nothing is lost
            laptop.switch_on()
            office.switch_on()
            process(office, 2)

            office.switch_off()
            enter(laptop, office, "order 3", lifetime_s=2)
            with laptop.connect() as mq:
                letter = mq.queue(DEAD_LETTERS).receive(timeout=PATIENCE_S)
                print(f"laptop: {letter.label} did not arrive in time")
        finally:
            laptop.switch_off()
            office.switch_off()


if __name__ == "__main__":
    main()
