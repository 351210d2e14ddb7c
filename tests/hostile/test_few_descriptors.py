"""The system gives the process few descriptors, or none: a shortage, and never a failed disk."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import merq
from acceptance.service_process import environment, wait_until
from hostile import few_descriptors_program
from hostile.strangers import Stranger
from kit.raw_sockets import RawSocket
from merq.errors import SettingsError
from merq.hresult import HResult
from merq.service.descriptors import DESCRIPTORS_MIN, DescriptorPlan, plan

WANTED = DescriptorPlan(links_max=4096, dialled_links_max=1024, connections_max=2048)
OPENED = 20
ADDRESS = "127.34.3.1"
CROWD = 200
"""More than the least that works, at each door."""


def limited(limit: int, folder: Path, *flags: str) -> list[str]:
    """The command of a service that may have so many open files."""
    serve = [sys.executable, "-m", "merq", "serve", "--data", str(folder), *flags]
    return ["/bin/sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *serve]


def test_where_no_descriptor_is_left_the_log_goes_on_with_spare_ones_and_then_refuses(
    tmp_path: Path,
) -> None:
    program = Path(few_descriptors_program.__file__)
    done = subprocess.run(
        [sys.executable, program, tmp_path / "store"],
        capture_output=True,
        check=True,
        text=True,
        timeout=20,
        env=environment(),
    )
    found = json.loads(done.stdout)
    assert found["with_spares"] > 10, "spare descriptors are for the next segments"
    assert found["refused"] > 5, "they were used up"
    assert found["codes"] == [0, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES]
    assert found["found"] == found["acknowledged"], "what was acknowledged is on the disk, no more"
    assert found["checkpoints"] == [False, True, True]
    assert len(found["news"]) == 1
    assert "no more files be opened" in found["news"][0]


def test_below_the_least_that_works_the_plan_says_how_many_are_needed() -> None:
    with pytest.raises(SettingsError, match=f"{OPENED + DESCRIPTORS_MIN} or more") as wrong:
        plan(OPENED + DESCRIPTORS_MIN - 1, OPENED, WANTED)
    assert "LimitNOFILE" in str(wrong.value)
    least = plan(OPENED + DESCRIPTORS_MIN, OPENED, WANTED)
    assert least.connections_max == least.links_max == least.dialled_links_max == 4


@pytest.mark.parametrize("limit", [32, 64, 128])
def test_a_service_that_would_have_too_few_says_so_and_does_not_start(
    tmp_path: Path, limit: int
) -> None:
    done = subprocess.run(
        limited(limit, tmp_path / "data"),
        capture_output=True,
        check=False,
        text=True,
        timeout=20,
        env=environment(),
    )
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "open files" in said
    assert "ulimit -n" in said
    assert "Traceback" not in said


@contextmanager
def served(folder: Path, limit: int) -> Iterator[Path]:
    """A service that may have so many open files, and what it has said."""
    told = folder.with_name("told")
    variables = environment(MERQ_EXCHANGE_LISTEN="true", MERQ_EXCHANGE_OFFLINE="false")
    with told.open("wb") as log:
        process = subprocess.Popen(
            limited(limit, folder, "--address", ADDRESS, "--log-format", "json"),
            stdout=log,
            stderr=log,
            env=variables,
        )
    try:
        wait_until(lambda: b'"running"' in told.read_bytes(), "it runs")
        yield told
    finally:
        process.terminate()
        process.wait(20)


def test_the_least_that_works_is_enough_for_crowds_at_every_door(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    refused = subprocess.run(
        limited(64, folder), capture_output=True, check=False, text=True, env=environment()
    )
    found = re.search(r"let it be (\d+) or more", refused.stdout + refused.stderr)
    assert found is not None
    with served(folder, int(found[1])) as told, ExitStack() as crowd:
        with merq.connect(f"unix:{folder / 'merq.sock'}") as manager:
            queue = manager.create_queue(r".\private$\q")
            for number in range(CROWD):
                source = f"127.34.4.{1 + number % 200}"
                crowd.enter_context(Stranger(ADDRESS, source))
            for _ in range(CROWD):
                crowd.enter_context(RawSocket(folder / "merq.sock", patience_s=5))
            for _ in range(20):
                queue.send(bytes(1 << 20), recoverable=True)
            for _ in range(20):
                queue.receive(timeout=5)
        said = told.read_text()
    assert "Too many open files" not in said
    assert "fewer connections are allowed" in said
