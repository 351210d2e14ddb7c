"""A process with several threads is killed at any moment, again and again: nothing is lost.

The child tells on its standard output what it was told was done. After each kill the folder is
opened: every acknowledged send is there or was received once, transactions are whole, and each
sender's messages are in their order.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from random import Random

import merq

CHILD = r"""
import sys, threading
import merq

folder, life = sys.argv[1], sys.argv[2]
mq = merq.open(folder)

def queue(name, transactional):
    try:
        return mq.queue(name)
    except merq.MessageQueueError:
        return mq.create_queue(name, transactional=transactional)

plain = queue(r".\private$\plain", False)
pairs = queue(r".\private$\pairs", True)
moved = queue(r".\private$\moved", True)

def tell(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()

def send(sender):
    for number in range(1_000_000):
        body = f"{life}.{sender}:{number}"
        tell("sending", body)
        plain.send(body, recoverable=True)
        tell("sent", body)

def send_pairs(sender):
    for number in range(1_000_000):
        body = f"{life}.{sender}:{number}"
        tell("sending", body)
        with mq.transaction() as tx:
            pairs.send(body + ":a", tx=tx)
            pairs.send(body + ":b", tx=tx)
        tell("sent", body)

def receive():
    while True:
        tell("received", plain.receive().body)

def move():
    while True:
        with mq.transaction() as tx:
            moved.send(pairs.receive(tx=tx).body, tx=tx)

for target, *arguments in (
    (send, "s0"), (send, "s1"), (send_pairs, "p0"), (send_pairs, "p1"), (receive,), (move,),
):
    threading.Thread(target=target, args=arguments, daemon=True).start()
tell("ready")
threading.Event().wait()
"""

KILLS = 15
SEED = 20_240_506


class Lives:
    """What all children have told."""

    def __init__(self) -> None:
        self.sending: dict[str, list[int]] = defaultdict(list)
        self.sent: set[str] = set()
        self.received: list[str] = []
        self.ended = 0

    def take(self, output: str) -> None:
        self.ended += 1
        # The last line may be cut off by the kill: what was not said in full was not said.
        for line in output[: output.rfind("\n") + 1].splitlines():
            word, _, body = line.partition(" ")
            if word == "sending":
                sender, number = body.split(":")
                self.sending[sender].append(int(number))
            elif word == "sent":
                self.sent.add(body)
            elif word == "received":
                self.received.append(body)


def run_and_kill(folder: Path, life: int, seconds: float) -> str:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(life)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines: list[str] = []
    ready = threading.Event()

    def listen() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            lines.append(line)
            if line == "ready\n":
                ready.set()

    listener = threading.Thread(target=listen)
    listener.start()
    was_ready = ready.wait(30)
    time.sleep(seconds)
    early = child.poll()
    child.kill()
    listener.join()
    assert child.stderr is not None
    complaints = child.stderr.read()
    child.stderr.close()
    assert child.stdout is not None
    child.stdout.close()
    child.wait()
    assert was_ready, complaints
    assert early is None, complaints
    return "".join(lines)


def bodies(manager: merq.Manager, name: str) -> list[str]:
    return [str(message.body) for message in manager.queue(name).peek_all()]


def check(folder: Path, lives: Lives) -> None:
    with merq.open(folder) as manager:
        plain = bodies(manager, r".\private$\plain")
        pairs = bodies(manager, r".\private$\pairs")
        moved = bodies(manager, r".\private$\moved")
    check_plain(plain, lives)
    check_pairs(pairs, moved, lives)


def check_plain(plain: list[str], lives: Lives) -> None:
    assert len(set(lives.received)) == len(lives.received), "nothing is received twice"
    assert len(set(plain)) == len(plain), "nothing is there twice"
    assert not set(plain) & set(lives.received), "what was received is gone"
    sent = {body for body in lives.sent if ".s" in body}
    lost = sent - set(plain) - set(lives.received)
    # A kill may come after the removal was durable and before the receiver could say so: at most
    # one message a life, and all before it were received.
    assert len(lost) <= lives.ended, lost
    for body in lost:
        sender, number = body.split(":")
        later = [each for each in plain if each.startswith(f"{sender}:")]
        assert all(int(each.split(":")[1]) > int(number) for each in later)
    check_order(plain)
    check_order(lives.received)


def check_pairs(pairs: list[str], moved: list[str], lives: Lives) -> None:
    there = moved + pairs
    assert len(set(there)) == len(there), "a move is whole: nothing is in both queues, or twice"
    halves: dict[str, list[str]] = defaultdict(list)
    for body in there:
        pair, _, half = body.rpartition(":")
        halves[pair].append(half)
    assert all(found == ["a", "b"] for found in halves.values()), "a pair is whole, and in order"
    sent = {body for body in lives.sent if ".p" in body}
    assert sent <= set(halves), "what was acknowledged is there"
    for sender, numbers in lives.sending.items():
        if ".p" not in sender:
            continue
        found = sum(pair.startswith(f"{sender}:") for pair in halves)
        acknowledged = sum(pair.startswith(f"{sender}:") for pair in sent)
        assert acknowledged <= found <= min(acknowledged + 1, len(numbers))
    check_order([body for body in there if body.endswith(":a")])


def check_order(found: list[str]) -> None:
    last: dict[str, int] = {}
    for body in found:
        sender, number = body.split(":")[:2]
        assert int(number) > last.get(sender, -1), f"{body} stands behind a later one"
        last[sender] = int(number)


def test_a_process_that_is_killed_at_any_moment_has_kept_every_promise(tmp_path: Path) -> None:
    chance = Random(SEED)  # noqa: S311 - moments, not secrets
    lives = Lives()
    for life in range(KILLS):
        lives.take(run_and_kill(tmp_path, life, chance.uniform(0, 0.5)))
        check(tmp_path, lives)
    assert len(lives.sent) > 10 * KILLS, "something was going on"
    assert len(lives.received) > KILLS
