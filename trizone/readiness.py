"""Whether a cluster serves yet: asked over HTTP, as a load balancer and a monitor would."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from trizone.data_directory import ProcessRecord

PAUSE_S = 0.03
ANSWER_S = 1.0
_NODES_LIVE = re.compile(rb"^trizone_autoadmin_nodes_live (\d+)", re.MULTILINE)


async def http_get(address: str, path: str) -> bytes | None:
    """The body that GET `path` at `address` gives with status 200 within a second, else None."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if head.split()[1:2] == [b"200"] else None


async def is_ready(process: ProcessRecord, nodes: int) -> bool:
    """Whether a process is ready; auto-admin once so many `nodes` report to it, a router once it answers clients."""
    if await http_get(process.metrics, "/readyz") is None:
        return False
    match process.role:
        case "autoadmin":
            live = _NODES_LIVE.search(await http_get(process.metrics, "/metrics") or b"")
            return live is not None and int(live[1]) >= nodes
        case "router":
            return await http_get(process.address, "/") is not None
    return True


async def wait_until_ready(processes: Sequence[ProcessRecord], waiting: list[ProcessRecord]) -> None:
    """Return when all processes are ready. `waiting` always holds those that are not yet."""
    nodes = sum(process.role == "storagenode" for process in processes)
    waiting[:] = processes
    while waiting:
        ready = await asyncio.gather(*(is_ready(process, nodes) for process in waiting))
        waiting[:] = [process for process, done in zip(waiting, ready, strict=True) if not done]
        if waiting:
            await asyncio.sleep(PAUSE_S)
