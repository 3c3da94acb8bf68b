"""How a partition's replicas are replaced: one change at a time, from the newest membership that its leader reports.

A change adds a replica and names those that leave; the leader's node makes it a learner and then a voter. Of a lost
replica a log replica takes the place within seconds, where its zone has two nodes to spare, and then a full one; until
that votes, the lost one is kept in the record, and takes its place again if its node returns. The log replica then
stands in for another voter that was lost meanwhile. Nothing is given up before three full replicas vote without it.
What an operator's order left with fewer gets more, one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autoadmin.actions import AddReplica, ChangeLeaving, Step
from autoadmin.plans.situation import VOTERS, Situation, choose, left
from autoadmin.view import LeaderSeen
from cluster.topology import MembershipChange, Partition, ReplicaPlace

STAND_INS_PER_REBUILD = 4
"""So many log replicas are made at once for each full one that may be: they copy the log's end alone."""

URGENCY = (MembershipChange.REPLACE, MembershipChange.DRAIN, MembershipChange.ZONE)


@dataclass
class Budget:
    """How much more may be begun now, over the whole cluster, and what has just been promised to nodes."""

    rebuilds: int
    stand_ins: int
    planned: Counter[int]

    @classmethod
    def of(cls, situation: Situation) -> Budget:
        """What the rules allow, without what is under way."""
        under_way = [partition for partition in situation.active if situation.is_under_way(partition)]
        stand_ins = sum(_is_stand_in(situation, partition) for partition in under_way)
        allowed = situation.rules.rebuilds_at_once
        rebuilds = allowed - (len(under_way) - stand_ins)
        return cls(rebuilds, allowed * STAND_INS_PER_REBUILD - stand_ins, Counter())

    def take(self, step: AddReplica, full_on: int = 0) -> bool:
        """Whether there is room for the step; then it is taken. `full_on`: the node that a log replica leaves to the
        full one that follows it."""
        if (self.stand_ins if step.log_only else self.rebuilds) <= 0:
            return False
        if step.log_only:
            self.stand_ins -= 1
        else:
            self.rebuilds -= 1
        self.planned[full_on or step.node] += 1
        return True

    def recall(self) -> bool:
        """Whether there is room for one more that is brought up to date where it is; then it is taken."""
        if self.rebuilds <= 0:
            return False
        self.rebuilds -= 1
        return True


def _is_stand_in(situation: Situation, partition: Partition) -> bool:
    """Whether what joins the partition is a log replica."""
    leader = situation.leaders.get(partition.id)
    voters = leader.voters if leader is not None else ()
    joining = [place for place in partition.wanted_voters if place.replica not in voters]
    return bool(joining) and all(place.log_only for place in joining)


def plan_members(situation: Situation, budget: Budget) -> Iterator[Step]:
    """The next steps of changes under way, then new changes, the most urgent first."""
    idle: list[tuple[Partition, LeaderSeen]] = []
    standing_in: list[tuple[Partition, LeaderSeen]] = []
    for partition in situation.active:
        leader = situation.settled_leader(partition)
        if leader is None or not _knows(partition, leader.voters):
            continue
        wanted = partition.wanted_voters
        if any(place.replica not in leader.voters for place in wanted):
            if (leaving := _redirected(situation, partition, leader)) is not None:
                yield ChangeLeaving(partition.id, leaving)
        elif len(wanted) == len(leader.voters):
            if any(place.log_only for place in wanted):
                standing_in.append((partition, leader))
            elif not partition.leaving:
                idle.append((partition, leader))
    for partition, leader in standing_in:
        if (returned := _returned(situation, partition, leader)) is not None:
            yield ChangeLeaving(partition.id, _all_but(partition, returned))
            continue
        step = _after_stand_in(situation, partition, budget)
        if step is not None and (budget.recall() if isinstance(step, ChangeLeaving) else budget.take(step)):
            yield step
    yield from _more(situation, [partition for partition, _ in idle], budget)
    yield from _begun(situation, [partition for partition, _ in idle], budget)


def _knows(partition: Partition, voters: Iterable[int]) -> bool:
    return all(partition.replica(voter) is not None for voter in voters)


def _all_but(partition: Partition, staying: Iterable[int]) -> tuple[int, ...]:
    """Everyone else in the record."""
    kept = set(staying)
    return tuple(place.replica for place in partition.replicas if place.replica not in kept)


def _redirected(situation: Situation, partition: Partition, leader: LeaderSeen) -> tuple[int, ...] | None:
    """Who is to leave instead, while replicas are joining, if the change has lost its reason or its target.

    None: go on. What votes now is always a way back.
    """
    joining = [place for place in partition.wanted_voters if place.replica not in leader.voters]
    if (returned := _returned(situation, partition, leader)) is not None:
        leaving = _all_but(partition, returned)
    elif any(_is_in_vain(situation, partition, place) for place in joining):
        leaving = _all_but(partition, leader.voters)
    else:
        return None
    return leaving if set(leaving) != set(partition.leaving) else None


def _is_in_vain(situation: Situation, partition: Partition, joining: ReplicaPlace) -> bool:
    """Whether a replica that is joining is to be given up. On a node that is to be emptied it may be the last resort
    of a partition where a log replica stands in."""
    if not situation.is_draining(joining):
        return situation.is_lost(joining)
    stand_ins = [place.replica for place in partition.replicas if place.log_only and place.replica in partition.leaving]
    return (
        situation.is_lost(joining)
        or joining.log_only
        or not stand_ins
        or bool(left(situation, partition, (joining.replica, *stand_ins)))
    )


