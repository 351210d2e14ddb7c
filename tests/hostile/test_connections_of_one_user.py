"""One user's connections do not take the room of others."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from acceptance.service_process import RawClient, serving, wait_until


@pytest.mark.limit("limits.connections_per_peer_max")
def test_one_user_has_only_so_many_connections_and_those_stay(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "data", limits__connections_per_peer_max=3) as service,
        ExitStack() as stack,
    ):
        held = [stack.enter_context(RawClient(service.socket_path).greet()) for _ in range(3)]
        with RawClient(service.socket_path) as late:
            assert late.is_cut_off()
        assert all(each.session.welcome is not None for each in held)
        held[0].close()

        def is_let_in() -> bool:
            with RawClient(service.socket_path) as another:
                try:
                    return another.greet().session.welcome is not None
                except ConnectionError:
                    return False

        wait_until(is_let_in, "there is room for one again")
