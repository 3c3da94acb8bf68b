"""Whether a cluster serves yet: asked over HTTP, as a load balancer would."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from trizone.data_directory import ProcessRecord

PAUSE_S = 0.03
ANSWER_S = 1.0


async def http_ok(address: str, path: str) -> bool:
    """Whether GET `path` at `address` is answered with status 200 within a second."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status.split()[1:2] == [b"200"]


async def is_ready(process: ProcessRecord) -> bool:
    """Whether a process calls itself ready: a node once it is registered, a router once it has the catalog."""
    if not await http_ok(process.metrics, "/readyz"):
        return False
    return process.role != "router" or await http_ok(process.address, "/")


async def wait_until_ready(processes: Sequence[ProcessRecord], waiting: list[ProcessRecord]) -> None:
    """Return when all processes are ready. `waiting` always holds those that are not yet."""
    waiting[:] = processes
    while waiting:
        ready = await asyncio.gather(*(is_ready(process) for process in waiting))
        waiting[:] = [process for process, done in zip(waiting, ready, strict=True) if not done]
        if waiting:
            await asyncio.sleep(PAUSE_S)
