"""The whole cluster at a glance."""

from __future__ import annotations

from tools.dashboards.model import Board, Panel, Query


def _by_zone(expression: str) -> str:
    return f"sum by (zone) ({expression} * on (instance) group_left (zone) trizone_storagenode_info)"


OVERVIEW = Board(
    "trizone-overview",
    "Trizone: cluster overview",
    "Is the cluster well, zone by zone, and what do its clients see?",
    (
        (
            "Zones",
            (
                Panel(
                    "Storage nodes up",
                    "By zone. A zone may be missing without harm for as long as the others stay.",
                    (Query("count by (zone) (trizone_storagenode_info)", "{{zone}}"),),
                    single=True,
                    good_above=1,
                ),
                Panel(
                    "Leaders that serve",
                    "By zone. Where they sit is auto-admin's choice.",
                    (Query(_by_zone("trizone_storagenode_leaders_serving"), "{{zone}}"),),
                    single=True,
                ),
                Panel(
                    "Partitions without a serving leader",
                    "Above zero for more than a few seconds, some items can be neither written nor read strongly.",
                    (
                        Query(
                            "max by (region) (trizone_autoadmin_partitions"
                            " * on (instance) group_left (region) trizone_autoadmin_info)"
                            " - sum by (region) (trizone_storagenode_leaders_serving"
                            " * on (instance) group_left (region) trizone_storagenode_info)",
                            "{{region}}",
                        ),
                    ),
                    single=True,
                    good_below=1,
                ),
                Panel(
                    "Replicas that are damaged or wait for a snapshot",
                    "They are being rebuilt; the other replicas serve.",
                    (
                        Query(_by_zone("trizone_storagenode_replicas_without_state"), "{{zone}}: without state"),
                        Query(_by_zone("trizone_storagenode_replicas_damaged"), "{{zone}}: damaged"),
                    ),
                    single=True,
                    good_below=1,
                ),
                Panel(
                    "Disk free",
                    "The fullest node of each zone. Below its reserve a node refuses writes that grow the data.",
                    (
                        Query(
                            "min by (zone) (trizone_storagenode_disk_free_bytes"
                            " * on (instance) group_left (zone) trizone_storagenode_info)",
                            "{{zone}}",
                        ),
                    ),
                    unit="bytes",
                    single=True,
                ),
                Panel(
                    "Leader changes",
                    "Each is a pause of the partition; none is wanted while nothing is stopped or broken.",
                    (Query(_by_zone("rate(trizone_storagenode_elections_won_total[$__rate_interval])"), "{{zone}}"),),
                    unit="ops",
                ),
            ),
        ),
        (
            "What clients see",
            (
                Panel(
                    "Requests",
                    "Answers per second, by operation.",
                    (
                        Query(
                            "sum by (operation) (rate(trizone_router_requests_total[$__rate_interval]))",
                            "{{operation}}",
                        ),
                    ),
                    unit="reqps",
                ),
                Panel(
                    "Latency",
                    "From a request's last byte to its answer, over all routers.",
                    tuple(
                        Query(
                            f"histogram_quantile({quantile},"
                            " sum by (le) (rate(trizone_router_request_seconds_bucket[$__rate_interval])))",
                            f"p{quantile * 100:g}",
                        )
                        for quantile in (0.5, 0.9, 0.99)
                    ),
                    unit="s",
                ),
                Panel(
                    "Answers that are errors",
                    "By type; 4xx are the clients' own (UserErrors), 5xx ours (SystemErrors).",
                    (
                        Query(
                            'sum by (status, error) (rate(trizone_router_requests_total{status!="200"}'
                            "[$__rate_interval])) or vector(0)",
                            "{{status}} {{error}}",
                        ),
                    ),
                    unit="reqps",
                ),
                Panel(
                    "Consumed capacity",
                    "Units per second over all tables, as DynamoDB would count them.",
                    (
                        Query(
                            "sum(rate(trizone_storagenode_table_consumed_read_capacity_units_total[$__rate_interval]))",
                            "read",
                        ),
                        Query(
                            "sum(rate(trizone_storagenode_table_consumed_write_capacity_units_total[$__rate_interval]))",
                            "write",
                        ),
                    ),
                ),
                Panel(
                    "Availability",
                    "Part of the answers of the last 5 minutes that were not a server's error.",
                    (
                        Query(
                            '1 - (sum(rate(trizone_router_requests_total{status=~"5.."}[5m])) or vector(0))'
                            " / sum(rate(trizone_router_requests_total[5m]))",
                            "availability",
                        ),
                    ),
                    unit="percentunit",
                    single=True,
                    good_above=0.9999,
                ),
                Panel(
                    "Connections of clients",
                    "Open ones, by router.",
                    (Query("trizone_router_connections", "{{instance}}"),),
                ),
            ),
        ),
        (
            "Processes",
            (
                Panel(
                    "CPU",
                    "Cores used.",
                    (Query("rate(process_cpu_seconds_total[$__rate_interval])", "{{job}} {{instance}}"),),
                ),
                Panel(
                    "Memory",
                    "Resident.",
                    (Query("process_resident_memory_bytes", "{{job}} {{instance}}"),),
                    unit="bytes",
                ),
                Panel(
                    "Event loop delay",
                    "How late a timer rang, on average: what every request waits for besides its own work.",
                    (
                        Query(
                            "rate(trizone_loop_delay_seconds_total[$__rate_interval])"
                            " / rate(trizone_loop_delay_timers_total[$__rate_interval])",
                            "{{job}} {{instance}}",
                        ),
                    ),
                    unit="s",
                ),
            ),
        ),
    ),
)
