"""Nodes that answer heartbeats and cannot write, under load: somebody else leads, and nothing is lost or invented."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.conftest import Report
from tests.chaos.failing_disk import FailingDisk
from tests.chaos.real_cluster import running_cluster
from tests.chaos.trial import Trial

SEED = 20_269
STALL_S = 10.0


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_nothing_is_lost_while_disks_of_leaders_stall_and_fail(
    tmp_path: Path, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FailingDisk(tmp_path)
    disk.compile()
    for name, value in disk.environment().items():
        monkeypatch.setenv(name, value)
    async with running_cluster(tmp_path / "data", "--leaders", "spread") as cluster:
        trial = Trial(cluster, SEED)
        async with trial.working():
            for number, fault in enumerate(("stall 60", "EIO 0") * 2):
                name = trial.leader()

                async def gray(name: str = name, fault: str = fault) -> None:
                    disk.set(f"fdatasync {fault} {name}/log/")
                    await asyncio.sleep(STALL_S)
                    disk.set()

                report.say(f"gray disks: {await trial.fault(f'{name}, fdatasync {fault} ({number})', gray)}")
    trial.write(report, "gray-disks")
    assert list(trial.faults_found()) == []
    assert trial.load.failed == [], "two nodes could serve all the time"
