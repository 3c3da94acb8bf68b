"""The examples run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import ecommerce, stream_aggregate, two_regions
from tests.integration.regions import Regions


def test_ecommerce(trizone: str, capsys: pytest.CaptureFixture[str]) -> None:
    ecommerce.run(trizone)
    said = capsys.readouterr().out
    assert "WRONG" not in said
    assert said.count("   ok  ") >= 18


def test_stream_aggregate(trizone: str, capsys: pytest.CaptureFixture[str]) -> None:
    totals = stream_aggregate.run(trizone)
    said = capsys.readouterr().out
    assert "WRONG" not in said
    assert totals.records > 100


def test_two_regions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Regions(tmp_path, two_regions.FIRST, two_regions.SECOND) as regions:
        endpoints = [f"http://{regions.clusters[name].router.address}" for name in regions.names]
        two_regions.run(*endpoints)
    said = capsys.readouterr().out
    assert "WRONG" not in said
    assert said.count("   ok  ") == 5
