"""What happens at limits of the simulated worlds."""

from __future__ import annotations

import pytest

from merq.testing import WaitsForEver, managers
from merq.testing.strict_peer import Readings
from unit.testing.test_simulated_strict_peer import PLAIN, Pair


@pytest.mark.limit("merq.testing.managers.STEPS_MAX")
def test_things_that_go_on_without_time_are_a_fault() -> None:
    pair = Pair()
    assert pair.net.rest.__defaults__[0] == managers.STEPS_MAX  # type: ignore[index]
    with pytest.raises(WaitsForEver, match="after 0 steps things still go on"):
        pair.net.rest(steps_max=0)


@pytest.mark.limit("merq.testing.managers.ROUNDS_MAX")
def test_a_clock_that_is_put_on_too_often_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    pair.send(b"a", PLAIN)
    monkeypatch.setattr(managers, "ROUNDS_MAX", 1)
    with pytest.raises(WaitsForEver, match="put on 1 times"):
        pair.net.run(60.0)


@pytest.mark.limit("merq.testing.strict_peer.readings.Readings.history_max")
def test_the_strict_peer_forgets_the_oldest_message() -> None:
    pair = Pair(history_max=2)
    assert Readings().history_max > 2
    for at in range(3):
        pair.send(b"%d" % at, PLAIN)
    pair.net.run(60.0)
    assert pair.came(PLAIN) == [b"0", b"1", b"2"]
    assert len(pair.peer.peer.incoming.history) == 2
