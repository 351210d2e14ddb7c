"""Connections that fit into what the system lets a process have open."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from merq.service.descriptors import CONNECTIONS_MIN, DESCRIPTORS_MIN, RESERVE, DescriptorPlan, plan

PROGRAM = """
import json, resource
from merq.service.descriptors import DescriptorPlan, fit
from merq.service.logs import Log

class Told(Log):
    def warning(self, event, **fields):
        print(json.dumps({"event": event, **fields}))

resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))
wanted = DescriptorPlan(links_max=%d, dialled_links_max=%d, connections_max=%d)
found = fit(Told(), wanted)
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
print(json.dumps([found.links_max + found.dialled_links_max, found.connections_max, limit]))
"""


def fitted(soft: int, hard: int, links: int, connections: int) -> list[Any]:
    """What a process with these limits of the system finds, line by line."""
    program = PROGRAM % (soft, hard, links - links // 4, links // 4, connections)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=20
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def wanted(links: int, dialled: int, connections: int) -> DescriptorPlan:
    return DescriptorPlan(links_max=links, dialled_links_max=dialled, connections_max=connections)


def test_where_there_are_enough_everybody_gets_what_the_settings_say() -> None:
    enough = 4096 + 1024 + 2048 + RESERVE + 30
    assert plan(enough, 30, wanted(4096, 1024, 2048)) == wanted(4096, 1024, 2048)


@pytest.mark.parametrize("limit", [20 + DESCRIPTORS_MIN, 256, 1024, 4096])
def test_where_there_are_too_few_the_disk_and_applications_have_theirs(limit: int) -> None:
    found = plan(limit, 20, wanted(4096, 4096, 4096))
    assert found.connections_max >= CONNECTIONS_MIN
    assert found.links_max >= CONNECTIONS_MIN
    assert found.dialled_links_max >= CONNECTIONS_MIN
    assert found.total + 20 < limit
    assert found.connections_max * 4 >= found.links_max


def test_applications_get_no_more_than_their_settings_say() -> None:
    found = plan(1024, 24, wanted(4096, 4, 10))
    assert found.connections_max == 10
    assert found.links_max > 500


def test_few_links_leave_the_rest_to_applications() -> None:
    found = plan(1024, 24, wanted(10, 10, 4096))
    assert found.links_max == 10
    assert found.connections_max > 500


def test_the_systems_limit_is_raised_as_far_as_is_wanted() -> None:
    ((links, connections, limit),) = fitted(256, 3000, 500, 400)
    assert (links, connections) == (500, 400)
    assert 900 + RESERVE < limit < 3000


def test_what_cannot_be_raised_is_told_once_with_what_to_do() -> None:
    told, (links, connections, limit) = fitted(256, 600, 4096, 4096)
    assert limit == 600
    assert links + connections < 600
    assert told["event"] == "fewer connections are allowed than the settings say"
    assert told["links_max"] + told["dialled_links_max"] == links
    assert told["limit"] == 600
    assert "LimitNOFILE" in told["advice"]
