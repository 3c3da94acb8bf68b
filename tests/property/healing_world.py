"""A cluster as auto-admin's planner sees it: nodes that die, return, are wiped and emptied, and partitions whose
members change step by step, as the catalog says. No bytes, no network; the rules of replication only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from autoadmin.actions import Action, AddReplica, ChangePartitions, ReleaseReplicas
from autoadmin.catalog import Catalog, Change, with_active_tables, with_node
from autoadmin.membership import with_draining
from autoadmin.performing import perform
from autoadmin.planner import Leaders, Rules, plan
from autoadmin.view import View
from cluster.topology import MembershipChange, NodePlace, Partition, PartitionState, Topology
from cluster.wire import common_pb2, node_pb2
from tests.unit.autoadmin_samples import create, nodes, sample_catalog, sample_table

Plan = Callable[[Topology, View, float, Rules], Sequence[Action]]


@dataclass(frozen=True)
class Members:
    """A committed membership."""

    version: int
    voters: tuple[int, ...]
    learners: tuple[int, ...] = ()
    old_voters: tuple[int, ...] = ()

    def sets(self) -> tuple[tuple[int, ...], ...]:
        return (self.voters, self.old_voters) if self.old_voters else (self.voters,)


@dataclass
class Copy:
    """A replica on a node's disk: what is in its log, and the membership that it knows."""

    replica: int
    log_only: bool
    written: int = 0
    members: Members = Members(0, ())
    behind: int = 0  # seconds of copying left


@dataclass
class Node:
    """A storage node and its disk."""

    place: NodePlace
    up: bool = True
    since: float = 0.0  # up, or down
    topology: Topology = field(default_factory=Topology)
    copies: dict[int, Copy] = field(default_factory=dict)

    def orders(self) -> set[int]:
        """Replicas that the node's copy of the catalog orders it to drop."""
        found = set()
        for partition in self.topology.partitions.values():
            found |= {order.replica for order in partition.dropping if order.node == self.place.id}
            if partition.state is PartitionState.DROPPED:
                found |= {place.replica for place in partition.replicas if place.node == self.place.id}
        return found


@dataclass
class Truth:
    """What the voters of a partition have agreed on."""

    members: Members
    log_only: set[int]
    leader: int = 0
    epoch: int = 0
    written: int = 0


