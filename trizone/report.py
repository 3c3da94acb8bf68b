"""A cluster's status on the terminal: coloured tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from trizone.nodes import NodeStatus
    from trizone.status import PartitionStatus, ReplicaStatus, Status

ROLE_COLOURS = {"leader": "green", "follower": "cyan", "candidate": "yellow"}
NODE_COLOURS = {"live": "green", "draining": "yellow"}
PARTITION_COLOURS = {"ok": "green", "rebuilding": "yellow"}
HASH_DIGITS = 8
PIPE_CHARACTERS = 120


def show(status: Status, *, as_json: bool) -> None:
    """Print the status on standard output."""
    if as_json:
        json.dump(asdict(status), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    from rich.console import Console

    console = Console()
    console.print(f"endpoint [bold]{status.endpoint}[/bold]")
    console.print(_processes(status))
    if len(status.auto_admins) > 1:
        console.print(_auto_admins(status))
    if status.partitions:
        console.print(_partitions(status))
    else:
        console.print("no tables yet")


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table


def _processes(status: Status) -> Table:
    table = _table("processes", "name", "role", "zone", "pid", "address", "metrics")
    for process in status.processes:
        pid = str(process.pid) if process.pid else "[red]down[/red]"
        table.add_row(process.name, process.role, process.zone or "", pid, process.address, process.metrics)
    return table


def show_nodes(nodes: Sequence[NodeStatus]) -> None:
    """Print storage nodes on standard output."""
    from rich.console import Console

    table = _table("storage nodes", "name", "zone", "state", "replicas", "leaders", "disk free", "id")
    for node in nodes:
        colour = NODE_COLOURS.get(node.state, "red")
        state = f"{node.state} for {node.silent_seconds} s" if node.silent_seconds else node.state
        replicas = f"{node.replicas} ({node.leaving} leaving)" if node.leaving else str(node.replicas)
        free = "" if node.disk_free is None else f"{node.disk_free >> 20} MiB"
        table.add_row(
            node.name,
            node.zone,
            f"[{colour}]{state}[/{colour}]",
            replicas,
            str(node.leaders),
            free,
            str(node.id),
        )
    console = Console()
    if not console.is_terminal:  # a pipe has no width to keep to, and ids are to be whole
        console.width = PIPE_CHARACTERS
    console.print(table)


def _auto_admins(status: Status) -> Table:
    table = _table("auto-admin", "member", "role", "epoch", "position/applied")
    for member in status.auto_admins:
        colour = ROLE_COLOURS.get(member.role, "red")
        at = "" if member.position is None else f"{member.position}/{member.applied}"
        table.add_row(member.name, f"[{colour}]{member.role}[/{colour}]", str(member.epoch or ""), at)
    return table


def _partitions(status: Status) -> Table:
    table = _table(
        "partitions", "table", "partition", "from hash", "epoch", "leader", "state", "replicas (position/applied)"
    )
    for partition in status.partitions:
        colour = PARTITION_COLOURS.get(partition.state, "red")
        table.add_row(
            partition.table,
            str(partition.partition),
            partition.range[0][:HASH_DIGITS],
            str(partition.epoch),
            f"[green]{partition.leader}[/green]" if partition.leader else "[red]none[/red]",
            f"[{colour}]{partition.state}[/{colour}]",
            _replicas(partition),
        )
    return table


def _replicas(partition: PartitionStatus) -> str:
    return "  ".join(_replica(replica) for replica in partition.replicas)


def _replica(replica: ReplicaStatus) -> str:
    colour = ROLE_COLOURS.get(replica.role, "red")
    if replica.position is None:
        return f"[{colour}]{replica.node}[/{colour}]"
    return f"[{colour}]{replica.node}[/{colour}] {replica.position}/{replica.applied}"
