"""Of 300 partitions one is written: the others' few old entries do not keep the log from being trimmed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.chaos.conftest import Report
from tests.chaos.http_client import HttpClient
from tests.chaos.keys import key_in
from tests.chaos.load import create_table
from tests.chaos.real_cluster import RealCluster, until
from tests.chaos.test_durability import client_of
from trizone.data_directory import DataDirectory
from trizone.readiness import http_get

TABLES, PARTITIONS = 100, 300
SEGMENT, BOUND = 1 << 20, 24 << 20
SLACK = 2 * SEGMENT
"""The segment in which the bound is noticed, and the reserve."""
KEEP_S = 3
ITEM_BYTES = 100_000
KEYS = 10
WRITTEN = 4 * BOUND
_SIZE = re.compile(rb"^trizone_storagenode_log_size_bytes (\S+)", re.MULTILINE)
_OLDEST = re.compile(rb"^trizone_storagenode_log_oldest_segment (\S+)", re.MULTILINE)


async def logs(cluster: RealCluster) -> dict[str, tuple[int, int]]:
    """Bytes that each node's log takes, and the oldest segment that it keeps."""
    run = DataDirectory(cluster.data).run_file()
    assert run is not None
    found = {}
    for node in [process for process in run.processes if process.role == "storagenode"]:
        page = await http_get(node.metrics, "/metrics") or b""
        if (size := _SIZE.search(page)) and (oldest := _OLDEST.search(page)):
            found[node.name] = int(float(size[1])), int(float(oldest[1]))
    return found


async def put(client: HttpClient, table: str, key: str, size: int) -> int:
    """One item; how often it was refused before, as the log was at its bound."""
    item = {"id": {"S": key}, "filling": {"S": "x" * size}}
    refused = 0

    async def done() -> bool:
        nonlocal refused
        outcome = await client.send("PutItem", {"TableName": table, "Item": item})
        refused += outcome.error is None
        assert outcome.error in ("", None), outcome
        return outcome.error == ""

    await until(done, f"{key} is written")
    return refused


@asynccontextmanager
async def tuned_cluster(data: Path) -> AsyncIterator[RealCluster]:
    """A cluster whose logs have small bounds."""
    tuned = {
        "log_segment_bytes": SEGMENT,
        "log_bytes_max": BOUND,
        "log_keep_seconds": KEEP_S,
        "snapshot_log_bytes": 4 * SEGMENT,
    }
    cluster = RealCluster(data, "--tuned", json.dumps(tuned))
    cluster.command = [sys.executable, "-m", "tests.chaos.tuned_up"]
    try:
        await cluster.start()
        yield cluster
    finally:
        await cluster.stop()


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_one_busy_partition_of_many_does_not_outgrow_the_log(tmp_path: Path, report: Report) -> None:
    async with tuned_cluster(tmp_path / "data") as cluster:
        client = client_of(cluster)
        tables = [f"table-{number:03}" for number in range(TABLES)]
        for table in tables:
            await create_table(client, table)
        views = await cluster.whole()
        assert len(views) == PARTITIONS
        for view in views:  # an entry of each lies at the log's beginning
            await put(client, view.table, key_in(view, "once"), 100)
        before, largest, refused = await logs(cluster), 0, 0
        keys = [key_in(views[0], f"again-{number}") for number in range(KEYS)]
        for number in range(WRITTEN // ITEM_BYTES):
            refused += await put(client, views[0].table, keys[number % KEYS], ITEM_BYTES)
            if number % 10 == 0:
                largest = max([largest, *(size for size, _ in (await logs(cluster)).values())])
        report.say(
            f"log bound: {WRITTEN >> 20} MiB written to one of {PARTITIONS} partitions; logs took at most "
            f"{largest / (1 << 20):.0f} MiB of {BOUND >> 20}; {refused} writes had to wait for a trim"
        )
        assert largest <= BOUND + SLACK
        seen: dict[str, tuple[int, int]] = {}

        async def trimmed() -> bool:
            seen.update(await logs(cluster))
            return all(oldest - before[node][1] >= BOUND // SEGMENT for node, (_, oldest) in seen.items())

        await until(trimmed, "every node has trimmed more than its bound", seen)
        for view in views[:: len(views) // 10]:
            key = {"TableName": view.table, "Key": {"id": {"S": key_in(view, "once")}}, "ConsistentRead": True}
            assert "Item" in await client.call("GetItem", key)
        await client.close()
