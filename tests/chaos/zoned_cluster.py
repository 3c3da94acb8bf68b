"""A cluster whose zones are network namespaces; the test is where its clients are, in the hub that joins them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.chaos.real_cluster import RealCluster, free_port
from tests.chaos.relay import Relay
from tests.chaos.zones import HUB_ADDRESS, Zones, require_zones
from tests.integration.launching import Up
from trizone.composition import zones_of
from trizone.data_directory import DataDirectory

REGION = "us-east-1"


class ZonedCluster(RealCluster):
    """`zones` cuts its links; `relays` has the one to each node of which that was asked for."""

    def __init__(self, data: Path, zones: Zones, *options: str, slow: tuple[str, ...] = ()) -> None:
        super().__init__(data, *options)
        self.zones = zones
        self.relays = {node: self._relay(node) for node in slow}

    def _relay(self, node: str) -> Relay:
        def target() -> tuple[str, int]:
            return self.zones.address(zone_of(node)), DataDirectory(self.data).ports()[node]["listen"]

        return Relay(HUB_ADDRESS, free_port(), target)

    async def start(self) -> None:
        """Start everything and wait until it is ready."""
        for relay in self.relays.values():
            await relay.start()
        network = self.data.with_suffix(".network.json")
        network.write_text(json.dumps(self._network()))
        options = ("--port", str(self.port), "--data", str(self.data), "--network", str(network), *self._options)
        self.up = Up(*options, command=[sys.executable, "-m", "tests.chaos.zoned_up"])
        await asyncio.to_thread(self.up.endpoint)

    async def stop(self) -> None:
        """Stop everything cleanly, over links that work, and wait until it is gone."""
        for zone in zones_of(REGION):
            self.zones.heal(zone)
        await super().stop()
        for relay in self.relays.values():
            await relay.stop()

    def _network(self) -> dict[str, object]:
        zones = {
            zone: {"namespace": self.zones.namespace(zone), "address": self.zones.address(zone)}
            for zone in zones_of(REGION)
        }
        advertised = {node: relay.address for node, relay in self.relays.items()}
        return {"hub": HUB_ADDRESS, "zones": zones, "advertised": advertised}


def zone_of(node: str) -> str:
    """The zone of a node, which is the beginning of its name."""
    return node.rpartition("-")[0]


@asynccontextmanager
async def zoned_cluster(data: Path, *options: str, slow: tuple[str, ...] = ()) -> AsyncIterator[ZonedCluster]:
    """A cluster in a network of its own, for as long as the block runs. Skips the test where that cannot be."""
    require_zones()
    zones = Zones(zones_of(REGION))
    try:
        zones.create()
        with zones.inside():
            cluster = ZonedCluster(data, zones, *options, slow=slow)
            try:
                await cluster.start()
                yield cluster
            finally:
                await cluster.stop()
    finally:
        zones.remove()
