"""Pipelines on a real standalone cluster: a master and two workers as processes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from cluster.chaos import EXECUTOR, MANAGER, PYTHON, Chaos, Plan
from kit.clusters import cluster
from kit.marked_processes import Mark

BEGUN_S = 30
"""So long it may take until a process is what it was started to be."""


def test_every_message_is_archived_forwarded_and_reconciled_once_whatever_is_killed(
    tmp_path: Path,
) -> None:
    """One driver does it all, by `spark-submit`, because on a cluster it takes long to start.

    It runs the flows `archive` and `reconcile`, a stream from queue to queue, and a job with tasks
    that fail or run twice at once; `cluster.chaos` says what is compared. `make chaos` also kills
    drivers and workers.
    """
    # With this seed the executor is the first, then the queue manager.
    plan = Plan(
        kills=3,
        kinds=(EXECUTOR, PYTHON, MANAGER),
        messages=1_500,
        rate=10_000,
        batch_messages=250,
        pause_s=1.0,
        impatience=1.0,
        seed=3,
        is_short=True,
    )
    with cluster(tmp_path / "cluster") as machines:
        try:
            outcome = Chaos(tmp_path, plan, machines).run()
        except AssertionError as wrong:
            wrong.add_note(machines.told())
            raise
    assert outcome.kills[EXECUTOR] == outcome.kills[MANAGER] == 1
    assert outcome.sent > 0
    assert (outcome.archived, outcome.forwarded) == (outcome.sent, outcome.sent)
    assert outcome.verdicts["delivered"] == 3 * outcome.sent + 1
    assert machines.mark.all() == [], "no process is left"


def test_processes_are_known_by_their_mark_even_if_their_parents_are_gone(tmp_path: Path) -> None:
    mark = Mark()
    command = ["sh", "-c", "sleep 60 & echo $! > pid"]
    subprocess.run(command, check=True, cwd=tmp_path, env=os.environ | mark.variables)
    until = time.monotonic() + BEGUN_S
    (found,) = mark.all()
    while not found.has("sleep", "60"):  # at first it is still the shell
        assert time.monotonic() < until, found
        (found,) = mark.all()
    assert found.pid == int((tmp_path / "pid").read_text())
    mark.kill_all()
    assert mark.all() == []
