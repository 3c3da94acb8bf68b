"""Whether a cluster serves yet: asked over HTTP, as a load balancer and a monitor would."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Sequence

from trizone.data_directory import ProcessRecord

PAUSE_S = 0.03
ANSWER_S = 1.0
_AUTO_ADMIN = re.compile(rb"^trizone_autoadmin_(nodes_live|leads|leader_known) (\d+)", re.MULTILINE)


async def http_get(address: str, path: str, *, https: bool = False) -> bytes | None:
    """The body that GET `path` at `address` gives with status 200 within a second, else None."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(host, int(port), ssl=_unverified() if https else None)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if head.split()[1:2] == [b"200"] else None


def _unverified() -> ssl.SSLContext:
    """This machine asks itself whether it is ready, and tells no secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def is_ready(process: ProcessRecord, nodes: int) -> bool:
    """Whether a process is ready; a router once it answers clients, auto-admin once so many `nodes` report to the
    member that leads, and the others follow it."""
    if await http_get(process.metrics, "/readyz") is None:
        return False
    match process.role:
        case "autoadmin":
            told = dict(_AUTO_ADMIN.findall(await http_get(process.metrics, "/metrics") or b""))
            if int(told.get(b"leads", 0)):
                return int(told.get(b"nodes_live", 0)) >= nodes
            return bool(int(told.get(b"leader_known", 0)))
        case "router":
            return await http_get(process.address, "/", https=process.https) is not None
    return True


async def wait_until_ready(
    processes: Sequence[ProcessRecord], waiting: list[ProcessRecord], is_unfit: Callable[[str], bool] = lambda _: False
) -> None:
    """Return when all processes are ready; nobody waits for those that `is_unfit` names. `waiting` always holds those
    that are not yet."""
    waiting[:] = processes
    while waiting:
        waiting[:] = [process for process in waiting if not is_unfit(process.name)]
        nodes = sum(process.role == "storagenode" and not is_unfit(process.name) for process in processes)
        ready = await asyncio.gather(*(is_ready(process, nodes) for process in waiting))
        waiting[:] = [process for process, done in zip(waiting, ready, strict=True) if not done]
        if waiting:
            await asyncio.sleep(PAUSE_S)
