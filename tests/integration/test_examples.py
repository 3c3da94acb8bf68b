"""The examples run as they stand."""

from __future__ import annotations

import pytest

from examples import ecommerce


def test_ecommerce(trizone: str, capsys: pytest.CaptureFixture[str]) -> None:
    ecommerce.run(trizone)
    said = capsys.readouterr().out
    assert "WRONG" not in said
    assert said.count("   ok  ") >= 18
