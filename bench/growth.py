"""How a cluster behaves when its table has grown: reads and writes beside those of a small table, a scan of everything
beside reads, and a start from what is on the disk."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import uvloop

from bench.load import Measured, for_seconds, run
from bench.requests import AUTHORIZATION, DATE, PREPARED, Requests, create_table, item_of, key_of
from bench.server import READY

SMALL = 10_000
BATCH = 25
LOAD_CONNECTIONS = 16
CONNECTIONS = 64
SCAN_BESIDE_CONNECTIONS = 4
START_SECONDS = 600.0
STOP_SECONDS = 120.0
TABLE = "grown"


class _Cluster:
    """`trizone up` over a data directory, which may be stopped and started again."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._up: subprocess.Popen[str] | None = None
        self.endpoint = ""

    def start(self) -> float:
        """Start; the seconds until it is ready."""
        began = time.perf_counter()
        command = [sys.executable, "-m", "trizone", "up", "--port", "0", "--data", str(self._data)]
        self._up = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._up.stdout is not None
        line = next((line for line in self._up.stdout if line.startswith(READY)), None)
        if line is None:
            sys.exit("The cluster did not start.")
        self.endpoint = line.removeprefix(READY).split()[0].rstrip("/")
        return time.perf_counter() - began

    def stop(self) -> float:
        """Stop cleanly; the seconds that it took."""
        assert self._up is not None
        began = time.perf_counter()
        self._up.send_signal(signal.SIGINT)
        self._up.communicate(timeout=STOP_SECONDS)
        return time.perf_counter() - began

    def megabytes(self) -> float:
        """Memory of all its processes: proportional set sizes, so that shared pages count once."""
        state = json.loads((self._data / "run.json").read_text())
        pids = [process["pid"] for process in state["processes"]]
        return sum(_proportional(pid) for pid in pids) / 1024


def _proportional(pid: int) -> int:
    """Kilobytes: proc(5), smaps_rollup."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def call(endpoint: str, operation: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request and its answer."""
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": AUTHORIZATION,
        "X-Amz-Date": DATE,
    }
    with urlopen(Request(endpoint, json.dumps(body).encode(), headers), timeout=60) as answer:
        content: dict[str, Any] = json.load(answer)
    return content


def _loading(requests: Requests, first: int, count: int) -> Iterator[bytes]:
    dice = random.Random(first)
    for start in range(first, first + count, BATCH):
        numbers = range(start, min(start + BATCH, first + count))
        puts = [{"PutRequest": {"Item": item_of(number, dice.randbytes)}} for number in numbers]
        yield requests.raw("BatchWriteItem", {"RequestItems": {requests.table: puts}})


async def _load(requests: Requests, first: int, count: int) -> float:
    """Items a second."""
    loading = _loading(requests, first, count)
    began = time.perf_counter()
    measured = await run(requests.endpoint, lambda: next(loading, None), LOAD_CONNECTIONS)
    if measured.errors:
        sys.exit(f"{measured.errors} batches could not be loaded.")
    return count / (time.perf_counter() - began)


def _gets(requests: Requests, items: int) -> list[bytes]:
    dice = random.Random(1)
    return [
        requests.raw("GetItem", {"TableName": requests.table, "Key": key_of(dice.randrange(items))})
        for _ in range(PREPARED * 5)
    ]


def _puts(requests: Requests, items: int) -> list[bytes]:
    dice = random.Random(2)
    numbers = [dice.randrange(items) for _ in range(PREPARED * 5)]
    return [
        requests.raw("PutItem", {"TableName": requests.table, "Item": item_of(number, dice.randbytes)})
        for number in numbers
    ]


async def _measure(requests: Requests, made: list[bytes], seconds: float) -> Measured:
    stream = iter(made * 1_000)
    return await run(requests.endpoint, for_seconds(stream, seconds), CONNECTIONS)


def _row(what: str, measured: Measured, beside: Measured | None = None) -> str:
    rate = len(measured.latencies) / measured.seconds
    line = f"{what:28} {rate:9,.0f} {1e3 * measured.percentile(0.5):8.2f} {1e3 * measured.percentile(0.99):8.2f}"
    if beside is not None:
        line += f"   {rate / (len(beside.latencies) / beside.seconds):.2f} x"
    return f"{line}{f'   {measured.errors} errors' if measured.errors else ''}"


