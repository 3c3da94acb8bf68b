"""A node whose file system is really full: a small tmpfs, mounted where only the cluster under test sees it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.http_client import GaveUp, Refused
from tests.chaos.keys import key_in
from tests.chaos.load import create_table
from tests.chaos.real_cluster import RealCluster, until
from tests.chaos.test_durability import client_of, get_of, put_of

NODE = "us-east-1b-1"
SIZE = "320m"
"""Three segments of the log, the reserve, and some rows."""
FILLING_BYTES = 1 << 20


def require_namespaces() -> None:
    """Skip where no file system can be mounted for a test alone."""
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None or subprocess.run(tried, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted in a namespace of its own (root is needed): no disk can really be full")


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RealCluster]:
    """A cluster, one of whose nodes has a small file system of its own."""
    require_namespaces()
    data = tmp_path / "data"
    folder, small = data / "nodes" / NODE, tmp_path / "small"
    small.mkdir()
    cluster = RealCluster(data)
    await cluster.start()  # makes the folders
    await cluster.stop()
    popen = subprocess.Popen
    mount = f'mount -t tmpfs -o size={SIZE} none "{small}" && cp -a "{folder}/." "{small}"'
    mount += f' && mount --bind "{small}" "{folder}"'
    mounting = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]

    def in_namespace(command: list[str], **options: Any) -> subprocess.Popen[str]:
        if command[3:4] != ["up"]:
            return popen(command, **options)
        return popen([*mounting, *command], **options)

    monkeypatch.setattr("tests.integration.launching.subprocess.Popen", in_namespace)
    try:
        await cluster.start()
        client = client_of(cluster)
        await create_table(client)
        await client.close()
        yield cluster
    finally:
        await cluster.stop()


def fill(folder: Path) -> Path:
    """Take all the room that is left in a file system; the file that has it."""
    filling = folder / "filling"
    with filling.open("wb", buffering=0) as file:
        for size in (FILLING_BYTES, 512):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    return filling


async def test_a_node_on_a_full_disk_costs_nothing_and_comes_back_by_itself(cluster: RealCluster) -> None:
    assert cluster.up is not None
    client = client_of(cluster)
    partition, pids = (await cluster.whole())[0], cluster.pids()
    inside = Path(f"/proc/{cluster.up.process.pid}/root{cluster.data}/nodes/{NODE}")  # as the cluster sees it
    keys = [key_in(partition, f"full-{number}-of") for number in range(30)]
    for key in keys[:10]:
        await client.call("PutItem", put_of(key))
    filling = fill(inside)
    for key in keys[10:20]:
        try:
            await client.call("PutItem", put_of(key))
        except (Refused, GaveUp):
            continue  # while the full node leads, growing writes are refused; nothing else is
    for key in keys[:10]:
        assert (await client.call("GetItem", get_of(key))).get("Item") == put_of(key)["Item"]
    os.kill(pids[NODE], signal.SIGKILL)
    pid = await cluster.replaced(NODE, pids[NODE])

    async def runs() -> bool:
        return any(NODE in line and "starts once there is room" in line for line in lines)

    lines = cluster.up.lines
    await until(runs, "the node says that its disk is full")
    await asyncio.to_thread(filling.unlink)
    views = await cluster.whole()
    assert len(views) == len({view.id for view in views})
    for key in keys[20:]:
        await client.call("PutItem", put_of(key))
        assert (await client.call("GetItem", get_of(key))).get("Item") == put_of(key)["Item"]
    assert cluster.pids()[NODE] == pid, "it was there all the time"
    await client.close()
