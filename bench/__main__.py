"""`make bench`: requests per second, latency, and CPU per request over all processes of a cluster.

Starts a cluster of its own, or measures one that runs: --url URL --pids 1,2,3. Client and cluster share the machine.
"""

from __future__ import annotations

import argparse
import signal
import sys
import uuid
from collections.abc import Iterable
from contextlib import nullcontext

import uvloop

from bench import growth, lag, rebuild
from bench.calls import call, prepare
from bench.expressions import EXPRESSIONS
from bench.load import Measured, all_of, for_seconds, run
from bench.requests import WORKLOADS, Make, Requests
from bench.server import cpu_seconds, started_cluster
from bench.transactions import TRANSACTIONS

LOAD_CONNECTIONS = 16
WARM_UP_S = 0.5
KINDS = {"single": WORKLOADS, "expressions": EXPRESSIONS, "transactions": TRANSACTIONS}
ALL = WORKLOADS | EXPRESSIONS | TRANSACTIONS


async def measure(
    requests: Requests, workload: str, connections: int, seconds: float, pids: list[int], make: Make | None = None
) -> tuple[Measured, float]:
    """A run of one workload after a short one that does not count; with the CPU seconds that the cluster used."""
    stream = requests.workload(workload, make or ALL[workload])
    await run(requests.endpoint, for_seconds(stream, WARM_UP_S), connections)
    before = cpu_seconds(pids)
    measured = await run(requests.endpoint, for_seconds(stream, seconds), connections)
    return measured, cpu_seconds(pids) - before


def row(workload: str, connections: int, measured: Measured, cpu: float | None) -> str:
    """A line of the table."""
    answers = len(measured.latencies)
    cost = f"{1e6 * cpu / answers:7.0f}" if cpu is not None and answers else "      -"
    return (
        f"{workload:14} {connections:4} {answers / measured.seconds:9,.0f} {1e3 * measured.percentile(0.5):8.2f}"
        f" {1e3 * measured.percentile(0.99):8.2f} {cost} {measured.errors:6}"
    )


async def bench(
    endpoint: str, pids: list[int], connections: list[int], seconds: float, workloads: Iterable[str] = WORKLOADS
) -> None:
    """Load a table, measure these workloads, print a table, drop the table."""
    table = f"bench-{uuid.uuid4()}"
    requests = Requests(endpoint, table)
    prepare(endpoint, table)
    try:
        loaded = await run(endpoint, all_of(requests.loading()), LOAD_CONNECTIONS)
        if loaded.errors:
            sys.exit(f"{loaded.errors} of the items could not be loaded.")
        print("workload       conn     req/s   p50 ms   p99 ms  CPU µs errors")
        for workload in workloads:
            for count in connections:
                measured, cpu = await measure(requests, workload, count, seconds, pids)
                print(row(workload, count, measured, cpu if pids else None), flush=True)
    finally:
        call(endpoint, "DeleteTable", {"TableName": table})


def measure_rebuild(megabytes: int, seconds: float) -> None:
    """A cluster of its own, one of whose followers is made anew."""
    with started_cluster(["--leaders", "gathered", *rebuild.SMALL_LOG]) as (endpoint, _, data):
        requests = Requests(endpoint.rstrip("/"), f"bench-{uuid.uuid4()}")
        prepare(requests.endpoint, requests.table)
        uvloop.run(rebuild.rebuild(requests, data, megabytes, seconds))


def main() -> None:
    """Read the options and measure."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leaves no cluster behind
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--url", help="measure a cluster that runs already")
    parser.add_argument("--pids", default="", help="its processes, for the CPU per request: 1,2,3")
    parser.add_argument("--connections", default="1,16,64", help="(1,16,64)")
    parser.add_argument("--seconds", type=float, default=5.0, help="per measurement (5)")
    parser.add_argument("--leaders", choices=("spread", "gathered"), help="of a cluster of its own (as trizone up)")
    parser.add_argument("--routers", default="1", help="of a cluster of its own (1)")
    parser.add_argument(
        "--workloads", choices=(*KINDS, "rebuild", "lag", "growth"), default="single", help="what is measured (single)"
    )
    parser.add_argument("--megabytes", type=int, default=200, help="of data in a follower that is rebuilt (200)")
    parser.add_argument("--rate", type=float, default=500.0, help="writes per second while lag is measured (500)")
    parser.add_argument("--items", type=int, default=2_000_000, help="of 1 KB, that a table grows to (2000000)")
    parser.add_argument("--pending", type=int, default=100_000, help="changes a region that was away lacks (100000)")
    options = parser.parse_args()
    if options.items <= growth.SMALL:
        parser.error(f"--items must be more than {growth.SMALL}")
    pids = [int(pid) for pid in options.pids.split(",") if pid]
    own = ["--routers", options.routers, *(["--leaders", options.leaders] if options.leaders else [])]
    if options.workloads == "rebuild":
        measure_rebuild(options.megabytes, options.seconds)
        return
    if options.workloads == "growth":
        growth.growth(options.items, options.seconds)
        return
    if options.workloads == "lag":
        with lag.running_regions() as regions:
            uvloop.run(lag.lag(regions, options.rate, options.seconds, options.pending))
        return
    cluster = nullcontext((options.url, pids, None)) if options.url else started_cluster(own)
    with cluster as (endpoint, processes, _):
        connections = [int(count) for count in options.connections.split(",")]
        workloads = KINDS[options.workloads]
        uvloop.run(bench(endpoint.rstrip("/"), processes, connections, options.seconds, workloads))


if __name__ == "__main__":
    main()
