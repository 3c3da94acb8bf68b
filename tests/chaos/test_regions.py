"""Two regions of real processes write the same items, while links stand still, replicators die, and whole regions die
and come back. Then both hold the last writers' items.

All processes see one clock here, so that stamps of writes that do not overlap are in the order of these: a write that
ended before another one began is never what is left.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.chaos.conftest import Report
from tests.chaos.http_client import GaveUp, HttpClient, Refused
from tests.chaos.real_cluster import until
from tests.integration.launching import Up, finished, pids_of

REGIONS: Final = ("us-east-1", "eu-west-1")
TABLE: Final = "contested"
ITEMS: Final = 12
WRITERS: Final = 3
"""In each region."""
REST_S: Final = 0.03
STANDS_STILL_S: Final = 1.5
WRITES_BETWEEN: Final = 60
"""So many writes succeed in each region that runs, before something is broken and after it was."""


@dataclass(frozen=True)
class Write:
    """One write: its value (None: a delete), and when it began and ended by the one clock there is; `ended` is infinite
    if it failed, since it may still have come to pass."""

    region: str
    value: str | None
    began: float
    ended: float


@dataclass
class Region:
    """One region: its process, where it serves, and what was written in it."""

    name: str
    data: Path
    up: Up | None = None
    port: int = 0
    succeeded: int = 0
    writes: dict[str, list[Write]] = field(default_factory=dict)

    async def start(self) -> None:
        """Start it and wait until it serves."""
        options = ("--regions", ",".join(REGIONS), "--only", self.name, "--port", "0", "--data", str(self.data))
        self.up = Up(*options)
        endpoint = await asyncio.to_thread(self.up.endpoint)
        self.port = int(endpoint.rpartition(":")[2])

    async def kill(self) -> None:
        """SIGKILL, to all of its processes."""
        assert self.up is not None
        pids = await asyncio.to_thread(pids_of, self.data / self.name)
        self.port = 0
        self.up.process.kill()
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(self.up.process.wait)

    async def signal_replicator(self, number: signal.Signals) -> int:
        """Send its replicator a signal; the process's id."""
        pids = await asyncio.to_thread(pids_of, self.data / self.name)
        pid = next(pid for name, pid in sorted(pids.items()) if "replicator" in name)
        os.kill(pid, number)
        return pid

    def client(self, name: str, seed: int) -> HttpClient:
        """A client of this region as it serves now."""
        return HttpClient("127.0.0.1", self.port, name, Random(seed))

    async def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """One request outside of the load."""
        client = self.client("operator", time.monotonic_ns())
        try:
            return await client.call(operation, body)
        finally:
            await client.close()

    async def items(self) -> dict[str, str]:
        """Values by key, of a strong scan."""
        found = await self.call("Scan", {"TableName": TABLE, "ConsistentRead": True})
        return {item["id"]["S"]: item["value"]["S"] for item in found["Items"]}