async def _scan(requests: Requests, seconds: float) -> tuple[float, float]:
    """(megabytes of items a second, seconds) of one reader that takes a segment's pages one after the other."""
    body: dict[str, Any] = {"TableName": requests.table, "Segment": 0, "TotalSegments": 3}
    taken, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        answer = await asyncio.to_thread(_page, requests.endpoint, body)
        taken += len(answer)
        key_at = answer.rfind(b'"LastEvaluatedKey"')
        if key_at < 0:
            break
        body["ExclusiveStartKey"] = json.loads(b"{" + answer[key_at:])["LastEvaluatedKey"]
    took = time.perf_counter() - began
    return taken / 1e6 / took, took


def _page(endpoint: str, body: dict[str, Any]) -> bytes:
    headers = {
        "X-Amz-Target": "DynamoDB_20120810.Scan",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": AUTHORIZATION,
        "X-Amz-Date": DATE,
    }
    with urlopen(Request(endpoint, json.dumps(body).encode(), headers), timeout=60) as answer:
        content: bytes = answer.read()
    return content


async def _grow(requests: Requests, items: int, seconds: float) -> None:
    print("growth                           req/s   p50 ms   p99 ms")
    await _load(requests, 0, SMALL)
    gets = await _measure(requests, _gets(requests, SMALL), seconds)
    puts = await _measure(requests, _puts(requests, SMALL), seconds)
    print(_row(f"get of {SMALL:,}", gets))
    print(_row(f"put of {SMALL:,}", puts), flush=True)
    rate = await _load(requests, SMALL, items - SMALL)
    print(f"{items:,} items of 1 KB were loaded at {rate:,.0f} a second.", flush=True)
    print(_row(f"get of {items:,}", await _measure(requests, _gets(requests, items), seconds), gets))
    print(_row(f"put of {items:,}", await _measure(requests, _puts(requests, items), seconds), puts), flush=True)


async def _scan_beside_reads(requests: Requests, items: int, seconds: float) -> None:
    stream = iter(_gets(requests, items) * 1_000)
    alone = await run(requests.endpoint, for_seconds(stream, seconds), SCAN_BESIDE_CONNECTIONS)
    print(_row("get, 4 connections", alone))
    scanning = asyncio.create_task(_scan(requests, seconds))
    beside = await run(requests.endpoint, for_seconds(stream, seconds), SCAN_BESIDE_CONNECTIONS)
    rate, _ = await scanning
    factor = beside.percentile(0.99) / alone.percentile(0.99)
    print(_row("the same beside a scan", beside, alone) + f"   p99 {factor:.2f} x, scan at {rate:.0f} MB/s")
    rate, took = await _scan(requests, seconds)
    print(f"A scan alone, one reader: {rate:.0f} MB/s over {took:.0f} s.", flush=True)


def growth(items: int, seconds: float) -> None:
    """Measure a small table, grow it, and measure again; prints a table."""
    with tempfile.TemporaryDirectory(prefix="trizone-growth-") as folder:
        cluster = _Cluster(Path(folder, "data"))
        started = cluster.start()
        print(f"An empty cluster is ready after {started:.1f} s and takes {cluster.megabytes():.0f} MB.", flush=True)
        try:
            call(cluster.endpoint, "CreateTable", create_table(TABLE))
            while call(cluster.endpoint, "DescribeTable", {"TableName": TABLE})["Table"]["TableStatus"] != "ACTIVE":
                time.sleep(0.1)
            uvloop.run(_grow(Requests(cluster.endpoint, TABLE), items, seconds))
            uvloop.run(_scan_beside_reads(Requests(cluster.endpoint, TABLE), items, seconds))
            stopped = cluster.stop()
            started = cluster.start()
            found = call(cluster.endpoint, "GetItem", {"TableName": TABLE, "Key": key_of(items - 1)})
            print(
                f"Stopped in {stopped:.1f} s; ready again after {started:.1f} s{'' if 'Item' in found else ', EMPTY'}."
            )
        finally:
            cluster.stop()
