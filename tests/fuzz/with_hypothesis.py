"""python -m tests.fuzz.with_hypothesis TARGET SECONDS CORPUS: a target on mixed and mutated seeds,
until the time is over."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, seeds

EXAMPLES = 250
"""Inputs of one round; each round has another seed."""
HANG_CPU_SECONDS = 20
"""Counted in the processor's time, so that a busy machine is no hang."""


def hangs(_signal: int, _frame: FrameType | None) -> None:
    """One input has taken too long."""
    raise TimeoutError(f"an input takes over {HANG_CPU_SECONDS} s")


def inputs(target: str) -> st.SearchStrategy[bytes]:
    """Seeds cut, joined and overwritten, and bytes of all kinds."""
    starts = st.sampled_from(seeds(target))
    parts = st.builds(
        lambda whole, start, size: whole[start : start + size], starts, st.integers(0, 80), st.integers(0, 80)
    )
    spliced = st.builds(
        lambda first, pieces: first[:1] + b"".join(pieces), starts, st.lists(parts | st.binary(max_size=8))
    )
    changed = st.builds(
        lambda whole, at, byte: whole[: at % (len(whole) + 1)] + byte + whole[at % (len(whole) + 1) + 1 :],
        starts,
        st.integers(0, 400),
        st.binary(max_size=3),
    )
    return changed | spliced | st.binary(max_size=200)


def main(target: str, seconds: str) -> None:
    """Raises what the target raises, with the smallest input that does it."""
    signal.signal(signal.SIGPROF, hangs)
    deadline = time.monotonic() + float(seconds)
    rounds = 0
    while time.monotonic() < deadline:

        @seed(time.time_ns())
        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )
        @given(inputs(target))
        def try_inputs(data: bytes) -> None:
            signal.setitimer(signal.ITIMER_PROF, HANG_CPU_SECONDS)
            TARGETS[target](data)
            signal.setitimer(signal.ITIMER_PROF, 0)

        try_inputs()
        rounds += 1
    print(f"{target}: {rounds * EXAMPLES} inputs")


if __name__ == "__main__":
    main(*sys.argv[1:3])
