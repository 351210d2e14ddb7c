"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# Writes what the tests have shown, if asked to: the conformance register believes nothing else.
pytest_plugins = ["tools.conformance.recording"]

# The same examples every time, so that a change is judged by what it changes. MERQ_RANDOM=1 looks
# for new ones, and remembers those that fail.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("random" if os.environ.get("MERQ_RANDOM") else "repeatable")

# Services that tests start do not all listen on the one port that queue managers have, and look for
# nobody: those that are to, say so and have an address of their own.
os.environ.setdefault("MERQ_EXCHANGE_LISTEN", "false")
os.environ.setdefault("MERQ_EXCHANGE_OFFLINE", "true")
