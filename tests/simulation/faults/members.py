"""Nodes that come back empty, are drained, or hold a log that has rotted: their replicas are made anew elsewhere.

Disks are lost in one zone of a run alone (`Storm.unlucky_zone`), so that a majority of each partition keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from cluster.transport import UnaryHandler
from cluster.wire import admin_pb2
from tests.simulation.cluster import CLUSTER_ID
from tests.simulation.faults.disks import unlucky_node

if TYPE_CHECKING:
    from tests.simulation.faults.storm import Storm


async def wiped_disk(storm: Storm) -> None:
    """A machine gets a new disk: it is a new node in the place of the old one."""
    node = unlucky_node(storm)
    if node is None:
        return
    await node.crash(power_lost=True)
    if node.down:
        node.lose_disk()


async def flipped_bit_in_the_log(storm: Storm) -> None:
    """A bit of a log's segment turns over. Its node finds it at its next start, or the scrub does before; if it cannot
    start any more, its operator does what it says: it gets an empty folder."""
    node = unlucky_node(storm)
    if node is None:
        return
    segments = [name for name in node.disk.files() if name.endswith(".segment")]
    if not segments:
        return
    path = storm.random.choice(segments)
    node.disk.flip_bit(path, storm.random.randrange(node.disk.size_of(path)), storm.random.randrange(8))
    node.log_is_damaged = True
    if storm.random.random() < 0.6:
        await node.crash(power_lost=storm.random.random() < 0.5)


async def drain(storm: Storm) -> None:
    """A node is to be emptied, and after a while it is not. Only where its zone has another one."""
    zones = [node.zone for node in storm.cluster.nodes]
    spare = [node.name for node in storm.cluster.nodes if zones.count(node.zone) > 1]
    if not spare:
        return
    name = storm.random.choice(spare)
    if await change_node(storm, name, admin_pb2.NodeRequest.DRAIN):
        await storm.last(1.0, 8.0)
        storm.drained.add(name)


async def change_node(storm: Storm, name: str, change: int) -> bool:
    """Ask auto-admin to change a node, whether it has heard it."""
    member = storm.cluster.auto_admin
    if member.service is None or member.process is None or not member.service.serving:
        return False
    request = admin_pb2.NodeRequest(cluster_id=CLUSTER_ID, node=name)
    request.change = change  # type: ignore[assignment]
    answer: list[admin_pb2.NodeReply] = []

    async def ask(call: UnaryHandler) -> None:  # as by the network: whoever does not lead says so
        answer.append(admin_pb2.NodeReply.FromString(await call(request.SerializeToString())))

    asked = member.process.start(ask(member.service._handlers().unary["Admin/Nodes"]))
    await storm.cluster.until(lambda: asked.done() or not member.up, 2.0)
    return bool(answer) and not answer[0].not_leader


KINDS: Final[dict[str, Callable[[Storm], Coroutine[Any, Any, None]]]] = {
    "wiped disk": wiped_disk,
    "flipped bit in the log": flipped_bit_in_the_log,
    "drained node": drain,
}
