"""The load harness loads, measures every workload, and counts what goes wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import requests
from bench.__main__ import ALL, bench
from bench.comparison import COMPARISON
from bench.expressions import EXPRESSIONS
from bench.lag import row
from bench.load import Measured, all_of, run
from bench.peers import OURS, Cell, plot, table, write
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


@pytest.mark.parametrize("workloads", [EXPRESSIONS, TRANSACTIONS, COMPARISON])
async def test_other_workloads_are_measured(
    workloads: dict[str, Any], trizone: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ITEMS", 50)
    monkeypatch.setattr(requests, "QUERY_PARTITIONS", 2)
    monkeypatch.setattr(requests, "PREPARED", 100)
    monkeypatch.setattr("bench.__main__.WARM_UP_S", 0.05)
    monkeypatch.setattr("bench.__main__.ALL", ALL | COMPARISON)
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


def test_lags_are_told_in_milliseconds() -> None:
    found = row("region", [0.001 * number for number in range(100, 0, -1)])
    assert found.split() == ["region", "100", "51.0", "100.0"]


def test_percentiles() -> None:
    measured = Measured(latencies=[float(number) for number in range(100, 0, -1)])
    assert (measured.percentile(0.5), measured.percentile(0.99)) == (51.0, 100.0)
    assert Measured().percentile(0.5) == 0.0


def test_a_comparison_is_written_as_table_plot_and_figures(tmp_path: Path) -> None:
    cells = [
        Cell(OURS, "put 1 KB", 64, 3_000.0, 1.0, 2.0, 300.0, 0),
        Cell("another", "put 1 KB", 64, 2_000.0, 1.0, 2.0, 300.0, 0),
        Cell(OURS, "transact 2", 64, 500.0, 1.0, 2.0, 300.0, 0),
        Cell("another", "transact 2", 64, 0.0, 0.0, 0.0, 0.0, 9),
    ]
    assert "| put 1 KB | 3,000 | 2,000 | 1.50 |" in table(cells)
    write(cells, tmp_path / "peers")
    assert len(json.loads((tmp_path / "peers.json").read_text())["cells"]) == 4
    assert (tmp_path / "peers.md").read_text().endswith(table(cells))
    drawn = ElementTree.fromstring(plot(cells))
    widths = [float(bar.get("width", "")) for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths[1] / widths[0] == pytest.approx(2 / 3, abs=0.01)
