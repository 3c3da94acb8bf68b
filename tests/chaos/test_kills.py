"""Processes are killed while 32 writers write; nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.chaos.conftest import Report
from tests.chaos.http_client import GaveUp, HttpClient
from tests.chaos.kills import Killer, Target, summary
from tests.chaos.load import Client, Load, create_table, under_load, values_found
from tests.chaos.real_cluster import RealCluster, running_cluster
from tests.chaos.replicas import differing_replicas

WRITERS = 32
BOTO3_WRITERS = 2
"""So many of the writers are real SDK clients; they show that the light client does not flatter."""
SEED = 20_261
GAP_S_MAX = 2.0
"""Issue's bound on unavailability. It is only held to where the machine has nothing else to do."""
GAP_S_MAX_SHARED = 10.0

NODE: Target = "storage node"
LEADER: Target = "leader"
FROZEN: Target = "frozen leader"
SHORT: Sequence[Target] = (LEADER, NODE, LEADER, "auto-admin", "router", "all")
LONG: Sequence[Target] = (*[NODE] * 10, *[LEADER] * 5, *[FROZEN] * 3, "auto-admin", "router", "all")


class Boto3Client:
    """boto3 in a thread, with its own default retries."""

    def __init__(self, endpoint: str) -> None:
        self._client: Any = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="boto3",
            aws_secret_access_key="any",
        )

    async def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one operation. Raises GaveUp."""
        try:
            answer: dict[str, Any] = await asyncio.to_thread(self._client._make_api_call, operation, body)
        except (BotoCoreError, ClientError) as error:
            raise GaveUp([str(error)]) from error
        return answer


def clients_of(cluster: RealCluster) -> list[Client]:
    """One client per writer."""
    light = [
        HttpClient("127.0.0.1", cluster.port, f"writer-{number}", Random(f"{SEED} {number}"))
        for number in range(WRITERS - BOTO3_WRITERS)
    ]
    return [*light, *(Boto3Client(cluster.endpoint) for _ in range(BOTO3_WRITERS))]


@pytest.mark.timeout(240)
async def test_nothing_is_lost_when_processes_are_killed(tmp_path: Path, report: Report) -> None:
    await killed_under_load(tmp_path / "data", SHORT, GAP_S_MAX_SHARED, report, "kills")


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_nothing_is_lost_when_processes_are_killed_again_and_again(tmp_path: Path, report: Report) -> None:
    await killed_under_load(tmp_path / "data", LONG, GAP_S_MAX, report, "kills-long")


async def killed_under_load(data: Path, targets: Sequence[Target], gap_max: float, report: Report, name: str) -> None:
    """The kill test: `targets` are killed one after the other. Writes a report, whatever the verdict."""
    async with running_cluster(data, "--routers", "2") as cluster:
        reader = HttpClient("127.0.0.1", cluster.port, "reader", Random(SEED))
        await create_table(reader)
        load = Load()
        killer = Killer(cluster, load, Random(SEED))
        began = time.monotonic()
        async with under_load(load, clients_of(cluster), SEED):
            for target in targets:
                kill = await killer.kill(target)
                report.say(f"{name}: {kill}")
        report.write(name, summary(load, killer.kills, began, time.monotonic()))
        items, counters = await values_found(reader)
        await reader.close()
        await cluster.whole()
    assert list(differing_replicas(data)) == []
    assert load.ledger.faults_of_items(items) == []
    assert load.ledger.faults_of_counters(counters) == []
    assert len(load.ledger.acknowledged) > WRITERS
    for kill in killer.kills:
        if kill.target != "all":
            assert kill.failed == 0, f"requests failed although two zones were up: {load.failed[:3]}"
            assert max(kill.gap_led, kill.gap_others) < gap_max, str(kill)
