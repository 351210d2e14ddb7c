"""Limits that are made low, so that a few packets or requests reach them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def lowered(limits: Mapping[tuple[str, str], int]) -> Iterator[None]:
    """While it lasts, limits are low: by the module that looks at them, and their names.

    What the compiled build has is not changed.
    """
    modules = [(importlib.import_module(path), name) for path, name in limits]
    before = [(module, name, getattr(module, name)) for module, name in modules]
    for module, name, _ in before:
        setattr(module, name, limits[module.__name__, name])
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
