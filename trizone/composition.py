"""Which processes make up a cluster on one machine, and the settings of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from cluster.configuration import PREFIX, with_values
from cluster.settings import (
    AutoAdminSettings,
    ReplicatorSettings,
    RouterSettings,
    Settings,
    SettingsError,
    StorageNodeSettings,
    format_settings,
)
from trizone.access import Access
from trizone.data_directory import ClusterFile, DataDirectory, ProcessRecord
from trizone.errors import CommandError
from trizone.ports import HOST

Leaders: TypeAlias = Literal["spread", "gathered"]
ZONE_LETTERS = "abc"
REPLACE_AFTER_S = 300.0
"""How long nobody must have heard of a storage node before its replicas are made anew on others."""
CORES_PER_NODE_TO_SPREAD = 2
"""With fewer cores than this for each storage node, gathered leaders are faster:
docs/decisions/0005-where-leaders-sit.md."""
AUTO_ADMIN = "auto-admin"
"""The first member of auto-admin; others are auto-admin-2 and so on."""
REPLICATOR = "replicator"


@dataclass(frozen=True)
class RegionPlan:
    """How a cluster is one of several regions: all their names, where its replicator listens, and where the others'
    do, as `ReplicatorSettings.peers` has them."""

    names: tuple[str, ...]
    listen: str
    peers: tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """One process of the cluster: how it is shown, and what it is told."""

    record: ProcessRecord
    settings: Settings

    @property
    def name(self) -> str:
        """Its name, which is also that of its settings file and log."""
        return self.record.name


def zones_of(region: str) -> list[str]:
    """The region's zones: us-east-1a, us-east-1b, us-east-1c."""
    return [region + letter for letter in ZONE_LETTERS]


def node_names(cluster: ClusterFile) -> dict[str, str]:
    """Zone by node name: us-east-1a-1 and so on, zone by zone."""
    return {f"{zone}-{number}": zone for zone in cluster.zones for number in range(1, cluster.nodes_per_zone + 1)}


def auto_admin_names(count: int) -> list[str]:
    """auto-admin, auto-admin-2 and so on."""
    return [AUTO_ADMIN, *(f"{AUTO_ADMIN}-{number}" for number in range(2, count + 1))]


def router_names(count: int) -> list[str]:
    """router-1 and so on."""
    return [f"router-{number}" for number in range(1, count + 1)]


def ports_wanted(cluster: ClusterFile, routers: int) -> dict[str, tuple[str, ...]]:
    """What each process listens for on a port of its own."""
    names = (*auto_admin_names(cluster.auto_admins), *node_names(cluster), *router_names(routers))
    return dict.fromkeys(names, ("listen", "metrics"))


def leaders_for(cluster: ClusterFile, cores: int) -> Leaders:
    """Where leaders sit on a machine with so many cores, unless the user says."""
    return "spread" if cores >= CORES_PER_NODE_TO_SPREAD * len(node_names(cluster)) else "gathered"


def compose(
    cluster: ClusterFile,
    data: Path,
    ports: dict[str, dict[str, int]],
    routers: int,
    port: int,
    leaders: Leaders,
    access: Access,
    regions: RegionPlan | None = None,
    replace_after: float = REPLACE_AFTER_S,
) -> list[Member]:
    """All members: auto-admin's, then the storage nodes, then the routers that share `port`, and the replicator of a
    cluster that is one of several `regions`."""

    def address(name: str, purpose: str = "listen") -> str:
        return f"{HOST}:{ports[name][purpose]}"

    def record(name: str, role: str, zone: str | None = None) -> ProcessRecord:
        return ProcessRecord(name, role, cluster.region, zone, None, address(name), address(name, "metrics"))

    nodes = node_names(cluster)
    admins = auto_admin_names(cluster.auto_admins)
    auto_admins = [
        Member(
            record(name, "autoadmin"),
            AutoAdminSettings(
                cluster_id=cluster.cluster_id,
                region=cluster.region,
                listen=address(name),
                metrics_listen=address(name, "metrics"),
                data=str(data / name),
                peers=tuple(address(other) for other in admins if other != name),
                leaders=leaders,
                replace_after=replace_after,
            ),
        )
        for name in admins
    ]
    storage_nodes = [
        Member(
            record(name, "storagenode", zone),
            StorageNodeSettings(
                cluster_id=cluster.cluster_id,
                region=cluster.region,
                name=name,
                zone=zone,
                listen=address(name),
                metrics_listen=address(name, "metrics"),
                data=str(data / "nodes" / name),
                auto_admins=tuple(address(admin) for admin in admins),
            ),
        )
        for name, zone in nodes.items()
    ]
    router_members = [
        Member(
            record(name, "router"),
            RouterSettings(
                cluster_id=cluster.cluster_id,
                region=cluster.region,
                name=name,
                listen=f"{HOST}:{port}",
                own_listen=address(name),
                metrics_listen=address(name, "metrics"),
                auto_admins=tuple(address(admin) for admin in admins),
                seeds=tuple(address(node) for node in nodes),
                auth=access.auth,
                key_file=access.key_file,
                credentials_file=access.credentials_file,
                regions=() if regions is None else regions.names,
            ),
        )
        for name in router_names(routers)
    ]
    replicators = []
    if regions is not None:
        metrics = address(REPLICATOR, "metrics")
        replicators = [
            Member(
                ProcessRecord(REPLICATOR, "replicator", cluster.region, None, None, regions.listen, metrics),
                ReplicatorSettings(
                    cluster_id=cluster.cluster_id,
                    region=cluster.region,
                    name=REPLICATOR,
                    listen=regions.listen,
                    metrics_listen=metrics,
                    auto_admins=tuple(address(admin) for admin in admins),
                    seeds=tuple(address(node) for node in nodes),
                    peers=regions.peers,
                ),
            )
        ]
    return [*auto_admins, *storage_nodes, *router_members, *replicators]


_VARIABLE = re.compile(rf"The environment variable {PREFIX}(\w+)")


def with_settings(member: Member, settings: Mapping[str, str]) -> Member:
    """The member with these settings, as far as its service has them. Raises CommandError."""
    try:
        return Member(member.record, with_values(member.settings, settings))
    except SettingsError as error:
        text = _VARIABLE.sub(lambda found: found[1].lower(), str(error))
        raise CommandError(f"--set: {text}") from error


def write_settings(directory: DataDirectory, member: Member) -> Path:
    """Write a member's settings file; its path."""
    path = directory.config / f"{member.name}.toml"
    head = f"# Written by `trizone up` at every start.\n# trizone {member.record.role} --config {path.name}\n"
    path.write_bytes(head.encode() + format_settings(member.settings))
    return path
