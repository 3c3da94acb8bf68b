"""Which seeds the tests run: those that ever showed a violation, and fresh ones with every commit."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Final

STORM_FAILED: Final = (
    *(102, 1013, 2055, 3065, 3069, 3089, 3108, 4012, 4032, 4042, 10063, 10090, 10098, 10139, 10168, 10184),
    *(20169, 20176, 20225, 20248, 20359, 20381, 20438, 20442, 20463, 20555, 20578, 20624, 20645, 20657, 20692),
    *(20755, 20807, 20829, 20882, 20923, 20936, 20997, 30186, 30338, 30371, 30572, 30642, 30777, 30959, 31217),
    *(31272, 31366, 31515, 40053, 60629, 60717, 60809, 60868),
)
"""Seeds of `make sim` that showed a violation. What each of them found has a test of its own too: a change of the code
under test, or of the faults, makes another run of the same seed."""

REGIONS_FAILED: Final = (6, 37)
"""The same for `make sim ARGS="--scenario regions"`."""

_SEED_VARIABLE: Final = "TRIZONE_FRESH_SEED"
_FRESH_FROM: Final = 1_000_000
_ROOT: Final = Path(__file__).resolve().parents[2]


def fresh_seeds(count: int) -> range:
    """Seeds that hardly any run before had, and all processes of this one have.

    They follow from the commit, so that a commit's outcome is the same everywhere; from the day where there is no
    repository; or from the environment variable TRIZONE_FRESH_SEED, the first of them.
    """
    given = os.environ.get(_SEED_VARIABLE)
    if given:
        return range(int(given), int(given) + count)
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False)
    commit = asked.stdout.strip()
    number = int(commit[:8], 16) if asked.returncode == 0 and commit else int(time.time()) // 86_400
    first = _FRESH_FROM + number * 100
    return range(first, first + count)
