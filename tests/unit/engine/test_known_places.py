"""Messages to public queues whose place is known without a directory."""

from __future__ import annotations

from uuid import UUID

import pytest

from merq.hresult import HResult
from unit.engine.engine_world import World, refused

QUEUE = UUID("0f6a1d32-5c1b-4e8e-9a77-61c0b2d8e9f4")
PLACE = UUID("7b2f5c1e-93d4-4f0a-8a61-2d9be0c4f513")


@pytest.mark.spec("MS-MQQB 3.1.7.4")
def test_a_public_name_can_be_sent_to_if_its_place_is_known(world: World) -> None:
    world.engine.state.known_places[QUEUE] = PLACE
    world.send_to(f"PUBLIC={QUEUE}", body=b"a")
    (queue,) = world.engine.outgoing_queues()
    assert queue.properties.path_name == f"PUBLIC={QUEUE}"
    assert world.bodies(queue.number) == [b"a"]


@pytest.mark.spec("MS-MQQB 3.1.7.4")
def test_a_public_name_whose_place_is_not_known_is_refused_with_advice(world: World) -> None:
    code = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
    said = refused(code, lambda: world.send_to(f"PUBLIC={QUEUE}", body=b"a"))
    assert "file of peers" in said
