"""How far what follows a table is behind it: the other region, and a global index, at a steady pace of writes; and how
long a region that was away takes to catch up.

Every so many writes one is a probe: after it was acknowledged it is asked for, again and again, where it has to arrive.
Its lag is the time from the acknowledgement until it is seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bench.load import all_of, run
from bench.requests import http_request
from bench.server import READY

REGIONS = ("us-east-1", "eu-west-1")
TABLE = "lag"
CONNECTIONS = 32
FILL_CONNECTIONS = 16
PROBE_EVERY = 20
"""So many writes per probe."""
LOOK_S = 0.002
MARKERS = 64
"""Items written last, all over the table: they are there once all before them are."""
DEADLINE_S = 600.0


class Connection:
    """One connection to an endpoint, one request at a time."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer, whatever its status."""
        if self._streams is None:
            address = urlsplit(self._endpoint)
            self._streams = await asyncio.open_connection(address.hostname, address.port)
        reader, writer = self._streams
        writer.write(http_request(self._endpoint, operation, body))
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
        answer: dict[str, Any] = json.loads(await reader.readexactly(length))
        return answer


@dataclass
class Lags:
    """Seconds from acknowledgement to arrival, by probe."""

    region: list[float] = field(default_factory=list)
    index: list[float] = field(default_factory=list)
    writes: int = 0


