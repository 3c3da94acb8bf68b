"""`make bench-peers`: Trizone beside other servers of DynamoDB's API, in turns, on this machine.

Installs the peers into a folder of their own, starts each, and for every workload measures one after the other. Writes
a table and a plot. All peers are single processes that keep one copy; only roto's durable mode syncs before it answers.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from bench.__main__ import LOAD_CONNECTIONS, measure
from bench.calls import prepare
from bench.comparison import COMPARISON
from bench.load import all_of, run
from bench.requests import Requests
from bench.server import started_cluster

FOLDER = Path(".peers")
START_S = 30.0
PYTHON_PACKAGES = ("ministack==1.5.33", "roto-aws==0.10.1")
NODE_PACKAGES = ("dynalite@4.0.0",)
OURS = "trizone"


@dataclass(frozen=True)
class Peer:
    """A server that is compared. `{port}` and `{data}` are filled into its command."""

    name: str
    note: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


_DYNALITE = ("node", f"{FOLDER}/node_modules/dynalite/cli.js", "--host", "127.0.0.1", "--port", "{port}")
PEERS = (
    Peer("dynalite memory", "in memory", _DYNALITE),
    Peer("dynalite disk", "on disk, not synced", (*_DYNALITE, "--path", "{data}")),
    Peer("roto memory", "in memory", (f"{FOLDER}/venv/bin/roto-server", "--port", "{port}", "--ephemeral")),
    Peer(
        "roto durable",
        "synced before each answer",
        (f"{FOLDER}/venv/bin/roto-server", "--port", "{port}", "--durable", "--data-dir", "{data}"),
    ),
    Peer(
        "ministack",
        "in memory",
        (f"{FOLDER}/venv/bin/ministack",),
        (("BIND_HOST", "127.0.0.1"), ("GATEWAY_PORT", "{port}"), ("IOT_MTLS_ENABLED", "0"), ("LOG_LEVEL", "WARNING")),
    ),
)


@dataclass(frozen=True)
class Cell:
    """One measurement. Latencies in milliseconds, CPU in microseconds a request; a peer may not know an operation."""

    server: str
    workload: str
    connections: int
    requests_per_second: float
    p50: float
    p99: float
    cpu: float
    errors: int


def install() -> None:
    """Get the peers that are not there yet."""
    python = FOLDER / "venv"
    if not (python / "bin" / "roto-server").exists():
        subprocess.run([sys.executable, "-m", "venv", str(python)], check=True)
        subprocess.run([str(python / "bin" / "pip"), "install", "-q", *PYTHON_PACKAGES], check=True)
    if not (FOLDER / "node_modules" / "dynalite").exists():
        subprocess.run(["npm", "install", "--silent", "--prefix", str(FOLDER), *NODE_PACKAGES], check=True)


@contextmanager
def started(peer: Peer, data: Path) -> Iterator[tuple[str, list[int]]]:
    """A peer that runs: its endpoint and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        filled = {"port": probe.getsockname()[1], "data": data}
    environment = {**os.environ, **{name: value.format(**filled) for name, value in peer.environment}}
    command = [part.format(**filled) for part in peer.command]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await(int(filled["port"]), peer.name)
            yield f"http://127.0.0.1:{filled['port']}", [process.pid]
        finally:
            process.terminate()


def _await(port: int, name: str) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(f"{name} did not start within {START_S:g} s.")
            time.sleep(0.1)
        else:
            return


async def compare(servers: dict[str, tuple[str, list[int]]], connections: int, seconds: float) -> list[Cell]:
    """Every workload on every server, the servers in turns."""
    made = {}
    for name, (endpoint, _) in servers.items():
        made[name] = Requests(endpoint, f"bench-{uuid.uuid4()}")
        prepare(endpoint, made[name].table)
        await run(endpoint, all_of(made[name].loading()), LOAD_CONNECTIONS)
    cells = []
    for workload, make in COMPARISON.items():
        for name, (_, pids) in servers.items():
            measured, cpu = await measure(made[name], workload, connections, seconds, pids, make)
            answers = len(measured.latencies)
            cells.append(
                Cell(
                    name,
                    workload,
                    connections,
                    round(answers / measured.seconds, 1),
                    round(1e3 * measured.percentile(0.5), 2),
                    round(1e3 * measured.percentile(0.99), 2),
                    round(1e6 * cpu / answers, 1) if answers else 0.0,
                    measured.errors,
                )
            )
            print(f"{workload:14} {name:16} {cells[-1].requests_per_second:9,.0f} /s", flush=True)
    return cells


