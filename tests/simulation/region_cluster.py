"""Clusters of several regions over one network: their replicators, and the links between these, where requests also
come late and twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

from google.protobuf.message import DecodeError

from cluster.settings import ReplicatorSettings
from cluster.transport import TransportError
from cluster.wire import regions_pb2
from replicator.service import Replicator
from tests.simulation.cluster import CLUSTER_ID, Member, Place, SimulatedCluster
from tests.simulation.shape import Shape
from tests.simulation.simulated_machine import SimulatedClock
from tests.simulation.simulated_network import CONNECT_SECONDS, SimulatedNetwork, SimulatedTransport
from tests.simulation.simulated_process import Process
from tests.simulation.trace import Trace

REPLICATOR_PORT: Final = 7300
LATE_SECONDS: Final = 12.0
"""A second copy of a request comes so much later at the most."""
REPEATED: Final = ("Regions/Apply", "Regions/Mend")


class CoarseClock(SimulatedClock):
    """Its calendar moves on in steps of `grain` seconds, so that stamps of different regions meet."""

    grain = 0.0

    def wall(self) -> float:
        """The calendar as this machine believes it."""
        now = super().wall()
        return now - now % self.grain if self.grain else now


class RegionsNetwork(SimulatedNetwork):
    """The network of all regions. `refused`: calls from one machine to another that fail, although they would be
    answered the other way. `echoes`: changes that were sent by a region in which they were not made."""

    def __init__(self, random: Random, trace: Trace) -> None:
        super().__init__(random, trace)
        self.refused: set[tuple[str, str]] = set()
        self.repeat_share_of_calls = 0.0
        self.is_watched = False
        """Whether changes are looked at: no region is being filled."""
        self.echoes: list[str] = []

    def transport(self, machine: str) -> SimulatedTransport:
        """The network as one life of a process on this machine sees it."""
        return _ReplicatorTransport(self, machine) if "replicator" in machine else super().transport(machine)

    def mend(self) -> None:
        """All links work again."""
        super().mend()
        self.refused.clear()
        self.repeat_share_of_calls = 0.0

    def sent(self, source: str, target: str, method: str, content: bytes, *, lost: bool) -> None:
        """Count and note a message, and look at what it carries."""
        super().sent(source, target, method, content, lost=lost)
        if self.is_watched and method == "Regions/Apply":
            request = regions_pb2.ApplyRequest()
            with suppress(DecodeError):  # of an answer
                request.ParseFromString(content)
            if source.startswith(f"{request.table.region}."):
                self.echoes += [
                    f"{source} sends {target} a change of {row.region} on: {row.key.hex()} at stamp {row.stamp}"
                    for row in request.rows
                    if row.region != request.table.region
                ]


class _ReplicatorTransport(SimulatedTransport):
    """Of a replicator, whose calls to other regions may be refused, or arrive once more much later."""

    _network: RegionsNetwork

    async def call(self, address: str, method: str, message: bytes, timeout: float) -> bytes:  # noqa: ASYNC109
        """One request and its answer."""
        network = self._network
        if method.startswith("Regions/") and (self._machine, address.rpartition(":")[0]) in network.refused:
            await asyncio.sleep(CONNECT_SECONDS)
            raise TransportError(f"{address} refuses to be called")
        if method in REPEATED and network.random.random() < network.repeat_share_of_calls:
            late = asyncio.get_running_loop().time() + network.random.uniform(0.0, LATE_SECONDS)
            network.later(late, self._call_again, address, method, message)
        return await super().call(address, method, message, timeout)

    def _call_again(self, address: str, method: str, message: bytes) -> None:
        server = self._network.server_at(address)
        if server is not None and method in server.handlers.unary:
            self._network.sent(self._machine, server.machine, f"{method} again", message, lost=False)
            server.answer(method, message).add_done_callback(lambda answered: answered.exception())


class ReplicatorMember(Member):
    """A replicator."""

    def __init__(self, cluster: RegionCluster, name: str, peers: Sequence[str], settings: Mapping[str, Any]) -> None:
        super().__init__(cluster, name)
        self.replicator: Replicator | None = None
        self._settings = ReplicatorSettings(
            cluster_id=CLUSTER_ID,
            region=cluster.place.region,
            name=name,
            listen=f"{name}:{REPLICATOR_PORT}",
            auto_admins=cluster.auto_admin_addresses,
            seeds=cluster.node_addresses,
            peers=tuple(peers),
            **settings,
        )

    def _begin(self, process: Process, transport: SimulatedTransport) -> None:
        self.replicator = Replicator(self._settings, transport, self.clock, self.seeded())
        process.start(self.replicator.start())

    @property
    def conflicts(self) -> int:
        """How many changes it has sent, in this life, that lost."""
        return sum(link.state.conflicts for link, _ in self.replicator._links.values()) if self.replicator else 0


class RegionCluster(SimulatedCluster):
    """The cluster of one region. `replicators`: how many each region has. `grain`: see CoarseClock."""

    def __init__(
        self,
        seed: int,
        folder: Path | None,
        region: str,
        regions: Sequence[str],
        network: RegionsNetwork,
        *,
        shape: Shape,
        silence: float,
        replicators: int,
        settings: Mapping[str, Any],
        grain: float = 0.0,
        skew: float = 10.0,
    ) -> None:
        place = Place(region, f"{region}.", tuple(regions))
        super().__init__(seed, folder, routers=1, shape=shape, silence=silence, place=place, network=network)
        peers = [
            f"{other}={name}:{REPLICATOR_PORT}"
            for other in regions
            if other != region
            for name in replicator_names(other, replicators)
        ]
        self.replicators = [
            ReplicatorMember(self, name, peers, settings) for name in replicator_names(region, replicators)
        ]
        self._set_clocks(grain, skew)

    def _set_clocks(self, grain: float, skew: float) -> None:
        """A region's machines keep about the same time, which may be as wrong as `skew` seconds."""
        random = self.random("clocks")
        off = random.uniform(-skew, skew)
        for member in self.members:
            clock = CoarseClock(
                skew=max(-skew, min(skew, off + random.uniform(-0.5, 0.5))) if skew else 0.0,
                drift=random.uniform(-0.001, 0.001) if skew else 0.0,
                boot_offset=random.uniform(0, 1e6),
            )
            clock.grain = grain
            member.clock = clock

    @property
    def members(self) -> list[Member]:
        """Every machine."""
        return [*super().members, *getattr(self, "replicators", ())]


def replicator_names(region: str, count: int) -> list[str]:
    """The names of a region's replicators."""
    return [f"{region}.replicator-{number}" for number in range(1, count + 1)]
