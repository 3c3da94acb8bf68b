"""A table, and a partition of it with its replicas."""

from __future__ import annotations

from tools.dashboards.model import Board, Panel, Query

_OF_TABLE = '{table=~"$table"}'


def _table_rate(name: str) -> str:
    return f"sum by (index) (rate(trizone_storagenode_table_{name}_total{_OF_TABLE}[$__rate_interval]))"


TABLE = Board(
    "trizone-table",
    "Trizone: a table",
    "What a table is asked, what that costs, and how its indexes follow.",
    (
        (
            "Requests",
            (
                Panel(
                    "Successful requests",
                    "Per second, by operation. Requests that name several tables are not among them.",
                    (
                        Query(
                            "sum by (operation)"
                            f" (rate(trizone_router_table_requests_total{_OF_TABLE}[$__rate_interval]))",
                            "{{operation}}",
                        ),
                    ),
                    unit="reqps",
                ),
                Panel(
                    "Mean latency",
                    "Of successful requests, by operation (SuccessfulRequestLatency).",
                    (
                        Query(
                            "sum by (operation)"
                            f" (rate(trizone_router_table_request_seconds_total{_OF_TABLE}[$__rate_interval]))"
                            " / sum by (operation)"
                            f" (rate(trizone_router_table_requests_total{_OF_TABLE}[$__rate_interval]))",
                            "{{operation}}",
                        ),
                    ),
                    unit="s",
                ),
                Panel(
                    "Failed requests",
                    "Per second, by operation.",
                    (
                        Query(
                            "sum by (operation)"
                            f" (rate(trizone_router_table_request_errors_total{_OF_TABLE}[$__rate_interval]))",
                            "{{operation}}",
                        ),
                    ),
                    unit="reqps",
                ),
            ),
        ),
        (
            "Capacity",
            (
                Panel(
                    "Consumed read capacity units",
                    "Per second; those of global indexes by their names.",
                    (Query(_table_rate("consumed_read_capacity_units"), "{{index}}"),),
                ),
                Panel(
                    "Consumed write capacity units",
                    "Per second; local indexes are part of the table's.",
                    (Query(_table_rate("consumed_write_capacity_units"), "{{index}}"),),
                ),
                Panel(
                    "Items that Query and Scan returned",
                    "Per second (ReturnedItemCount).",
                    (Query(_table_rate("returned_items"), "{{index}}"),),
                ),
                Panel(
                    "Failed conditions",
                    "Per second (ConditionalCheckFailedRequests).",
                    (Query(_table_rate("conditional_check_failed"), "{{index}}"),),
                ),
                Panel(
                    "Transaction conflicts",
                    "Writes per second that met an item held by a transaction (TransactionConflict).",
                    (Query(_table_rate("transaction_conflicts"), "{{index}}"),),
                ),
                Panel(
                    "Expired items",
                    "Deleted per second by time to live (TimeToLiveDeletedItemCount).",
                    (Query(_table_rate("items_expired"), "{{index}}"),),
                ),
            ),
        ),
        (
            "Data and indexes",
            (
                Panel(
                    "Items",
                    "On the leaders, of the table and of each global index.",
                    (
                        Query(
                            f"sum by (index) (trizone_storagenode_replica_items{_OF_TABLE}"
                            f" * trizone_storagenode_replica_leads{_OF_TABLE})",
                            "{{index}}",
                        ),
                    ),
                ),
                Panel(
                    "Size",
                    "DynamoDB's bytes of the items.",
                    (
                        Query(
                            f"sum by (index) (trizone_storagenode_replica_size_bytes{_OF_TABLE}"
                            f" * trizone_storagenode_replica_leads{_OF_TABLE})",
                            "{{index}}",
                        ),
                    ),
                    unit="bytes",
                ),
                Panel(
                    "Index lag",
                    "Age of the oldest write that an index does not show.",
                    (Query(f"max by (index) (trizone_storagenode_index_lag_seconds{_OF_TABLE})", "{{index}}"),),
                    unit="s",
                ),
                Panel(
                    "Rows on their way to an index",
                    "Rises while an index is created, or while it cannot follow.",
                    (Query(f"sum by (index) (trizone_storagenode_index_rows_waiting{_OF_TABLE})", "{{index}}"),),
                ),
            ),
        ),
    ),
    {"table": "label_values(trizone_storagenode_replica_leads, table)"},
)

_OF_PARTITION = '{table=~"$table",partition=~"$partition"}'

PARTITION = Board(
    "trizone-partition",
    "Trizone: a partition and its replicas",
    "Who leads, how far each replica is, and what waits.",
    (
        (
            "Replicas",
            (
                Panel(
                    "Leader",
                    "1 where the replica leads.",
                    (Query(f"trizone_storagenode_replica_leads{_OF_PARTITION}", "{{instance}} {{partition}}"),),
                ),
                Panel(
                    "Epoch",
                    "Rises by one with each leader.",
                    (Query(f"trizone_storagenode_replica_epoch{_OF_PARTITION}", "{{instance}} {{partition}}"),),
                ),
                Panel(
                    "Behind the longest log",
                    "Positions that a replica's log lacks (replication lag).",
                    (
                        Query(
                            "max by (table, index, partition)"
                            f" (trizone_storagenode_replica_last_position{_OF_PARTITION})"
                            " - on (table, index, partition) group_right ()"
                            f" trizone_storagenode_replica_last_position{_OF_PARTITION}",
                            "{{instance}} {{partition}}",
                        ),
                    ),
                ),
                Panel(
                    "Logged and not applied",
                    "Positions (apply lag).",
                    (
                        Query(
                            f"trizone_storagenode_replica_last_position{_OF_PARTITION}"
                            f" - trizone_storagenode_replica_applied_position{_OF_PARTITION}",
                            "{{instance}} {{partition}}",
                        ),
                    ),
                ),
                Panel(
                    "Log kept",
                    "Positions between the beginning of the log and its end.",
                    (
                        Query(
                            f"trizone_storagenode_replica_last_position{_OF_PARTITION}"
                            f" - trizone_storagenode_replica_first_position{_OF_PARTITION} + 1",
                            "{{instance}} {{partition}}",
                        ),
                    ),
                ),
                Panel(
                    "Writes",
                    "Positions of the log per second, on the leader.",
                    (
                        Query(
                            "sum by (partition) (rate(trizone_storagenode_replica_last_position"
                            f"{_OF_PARTITION}[$__rate_interval]) * trizone_storagenode_replica_leads{_OF_PARTITION})",
                            "{{partition}}",
                        ),
                    ),
                    unit="wps",
                ),
                Panel(
                    "Writes under way",
                    "Proposed and not applied.",
                    (
                        Query(
                            f"trizone_storagenode_replica_writes_waiting{_OF_PARTITION}", "{{instance}} {{partition}}"
                        ),
                    ),
                ),
                Panel(
                    "Items",
                    "In each replica; equal once all have applied the same.",
                    (Query(f"trizone_storagenode_replica_items{_OF_PARTITION}", "{{instance}} {{partition}}"),),
                ),
                Panel(
                    "Waits for a snapshot",
                    "1 while the replica is being rebuilt.",
                    (Query(f"trizone_storagenode_replica_without_state{_OF_PARTITION}", "{{instance}} {{partition}}"),),
                ),
            ),
        ),
    ),
    {
        "table": "label_values(trizone_storagenode_replica_leads, table)",
        "partition": 'label_values(trizone_storagenode_replica_leads{table=~"$table"}, partition)',
    },
)
