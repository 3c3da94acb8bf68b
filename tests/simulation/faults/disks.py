"""Faults of disks: full, failing, stalled, forgetting, damaged.

What loses something for good (wiped disks, flipped bits) happens in one zone of a run alone: a majority of each
partition keeps its disk, which is what the promise rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from cluster.topology import PartitionState
from storagenode.hosted import HostedReplica
from storagenode.storage import layout
from storagenode.storage.lmdb_store import LmdbStore
from tests.simulation.checkers.replicas import replicas_of, topology_of

if TYPE_CHECKING:
    from tests.simulation.cluster import NodeMember
    from tests.simulation.faults.storm import Storm


async def full_disk(storm: Storm) -> None:
    """Some nodes have no room left, or hardly any."""
    nodes = storm.random.sample(storm.cluster.nodes, storm.random.choice((1, 1, 1, 2, len(storm.cluster.nodes))))
    for node in nodes:
        node.disk.fill(storm.random.choice((0, 5_000, 100_000)))
    if await storm.last(1.0, 6.0):
        for node in nodes:
            node.disk.capacity = None


async def failing_disk(storm: Storm) -> None:
    """A disk answers with EIO, once or for a while. The node ends, and comes back again and again."""
    node = storm.node()
    operation = storm.random.choice(("sync", "sync", "write", "read"))
    node.fail_at(operation, storm.random.randrange(20), lasting=storm.random.random() < 0.3)
    if await storm.last(0.5, 5.0):
        node.disk.fault = None


async def stalled_disk(storm: Storm) -> None:
    """Nothing that a node asks of its disk ends for a while, up to 10 s; or only its log stands still: it goes on to
    answer heartbeats, and cannot write."""
    node = storm.node()
    executors = node.executors if storm.random.random() < 0.5 else node.executors[:1]
    seconds = storm.random.choice((1.5, 4.0, 10.0))
    for executor in executors:
        executor.stall()
    await storm.last(seconds, seconds)
    for executor in executors:
        executor.resume()


async def failed_sync_then_power_loss(storm: Storm) -> None:
    """A sync fails; what it should have brought to the platter seems to be there until power is lost."""
    node = storm.node()
    node.fail_at("sync", storm.random.randrange(5), lasting=False)
    await storm.last(0.3, 1.5)
    node.disk.fault = None
    if node.down:
        node.start()
        await storm.last(0.05, 1.0)
    await node.crash(power_lost=True)


async def stop_then_power_loss(storm: Storm) -> None:
    """A node stops cleanly, and then its machine loses power: what it said to be whole has to be."""
    node = storm.node()
    node.stop_cleanly()
    if await storm.cluster.until(lambda: node.down or storm.over, 4.0) and node.down:
        storm.cluster.trace.note(f"{node.name}, stopped, loses power")
        node.lose_power()


async def witness_forgets(storm: Storm) -> None:
    """A follower fails to sync, is started again, and counts what it finds; it alone has that beside the leader, which
    is cut off right after the follower's machine lost its power. The third, which missed it all, is heard again."""
    leader = storm.leader()
    if leader is None:
        return
    links = storm.cluster.network.weather.cut
    witness, other = storm.random.sample([node for node in storm.cluster.nodes if node is not leader], 2)
    missed = {pair for node in (leader, witness) for pair in ((node.name, other.name), (other.name, node.name))}
    links |= missed
    await storm.last(0.05, 0.2)
    witness.fail_at("sync", 0, lasting=False)
    if await storm.cluster.until(lambda: witness.down, 1.0) and not storm.over:
        witness.disk.fault = None
        witness.start()
        await storm.last(0.2, 0.7)
        await witness.crash(power_lost=True)
        others = [member.name for member in storm.cluster.members if member is not leader]
        alone = {pair for name in others for pair in ((leader.name, name), (name, leader.name))}
        links -= missed
        links |= alone
        if witness.down:
            witness.start()
        await storm.last(2.0, 3.5)
        links -= alone
    witness.disk.fault = None
    links -= missed


async def flipped_bit_in_a_snapshot(storm: Storm) -> None:
    """A bit of a snapshot turns over while nobody looks; then its node needs it."""
    node = unlucky_node(storm)
    if node is None:
        return
    names = [name for name in node.disk.files() if "/snapshots/" in name]
    if not names:
        return
    path = storm.random.choice(names)
    if size := node.disk.size_of(path):
        node.disk.flip_bit(path, storm.random.randrange(size), storm.random.randrange(8))
    if storm.random.random() < 0.6:
        await node.crash(power_lost=True)


async def flipped_bit_in_a_row(storm: Storm) -> None:
    """A bit of an item's row turns over, in the store of a replica that goes on running."""
    node = unlucky_node(storm)
    if node is None:
        return
    stores = [hosted.store for hosted in node.hosted_all() if isinstance(hosted.store, LmdbStore)]
    if not stores:
        return
    store, end = storm.random.choice(stores), layout.prefix_end(layout.ITEM)
    with closing(store.rows(layout.ITEM, end)) as rows:
        found = [key for key, _ in islice(rows, 50)]
    if not found:
        return
    key = storm.random.choice(found)
    with store._environment.begin(write=True) as writing:
        value = bytearray(writing.get(key) or b"?")
        value[storm.random.randrange(len(value))] ^= 1 << storm.random.randrange(8)
        writing.put(key, bytes(value))


def unlucky_node(storm: Storm) -> NodeMember | None:
    """A node of the one zone whose disks may lose something for good; None while a majority of some partition may be
    there. Replicas come to a zone that has one already when their own has no node left for as long as it takes."""
    if any(_is_at_risk(storm, partition, members) for partition, members in replicas_of(storm.cluster).items()):
        return None
    return storm.random.choice([node for node in storm.cluster.nodes if node.zone == storm.unlucky_zone])


def _is_at_risk(storm: Storm, partition: int, members: list[HostedReplica]) -> bool:
    """Whether the zone's voters, lost ones included, are half of those that have to agree, or more."""
    record = topology_of(storm.cluster).partition(partition)
    if record is None or record.state is not PartitionState.ACTIVE:
        return False
    places = {place.replica: place.zone for place in record.replicas}
    newest = max((hosted.replica.membership for hosted in members), key=lambda membership: membership.version)
    return any(
        2 * sum(places.get(voter, storm.unlucky_zone) == storm.unlucky_zone for voter in voters) >= len(voters) > 0
        for voters in newest.sets()
    )


KINDS: Final[dict[str, Callable[[Storm], Coroutine[Any, Any, None]]]] = {
    "full disk": full_disk,
    "failing disk": failing_disk,
    "stalled disk": stalled_disk,
    "failed sync, then power loss": failed_sync_then_power_loss,
    "stop, then power loss": stop_then_power_loss,
    "witness forgets what it could not sync": witness_forgets,
    "flipped bit in a snapshot": flipped_bit_in_a_snapshot,
    "flipped bit in a row": flipped_bit_in_a_row,
}
