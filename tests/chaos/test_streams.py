"""A stream is read while leading nodes are killed under load: every change once, in order per item."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from examples import stream_aggregate
from tests.chaos.conftest import Report
from tests.chaos.real_cluster import RealCluster, running_cluster

WRITERS = 6
ITEMS = 12
KILLS = 3
RECORDS_BETWEEN = 150
"""So many records are to be read before each kill, and after the last."""
READ_PAUSE_S = 0.02


@dataclass
class History(stream_aggregate.Totals):
    """Everything that was read, by item; checkpoints as ever."""

    by_item: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def take(self, shard: str, record: dict[str, Any]) -> None:
        """Add a record."""
        change = record["dynamodb"]
        self.by_item.setdefault(change["Keys"]["order"]["S"], []).append(record)
        before = self.checkpoints.get(shard)
        assert before is None or int(before) < int(change["SequenceNumber"]), f"{shard} goes back"
        self.checkpoints[shard] = change["SequenceNumber"]
        self.records += 1


class Load:
    """Writers of values that are never used twice; `acknowledged` are those that succeeded."""

    def __init__(self, endpoint: str, table: str) -> None:
        self.acknowledged: set[str] = set()
        self.deletes = 0
        self._endpoint = endpoint
        self._table = table
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Every writer ends what it has begun."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, number: int) -> None:
        client = stream_aggregate.connect("dynamodb", self._endpoint)
        dice = Random(number)
        while not self._stop.is_set():
            key, value = {"order": {"S": str(dice.randrange(ITEMS))}}, str(uuid.UUID(int=dice.getrandbits(128)))
            try:
                if dice.random() < 0.2:
                    client.delete_item(TableName=self._table, Key=key)
                    self.deletes += 1
                else:
                    client.put_item(TableName=self._table, Item={**key, "value": {"S": value}})
                    self.acknowledged.add(value)
            except (BotoCoreError, ClientError):
                pass  # it may have happened or not: the stream says


async def read_until(reader: stream_aggregate.Reader, history: History, records: int) -> None:
    """Read on until there are so many records. A read that fails is tried again, as any reader would."""
    async with asyncio.timeout(60):
        while history.records < records:
            with suppress(BotoCoreError, ClientError):
                await asyncio.to_thread(reader.read)
            await asyncio.sleep(READ_PAUSE_S)


async def kill_a_leader(cluster: RealCluster, table: str, dice: Random) -> None:
    partitions = [partition for partition in await cluster.whole() if partition.table == table]
    name = dice.choice(sorted({partition.leader for partition in partitions if partition.leader}))
    pid, _ = cluster.kill(name)
    await cluster.replaced(name, pid)


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_stream_tells_everything_once_though_leaders_are_killed(tmp_path: Path, report: Report) -> None:
    dice, history = Random(11), History()
    async with running_cluster(tmp_path / "data") as cluster:
        dynamodb = stream_aggregate.connect("dynamodb", cluster.endpoint)
        streams = stream_aggregate.connect("dynamodbstreams", cluster.endpoint)
        table, arn = await asyncio.to_thread(stream_aggregate.create_table, dynamodb)
        load = Load(cluster.endpoint, table)
        load.start()
        try:
            for _ in range(KILLS):
                # Each time another reader goes on from the checkpoints of the last one.
                reader = stream_aggregate.Reader(streams, arn, history)
                await read_until(reader, history, history.records + RECORDS_BETWEEN)
                await kill_a_leader(cluster, table, dice)
            await read_until(reader, history, history.records + RECORDS_BETWEEN)
        finally:
            await asyncio.to_thread(load.stop)
        await cluster.whole()
        while await asyncio.to_thread(reader.read):
            pass
        items = (await asyncio.to_thread(dynamodb.scan, TableName=table, ConsistentRead=True))["Items"]
    assert_told(history, load, {item["order"]["S"]: item for item in items})
    report.say(f"streams: {history.records} records over {KILLS} kills, {len(load.acknowledged)} acknowledged puts")


def assert_told(history: History, load: Load, items: Mapping[str, Any]) -> None:
    """Images of each item follow one another and end at the table; what was acknowledged is there, all of it once."""
    for name, records in history.by_item.items():
        last = None
        for record in records:
            change = record["dynamodb"]
            assert change.get("OldImage") == last, name
            event = "REMOVE" if "NewImage" not in change else "INSERT" if last is None else "MODIFY"
            assert record["eventName"] == event, name
            last = change.get("NewImage")
        assert last == items.get(name), name
    images = [
        record["dynamodb"]["NewImage"]["value"]["S"]
        for records in history.by_item.values()
        for record in records
        if "NewImage" in record["dynamodb"]
    ]
    assert {value for value, count in Counter(images).items() if count > 1} == set()
    assert load.acknowledged - set(images) == set()
