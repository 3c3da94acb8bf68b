"""Nodes are lost for good, wiped, drained and removed while writers write; the cluster heals by itself."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from cluster.wire.admin_pb2 import NodeRequest
from tests.chaos.conftest import Report
from tests.chaos.http_client import HttpClient
from tests.chaos.load import Load, create_table, under_load, values_found
from tests.chaos.real_cluster import RealCluster, running_cluster, until
from tests.chaos.replicas import differing_replicas
from tests.integration.launching import finished
from trizone.nodes import NodeStatus, ask
from trizone.status import read_status
from trizone.users import settings_of

SEED = 20_262
WRITERS = 6
REPLACE_AFTER_S = 4
Harm = Callable[[RealCluster], Awaitable[str]]


async def _nodes(cluster: RealCluster) -> list[NodeStatus]:
    """What `trizone node list` shows; no process is started for it, as it is asked for again and again."""
    settings = settings_of(cluster.data, [])
    nodes, _ = await asyncio.to_thread(ask, settings, "", NodeRequest.NONE)
    return nodes


async def _healed(cluster: RealCluster, *, without: str = "") -> None:
    """Wait until every partition has three full replicas on live nodes, and the node of this name or id has none."""

    async def healed() -> bool:
        left = sum(node.replicas for node in await _nodes(cluster) if node.name == without)
        states = {partition.state for partition in (await asyncio.to_thread(read_status, cluster.data)).partitions}
        return left == 0 and states == {"ok"}

    await until(healed, f"all is whole without {without}")


async def _leading(cluster: RealCluster) -> NodeStatus:
    """The node that leads most."""
    return max(await _nodes(cluster), key=lambda node: (node.leaders, node.name))


async def _wipe(cluster: RealCluster, node: NodeStatus) -> None:
    """The node dies, its disk is empty when it comes back, and it fills itself again."""
    pid = cluster.pids()[node.name]
    shutil.rmtree(cluster.data / "nodes" / node.name)
    os.kill(pid, signal.SIGKILL)
    await cluster.replaced(node.name, pid)

    async def filled() -> bool:
        nodes = await _nodes(cluster)
        return all(each.id != node.id for each in nodes) and all(each.replicas for each in nodes)

    await until(filled, f"{node.name} has filled itself again, and its old id is forgotten")
    await _healed(cluster)


async def _lost_for_good(cluster: RealCluster) -> str:
    """A leader's node freezes, so that its supervisor does not start it again, and wakes when all is healed."""
    node = await _leading(cluster)
    pid = cluster.pids()[node.name]
    cluster.freeze([pid])
    await _healed(cluster, without=node.name)
    cluster.wake([pid])

    async def back() -> bool:
        return all(each.replicas for each in await _nodes(cluster))

    await until(back, f"{node.name} takes its share again")
    return node.name


async def _wiped(cluster: RealCluster) -> str:
    """A node dies and its disk is empty when it comes back."""
    node = await _leading(cluster)
    await _wipe(cluster, node)
    return node.name


async def _drained(cluster: RealCluster) -> str:
    """A node is emptied and forgotten."""
    name = (await _leading(cluster)).name
    held = await asyncio.to_thread(finished, "node", "remove", name, "--data", str(cluster.data))
    assert held.returncode == 1
    assert f"Node {name} still holds" in held.stderr
    drained = await asyncio.to_thread(finished, "node", "drain", name, "--data", str(cluster.data))
    assert drained.returncode == 0, drained.stderr
    await _healed(cluster, without=name)
    return name


async def _removed(cluster: RealCluster) -> str:
    """A drained node is forgotten. Only with an empty disk does it join again, as a new one."""
    (node,) = [node for node in await _nodes(cluster) if node.state == "draining"]

    async def removed() -> bool:  # once it has dropped what it held
        answer = await asyncio.to_thread(finished, "node", "remove", node.name, "--data", str(cluster.data))
        return answer.returncode == 0

    await until(removed, f"{node.name} is removed")
    assert node.name not in [each.name for each in await _nodes(cluster)]
    await _wipe(cluster, node)
    return node.name


@pytest.mark.timeout(240)
async def test_a_lost_node_and_a_drained_one_cost_no_acknowledged_write(tmp_path: Path, report: Report) -> None:
    await _harmed_under_load(tmp_path / "data", (_lost_for_good, _drained), report)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_drained_removed_lost_and_wiped_nodes_cost_no_acknowledged_write(tmp_path: Path, report: Report) -> None:
    await _harmed_under_load(tmp_path / "data", (_drained, _removed, _lost_for_good, _wiped), report)


async def _harmed_under_load(data: Path, harms: Sequence[Harm], report: Report) -> None:
    """One thing after the other is done to the cluster; each time it heals."""
    options = ("--nodes-per-zone", "2", "--replace-after", str(REPLACE_AFTER_S), "--leaders", "spread")
    async with running_cluster(data, *options) as cluster:
        reader = HttpClient("127.0.0.1", cluster.port, "reader", Random(SEED))
        await create_table(reader)
        load = Load()
        clients = [
            HttpClient("127.0.0.1", cluster.port, f"writer-{number}", Random(f"{SEED} {number}"))
            for number in range(WRITERS)
        ]
        drain_began = drain_ended = 0.0
        async with under_load(load, clients, SEED):
            for harm in harms:
                began = time.monotonic()
                name = await harm(cluster)
                ended = time.monotonic()
                report.say(f"healing: {name} {harm.__name__.strip('_')}, healed after {ended - began:.1f} s")
                if harm is _drained:
                    drain_began, drain_ended = began, ended
        items, counters = await values_found(reader)
        await reader.close()
        await cluster.whole()
    assert list(differing_replicas(data)) == []
    assert load.ledger.faults_of_items(items) == []
    assert load.ledger.faults_of_counters(counters) == []
    assert load.failed_between(drain_began, drain_ended) == []
    slowest = sorted(w.ended - w.began for w in load.acknowledged if drain_began < w.began < drain_ended)
    report.say(f"healing: of {len(slowest)} writes during the drain, p99 {slowest[len(slowest) * 99 // 100]:.3f} s")
    assert len(load.ledger.acknowledged) > WRITERS
