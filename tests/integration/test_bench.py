"""The load harness loads, measures every workload, and counts what goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bench import requests
from bench.__main__ import bench
from bench.expressions import EXPRESSIONS
from bench.load import Measured, all_of, run
from bench.requests import WORKLOADS, http_request
from bench.transactions import TRANSACTIONS


async def test_every_workload_is_measured(
    trizone: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ITEMS", 50)
    monkeypatch.setattr(requests, "QUERY_PARTITIONS", 2)
    monkeypatch.setattr("bench.__main__.WARM_UP_S", 0.05)
    await bench(trizone, [], [2], 0.2)
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row[:14].strip() for row in rows] == list(WORKLOADS)
    assert all(row.split()[-1] == "0" for row in rows), "errors"
    assert all(float(row[19:29].replace(",", "")) > 0 for row in rows), "requests a second"


@pytest.mark.parametrize("workloads", [EXPRESSIONS, TRANSACTIONS])
async def test_other_workloads_are_measured(
    workloads: dict[str, Any], trizone: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ITEMS", 50)
    monkeypatch.setattr(requests, "QUERY_PARTITIONS", 2)
    monkeypatch.setattr(requests, "PREPARED", 100)
    monkeypatch.setattr("bench.__main__.WARM_UP_S", 0.05)
    await bench(trizone, [], [1], 0.2, workloads)
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row[:14].strip() for row in rows] == list(workloads)
    assert all(row.split()[-1] == "0" for row in rows), "one client is in nobody's way"


async def test_wrong_answers_and_broken_connections_are_errors(trizone: str) -> None:
    nonsense = http_request(trizone, "GetItem", {})
    measured = await run(trizone, all_of([nonsense] * 3), connections=1)
    assert (measured.errors, measured.latencies) == (3, [])

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        measured = await run(f"http://127.0.0.1:{port}", all_of([nonsense] * 3), connections=1)
    assert measured.errors == 1
    assert measured.latencies == []


def test_percentiles() -> None:
    measured = Measured(latencies=[float(number) for number in range(100, 0, -1)])
    assert (measured.percentile(0.5), measured.percentile(0.99)) == (51.0, 100.0)
    assert Measured().percentile(0.5) == 0.0
