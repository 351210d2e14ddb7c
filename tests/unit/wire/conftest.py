"""With MERQ_EXPECT_COMPILED=1 the codec's tests refuse to run over plain Python by mistake."""

import os

import pytest

import merq.wire.stream
import merq.wire.view


@pytest.fixture(scope="session", autouse=True)
def _compiled_where_expected() -> None:
    if os.environ.get("MERQ_EXPECT_COMPILED") != "1":
        return
    for module in (merq.wire.view, merq.wire.stream):
        file = str(module.__file__)
        assert file.endswith((".so", ".pyd")), f"{module.__name__} is not compiled: {file}"
