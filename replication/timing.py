"""The durations that elections and leases rest on, in seconds of a clock that also runs while the machine sleeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Defaults of design §5. All nodes of a cluster must use the same `lease` and `drift`: safety rests on them."""

    beat: float = 0.150
    lease: float = 0.600
    election_min: float = 0.700
    election_max: float = 1.100
    drift: float = 0.01
    """How much faster or slower than real time any node's clock may run: 0.01 is one per cent."""
    flush_hang: float = 1.0
    """A leader whose flush takes longer hands over; the node's log watches that."""

    def __post_init__(self) -> None:
        if not 0 < self.beat < self.lease <= self.election_min <= self.election_max:
            raise ValueError("beat < lease <= election_min <= election_max must hold, all above zero")
        if not 0 <= self.drift < 1:
            raise ValueError("drift is a fraction of 1")

    @property
    def drift_margin(self) -> float:
        """What a new leader adds to the lease that a vote reports, in seconds.

        The old leader's slow clock stretches its lease to lease / (1 - drift). The voter's fast clock and the new
        leader's fast clock count real time up to (1 + drift) times. Of the lease L with `left` still to go, the new
        leader must therefore wait left + L * ((1 + drift) / (1 - drift) - 1).
        """
        return self.lease * 2 * self.drift / (1 - self.drift)