class Load:
    """Writers of the same items in all regions."""

    def __init__(self, regions: list[Region]) -> None:
        self.regions = regions
        self._stopping = False
        self._tasks = [
            asyncio.create_task(self._write(region, number)) for region in regions for number in range(WRITERS)
        ]

    async def more(self) -> None:
        """Wait for some more writes in each region that runs."""
        wanted = {region.name: region.succeeded + WRITES_BETWEEN for region in self.regions if region.port}

        async def enough() -> bool:
            return all(region.succeeded >= wanted.get(region.name, 0) for region in self.regions)

        await until(enough, "writes succeed in every region", wanted)

    async def stop(self) -> None:
        """Every writer ends what it has begun."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def _write(self, region: Region, number: int) -> None:
        dice, port, client = Random(f"{region.name} {number}"), 0, None
        count = 0
        while not self._stopping:
            await asyncio.sleep(REST_S * 2 * dice.random())
            if not region.port:
                continue
            if client is None or port != region.port:
                port, client = region.port, region.client(f"{region.name}-{number}", dice.getrandbits(60))
            count += 1
            key, value = str(dice.randrange(ITEMS)), f"{region.name}/{number}/{count}"
            deletes = dice.random() < 0.3
            began, ended = time.time(), math.inf
            with suppress(GaveUp, Refused):
                if deletes:
                    await client.call("DeleteItem", {"TableName": TABLE, "Key": {"id": {"S": key}}})
                else:
                    item = {"id": {"S": key}, "value": {"S": value}}
                    await client.call("PutItem", {"TableName": TABLE, "Item": item})
                ended = time.time()
                region.succeeded += 1
            region.writes.setdefault(key, []).append(Write(region.name, None if deletes else value, began, ended))
        if client is not None:
            await client.close()


@asynccontextmanager
async def two_regions(data: Path) -> AsyncIterator[list[Region]]:
    """Both regions with the table; none of their processes outlives the block."""
    regions = [Region(name, data) for name in REGIONS]
    try:
        for region in regions:
            await region.start()
        await make_table(regions)
        yield regions
    finally:
        for region in regions:
            if region.up is not None and region.up.process.poll() is None:
                await asyncio.to_thread(region.up.stop, signal.SIGTERM)


async def make_table(regions: list[Region]) -> None:
    """A table in the first region, with a replica in the second."""
    first, second = regions
    attributes, keys = [{"AttributeName": "id", "AttributeType": "S"}], [{"AttributeName": "id", "KeyType": "HASH"}]
    definition = {"TableName": TABLE, "AttributeDefinitions": attributes, "KeySchema": keys}
    await first.call("CreateTable", {**definition, "BillingMode": "PAY_PER_REQUEST"})
    await until(lambda: _status(first), "the table is made")
    updates = [{"Create": {"RegionName": second.name}}]
    await first.call("UpdateTable", {"TableName": TABLE, "ReplicaUpdates": updates})
    for region, other in ((first, second), (second, first)):
        await until(lambda region=region, other=other: _joined(region, other), "both are replicas")  # type: ignore[misc]


async def _status(region: Region) -> bool:
    return (await _described(region)).get("TableStatus") == "ACTIVE"


async def _joined(region: Region, other: Region) -> bool:
    found = {each["RegionName"]: each["ReplicaStatus"] for each in (await _described(region)).get("Replicas", [])}
    return found.get(other.name) == "ACTIVE"


async def _described(region: Region) -> dict[str, Any]:
    try:
        table: dict[str, Any] = (await region.call("DescribeTable", {"TableName": TABLE}))["Table"]
    except Refused:  # it is not there yet
        return {}
    return table


async def break_a_link(region: Region) -> None:
    """Its replicator stands still, so that nobody hears of the region, and wakes up as if nothing had happened."""
    pid = await region.signal_replicator(signal.SIGSTOP)
    try:
        await asyncio.sleep(STANDS_STILL_S)
    finally:
        os.kill(pid, signal.SIGCONT)


def wrong_winners(regions: list[Region], left: dict[str, str]) -> list[str]:
    """Items that are not what a last writer left."""
    found = []
    for key in map(str, range(ITEMS)):
        writes = [write for region in regions for write in region.writes.get(key, [])]
        if not writes:
            continue
        latest = max((write.began for write in writes if write.ended < math.inf), default=0.0)
        possible = {write.value for write in writes if write.ended >= latest}
        if left.get(key) not in possible:
            found.append(f"{key} is {left.get(key)}, and can only be one of {sorted(map(str, possible))}")
    return found


async def run(data: Path, rounds: int, report: Report) -> None:
    """The whole test."""
    dice = Random(rounds)
    async with two_regions(data) as regions:
        load = Load(regions)
        try:
            for number in range(rounds):
                await load.more()
                await break_a_link(regions[number % 2])
                await load.more()
                await dice.choice(regions).signal_replicator(signal.SIGKILL)
                await load.more()
                dead, alive = regions[(number + 1) % 2], regions[number % 2]
                await dead.kill()
                await load.more()
                await dead.start()
                await load.more()
                assert alive.up is not None
                assert alive.up.process.poll() is None, "a region goes on without the other"
        finally:
            await load.stop()

        async def alike() -> bool:
            with suppress(GaveUp):
                return await regions[0].items() == await regions[1].items()
            return False

        await until(alike, "both regions hold the same")
        left = await regions[0].items()
        compared = await asyncio.to_thread(finished, "regions", "compare", TABLE, "--data", str(data))
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "hold the same" in compared.stdout, compared.stdout
    assert wrong_winners(regions, left) == []
    writes = [write for region in regions for each in region.writes.values() for write in each]
    failed = sum(write.ended == math.inf for write in writes)
    report.say(
        f"regions: {len(writes)} writes, {failed} without a clear answer, to {ITEMS} items in two regions over "
        f"{rounds} links that stood still, {rounds} dead replicators, {rounds} dead regions"
    )


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_two_regions_end_with_the_last_writers_items(tmp_path: Path, report: Report) -> None:
    await run(tmp_path / "data", 1, report)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_two_regions_end_with_the_last_writers_items_after_many_deaths(tmp_path: Path, report: Report) -> None:
    await run(tmp_path / "data", 6, report)


def test_an_older_write_that_is_left_is_noticed() -> None:
    older, newer = Write(REGIONS[0], "older", 1.0, 2.0), Write(REGIONS[1], "newer", 3.0, 4.0)
    regions = [Region(REGIONS[0], Path(), writes={"0": [older]}), Region(REGIONS[1], Path(), writes={"0": [newer]})]
    assert wrong_winners(regions, {"0": "newer"}) == []
    assert wrong_winners(regions, {"0": "older"})
    assert wrong_winners(regions, {})
