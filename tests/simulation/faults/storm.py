"""Faults of every kind, one after the other and overlapping, until told to stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from cluster.wire import admin_pb2
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import Member, NodeMember, SimulatedCluster
from tests.simulation.faults import disks, members, partitions

DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {
    "kill node": 4,
    "power loss": 3,
    "power loss while writing": 3,
    "kill while writing": 2,
    "clean stop": 1,
    "kill auto-admin": 1,
    "kill router": 2,
    "kill all nodes": 0.7,
    "power loss everywhere": 0.7,
    "isolate": 3,
    "two sides": 3,
    "split a node from the others": 3,
    "leader cut off with a router": 2,
    "leader cut off, its voter restarted": 1,
    "voter restarted beside its leader": 1,
    "leader cut off after handing over": 1,
    "leader hears late, then is not heard": 1,
    "voter restarted between two leaders": 1,
    "leader forgets, its witness is away": 1,
    "cut one way": 3,
    "cut a pair": 2,
    "broken connections": 3,
    "slow network": 2,
    "slow machine": 2,
    "stopped process": 3,
    "leader suspended with a router": 1,
    "slow disk": 2,
    "calendar jump": 1,
    "hand over": 2,
    "lost clients": 3,
    "full disk": 2,
    "failing disk": 2,
    "stalled disk": 2,
    "failed sync, then power loss": 1,
    "stop, then power loss": 1,
    "witness forgets what it could not sync": 1,
    "flipped bit in a snapshot": 1,
    "flipped bit in a row": 1,
    "wiped disk": 0.7,
    "flipped bit in the log": 0.7,
    "drained node": 1,
    "zone cut off": 2,
    "bridge": 1,
    "ring": 1,
    "deaf or mute": 2,
    "any links": 2,
    "mixed up messages": 3,
}
JUMP_MAX = 15.0
"""Calendars stay within 30 s of each other: operation ids are remembered for 90 s of a partition's own clock."""


