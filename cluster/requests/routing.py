"""Where a request goes, and what follows when it was not done there. Decisions only: time is an argument.

What a caller believes about leaders is a hint. It starts from the catalog's preferred leaders and is corrected by
refusals and by who answers. A request that was not done is sent again with the same operation id: at once as long as
there is news about where to go (at most `HOPS_MAX` times in a row), else after a pause that grows from 20 to 100 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from cluster.topology import Partition
from cluster.wire import common_pb2
from dynamo.errors import ApiError, unavailable

PAUSE_MIN = 0.020
PAUSE_MAX = 0.100
HOPS_MAX = 2
"""Tries in a row without a pause: with three replicas each of them has then been asked once."""
SUSPICION = 0.5
"""Seconds for which a node that broke its stream or fell silent is asked only if there is no other."""

UNANSWERED_SLACK = 64
"""By how many unanswered requests a node may be ahead of another before reads that any replica can do avoid it."""

_Reason = common_pb2.Refusal


@dataclass(frozen=True, slots=True)
class Again:
    """Send it again after `pause` seconds, to `node`, or wherever routing says then (0)."""

    node: int
    pause: float


@dataclass(frozen=True, slots=True)
class AwaitCatalog:
    """Get the newest catalog first. `schema_version`: what the table must have reached for a new plan; 0: only the
    partition map was wrong."""

    schema_version: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Trying again would not help."""

    error: ApiError


Next: TypeAlias = Again | AwaitCatalog | Fail


@dataclass(slots=True, kw_only=True)
class Tries:
    """How often one request was sent: in a row without a pause, and how many pauses it has made."""

    hops: int = 0
    pauses: int = 0

    def again(self, node: int, *, news: bool) -> Again:
        """Send it again: at once if there is `news` and not too often in a row, else after a pause."""
        if news and self.hops < HOPS_MAX:
            self.hops += 1
            return Again(node, 0.0)
        self.hops = 0
        pause = min(PAUSE_MAX, PAUSE_MIN * (1 << min(self.pauses, 3)))
        self.pauses += 1
        return Again(node, pause)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a refused request had been sent with."""

    schema_version: int
    epoch: int
    tries: Tries
    any_replica: bool = False


class Load(Protocol):
    """What a node has to do for this process."""

    @property
    def unanswered(self) -> Sized:
        """Requests that were sent and are not answered."""
        ...


class Routes:
    """What this process believes about leaders and nodes."""

    def __init__(self) -> None:
        self._leaders: dict[int, int] = {}  # partition → node
        self._epochs: dict[int, int] = {}  # partition → epoch, as refusals told it
        self._suspects: dict[int, float] = {}  # node → until when
        self._absent: dict[tuple[int, int], float] = {}  # (partition, node that has no replica of it) → until when

    def epoch(self, partition: int) -> int:
        """The partition's latest epoch that this process has heard of; 0: none."""
        return self._epochs.get(partition, 0)

    def leader_node(self, partition: Partition, now: float) -> int:
        """The node to ask for what only a leader does."""
        leader = self._leaders.get(partition.id)
        if leader is None:
            preferred = partition.replica(partition.preferred_leader)
            leader = preferred.node if preferred else partition.replicas[0].node
        if not (self._suspects or self._absent) or not self._avoided(partition.id, leader, now):
            return leader
        return self.next_node(partition, leader, now)

    def next_node(self, partition: Partition, after: int, now: float) -> int:
        """The member's node that follows `after` in the partition's order, one that is not avoided if there is one."""
        nodes = [place.node for place in partition.replicas]
        start = nodes.index(after) + 1 if after in nodes else 0
        ring = nodes[start:] + nodes[:start]
        return next((node for node in ring if not self._avoided(partition.id, node, now)), ring[0])

    def any_node(self, partition: Partition, loads: Mapping[int, Load], now: float) -> int:
        """The node to ask for what every replica can do. `loads` are the nodes that this process has a stream to.

        It is the leader's as long as that is not far behind the others. Leaders sit on all nodes, so that this is a
        fair share; the reads ride in the messages that go there anyway; and what a client has just written is there,
        where followers learn of it a beat later.
        """
        leader = self.leader_node(partition, now)
        load = loads.get(leader)
        if load is None or len(load.unanswered) <= UNANSWERED_SLACK:
            return leader
        return self._idlest(partition, leader, len(load.unanswered), loads, now)

    def _idlest(self, partition: Partition, leader: int, owed: int, loads: Mapping[int, Load], now: float) -> int:
        """The node that owes this process least, unless the leader's owes not much more."""
        best, least = leader, owed
        for place in partition.replicas:
            load = loads.get(place.node)
            owes = len(load.unanswered) if load is not None else 0
            if owes < least and not self._avoided(partition.id, place.node, now):
                best, least = place.node, owes
        return best if owed > 2 * least + UNANSWERED_SLACK else leader

    def _avoided(self, partition: int, node: int, now: float) -> bool:
        """Whether the node is suspected, or said lately that it has no replica of this partition."""
        return self.suspected(node, now) or _until(self._absent, (partition, node), now)

    def suspected(self, node: int, now: float) -> bool:
        """Whether the node broke off lately."""
        return _until(self._suspects, node, now)

    def suspect(self, node: int, now: float) -> None:
        """The node broke its stream, could not be reached, or fell silent."""
        self._suspects[node] = now + SUSPICION
        for partition in [partition for partition, leader in self._leaders.items() if leader == node]:
            del self._leaders[partition]

    def heard(self, node: int) -> None:
        """The node answered."""
        if self._suspects:
            self._suspects.pop(node, None)

    def learn(self, partition: int, node: int, epoch: int = 0) -> bool:
        """`node` leads the partition, in `epoch` if told. False when that is older than what is known."""
        if epoch and not self.learn_epoch(partition, epoch):
            return False
        self._leaders[partition] = node
        return True

    def learn_epoch(self, partition: int, epoch: int) -> bool:
        """The partition has reached `epoch`. False when that is older than what is known."""
        if epoch < self._epochs.get(partition, 0):
            return False
        self._epochs[partition] = epoch
        return True

    def forget_epoch(self, partition: int) -> None:
        """Take what the replicas say of epochs from now on."""
        self._epochs.pop(partition, None)

    def absent(self, partition: int, node: int, now: float) -> None:
        """`node` has no replica of the partition, whatever the map says: its disk is new, or it is not that far yet."""
        self._absent[partition, node] = now + SUSPICION
        self.disbelieve(partition, node)

    def disbelieve(self, partition: int, node: int) -> None:
        """`node` does not lead the partition."""
        if self._leaders.get(partition) == node:
            del self._leaders[partition]


