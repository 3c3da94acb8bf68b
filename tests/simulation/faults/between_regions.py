"""What happens to links between regions and to whole regions, one after the other and overlapping."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, Final

from tests.simulation.region_cluster import RegionCluster, RegionsNetwork, ReplicatorMember

DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {
    "region cut off": 3,
    "calls refused one way": 4,
    "slow link": 3,
    "late copies": 3,
    "kill replicator": 3,
    "stopped replicator": 2,
    "kill region": 1.5,
    "region loses power": 1,
    "wrong clocks": 2,
}
CLOCKS_APART: Final = 10.0
"""Calendars of regions are off by so many seconds at the most."""


class BetweenRegions:
    """Breaks what lies between regions. What is down comes up again by each region's own storm. `counts`: by kind."""

    def __init__(
        self,
        clusters: Sequence[RegionCluster],
        network: RegionsNetwork,
        random: Random,
        *,
        weights: Mapping[str, float] = DEFAULT_WEIGHTS,
        pause: tuple[float, float] = (0.5, 3.0),
        lasts: tuple[float, float] = (0.5, 8.0),
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._clusters = clusters
        self._network = network
        self._random = random
        self._weights = weights
        self._pause = pause
        self._lasts = lasts
        self._over = False
        self._kinds: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "region cut off": self._cut_off,
            "calls refused one way": self._refuse,
            "slow link": self._slow_link,
            "late copies": self._late_copies,
            "kill replicator": self._kill_replicator,
            "stopped replicator": self._stop_replicator,
            "kill region": self._kill_region,
            "region loses power": self._lose_power,
            "wrong clocks": self._wrong_clocks,
        }

    async def run(self, seconds: float) -> None:
        """Break things for so long."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            await asyncio.sleep(min(end - loop.time(), self._random.uniform(*self._pause)))
            if loop.time() >= end:
                self._over = True
                return
            kinds = list(self._weights)
            kind = self._random.choices(kinds, [self._weights[each] for each in kinds])[0]
            self.counts[kind] += 1
            self._clusters[0].trace.note(f"fault: {kind}")
            self._clusters[0].start_work(self._kinds[kind]())

    async def _last(self) -> bool:
        """Let a fault last; False when all is healed already."""
        await asyncio.sleep(self._random.uniform(*self._lasts))
        return not self._over

    def _region(self) -> RegionCluster:
        return self._random.choice(self._clusters)

    def _two(self) -> tuple[ReplicatorMember, ReplicatorMember]:
        one, other = self._random.sample(self._clusters, 2)
        return self._random.choice(one.replicators), self._random.choice(other.replicators)

    async def _cut_off(self) -> None:
        """A region hears nothing of the others, and they nothing of it."""
        region, links = self._region(), self._network.weather.cut
        others = [member for cluster in self._clusters if cluster is not region for member in cluster.replicators]
        pairs = [(one.name, other.name) for one in region.replicators for other in others]
        cut = {pair for one, other in pairs for pair in ((one, other), (other, one))}
        links |= cut
        await self._last()
        links -= cut

    async def _refuse(self) -> None:
        """One region cannot call another one, which can call it."""
        one, other = self._random.sample(self._clusters, 2)
        refused = {(caller.name, called.name) for caller in one.replicators for called in other.replicators}
        self._network.refused |= refused
        await self._last()
        if not self._over:
            self._network.refused -= refused

    async def _slow_link(self) -> None:
        one, other = self._two()
        self._network.slow_link(one.name, other.name, self._random.choice((0.1, 0.5, 3.0)))
        if await self._last():
            self._network.slow_link(one.name, other.name, 0.0)

    async def _late_copies(self) -> None:
        self._network.repeat_share_of_calls = self._random.choice((0.1, 0.5))
        if await self._last():
            self._network.repeat_share_of_calls = 0.0

    async def _kill_replicator(self) -> None:
        await self._random.choice(self._region().replicators).crash(power_lost=self._random.random() < 0.3)

    async def _stop_replicator(self) -> None:
        """It wakes up with what it was about to send."""
        process = self._random.choice(self._region().replicators).process
        if process is not None:
            process.stop()
            await self._last()
            process.resume()

    async def _kill_region(self) -> None:
        for member in self._region().members:
            await member.crash()

    async def _lose_power(self) -> None:
        for member in self._region().members:
            await member.crash(power_lost=True)

    async def _wrong_clocks(self) -> None:
        off = self._random.uniform(-CLOCKS_APART, CLOCKS_APART)
        for member in self._region().members:
            member.clock.skew = off