class Storm:
    """Breaks things; what is down comes up again by itself after a while. `counts`: faults by kind."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        clients: Sequence[SimulatedClient],
        *,
        weights: Mapping[str, float] = DEFAULT_WEIGHTS,
        pause: tuple[float, float] = (0.2, 2.2),
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.cluster = cluster
        self._clients = list(clients)
        self._weights = weights
        self._pause = pause
        self.random: Random = cluster.random("storm")
        self.unlucky_zone = self.random.choice([node.zone for node in cluster.nodes])
        """The only zone whose disks lose something for good."""
        self.drained: set[str] = set()
        self.over = False
        self._back: dict[str, float] = {}
        self._kinds: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "kill node": self._kill_node,
            "power loss": self._power_loss,
            "power loss while writing": self._power_loss_while_writing,
            "kill while writing": self._kill_while_writing,
            "clean stop": self._clean_stop,
            "kill auto-admin": self._kill_auto_admin,
            "kill router": self._kill_router,
            "kill all nodes": self._kill_all_nodes,
            "power loss everywhere": self._power_loss_everywhere,
            "isolate": self._isolate,
            "two sides": self._two_sides,
            "split a node from the others": self._split,
            "leader cut off with a router": self._leader_cut_off,
            "leader cut off, its voter restarted": self._leader_cut_off_and_voter_restarted,
            "voter restarted beside its leader": self._voter_restarted_beside_its_leader,
            "leader cut off after handing over": self._leader_cut_off_after_handing_over,
            "leader hears late, then is not heard": self._leader_hears_late,
            "voter restarted between two leaders": self._voter_restarted_between_two,
            "leader forgets, its witness is away": self._leader_forgets,
            "cut one way": self._cut_one_way,
            "cut a pair": self._cut_a_pair,
            "broken connections": self._broken_connections,
            "slow network": self._slow_network,
            "slow machine": self._slow_machine,
            "slow way from a router": self._slow_way_from_router,
            "stopped process": self._stopped_process,
            "leader suspended with a router": self._leader_suspended,
            "slow disk": self._slow_disk,
            "calendar jump": self._calendar_jump,
            "hand over": self._hand_over,
            "lost clients": self._lost_clients,
        }
        for kinds in (disks.KINDS, members.KINDS, partitions.KINDS):
            self._kinds |= {name: partial(fault, self) for name, fault in kinds.items()}

    def add_client(self, client: SimulatedClient) -> None:
        """Another one, whose connections may break as well."""
        self._clients.append(client)

    async def run(self, seconds: float) -> None:
        """Break things for so long, then stop; `heal` is the caller's."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self.cluster.start_work(self._restart_what_is_down())
        try:
            while True:
                await asyncio.sleep(min(end - loop.time(), self.random.uniform(*self._pause)))
                if loop.time() >= end:
                    return
                kinds = list(self._weights)
                kind = self.random.choices(kinds, [self._weights[each] for each in kinds])[0]
                self.counts[kind] += 1
                self.cluster.trace.note(f"fault: {kind}")
                self.cluster.start_work(self._kinds[kind]())
        finally:
            self.over = True

    async def stop_draining(self, name: str) -> None:
        """Nodes that were drained may hold replicas again."""
        await members.change_node(self, name, admin_pb2.NodeRequest.UNDRAIN)

    async def heal(self) -> None:
        """Everything works again from now on."""
        while any(member.dying for member in self.cluster.members):  # noqa: ASYNC110  takes no time at all
            await asyncio.sleep(0)
        self.cluster.trace.note("healed")
        self.cluster.network.mend()
        for client in self._clients:
            client.loss = 0.0
        for member in self.cluster.members:
            if member.process is not None:
                member.process.resume()
        for node in self.cluster.nodes:
            node.disk.fault = None
            node.disk.capacity = None
            for executor in node.executors:
                executor.slowest = 0.002
                executor.resume()
        self.cluster.start()

    async def _restart_what_is_down(self) -> None:
        """As a supervisor would, after a while; at once when the storm is over: a failure of before may still end
        something."""
        loop = asyncio.get_running_loop()
        while not self.cluster.closed:
            await asyncio.sleep(0.05)
            for member in self.cluster.members:
                if not member.down:
                    self._back.pop(member.name, None)
                elif self.over or loop.time() >= self._back.setdefault(member.name, loop.time() + self._downtime()):
                    if isinstance(member, NodeMember) and member.needs_new_disk:
                        member.lose_disk()
                    member.start()

    def _downtime(self) -> float:
        return self.random.choice((0.05, self.random.uniform(0.1, 1.0), self.random.uniform(0.5, 4.0)))

    async def last(self, low: float, high: float) -> bool:
        """Let a fault last; False when the storm is over, and all is healed already."""
        await asyncio.sleep(self.random.uniform(low, high))
        return not self.over

    def node(self) -> NodeMember:
        """Any storage node."""
        return self.random.choice(self.cluster.nodes)

    def machine(self) -> Member:
        """Any machine."""
        return self.random.choice(self.cluster.members)

    # --- processes and machines ---

    async def _kill_node(self) -> None:
        await self.node().crash()

    async def _power_loss(self) -> None:
        await self.node().crash(power_lost=True)

    async def _power_loss_while_writing(self) -> None:
        self._crash_while_writing(power_lost=True)

    async def _kill_while_writing(self) -> None:
        self._crash_while_writing(power_lost=False)

    def _crash_while_writing(self, *, power_lost: bool) -> None:
        operation = self.random.choice(("write", "sync", "sync", "allocate"))
        self.node().crash_at(operation, self.random.randrange(20), power_lost=power_lost)

    async def _clean_stop(self) -> None:
        self.node().stop_cleanly()

    async def _kill_auto_admin(self) -> None:
        await self.cluster.auto_admin.crash()

    async def _kill_router(self) -> None:
        await self.random.choice(self.cluster.routers).crash()

    async def _kill_all_nodes(self) -> None:
        for node in self.cluster.nodes:
            await node.crash()

    async def _power_loss_everywhere(self) -> None:
        for node in self.cluster.nodes:
            await node.crash(power_lost=True)

    async def _stopped_process(self) -> None:
        process = self.machine().process
        if process is not None:
            process.stop()
            await self.last(0.2, self.random.choice((1.5, 4.0, 6.0)))
            process.resume()

    async def _leader_suspended(self) -> None:
        """Both wake up as if nothing had happened, and are told otherwise only after a while."""
        leader, router = self.leader(), self._router()
        if leader is None:
            return
        links, cut = self.cluster.network.weather.cut, self._around(leader, router)
        processes = [member.process for member in (leader, router) if member.process is not None]
        for process in processes:
            process.stop()
        links |= cut
        await self.last(0.8, 2.5)
        for process in processes:
            process.resume()
        await self.last(0.05, 0.5)
        links -= cut

    async def _slow_disk(self) -> None:
        nodes = self.random.sample(self.cluster.nodes, self.random.randint(1, len(self.cluster.nodes)))
        executors = [executor for node in nodes for executor in node.executors]
        slowest = self.random.choice((0.05, 0.5, 3.0))
        for executor in executors:
            executor.slowest = slowest
        await self.last(0.5, 4.0)
        for executor in executors:
            executor.slowest = 0.002

    async def _calendar_jump(self) -> None:
        self.machine().clock.skew = self.random.uniform(-JUMP_MAX, JUMP_MAX)

    async def _hand_over(self) -> None:
        self.node().hand_over_all()

    # --- the network ---

    async def _isolate(self) -> None:
        network, machine = self.cluster.network, self.machine()
        pairs = [(machine.name, other.name) for other in self.cluster.members if other is not machine]
        cut = {pair for first, second in pairs for pair in ((first, second), (second, first))}
        await self._cut(network.weather.cut, cut)

    async def _two_sides(self) -> None:
        """Some machines are cut off from the rest: most likely a router and nodes on either side."""
        names = [member.name for member in self.cluster.members]
        here = [name for name in names if self.random.random() < 0.5]
        there = [name for name in names if name not in here]
        cut = {pair for one in here for other in there for pair in ((one, other), (other, one))}
        await self._cut(self.cluster.network.weather.cut, cut)

    def leader(self) -> NodeMember | None:
        """A node that leads something."""
        return self.random.choice([node for node in self.cluster.nodes if node.leads] or [None])

    def _around(self, leader: NodeMember, router: Member) -> set[tuple[str, str]]:
        """Cuts a leader and a router off from all others: whoever asks there may be told what is no longer true."""
        here = {leader.name, router.name}
        there = [member.name for member in self.cluster.members if member.name not in here]
        return {pair for one in here for other in there for pair in ((one, other), (other, one))}

    def _router(self) -> Member:
        return self.random.choice(self.cluster.routers)

    async def _leader_cut_off(self) -> None:
        leader = self.leader()
        if leader is not None:
            await self._cut(self.cluster.network.weather.cut, self._around(leader, self._router()), 0.7, 1.6)

    async def _leader_cut_off_and_voter_restarted(self) -> None:
        """One follower seeks votes, as the leader is cut off from it; then the voter that kept the leader in office
        forgets all that it promised, and the leader does not hear of that. Nobody writes for a while before, so that
        the follower's log is as good as any."""
        leader, links = self.leader(), self.cluster.network.weather.cut
        if leader is None:
            return
        seeker, voter = self.random.sample([node for node in self.cluster.nodes if node is not leader], 2)
        quiet = await self._quieten()
        if await self._cut(links, {(leader.name, seeker.name), (seeker.name, leader.name)}, quiet - 0.1, quiet - 0.1):
            links |= (cut := self._around(leader, self._router()))
            await voter.crash()
            if voter.down:
                voter.start()
            await self.last(0.5, 1.5)
            links -= cut

    async def _voter_restarted_beside_its_leader(self) -> None:
        """The one follower that a leader can reach forgets that it follows, while the other seeks votes, and nobody
        writes: only what beats say of each partition tells the leader, and brings the follower back."""
        leader, links = self.leader(), self.cluster.network.weather.cut
        if leader is None:
            return
        seeker, voter = self.random.sample([node for node in self.cluster.nodes if node is not leader], 2)
        quiet = self.random.uniform(2.0, 3.0)
        for client in self._clients:
            client.be_quiet(quiet)
        if await self.last(0.05, 0.1):
            links |= (cut := {(leader.name, seeker.name), (seeker.name, leader.name)})
            await voter.crash()
            if voter.down:
                voter.start()
            await self.last(quiet, quiet + 0.5)
            links -= cut

    async def _leader_cut_off_after_handing_over(self) -> None:
        leader = self.leader()
        if leader is not None:
            leader.hand_over_all()
            if await self.last(0.002, 0.03):
                await self._cut(self.cluster.network.weather.cut, self._around(leader, self._router()), 0.3, 1.5)

    async def _leader_hears_late(self) -> None:
        """Answers to its beats, and later the news of its successor, take long to reach a leader."""
        leader = self.leader()
        if leader is None:
            return
        network, router, late = self.cluster.network, self._router(), self.random.uniform(0.3, 0.5)
        others = [node.name for node in self.cluster.nodes if node is not leader]
        for other in others:
            network.slow_link(other, leader.name, late)
        if await self.last(0.8, 1.2):
            heard = {(other, leader.name) for other in others}
            await self._cut(network.weather.cut, self._around(leader, router) - heard, 0.9, 1.6)
        for other in others:
            network.slow_link(other, leader.name, 0.0)

    async def _voter_restarted_between_two(self) -> None:
        """The voter hears both: the leader, of late, and the follower that seeks votes and does not hear the leader."""
        leader = self.leader()
        if leader is None:
            return
        network = self.cluster.network
        seeker, voter = self.random.sample([node for node in self.cluster.nodes if node is not leader], 2)
        links, cut = network.weather.cut, {(leader.name, seeker.name), (seeker.name, leader.name)}
        quiet = await self._quieten()
        links |= cut
        if await self.last(quiet - 0.1, quiet - 0.1):
            network.slow_link(leader.name, voter.name, self.random.uniform(0.2, 0.5))
            await voter.crash()
            if voter.down:
                voter.start()
            await self.last(1.0, 2.5)
        links -= cut
        network.slow_link(leader.name, voter.name, 0.0)

    async def _leader_forgets(self) -> None:
        """A leader loses what was not synced, while one follower has it and does not run, and the other never did."""
        leader = self.leader()
        if leader is None:
            return
        links = self.cluster.network.weather.cut
        witness, other = self.random.sample([node for node in self.cluster.nodes if node is not leader], 2)
        cut = {pair for node in (leader, witness) for pair in ((node.name, other.name), (other.name, node.name))}
        for executor in leader.executors:
            executor.slowest = 3.0
        if await self._cut(links, cut, 0.3, 0.6):
            process = witness.process
            if process is not None:
                process.stop()
            await leader.crash(power_lost=True)
            if leader.down:
                leader.start()
            await self.last(2.0, 4.0)
            if process is not None:
                process.resume()

    async def _quieten(self) -> float:
        """Let clients send nothing new for the time that is returned, of which a little has passed."""
        quiet = self.random.uniform(0.9, 1.5)
        for client in self._clients:
            client.be_quiet(quiet)
        await self.last(0.05, 0.1)
        return quiet

    async def _split(self) -> None:
        """Routers still reach it: a leader that does not know that it was deposed."""
        node = self.node()
        others = [other.name for other in self.cluster.nodes if other is not node]
        cut = {pair for other in others for pair in ((node.name, other), (other, node.name))}
        await self._cut(self.cluster.network.weather.cut, cut)

    async def _cut_one_way(self) -> None:
        source, target = self.random.sample(self.cluster.nodes, 2)
        others = self.random.random() < 0.5
        cut = {(source.name, target.name)}
        if others:
            cut = {(source.name, other.name) for other in self.cluster.nodes if other is not source}
        await self._cut(self.cluster.network.weather.cut, cut)

    async def _cut_a_pair(self) -> None:
        first, second = self.random.sample(self.cluster.members, 2)
        await self._cut(self.cluster.network.weather.cut, {(first.name, second.name), (second.name, first.name)})

    async def cut(self, pairs: set[tuple[str, str]]) -> None:
        """Cut these links, each in one direction, for a while."""
        await self._cut(self.cluster.network.weather.cut, pairs)

    async def _cut(
        self, links: set[tuple[str, str]], cut: set[tuple[str, str]], low: float = 0.3, high: float = 5.0
    ) -> bool:
        links |= cut
        goes_on = await self.last(low, high)
        links -= cut
        return goes_on

    async def _broken_connections(self) -> None:
        weather = self.cluster.network.weather
        weather.break_share = self.random.choice((0.002, 0.01, 0.05))
        await self.last(0.5, 4.0)
        weather.break_share = 0.0

    async def _slow_network(self) -> None:
        weather = self.cluster.network.weather
        weather.slow_share = self.random.choice((0.02, 0.2))
        weather.slow_max = self.random.choice((0.1, 0.4, 1.0))
        await self.last(0.5, 4.0)
        weather.slow_share = 0.0

    async def _slow_machine(self) -> None:
        network, machine = self.cluster.network, self.machine()
        network.slow_down(machine.name, self.random.choice((0.02, 0.1, 0.3)))
        if await self.last(0.5, 4.0):
            network.slow_down(machine.name, 0.0)

    async def _slow_way_from_router(self) -> None:
        """What it asks two nodes at once reaches one of them much later than the other."""
        network, router, node = self.cluster.network, self._router(), self.node()
        network.slow_link(router.name, node.name, self.random.uniform(0.05, 0.3))
        if await self.last(0.5, 4.0):
            network.slow_link(router.name, node.name, 0.0)

    async def _lost_clients(self) -> None:
        for client in self._clients:
            client.loss = self.random.choice((0.0, 0.1, 0.4))
        if await self.last(0.5, 4.0):
            for client in self._clients:
                client.loss = 0.0
