"""A storage node's process: reads settings, picks the real clock, disk and network, and wires them together."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Coroutine
from typing import Any

import msgspec

from cluster.access import STORAGE_NODE
from cluster.advertise import advertised, beside
from cluster.clock import SystemClock
from cluster.executor import ThreadExecutor
from cluster.grpc_security import security_of
from cluster.grpc_transport import GrpcTransport
from cluster.local_disk import LocalDisk
from cluster.process import StartError, run_service, settle_garbage
from cluster.random_source import SystemRandom
from cluster.settings import StorageNodeSettings
from cluster.status_server import StatusServer
from cluster.telemetry import process_registry
from storagenode.data_folder import FolderError, take_folder
from storagenode.identity import IdentityError
from storagenode.log.errors import LogError
from storagenode.metrics import StorageNodeMetrics
from storagenode.node import Seams, StorageNode
from storagenode.storage.lmdb_store import LmdbStores
from storagenode.storage.store import StoreError

WORKER_THREADS = 2

_log = logging.getLogger("storagenode")


async def serve(settings: StorageNodeSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set. Raises StartError, and OSError when a port is taken."""
    try:
        settings = take_folder(settings).settings
    except FolderError as error:
        raise StartError(str(error)) from error
    clock, disk = SystemClock(), LocalDisk()
    transport = GrpcTransport(security_of(settings, STORAGE_NODE, clock.wall))
    settings = msgspec.structs.replace(settings, advertise=advertised(settings.listen, settings.advertise))
    log_executor, executor = ThreadExecutor("log"), ThreadExecutor("work", WORKER_THREADS)
    stores = LmdbStores(disk, f"{settings.data}/partitions", f"{settings.data}/trash", clock.wall)
    node = StorageNode(settings, Seams(clock, disk, stores, transport, SystemRandom(), log_executor, executor))
    registry = process_registry()
    status = StatusServer(registry, lambda: bool(node.address))
    try:
        await status.start(settings.metrics_listen)
        await executor.run(stores.empty_trash)
        if not await _started(node.start(beside(settings.advertise, status.address)), stop):
            return
        registry.register(StorageNodeMetrics(node))
        _log.info("storage node %s serves at %s", settings.name, node.address, extra={"metrics": status.address})
        settle_garbage()
        running = asyncio.ensure_future(node.run())
        stopper = asyncio.ensure_future(stop.wait())
        await asyncio.wait((running, stopper), return_when=asyncio.FIRST_COMPLETED)
        stopper.cancel()
        node.stop()
        await running
    except* (IdentityError, LogError, StoreError) as failures:
        raise StartError(_sentence(failures)) from failures
    finally:
        await status.stop()
        await transport.close()
        executor.close()
        log_executor.close()


async def _started(start: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Whether the node has started; not if it is to stop before, as while it waits for room on a full disk."""
    starting, stopper = asyncio.ensure_future(start), asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopper), return_when=asyncio.FIRST_COMPLETED)
    stopper.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
        return False
    await starting
    return True


def _sentence(failures: BaseExceptionGroup[BaseException]) -> str:
    """What went wrong first, as one sentence."""
    first: BaseException = failures
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return f"The storage node stops: {str(first).rstrip('.')}."


def main() -> int:
    """Run the process; its exit code."""
    return run_service("storagenode", StorageNodeSettings, serve)


if __name__ == "__main__":
    sys.exit(main())