_Key = TypeVar("_Key")


def _until(times: dict[_Key, float], key: _Key, now: float) -> bool:
    """Whether `now` is before the key's time; forgets a time that has passed."""
    until = times.get(key)
    if until is None:
        return False
    if until > now:
        return True
    del times[key]
    return False


def after_refusal(
    routes: Routes, partition: Partition, node: int, refusal: common_pb2.Refusal, sent: Sent, now: float
) -> Next:
    """What to do with a request that `node` refused. Learns from the refusal."""
    match refusal.reason:
        case _Reason.NOT_LEADER:
            return _not_leader(routes, partition, node, refusal, sent, now)
        case _Reason.STALE_EPOCH:
            if refusal.leader_node == node:
                return _stale_epoch(routes, partition, node, refusal, sent, now)
            return _not_leader(routes, partition, node, refusal, sent, now)
        case _Reason.NOT_READY | _Reason.OVERLOADED if sent.any_replica:
            return sent.tries.again(routes.next_node(partition, node, now), news=True)
        case _Reason.NOT_READY:
            routes.learn(partition.id, node, refusal.epoch)
            return sent.tries.again(node, news=False)
        case _Reason.OVERLOADED:
            return sent.tries.again(node, news=False)
        case _Reason.NO_SUCH_PARTITION:
            routes.absent(partition.id, node, now)
            return AwaitCatalog(0)
        case _Reason.SCHEMA_CHANGED:
            if refusal.schema_version > sent.schema_version:
                return AwaitCatalog(refusal.schema_version)
            return sent.tries.again(node, news=False)  # the node has yet to take the change that this process has seen
        case _Reason.DISK_FULL:
            return Fail(unavailable("The storage nodes are short of disk space: only reads and deletes are served"))
        case _Reason.WRONG_CLUSTER:
            routes.suspect(node, now)  # another cluster's node has taken over the address
            return sent.tries.again(routes.next_node(partition, node, now), news=False)
    return sent.tries.again(0, news=False)


def after_break(routes: Routes, partition: Partition, node: int, tries: Tries, now: float) -> Next:
    """What to do with a request whose node broke the stream or fell silent: nobody knows whether it was done."""
    return tries.again(routes.next_node(partition, node, now), news=True)


def _not_leader(
    routes: Routes, partition: Partition, node: int, refusal: common_pb2.Refusal, sent: Sent, now: float
) -> Next:
    routes.disbelieve(partition.id, node)
    hint = refusal.leader_node
    if hint and hint != node and routes.learn(partition.id, hint, refusal.epoch) and not routes.suspected(hint, now):
        return sent.tries.again(hint, news=True)
    routes.learn_epoch(partition.id, refusal.epoch)
    return sent.tries.again(routes.next_node(partition, node, now), news=True)


def _stale_epoch(
    routes: Routes, partition: Partition, node: int, refusal: common_pb2.Refusal, sent: Sent, now: float
) -> Next:
    if routes.learn(partition.id, node, refusal.epoch):
        return sent.tries.again(node, news=refusal.epoch > sent.epoch)
    # Either this node is behind, or the epoch was one of a candidate that never won: let the replicas tell anew.
    routes.disbelieve(partition.id, node)
    routes.forget_epoch(partition.id)
    return sent.tries.again(routes.next_node(partition, node, now), news=True)
