"""How large a simulated cluster is, and how soon its logs are trimmed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
SEGMENT_BYTES: Final = 256 << 10
"""Small, so that logs roll over many times a minute."""
SCRUB_SECONDS: Final = 2.0
"""How often replicas are compared."""
TRIMMING: Final[Mapping[str, Any]] = {
    "log_segment_bytes": 192 << 10,
    "log_bytes_max": 960 << 10,
    "snapshot_log_bytes": 8 << 10,
    "snapshot_bytes_per_second": 4 << 20,
}
"""Settings under which snapshots are taken, logs trimmed and followers rebuilt within seconds."""


REPLACE_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Shape:
    """A cluster: so many nodes in each zone, so many partitions of a table, so many members of auto-admin; `settings`
    are those of its nodes."""

    zones: tuple[int, ...] = (1, 1, 1)
    partitions: int = 2
    auto_admins: int = 1
    replace_after: float = REPLACE_SECONDS
    """Seconds that nobody must have heard of a node before its replicas are made anew on others."""
    settings: Mapping[str, Any] = field(default_factory=lambda: {"log_segment_bytes": SEGMENT_BYTES})

    @property
    def nodes(self) -> list[tuple[str, str]]:
        """Name and zone of every node: `node-a`, and `node-a2` and on in a zone that has more."""
        return [
            (f"node-{zone[-1]}{number if number > 1 else ''}", zone)
            for zone, count in zip(ZONES, self.zones, strict=True)
            for number in range(1, count + 1)
        ]

    def __str__(self) -> str:
        trims = "" if "log_bytes_max" not in self.settings else ", trims its logs"
        admins = f", {self.auto_admins} auto-admins" if self.auto_admins > 1 else ""
        return f"{'+'.join(map(str, self.zones))} nodes{admins}, {self.partitions} partitions{trims}"


def draw_shape(random: Random) -> Shape:
    """3 to 9 nodes, mostly few: one to three in each zone. Three of four trim their logs all the time."""
    zones = tuple(random.choice((1, 1, 1, 1, 2, 2, 3)) for _ in ZONES)
    partitions = random.choice((1, 2, 2, 3, 4))
    auto_admins = random.choice((1, 1, 3))
    replace_after = random.choice((3.0, REPLACE_SECONDS))
    settings: dict[str, Any] = {"scrub_interval": SCRUB_SECONDS, "log_segment_bytes": SEGMENT_BYTES}
    if random.random() < 0.75:
        settings |= {**TRIMMING, "log_keep_seconds": random.choice((0.5, 5.0, 20.0))}
    return Shape(zones, partitions, auto_admins, replace_after, settings)