class World:
    """Moves in steps of one second. Whatever must never be is asserted as it happens.

    `catch_up`: seconds that a learner needs to become like the others; a log replica needs one.
    """

    def __init__(
        self,
        random: Random,
        per_zone: int,
        partitions: int,
        rules: Rules,
        plan_with: Plan = plan,
        zones: str = "abc",
        catch_up: int = 7,
    ) -> None:
        self.random = random
        self.rules = rules
        self.now = 1_000.0
        self.view = View()
        self.catalog: Catalog = sample_catalog(nodes(per_zone, zones))
        self.nodes = {place.id: Node(place, since=self.now) for place in self.catalog.topology.nodes.values()}
        self.truths: dict[int, Truth] = {}
        self.events: list[str] = []
        self.added: list[AddReplica] = []
        self._plan = plan_with
        self._catch_up = catch_up
        self._next_node = 100
        leaders: Leaders = rules.leaders
        self.catalog = create(self.catalog, sample_table(), partitions, leaders)
        self._take(with_active_tables(self.catalog, {1}))
        for partition in self.catalog.topology.partitions.values():
            voters = tuple(place.replica for place in partition.replicas)
            self.truths[partition.id] = Truth(Members(1, voters), set())
            for place in partition.replicas:
                self.nodes[place.node].copies[partition.id] = Copy(place.replica, False, members=Members(1, voters))
        self.run(3)

    # --- what happens to it ---

    def kill(self, node: int) -> None:
        self._note(f"kill {node}")
        self.nodes[node].up, self.nodes[node].since = False, self.now
        self.view = self.view.without(node)

    def start(self, node: int) -> None:
        self._note(f"start {node}")
        self.nodes[node].up, self.nodes[node].since = True, self.now

    def wipe(self, node: int) -> int:
        """The node loses its disk and comes back as a new one under its name; the new one's id."""
        self._note(f"wipe {node}")
        self.view = self.view.without(node)
        old = self.nodes.pop(node)
        new = replace(old.place, id=self._next_node, version=0, draining=False)
        self._next_node += 1
        self.nodes[new.id] = Node(new, since=self.now)
        return new.id

    def grow(self, zone: str) -> int:
        """One more node; its id."""
        self._note(f"grow {zone}")
        place = NodePlace(
            self._next_node, f"{zone}{self._next_node}", "us-east-1", zone, f"127.0.0.1:{self._next_node}"
        )
        self._next_node += 1
        self.nodes[place.id] = Node(place, since=self.now)
        return place.id

    def drain(self, node: int, *, draining: bool = True) -> None:
        self._note(f"drain {node} {draining}")
        self._take(with_draining(self.catalog, node, draining=draining))

    def _note(self, event: str) -> None:
        self.events.append(f"{self.now:g} {event}")

    # --- time ---

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.tick()

    def tick(self) -> None:
        self.now += 1.0
        for partition in sorted(self.truths):
            self._replicate(partition)
        for node in sorted(self.nodes):
            if self.nodes[node].up:
                self._live(self.nodes[node])
        self._administer()

    def until(self, condition: Callable[[], bool], seconds: int) -> None:
        """Let time pass until `condition` holds; fails after so many seconds."""
        for _ in range(seconds):
            if condition():
                return
            self.tick()
        raise AssertionError(f"not reached in {seconds} s\n" + self.describe())

    def describe(self) -> str:
        lines = [*self.events, f"now {self.now:g}"]
        lines += [f"{node.place} up={node.up}" for node in self.nodes.values()]
        lines += [f"{partition}" for partition in self.catalog.topology.partitions.values()]
        lines += [f"{id_}: {truth}" for id_, truth in self.truths.items()]
        return "\n".join(lines)

    # --- auto-admin ---

    def _administer(self) -> None:
        for action in self._plan(self.catalog.topology, self.view, self.now, self.rules):
            if isinstance(action, ChangePartitions):
                for step in action.steps:
                    if isinstance(step, AddReplica):
                        self._check_added(step)
                        self.added.append(step)
                    elif isinstance(step, ReleaseReplicas):
                        self._check_released(step)
            self._take(perform(action, self.catalog))

    def _take(self, change: Change | None) -> None:
        if change is not None:
            self.catalog = self.catalog.after(change)

    def _check_added(self, step: AddReplica) -> None:
        partition = self.catalog.topology.partitions[step.partition]
        target = self.nodes.get(step.node)
        assert target is not None, self.describe()
        holders = {place.node for place in partition.replicas}
        if self.catalog.topology.nodes[step.node].draining:
            stands_in = any(place.log_only and place.replica in step.leaving for place in partition.replicas)
            assert stands_in, self.describe()
            assert all(
                node.draining or node.id in holders or self._may_be_lost(node.id)
                for node in self.catalog.topology.nodes.values()
            ), self.describe()
        assert not any(place.node == step.node for place in partition.replicas), self.describe()
        if step.change is MembershipChange.REPLACE:
            replaced = partition.replica(min(step.leaving))  # those that came for it and failed have higher ids
            assert replaced is not None, self.describe()
            known = self.catalog.topology.nodes.get(replaced.node)
            assert self._may_be_lost(replaced.node) or (known is not None and known.draining), self.describe()
        staying = [place for place in partition.wanted_voters if place.replica not in step.leaving]
        if target.place.zone in {place.zone for place in staying}:
            taken = {place.zone for place in staying}
            for node in self.nodes.values():
                if node.place.id in holders:
                    continue  # what it has goes only once there is another
                known = self.catalog.topology.nodes.get(node.place.id)
                if known is not None and not known.draining and node.place.zone not in taken:
                    assert not node.up or self.now - node.since < 10, self.describe()

    def _may_be_lost(self, node: int) -> bool:
        """Whether the node was away long enough, or its disk is gone."""
        found = self.nodes.get(node)
        return found is None or (not found.up and self.now - found.since >= self.rules.replace_after)

    # --- a node ---

    def _live(self, node: Node) -> None:
        """Take the catalog, if it comes through, do what it says, report."""
        if self.random.random() < 0.8:
            node.topology = self.catalog.topology
        if node.place.id not in self.catalog.topology.former_nodes:
            self._take(with_node(self.catalog, replace(node.place, version=0)))
        for partition in node.topology.partitions.values():
            self._obey(node, partition)
        heard = [other.place.id for other in self.nodes.values() if other.up and other is not node]
        self.view = self.view.with_report(
            node_pb2.Report(
                cluster_id="c1",
                node=common_pb2.NodeRecord(node=node.place.id),
                catalog_epoch=node.topology.epoch,
                catalog_version=node.topology.version,
                heard_nodes=heard,
                dropped_replicas=sorted(node.orders() - {copy.replica for copy in node.copies.values()}),
                replicas=[self._reported(partition, copy) for partition, copy in node.copies.items()],
            ),
            self.now,
        )

    def _obey(self, node: Node, partition: Partition) -> None:
        copy = node.copies.get(partition.id)
        place = partition.replica_on(node.place.id)
        if copy is None:
            if place is not None and partition.state is PartitionState.ACTIVE:
                behind = 1 if place.log_only else self._catch_up
                node.copies[partition.id] = Copy(place.replica, place.log_only, behind=behind)
            return
        for order in partition.dropping:
            if order.replica != copy.replica or order.node != node.place.id:
                continue
            known = copy.members
            votes = copy.replica in known.voters + known.old_voters
            if order.membership_version > known.version or (order.membership_version == known.version and not votes):
                members = self.truths[partition.id].members
                assert all(copy.replica not in each for each in members.sets()), self.describe()
                del node.copies[partition.id]

    def _check_released(self, step: ReleaseReplicas) -> None:
        """What is ordered to be dropped is no member, and a full one only when three others are."""
        truth = self.truths[step.partition]
        for replica in step.replicas:
            assert all(replica not in each for each in truth.members.sets()), self.describe()
            if replica not in truth.log_only:
                full = [voter for voter in truth.members.voters if voter not in truth.log_only]
                assert len(full) == 3, self.describe()

    def _reported(self, partition: int, copy: Copy) -> node_pb2.ReplicaReport:
        truth = self.truths[partition]
        leads = truth.leader == copy.replica
        members = truth.members if leads else copy.members
        return node_pb2.ReplicaReport(
            partition=partition,
            replica=copy.replica,
            role="leader" if leads else "follower",
            epoch=truth.epoch,
            serving=leads,
            membership_version=members.version,
            voters=members.voters,
            old_voters=members.old_voters,
            learners=members.learners,
            log_only=copy.log_only,
        )

    # --- a partition ---

    def holder(self, partition: int, replica: int) -> Node | None:
        """The node that has the replica on its disk."""
        for node in self.nodes.values():
            copy = node.copies.get(partition)
            if copy is not None and copy.replica == replica:
                return node
        return None

    def up_copy(self, partition: int, replica: int) -> Copy | None:
        """The replica, if its node is up."""
        node = self.holder(partition, replica)
        return node.copies[partition] if node is not None and node.up else None

    def live_full(self, partition: int, voters: Sequence[int]) -> int:
        """How many of these keep a state, on nodes that are up, and have all that was written."""
        copies = [self.up_copy(partition, voter) for voter in voters]
        return sum(copy is not None and not copy.log_only and copy.behind == 0 for copy in copies)

    def _has_majority(self, partition: int) -> bool:
        return all(
            sum(self.up_copy(partition, voter) is not None for voter in each) * 2 > len(each)
            for each in self.truths[partition].members.sets()
        )

    def _replicate(self, partition: int) -> None:
        """One second in the life of a partition: elect, write, bring others up to date, change members."""
        truth = self.truths[partition]
        if not self._has_majority(partition):
            truth.leader = 0
            return
        voters = sorted({voter for each in truth.members.sets() for voter in each})
        copies = {voter: copy for voter in voters if (copy := self.up_copy(partition, voter)) is not None}
        assert max(copy.written for copy in copies.values()) >= truth.written, "acknowledged writes are lost"
        able = [voter for voter, copy in copies.items() if not copy.log_only and copy.behind == 0]
        if not able:
            truth.leader = 0
            return
        self._elect(partition, truth, able)
        truth.written += 1
        for voter in (*voters, *truth.members.learners):
            if (copy := self.up_copy(partition, voter)) is not None:
                copy.behind = max(0, copy.behind - 1)
                copy.members = truth.members
                if copy.behind == 0 or copy.log_only:
                    copy.written = truth.written
        self._change(partition, truth)

    def _elect(self, partition: int, truth: Truth, able: Sequence[int]) -> None:
        """A leader, and the one that the leader's node should let lead."""
        if truth.leader not in able:
            truth.leader = self.random.choice(able)
            truth.epoch += 1
        node = self.holder(partition, truth.leader)
        assert node is not None
        record = node.topology.partitions.get(partition)
        if record is not None and record.preferred_leader in able and record.preferred_leader != truth.leader:
            truth.leader = record.preferred_leader
            truth.epoch += 1

    def _change(self, partition: int, truth: Truth) -> None:
        """The leader's next step from what is to what its copy of the catalog wants; once in a while it is slow."""
        node = self.holder(partition, truth.leader)
        assert node is not None
        record = node.topology.partitions.get(partition)
        if record is None or self.random.random() < 0.2:
            return
        members = truth.members
        after = _next(members, record, lambda replica: self._is_caught_up(partition, replica))
        if after == members:
            return
        if after.old_voters and not members.old_voters:  # from there it goes on by itself, whatever happens
            self._check_changed(partition, members, after)
        truth.members = replace(after, version=members.version + 1)
        truth.log_only |= {place.replica for place in record.replicas if place.log_only}

    def _is_caught_up(self, partition: int, replica: int) -> bool:
        copy = self.up_copy(partition, replica)
        return copy is not None and copy.behind == 0 and copy.members.version == self.truths[partition].members.version

    def _check_changed(self, partition: int, before: Members, after: Members) -> None:
        """A change of voters never leaves fewer than two live full ones, and never two on a node."""
        live = self.live_full(partition, before.voters)
        assert self.live_full(partition, after.voters) >= min(2, live), self.describe()
        holders = [self.holder(partition, voter) for voter in after.voters]
        places = [holder.place.id for holder in holders if holder is not None]
        assert len(set(places)) == len(places), self.describe()
        assert len(after.voters) == 3, self.describe()


def _next(members: Members, record: Partition, caught_up: Callable[[int], bool]) -> Members:
    wanted = tuple(place.replica for place in record.wanted_voters)
    if members.old_voters:
        return replace(members, old_voters=())
    for learner in members.learners:
        if learner not in wanted:
            return replace(members, learners=tuple(other for other in members.learners if other != learner))
    for replica in wanted:
        if replica not in members.voters and replica not in members.learners:
            return replace(members, learners=(*members.learners, replica))
    if set(wanted) == set(members.voters):
        return members
    joining = [replica for replica in wanted if replica not in members.voters]
    if any(not caught_up(replica) for replica in joining):
        return members
    learners = tuple(learner for learner in members.learners if learner not in wanted)
    return replace(members, voters=wanted, old_voters=members.voters, learners=learners)
