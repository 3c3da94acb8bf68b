"""The examples run as they stand."""

from __future__ import annotations

import pytest

from examples import ecommerce, stream_aggregate


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
