"""Regions, and auto-admin."""

from __future__ import annotations

from tools.dashboards.model import Board, Panel, Query

_LINK = "{{table}} to {{receiving_region}}"

REGIONS = Board(
    "trizone-regions",
    "Trizone: global tables",
    "What each region has yet to get.",
    (
        (
            "Links",
            (
                Panel(
                    "Lag",
                    "Age of the oldest change that a region may not have (ReplicationLatency).",
                    (Query("max by (table, receiving_region) (trizone_region_lag_seconds)", _LINK),),
                    unit="s",
                ),
                Panel(
                    "Pending changes",
                    "",
                    (Query("sum by (table, receiving_region) (trizone_region_pending_changes)", _LINK),),
                ),
                Panel(
                    "Changes sent",
                    "Per second.",
                    (
                        Query(
                            "sum by (table, receiving_region)"
                            " (rate(trizone_region_changes_sent_total[$__rate_interval]))",
                            _LINK,
                        ),
                    ),
                ),
                Panel(
                    "Conflicts",
                    "Changes per second that lost against a later write.",
                    (
                        Query(
                            "sum by (table, receiving_region) (rate(trizone_region_conflicts_total[$__rate_interval]))",
                            _LINK,
                        ),
                    ),
                ),
                Panel(
                    "Parked",
                    "1 while changes are too far ahead of a region's clock.",
                    (Query("max by (table, receiving_region) (trizone_region_parked)", _LINK),),
                ),
                Panel(
                    "Regions that do not answer",
                    "",
                    (
                        Query(
                            "sum by (receiving_region) (trizone_region_unreachable) or vector(0)",
                            "{{receiving_region}}",
                        ),
                    ),
                    good_below=1,
                ),
            ),
        ),
    ),
)

CONTROL = Board(
    "trizone-control",
    "Trizone: control plane",
    "Auto-admin: who leads, and whether everybody holds the newest catalog.",
    (
        (
            "Auto-admin",
            (
                Panel(
                    "Leads",
                    "1 on one member. Without it no table can be made; reads and writes go on.",
                    (Query("trizone_autoadmin_leads", "{{instance}}"),),
                ),
                Panel("Members that vote", "", (Query("max(trizone_autoadmin_members)", "members"),), single=True),
                Panel(
                    "Catalog version",
                    "Of every process; they are equal but for moments.",
                    (
                        Query("trizone_autoadmin_catalog_version", "auto-admin {{instance}}"),
                        Query("trizone_router_catalog_version", "router {{instance}}"),
                        Query("trizone_storagenode_catalog_version", "node {{instance}}"),
                    ),
                ),
                Panel(
                    "Storage nodes",
                    "Known, and reporting.",
                    (
                        Query("max(trizone_autoadmin_nodes_known)", "known"),
                        Query("max(trizone_autoadmin_nodes_live)", "live"),
                    ),
                ),
                Panel("Routers that watch", "", (Query("max(trizone_autoadmin_routers_watching)", "routers"),)),
                Panel(
                    "Tables and partitions",
                    "",
                    (
                        Query("max(trizone_autoadmin_tables)", "tables"),
                        Query("max(trizone_autoadmin_partitions)", "partitions"),
                        Query("max(trizone_autoadmin_tables_creating)", "tables being created"),
                    ),
                ),
            ),
        ),
    ),
)