def _returned(situation: Situation, partition: Partition, leader: LeaderSeen) -> list[int] | None:
    """The voters to have once the node of the replaced replica has returned, or is not to be emptied any longer; None
    as long as it has not.

    Of those that stay some may have been lost meanwhile: log replicas, which are made already, then stand in for them.
    """
    if partition.change not in (MembershipChange.REPLACE, MembershipChange.DRAIN):
        return None
    back = [
        place
        for place in partition.replicas
        if place.replica in partition.leaving and _was_there(partition, place) and situation.is_usable(place)
    ]
    voters = [place for place in partition.replicas if place.replica in leader.voters and place not in back]
    staying = [place for place in voters if _is_full(place)]
    if lost := [place for place in staying if situation.is_lost(place)]:
        made = (*voters, *partition.wanted_voters)  # those that vote first
        stand_ins = list(dict.fromkeys(p for p in made if not _is_full(p) and situation.is_usable(p)))
        staying = [*(place for place in staying if place not in lost), *stand_ins[: len(lost)]]
    wanted = [*staying, *back]
    if not back or len(wanted) != len(leader.voters):
        return None
    return [place.replica for place in wanted]


def _is_full(place: ReplicaPlace) -> bool:
    return not place.log_only


def _was_there(partition: Partition, place: ReplicaPlace) -> bool:
    """Whether this leaving replica is the one that is replaced, and not one that came for it: those have higher ids."""
    first = min((other.replica for other in partition.replicas if other.replica in partition.leaving), default=0)
    return place.replica == first and not place.log_only


def _after_stand_in(situation: Situation, partition: Partition, budget: Budget) -> AddReplica | ChangeLeaving | None:
    """What follows once a log replica votes and the replaced one is not back: a full replica in its place. One that
    was begun and given up, as its node was away, is gone on with rather than a new one; in a zone that another voter is
    in, only where no node is free."""
    stand_ins = tuple(place.replica for place in partition.wanted_voters if place.log_only)
    staying = {place.zone for place in partition.wanted_voters if not place.log_only}
    begun = [
        place
        for place in partition.replicas
        if place.replica in partition.leaving and _is_full(place) and situation.is_usable(place)
    ]
    apart = [place for place in begun if place.zone not in staying]
    nodes = choose(situation, partition, stand_ins, budget.planned, last_resort=True)
    if apart or (begun and not nodes):
        wanted = [place.replica for place in partition.wanted_voters if place.replica != stand_ins[0]]
        return ChangeLeaving(partition.id, _all_but(partition, [*wanted, (apart or begun)[0].replica]))
    if nodes:
        return AddReplica(partition.id, nodes[0], (*partition.leaving, *stand_ins), MembershipChange.REPLACE)
    return None


def _more(situation: Situation, idle: list[Partition], budget: Budget) -> Iterator[AddReplica]:
    """One replica more for each partition that has too few, as after `trizone node recover --unsafe`."""
    for partition in [partition for partition in idle if len(partition.wanted_voters) < VOTERS]:
        for node in choose(situation, partition, (), budget.planned)[:1]:
            step = AddReplica(partition.id, node, (), MembershipChange.NONE)
            if budget.take(step):
                yield step


def _begun(situation: Situation, idle: list[Partition], budget: Budget) -> Iterator[Step]:
    """New changes of partitions where none is under way."""
    begun: set[int] = set()
    for change in URGENCY:
        if change is MembershipChange.DRAIN and not situation.health.draining:
            continue
        for partition in idle:
            if partition.id in begun or (leaving := _to_go(situation, partition, change)) is None:
                continue
            nodes = _targets(situation, partition, leaving, change, budget)
            if not nodes:
                continue
            stands_in = change is MembershipChange.REPLACE and len(nodes) > 1
            node = nodes[1] if stands_in else nodes[0]
            step = AddReplica(partition.id, node, (leaving.replica,), change, log_only=stands_in)
            if budget.take(step, full_on=nodes[0]):
                begun.add(partition.id)
                yield step


def _to_go(situation: Situation, partition: Partition, change: MembershipChange) -> ReplicaPlace | None:
    """The replica that is to go, if there is such a change to make."""
    wanted = partition.wanted_voters
    if change is MembershipChange.REPLACE:
        return next((place for place in wanted if situation.is_lost(place)), None)
    if change is MembershipChange.DRAIN:
        return next((place for place in wanted if situation.is_draining(place)), None)
    if len({place.zone for place in wanted}) == len(wanted):
        return None
    zones = Counter(place.zone for place in wanted)
    if not all(situation.is_usable(place) for place in wanted):
        return None
    shared = [place for place in wanted if zones[place.zone] > 1]
    return max(shared, key=lambda place: (situation.loads[place.node], place.replica))


def _targets(
    situation: Situation, partition: Partition, leaving: ReplicaPlace, change: MembershipChange, budget: Budget
) -> list[int]:
    """Nodes that may take the place of the leaving replica, best first. Of a lost one a log replica takes it for a
    start, if there are two: on the second, as the full one is to come to the first."""
    nodes = choose(situation, partition, (leaving.replica,), budget.planned)
    if change is not MembershipChange.ZONE:
        return nodes
    taken = {place.zone for place in partition.wanted_voters}
    return [node for node in nodes if situation.topology.nodes[node].zone not in taken]
