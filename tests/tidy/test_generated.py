"""Generated protobuf code is what today's proto/ gives."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.tidy.sources import ROOT

# The generator writes its own version into its output; a newer one that generates the same is fresh.
GENERATOR_VERSION = re.compile(
    r"^# Protobuf Python Version: .*$|ValidateProtobufRuntimeVersion\([^)]*\)|^    \d+,$", re.MULTILINE
)


def _generated(folder: Path) -> dict[str, str]:
    files = [*folder.glob("*_pb2.py"), *folder.glob("*_pb2.pyi")]
    return {file.name: GENERATOR_VERSION.sub("", file.read_text()) for file in files}


def test_wire_is_fresh(tmp_path: Path) -> None:
    subprocess.run([ROOT / "tools" / "proto", tmp_path], check=True)
    fresh = _generated(tmp_path / "cluster" / "wire")
    assert fresh
    committed = _generated(ROOT / "cluster" / "wire")
    stale = sorted(name for name in fresh | committed if fresh.get(name) != committed.get(name))
    assert not stale, "`make proto` brings cluster/wire up to date"


def test_wire_holds_generated_code_and_proto_holds_contracts_only() -> None:
    assert {path.suffix for path in (ROOT / "proto").iterdir()} == {".proto"}
