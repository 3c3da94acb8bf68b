"""What a service's process does at its start and end."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.process import StartError, run_service
from cluster.settings import AutoAdminSettings

SETTINGS = b'cluster_id = "c"\ndata = "d"\n'


@pytest.fixture(autouse=True)
def _root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    path = tmp_path / "settings.toml"
    path.write_bytes(SETTINGS)
    return ["--config", str(path)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(config: list[str], number: signal.Signals) -> None:
    seen: list[AutoAdminSettings] = []

    async def main(settings: AutoAdminSettings, stop: asyncio.Event) -> None:
        seen.append(settings)
        os.kill(os.getpid(), number)
        await stop.wait()

    assert run_service("autoadmin", AutoAdminSettings, main, config) == 0
    assert seen == [AutoAdminSettings(cluster_id="c", data="d")]


@pytest.mark.parametrize(
    "error",
    [StartError("It cannot start."), OSError(errno.EADDRINUSE, "It cannot start")],
    ids=["a reason of ours", "a taken port"],
)
def test_a_failed_start_is_one_sentence_and_exit_code_2(
    config: list[str], error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main(_: AutoAdminSettings, __: asyncio.Event) -> None:
        raise error

    assert run_service("autoadmin", AutoAdminSettings, main, config) == 2
    assert capsys.readouterr().err == "It cannot start.\n"


def test_wrong_settings_are_one_sentence_and_exit_code_2(config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    async def main(_: AutoAdminSettings, __: asyncio.Event) -> None:
        raise AssertionError("not reached")

    Path(config[1]).write_bytes(SETTINGS + b"colour = 1\n")
    assert run_service("autoadmin", AutoAdminSettings, main, config) == 2
    assert capsys.readouterr().err == f"{config[1]} has a setting that does not exist: colour.\n"
