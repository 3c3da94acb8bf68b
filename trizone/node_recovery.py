"""`trizone node recover`: a stopped node's replicas go on without the majority that was lost for good."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster.configuration import read_settings
from cluster.local_disk import LocalDisk
from cluster.settings import SettingsError, StorageNodeSettings
from cluster.topology import Topology
from storagenode.catalog_copy import load_catalog
from storagenode.data_folder import FolderError, take_folder
from storagenode.log.errors import LogError
from storagenode.unsafe_recovery import RecoveryRefused, StoppedNode, Survivor, risk
from trizone.data_directory import DataDirectory
from trizone.errors import CommandError

WARNING = (
    "Nothing was changed. Do this only when the other replicas are lost for good: if their nodes ever run again, both "
    "sides may take writes, and one side's are lost. Say --unsafe to do it."
)


def recover(arguments: argparse.Namespace) -> int:
    """Show what the node holds or, with --partition and --unsafe, make these replicas lead alone."""
    settings = _settings(arguments.data, arguments.config, arguments.node)
    with _stopped(settings) as node:
        topology = load_catalog(LocalDisk(), settings.data)
        survivors = node.survivors()
        if not arguments.partition:
            for survivor in survivors:
                print(_line(survivor, topology))
            return 0
        orders = [_order(text) for text in arguments.partition]
        for survivor in survivors:
            if (survivor.partition, survivor.replica) in orders:
                print(risk(survivor, lambda each: _name(topology, each)), file=sys.stderr)
        node.check(orders)
        if not arguments.unsafe:
            raise CommandError(WARNING, code=1)
        node.lead_alone(orders)
    print(f"{len(orders)} partitions go on with this node's replicas once node {settings.name} is started.")
    return 0


def _settings(data: Path, files: Sequence[str], name: str) -> StorageNodeSettings:
    """Those of the node: its files, or what `trizone up` wrote into `data`. Raises CommandError."""
    environment: Mapping[str, str] = os.environ
    if not files:
        path = DataDirectory(data).config / f"{name}.toml"
        if not path.exists():
            raise CommandError(f"There is no node {name} of a cluster in {data}; name its settings with --config.")
        files, environment = [str(path)], {}
    try:
        settings = read_settings(StorageNodeSettings, files, environment)
    except SettingsError as error:
        raise CommandError(str(error)) from None
    if settings.name != name:
        raise CommandError(f"The settings are of node {settings.name}, not of {name}.")
    return settings


@contextmanager
def _stopped(settings: StorageNodeSettings) -> Iterator[StoppedNode]:
    """The node, which cannot be started meanwhile. Raises CommandError."""
    if not Path(settings.data).is_dir():
        raise CommandError(f"There is no data directory {settings.data}.")
    try:
        taken = take_folder(settings)
    except FolderError as error:
        raise CommandError(f"{error} Stop the node first.", code=1) from None
    try:
        node = StoppedNode(LocalDisk(), taken.settings.data, settings.log_segment_bytes)
        try:
            yield node
        finally:
            node.close()
    except (RecoveryRefused, LogError, OSError) as error:
        raise CommandError(f"{str(error).rstrip('.')}.", code=1) from None
    finally:
        os.close(taken.lock)


def _order(text: str) -> tuple[int, int]:
    partition, separator, replica = text.partition("=")
    if not (separator and partition.isdigit() and replica.isdigit()):
        raise CommandError(f"{text!r} does not name a partition and a replica, as in --partition 7=21.")
    return int(partition), int(replica)


def _line(survivor: Survivor, topology: Topology) -> str:
    partition = topology.partition(survivor.partition)
    table = None if partition is None else topology.table(partition.table)
    others = ", ".join(f"{member.replica} on {_name(topology, member.node)}" for member in survivor.others) or "nobody"
    return (
        f"partition {survivor.partition}={survivor.replica} of table {table.name if table else 'unknown'}: epoch "
        f"{survivor.epoch}, log to position {survivor.last_position}; it votes with {others}"
    )


def _name(topology: Topology, node: int) -> str:
    place = topology.nodes.get(node) or topology.former_nodes.get(node)
    return place.name if place is not None else f"node {node}"
