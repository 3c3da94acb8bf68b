"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says something of the machine, not of the code: bounds on time belong in benchmarks.
settings.register_profile("trizone", deadline=None)
settings.load_profile("trizone")
