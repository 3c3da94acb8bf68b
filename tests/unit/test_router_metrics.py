"""What a router counts, by operation and by table."""

from __future__ import annotations

import pytest

from router import metrics
from router.metrics import RequestMetrics

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"


def told(requests: RequestMetrics, name: str) -> dict[tuple[str, ...], float]:
    """The values of the samples of this name, by their labels' values."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in requests.collect()
        for sample in family.samples
        if sample.name == name
    }


def test_successes_and_errors_of_a_table() -> None:
    requests = RequestMetrics()
    requests.answered("GetItem", "orders", 200, "", 0.003)
    requests.answered("GetItem", ARN, 200, "", 0.001)
    requests.answered("GetItem", "orders", 400, "ValidationException", 0.001)
    assert told(requests, "trizone_router_table_requests_total") == {("orders", "GetItem"): 2}
    assert told(requests, "trizone_router_table_request_errors_total") == {("orders", "GetItem"): 1}
    assert told(requests, "trizone_router_table_request_seconds_total") == {("orders", "GetItem"): pytest.approx(0.004)}
    assert told(requests, "trizone_router_requests_total") == {
        ("GetItem", "200", ""): 2,
        ("GetItem", "400", "ValidationException"): 1,
    }
    assert told(requests, "trizone_router_request_seconds_bucket")["GetItem", "0.002"] == 2


def test_names_that_only_fail_make_no_series() -> None:
    requests = RequestMetrics()
    for number in range(10):
        requests.answered("GetItem", f"made-up-{number}", 400, "ResourceNotFoundException", 0.001)
    assert told(requests, "trizone_router_table_request_errors_total") == {("", "GetItem"): 10}


def test_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "ROWS_MAX", 3)
    requests = RequestMetrics()
    for number in range(10):
        requests.answered("GetItem", f"table-{number}", 200, "", 0.001)
    counted = told(requests, "trizone_router_table_requests_total")
    assert sum(counted.values()) == 10
    assert len(counted) <= 4
    assert counted["", "GetItem"] == 7
