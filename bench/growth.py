"""How a cluster behaves when its table has grown: reads and writes beside those of a small table, a scan of everything
beside reads, and a start from what is on the disk."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

from bench.calls import call, call_raw, prepare
from bench.load import Measured, for_seconds, run
from bench.requests import PREPARED, Requests, item_of, key_of
from bench.server import megabytes, running_cluster

SMALL = 10_000
BATCH = 25
LOAD_CONNECTIONS = 16
CONNECTIONS = 64
SCAN_BESIDE_CONNECTIONS = 4
SEGMENTS = 3
"""Of the scan, of which the first is read: about what one partition of a new table holds."""
TABLE = "grown"


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
    body: dict[str, Any] = {"TableName": requests.table, "Segment": 0, "TotalSegments": SEGMENTS}
    taken, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        answer = await asyncio.to_thread(call_raw, requests.endpoint, "Scan", body)
        taken += len(answer)
        key_at = answer.rfind(b'"LastEvaluatedKey"')
        if key_at < 0:
            break
        body["ExclusiveStartKey"] = json.loads(b"{" + answer[key_at:])["LastEvaluatedKey"]
    took = time.perf_counter() - began
    return taken / 1e6 / took, took


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
    """Measure a small table, grow it, measure it again, and start the cluster anew; prints a table."""
    with tempfile.TemporaryDirectory(prefix="trizone-growth-") as folder:
        data = Path(folder, "data")
        began = time.perf_counter()
        with running_cluster(data) as (address, pids):
            started = time.perf_counter() - began
            print(f"An empty cluster is ready after {started:.1f} s and takes {megabytes(pids):.0f} MB.", flush=True)
            requests = Requests(address.rstrip("/"), TABLE)
            prepare(requests.endpoint, TABLE)
            uvloop.run(_grow(requests, items, seconds))
            uvloop.run(_scan_beside_reads(requests, items, seconds))
            began = time.perf_counter()
        stopped, began = time.perf_counter() - began, time.perf_counter()
        with running_cluster(data) as (address, _):
            started = time.perf_counter() - began
            if "Item" not in call(address, "GetItem", {"TableName": TABLE, "Key": key_of(items - 1)}):
                sys.exit("The last item is not there after the new start.")
            print(f"Stopped in {stopped:.1f} s; ready again after {started:.1f} s.")
