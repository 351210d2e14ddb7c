"""With MERQ_EXPECT_COMPILED=1 the engine's tests refuse to run over plain Python by mistake."""

import os
import sys
from collections.abc import Callable

import pytest

import merq.engine.expiry
import merq.engine.identifiers
import merq.engine.positions
import merq.engine.rows
import merq.engine.sorted_map
from unit.engine.engine_world import World


@pytest.fixture(scope="session", autouse=True)
def _compiled_where_expected() -> None:
    if os.environ.get("MERQ_EXPECT_COMPILED") != "1":
        return
    for module in (
        merq.engine.expiry,
        merq.engine.identifiers,
        merq.engine.positions,
        merq.engine.rows,
        merq.engine.sorted_map,
    ):
        file = str(module.__file__)
        assert file.endswith((".so", ".pyd")), f"{module.__name__} is not compiled: {file}"


@pytest.fixture
def world() -> World:
    """An engine without a disk."""
    return World()


Lower = Callable[[str, str, int], None]


@pytest.fixture
def lower(monkeypatch: pytest.MonkeyPatch) -> Lower:
    """Makes a limit low enough to be reached: the module, the limit's name, and how low."""

    def lowered(module: str, name: str, value: int) -> None:
        if str(sys.modules[module].__file__).endswith((".so", ".pyd")):
            pytest.skip(f"{name} is built into the compiled {module}; plain Python tests it")
        monkeypatch.setattr(f"{module}.{name}", value)

    return lowered