class RunningRegion:
    """One region, by itself."""

    def __init__(self, name: str, data: str) -> None:
        self.name = name
        self._data = data
        self._process: subprocess.Popen[str] | None = None
        self.endpoint = ""

    def start(self) -> None:
        """Start it and wait until it serves; ends the program if it does not."""
        options = ["--regions", ",".join(REGIONS), "--only", self.name, "--port", "0", "--data", self._data]
        command = [sys.executable, "-m", "trizone", "up", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
        assert self._process.stdout is not None
        line = next((line for line in self._process.stdout if line.startswith(READY)), None)
        if line is None:
            sys.exit(f"Region {self.name} did not start.")
        self.endpoint = line.removeprefix(READY).split()[0].rstrip("/")

    def stop(self) -> None:
        """Stop it and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None


@contextmanager
def running_regions() -> Iterator[list[RunningRegion]]:
    """Two regions with data in the temporary folder."""
    with tempfile.TemporaryDirectory(prefix="trizone-bench-") as folder:
        regions = [RunningRegion(name, f"{folder}/data") for name in REGIONS]
        try:
            for region in regions:
                region.start()
            yield regions
        finally:
            for region in regions:
                region.stop()


async def _until(what: str, found: Any, pause: float = 0.1) -> float:
    """Ask until it is so; the seconds it took."""
    began = time.perf_counter()
    while not await found():
        if time.perf_counter() - began > DEADLINE_S:
            sys.exit(f"After {DEADLINE_S:g} s it was still not so that {what}.")
        await asyncio.sleep(pause)
    return time.perf_counter() - began


async def make_table(first: RunningRegion, second: RunningRegion) -> None:
    """A table with a global index by value in the first region, and its replica in the second."""
    keys = {"pk": "HASH"}
    definition = {
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "value")],
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_value",
                "KeySchema": [{"AttributeName": "value", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    }
    here, there = Connection(first.endpoint), Connection(second.endpoint)
    await here.call("CreateTable", definition)

    async def is_active() -> bool:
        return (await here.call("DescribeTable", {"TableName": TABLE}))["Table"]["TableStatus"] == "ACTIVE"  # type: ignore[no-any-return]

    async def are_joined() -> bool:
        tables = [(await each.call("DescribeTable", {"TableName": TABLE})).get("Table", {}) for each in (here, there)]
        states = [[replica["ReplicaStatus"] for replica in table.get("Replicas", ())] for table in tables]
        return states == [["ACTIVE"], ["ACTIVE"]]

    await _until("the table is made", is_active)
    await here.call("UpdateTable", {"TableName": TABLE, "ReplicaUpdates": [{"Create": {"RegionName": second.name}}]})
    await _until("both regions have it", are_joined)


def _item(number: int | str) -> dict[str, Any]:
    return {"pk": {"S": f"item-{number}"}, "value": {"S": f"value-{number}"}, "data": {"S": "x" * 200}}


async def steady(first: RunningRegion, second: RunningRegion, rate: float, seconds: float) -> Lags:
    """Write at a steady pace and ask for the probes in the other region, and in the index."""
    lags, probes = Lags(), set[asyncio.Task[None]]()
    end = time.perf_counter() + seconds

    async def arrives(kind: list[float], endpoint: str, operation: str, body: dict[str, Any], member: str) -> None:
        connection, acknowledged = Connection(endpoint), time.perf_counter()

        async def seen() -> bool:
            return bool((await connection.call(operation, {"TableName": TABLE, **body})).get(member))

        await _until("a probe arrives", seen, LOOK_S)
        kind.append(time.perf_counter() - acknowledged)

    def probe(number: int) -> None:
        item = _item(number)
        get = {"Key": {"pk": item["pk"]}, "ConsistentRead": True}
        query = {
            "IndexName": "by_value",
            "KeyConditionExpression": "#value = :value",
            "ExpressionAttributeNames": {"#value": "value"},
            "ExpressionAttributeValues": {":value": item["value"]},
        }
        for work in (
            arrives(lags.region, second.endpoint, "GetItem", get, "Item"),
            arrives(lags.index, first.endpoint, "Query", query, "Items"),
        ):
            task = asyncio.ensure_future(work)
            probes.add(task)

    async def write(number: int) -> None:
        connection = Connection(first.endpoint)
        due = time.perf_counter() + number / rate
        while (now := time.perf_counter()) < end:
            await asyncio.sleep(max(0.0, due - now))
            due += CONNECTIONS / rate
            await connection.call("PutItem", {"TableName": TABLE, "Item": _item(number)})
            lags.writes += 1
            if lags.writes % PROBE_EVERY == 0:
                probe(number)
            number += CONNECTIONS

    await asyncio.gather(*(write(number) for number in range(CONNECTIONS)))
    await asyncio.gather(*probes)
    return lags


async def catch_up(first: RunningRegion, second: RunningRegion, changes: int) -> float:
    """Write while the second region is away, start it again; the seconds from when it serves until it has all."""
    await asyncio.to_thread(second.stop)
    names = [f"pending-{number}" for number in range(changes)] + [f"marker-{number}" for number in range(MARKERS)]
    requests = [http_request(first.endpoint, "PutItem", {"TableName": TABLE, "Item": _item(name)}) for name in names]
    for some in (requests[:changes], requests[changes:]):
        measured = await run(first.endpoint, all_of(some), FILL_CONNECTIONS)
        if measured.errors:
            sys.exit(f"{measured.errors} of the items could not be written.")
    await asyncio.to_thread(second.start)
    connection, left = Connection(second.endpoint), set(names[changes:])

    async def all_there() -> bool:
        for name in sorted(left):
            body = {"TableName": TABLE, "Key": {"pk": _item(name)["pk"]}, "ConsistentRead": True}
            if not (await connection.call("GetItem", body)).get("Item"):
                return False
            left.discard(name)
        return True

    return await _until("all changes have arrived", all_there)


def row(what: str, lags: list[float]) -> str:
    """A line of the table."""
    ordered = sorted(lags) or [float("nan")]
    p50, p99 = (1e3 * ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.99))
    return f"{what:12} {len(lags):7} {p50:9.1f} {p99:9.1f}"


async def lag(regions: list[RunningRegion], rate: float, seconds: float, pending: int) -> None:
    """Measure all, and print it."""
    first, second = regions
    await make_table(first, second)
    found = await steady(first, second, rate, seconds)
    print(f"{found.writes / seconds:,.0f} writes per second, {rate:g} wanted")
    print("lag          probes    p50 ms    p99 ms")
    print(row("region", found.region))
    print(row("global index", found.index), flush=True)
    took = await catch_up(first, second, pending)
    print(f"{pending:,} pending changes were caught up with in {took:.1f} s, {pending / took:,.0f} per second")
