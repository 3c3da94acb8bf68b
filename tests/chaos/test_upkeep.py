"""What operators do while clients work: every process is restarted, every node is emptied. No request fails."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.chaos.conftest import Report
from tests.chaos.real_cluster import RealCluster, running_cluster, until
from tests.chaos.trial import Trial
from tests.integration.launching import finished
from trizone.status import read_status

SEED = 20_268
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


async def node_command(cluster: RealCluster, action: str, node: str) -> None:
    """`trizone node drain` or `undrain`."""
    done = await asyncio.to_thread(finished, "node", action, node, "--data", str(cluster.data))
    assert done.returncode == 0, done.stderr


async def emptied(cluster: RealCluster, node: str) -> None:
    """Wait until the node holds nothing, and every partition has three full replicas elsewhere."""
    seen: list[str] = []

    async def moved() -> bool:
        status = await asyncio.to_thread(read_status, cluster.data)
        holders = {replica.node for partition in status.partitions for replica in partition.replicas}
        seen[:] = sorted(partition.state for partition in status.partitions)
        return node not in holders and set(seen) == {"ok"}

    await until(moved, f"{node} is empty", seen)


async def test_no_request_fails_while_every_process_is_restarted(tmp_path: Path, report: Report) -> None:
    options = ("--routers", "2", "--auto-admins", "3", "--leaders", "spread")
    async with running_cluster(tmp_path / "data", *options) as cluster:
        trial = Trial(cluster, SEED)
        async with trial.working():
            for name in cluster.pids():

                async def restart(name: str = name) -> None:
                    pid = cluster.pids()[name]
                    os.kill(pid, signal.SIGTERM)
                    await cluster.replaced(name, pid)

                report.say(f"rolling restart: {await trial.fault(name, restart)}")
    trial.write(report, "rolling-restart")
    assert list(trial.faults_found()) == []
    assert trial.load.failed == []


async def test_no_request_fails_while_every_node_is_emptied_once(tmp_path: Path, report: Report) -> None:
    options = ("--nodes-per-zone", "2", "--leaders", "spread")
    async with running_cluster(tmp_path / "data", *options) as cluster:
        trial = Trial(cluster, SEED)
        nodes = [name for name in cluster.pids() if name.startswith("us-east-1")]
        async with trial.working():
            for node in nodes:

                async def drain(node: str = node) -> None:
                    await node_command(cluster, "drain", node)
                    await emptied(cluster, node)

                report.say(f"planned moves: {await trial.fault(f'{node} drained', drain)}")
                await node_command(cluster, "undrain", node)
        took = sorted(write.ended - write.began for write in trial.load.acknowledged)
    trial.write(report, "planned-moves")
    report.write(
        "planned-moves",
        {
            "writes": len(took),
            "p99_ms": round(took[len(took) * 99 // 100] * 1000, 1),
            "p99_ms_by_drain": {fault.name: round(fault.p99 * 1000, 1) for fault in trial.faults},
        },
    )
    assert list(trial.faults_found()) == []
    assert trial.load.failed == []


async def test_a_leader_that_was_asleep_for_five_seconds_answers_nothing_as_one(tmp_path: Path, report: Report) -> None:
    async with running_cluster(tmp_path / "data", "--leaders", "spread") as cluster:
        trial = Trial(cluster, SEED)
        async with trial.working():
            for number in range(3):
                name = trial.leader()

                async def sleep(name: str = name) -> None:
                    pid = cluster.pids()[name]
                    cluster.freeze([pid])
                    await asyncio.sleep(5.0)
                    cluster.wake([pid])

                report.say(f"asleep: {await trial.fault(f'{name} asleep ({number})', sleep)}")
    trial.write(report, "asleep")
    assert list(trial.faults_found()) == []
    assert trial.load.failed == []
