"""A storage node."""

from __future__ import annotations

from tools.dashboards.model import Board, Panel, Query

_OF_NODE = '{instance=~"$instance"}'


def _node(name: str) -> str:
    return f"trizone_storagenode_{name}{_OF_NODE}"


def _node_rate(name: str) -> str:
    return f"rate(trizone_storagenode_{name}_total{_OF_NODE}[$__rate_interval])"


NODE = Board(
    "trizone-node",
    "Trizone: a storage node",
    "Its log, stores, snapshots and scrub.",
    (
        (
            "Log",
            (
                Panel(
                    "Time of a flush",
                    "Writing and syncing one batch; every acknowledged write waits for two of them.",
                    tuple(
                        Query(
                            f"histogram_quantile({quantile}, sum by (le, instance)"
                            f" (rate(trizone_storagenode_flush_seconds_bucket{_OF_NODE}[$__rate_interval])))",
                            f"{{{{instance}}}} p{quantile * 100:g}",
                        )
                        for quantile in (0.5, 0.99)
                    ),
                    unit="s",
                ),
                Panel("Flushes", "Per second.", (Query(_node_rate("flushes"), "{{instance}}"),), unit="ops"),
                Panel(
                    "Size of a batch",
                    "Mean bytes of a flush: grows with load, as what arrives meanwhile shares the next one.",
                    (Query(f"{_node_rate('flushed_bytes')} / {_node_rate('flushes')}", "{{instance}}"),),
                    unit="bytes",
                ),
                Panel(
                    "Log on the disk",
                    "Against its bound; snapshots let it shrink.",
                    (
                        Query(_node("log_size_bytes"), "{{instance}}"),
                        Query(_node("log_size_bytes_max"), "{{instance}} bound"),
                    ),
                    unit="bytes",
                ),
                Panel(
                    "Log since the last snapshot",
                    "Of the replica that has most of it: what would be read again after a crash of the machine.",
                    (Query(_node("log_since_snapshot_bytes_max"), "{{instance}}"),),
                    unit="bytes",
                ),
                Panel(
                    "Waiting for a flush",
                    "Bytes.",
                    (Query(_node("log_pending_bytes"), "{{instance}}"),),
                    unit="bytes",
                ),
            ),
        ),
        (
            "Stores",
            (
                Panel(
                    "Stores on the disk",
                    "Files, and what of them holds rows; a file over twice that is replaced by its compact copy.",
                    (
                        Query(_node("store_file_bytes"), "{{instance}} files"),
                        Query(_node("store_live_bytes"), "{{instance}} rows"),
                    ),
                    unit="bytes",
                ),
                Panel("Disk free", "", (Query(_node("disk_free_bytes"), "{{instance}}"),), unit="bytes"),
                Panel(
                    "Growing writes refused",
                    "1 while the disk or the log is short of space.",
                    (Query(_node("disk_short_of_space"), "{{instance}}"),),
                ),
            ),
        ),
        (
            "Snapshots and scrub",
            (
                Panel(
                    "Snapshots",
                    "Taken and installed per second.",
                    (
                        Query(_node_rate("snapshots_taken"), "{{instance}} taken"),
                        Query(_node_rate("snapshots_installed"), "{{instance}} installed"),
                    ),
                    unit="ops",
                ),
                Panel(
                    "Snapshot traffic",
                    "Bytes per second to followers that are being rebuilt.",
                    (
                        Query(_node_rate("snapshot_sent_bytes"), "{{instance}} sent"),
                        Query(_node_rate("snapshot_received_bytes"), "{{instance}} received"),
                    ),
                    unit="Bps",
                ),
                Panel(
                    "Rows scrubbed",
                    "Per second.",
                    (Query(_node_rate("scrub_rows_checked"), "{{instance}}"),),
                ),
                Panel(
                    "Mismatches found by the scrub",
                    "Ever, by kind. Each is repaired from another replica and should be looked into.",
                    (
                        Query(
                            f"sum by (kind) (trizone_storagenode_scrub_mismatches_total{_OF_NODE})",
                            "{{kind}}",
                        ),
                    ),
                    single=True,
                    good_below=1,
                ),
                Panel("Requests", "From routers, per second.", (Query(_node_rate("requests"), "{{instance}}"),)),
                Panel(
                    "Longest event loop delay",
                    "Between two scrapes.",
                    (Query(f"trizone_loop_delay_seconds_max{_OF_NODE}", "{{instance}}"),),
                    unit="s",
                ),
            ),
        ),
    ),
    {"instance": "label_values(trizone_storagenode_info, instance)"},
)
