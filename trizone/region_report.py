"""How far global tables' changes have come, on the terminal: a table for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

from google.protobuf.json_format import MessageToDict


def show_status(found: dict[str, Any], *, as_json: bool) -> int:
    """Print the replicators' answers, by region, None where there was none; 1 if one of them is missing."""
    missing = int(any(reply is None for reply in found.values()))
    if as_json:
        json.dump(_rows(found), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return missing
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title="links", title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in ("table", "from", "to", "replica", "lag", "pending", "sent", "conflicts resolved", "last error"):
        table.add_column(column)
    links = 0
    for region, reply in found.items():
        if reply is None:
            console.print(f"[red]the replicator of {region} does not answer[/red]")
            continue
        for peer in reply.peers:
            if not peer.reachable:
                console.print(f"[red]{region} cannot reach {peer.region}: {peer.last_error}[/red]")
        for link in reply.links:
            links += 1
            table.add_row(
                link.table,
                region,
                link.region,
                "[red]parked[/red]" if link.parked else link.state,
                f"{link.lag_seconds:.1f} s",
                str(link.pending),
                str(link.sent),
                str(link.conflicts),
                link.last_error,
            )
    console.print(table if links else "no global tables yet")
    return missing


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for region, reply in found.items():
        if reply is None:
            rows.append({"region": region, "answers": False})
            continue
        shown = MessageToDict(reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        for link in shown["links"]:
            for count in ("pending", "sent", "conflicts", "last_error_ms"):
                link[count] = int(link[count])
        rows.append({"region": region, "answers": True, "links": shown["links"], "peers": shown["peers"]})
    return rows