def table(cells: list[Cell]) -> str:
    """Markdown: requests a second, and beside ours how many times the best peer that is."""
    servers = list(dict.fromkeys(cell.server for cell in cells))
    found = {(cell.server, cell.workload): cell for cell in cells}
    lines = [f"| workload | {' | '.join(servers)} | ours / best peer |", "|---|" + "--:|" * (len(servers) + 1)]
    for workload in dict.fromkeys(cell.workload for cell in cells):
        rates = {server: found[server, workload].requests_per_second for server in servers}
        best = max((rate for server, rate in rates.items() if server != OURS), default=0.0)
        shown = [f"{rate:,.0f}" if rate else "–" for rate in rates.values()]
        lines.append(f"| {workload} | {' | '.join(shown)} | {rates[OURS] / best:.2f} |" if best else f"| {workload} |")
    return "\n".join(lines) + "\n"


def plot(cells: list[Cell]) -> str:
    """The same as bars, in SVG: for each workload the servers' rates as parts of the largest."""
    servers = list(dict.fromkeys(cell.server for cell in cells))
    colors = ("#d62728", "#1f77b4", "#aec7e8", "#2ca02c", "#98df8a", "#9467bd", "#8c564b")
    bars, y = [], 30
    for workload in dict.fromkeys(cell.workload for cell in cells):
        rates = {cell.server: cell.requests_per_second for cell in cells if cell.workload == workload}
        largest = max(rates.values()) or 1.0
        bars.append(f'<text x="5" y="{y + 10}" font-weight="bold">{workload}</text>')
        for number, server in enumerate(servers):
            y += 14
            width = 380 * rates[server] / largest
            bars.append(f'<text x="15" y="{y + 10}">{server}</text>')
            bars.append(f'<rect x="125" y="{y + 1}" width="{width:.1f}" height="11" fill="{colors[number % 7]}"/>')
            bars.append(f'<text x="{130 + width:.1f}" y="{y + 10}">{rates[server]:,.0f}</text>')
        y += 24
    size = f'width="580" height="{y + 10}" font-family="sans-serif" font-size="10"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join((head, '<text x="5" y="15" font-size="13">requests per second</text>', *bars, "</svg>", ""))


def write(cells: list[Cell], path: Path) -> None:
    """The figures with date, machine and command, the table and the plot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "command": "make bench-peers " + " ".join(sys.argv[1:]),
        "cells": [asdict(cell) for cell in cells],
    }
    path.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n")
    path.with_suffix(".md").write_text(f"{about['date']}, {about['machine']}, `{about['command']}`\n\n{table(cells)}")
    path.with_suffix(".svg").write_text(plot(cells))


def main() -> None:
    """Install, start, measure, write."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(prog="make bench-peers", description=__doc__)
    parser.add_argument("--connections", type=int, default=64, help="(64)")
    parser.add_argument("--seconds", type=float, default=5.0, help="per measurement (5)")
    parser.add_argument("--peers", default=",".join(peer.name for peer in PEERS), help="which ones (all)")
    parser.add_argument("--out", type=Path, default=Path("bench/results/peers"), help="files to write, without ending")
    options = parser.parse_args()
    install()
    wanted = [peer for peer in PEERS if peer.name in options.peers.split(",")]
    with ExitStack() as stack:
        endpoint, pids, data = stack.enter_context(started_cluster([]))
        servers = {OURS: (endpoint.rstrip("/"), pids)}
        for peer in wanted:
            servers[peer.name] = stack.enter_context(started(peer, data.parent / peer.name.replace(" ", "-")))
        cells = uvloop.run(compare(servers, options.connections, options.seconds))
    write(cells, options.out)
    print(table(cells))


if __name__ == "__main__":
    main()
