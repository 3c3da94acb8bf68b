"""What clients see of it when a follower is made anew: latency of puts before, and while it fetches a snapshot.

One node leads everything; the replicas of another lose their stores and snapshots, and its process is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from bench.load import Measured, all_of, for_seconds, run
from bench.requests import Requests, http_request

SMALL_LOG = (
    *("--set", f"log_segment_bytes={4 << 20}"),
    *("--set", "log_keep_seconds=1"),
    *("--set", f"snapshot_log_bytes={4 << 20}"),
)
"""Settings with which the log is trimmed soon: only then a snapshot is needed."""
ITEM_BYTES = 100_000
PUT_BYTES = 1_000
FILL_CONNECTIONS = 8
CONNECTIONS = 4
STEP_S = 1.0
DEADLINE_S = 600.0
_WITHOUT_STATE = re.compile(rb"^trizone_storagenode_replicas_without_state (\d+)", re.MULTILINE)
_INSTALLED = re.compile(rb"^trizone_storagenode_snapshots_installed_total (\d+)", re.MULTILINE)
_OLDEST_SEGMENT = re.compile(rb"^trizone_storagenode_log_oldest_segment (\d+)", re.MULTILINE)
FILLS = 2
"""So often the table is filled: a log larger than its partition is due to be trimmed."""


def _put(endpoint: str, table: str, name: str, size: int) -> bytes:
    item = {"pk": {"S": name}, "sk": {"S": "0"}, "data": {"S": "x" * size}}
    return http_request(endpoint, "PutItem", {"TableName": table, "Item": item})


def puts(requests: Requests) -> Iterator[bytes]:
    """Small puts over a thousand items, again and again."""
    return cycle([_put(requests.endpoint, requests.table, f"small-{number}", PUT_BYTES) for number in range(1_000)])


def number_of(metrics: str, pattern: re.Pattern[bytes]) -> float:
    """A number that a node shows at /metrics; NaN while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=2) as answer:
            found = pattern.search(answer.read())
    except OSError:
        return float("nan")
    return float(found[1]) if found else float("nan")


def _processes(data: Path) -> dict[str, dict[str, Any]]:
    run_file = json.loads((data / "run.json").read_text())
    return {process["name"]: process for process in run_file["processes"] if process["role"] == "storagenode"}


def _row(what: str, measured: Measured) -> str:
    return (
        f"{what:14} {len(measured.latencies) / measured.seconds:9,.0f} {1e3 * measured.percentile(0.5):8.2f}"
        f" {1e3 * measured.percentile(0.99):8.2f} {measured.errors:6}"
    )


async def _until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        if time.monotonic() > deadline:
            raise SystemExit(f"After {DEADLINE_S:g} s the follower was still not made anew.")
        await asyncio.sleep(0.1)


async def rebuild(requests: Requests, data: Path, megabytes: int, seconds: float) -> None:
    """Fill the table, measure, take a follower's state away, measure again until it is back; prints a table."""
    nodes = _processes(data)
    leads = _leads(nodes)
    follower = next(name for name in sorted(nodes) if name != leads)
    count = megabytes * 1_000_000 // ITEM_BYTES
    fill = [_put(requests.endpoint, requests.table, f"large-{number}", ITEM_BYTES) for number in range(count)]
    await run(requests.endpoint, all_of(fill * FILLS), FILL_CONNECTIONS)
    await _until(lambda: number_of(nodes[follower]["metrics"], _OLDEST_SEGMENT) > 1)
    stream = puts(requests)
    print("rebuild          req/s   p50 ms   p99 ms errors")
    before = await run(requests.endpoint, for_seconds(stream, seconds), CONNECTIONS)
    print(_row("before", before), flush=True)
    for folder in ("partitions", "snapshots"):
        shutil.rmtree(data / "nodes" / follower / folder)
    os.kill(nodes[follower]["pid"], signal.SIGKILL)
    began = time.monotonic()
    during = Measured()
    while True:
        step = await run(requests.endpoint, for_seconds(stream, STEP_S), CONNECTIONS)
        during.latencies += step.latencies
        during.errors += step.errors
        during.seconds += step.seconds
        metrics = _processes(data)[follower]["metrics"]
        if number_of(metrics, _WITHOUT_STATE) == 0 and number_of(metrics, _INSTALLED) >= 1:
            break
        if time.monotonic() - began > DEADLINE_S:
            raise SystemExit(f"After {DEADLINE_S:g} s the follower was still not made anew.")
    took = time.monotonic() - began
    print(_row("while rebuilt", during), flush=True)
    factor = during.percentile(0.99) / before.percentile(0.99)
    print(f"{megabytes} MB were rebuilt in {took:.0f} s; p99 was {factor:.2f} times what it was before.")


def _leads(nodes: dict[str, dict[str, Any]]) -> str:
    """The node that leads the most partitions."""
    pattern = re.compile(rb"^trizone_storagenode_leaders (\d+)", re.MULTILINE)
    return max(nodes, key=lambda name: number_of(nodes[name]["metrics"], pattern))
