"""What a replicator tells of its links, in metrics and on the terminal."""

from __future__ import annotations

import json

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from cluster.wire import regions_pb2
from replicator.status import LinkState, ReplicatorMetrics, TableLink
from tests.unit.regional_samples import WEST
from trizone.region_report import show_status

NOW = 1_000.0


class Replicator:
    """One table on its way to one region, in two partitions."""

    def __init__(self) -> None:
        self.states = [
            LinkState(sent=5, conflicts=1, waiting=3, waiting_since_ms=990_000),
            LinkState(sent=2, waiting=1, waiting_since_ms=995_000, parked=True),
        ]
        self.states[1].failed("a clock is wrong", 999.0)

    def table_links(self) -> list[TableLink]:
        return [TableLink("orders", WEST, "ACTIVE", self.states)]

    def now(self) -> float:
        return NOW

    def unreachable(self) -> list[str]:
        return [WEST]


def test_metrics_add_partitions_up_and_tell_the_longest_lag() -> None:
    registry = CollectorRegistry()
    registry.register(ReplicatorMetrics(Replicator()))
    shown = generate_latest(registry).decode()
    labels = f'{{receiving_region="{WEST}",table="orders"}}'
    for line in (
        f"trizone_region_lag_seconds{labels} 10.0",
        f"trizone_region_pending_changes{labels} 4.0",
        f"trizone_region_parked{labels} 1.0",
        f"trizone_region_changes_sent_total{labels} 7.0",
        f"trizone_region_conflicts_total{labels} 1.0",
        f'trizone_region_unreachable{{receiving_region="{WEST}"}} 1.0',
    ):
        assert line in shown


def reply() -> regions_pb2.StatusReply:
    (link,) = Replicator().table_links()
    peer = regions_pb2.PeerStatus(region=WEST, reachable=False, last_error="nobody there")
    return regions_pb2.StatusReply(region="us-east-1", links=[link.to_wire(NOW)], peers=[peer])


def test_status_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_status({"us-east-1": reply(), "sa-east-1": None}, as_json=True) == 1
    here, missing = json.loads(capsys.readouterr().out)
    assert missing == {"region": "sa-east-1", "answers": False}
    assert here["peers"] == [{"region": WEST, "reachable": False, "last_error": "nobody there"}]
    assert here["links"] == [
        {
            "table": "orders",
            "region": WEST,
            "state": "ACTIVE",
            "pending": 4,
            "lag_seconds": 10.0,
            "sent": 7,
            "conflicts": 1,
            "parked": True,
            "last_error": "a clock is wrong",
            "last_error_ms": 999_000,
        }
    ]


def test_status_for_people(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert show_status({"us-east-1": reply()}, as_json=False) == 0
    shown = capsys.readouterr().out
    assert f"us-east-1 cannot reach {WEST}: nobody there" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("orders")]
    assert line.split() == [
        "orders",
        "us-east-1",
        WEST,
        "parked",
        "10.0",
        "s",
        "4",
        "7",
        "1",
        *["a", "clock", "is", "wrong"],
    ]


def test_status_without_any_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_status({"us-east-1": regions_pb2.StatusReply()}, as_json=False) == 0
    assert capsys.readouterr().out == "no global tables yet\n"
