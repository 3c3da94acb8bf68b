"""Auto-admin's process: reads settings, picks the real clock, disk and network, and wires them together."""

from __future__ import annotations

import asyncio
import logging
import sys

from autoadmin.metrics import AutoAdminMetrics
from autoadmin.service import AutoAdmin
from autoadmin.state import LmdbState, StateError
from cluster.access import AUTO_ADMIN
from cluster.clock import SystemClock
from cluster.executor import ThreadExecutor
from cluster.grpc_security import security_of
from cluster.grpc_transport import GrpcTransport
from cluster.process import StartError, run_service
from cluster.settings import AutoAdminSettings
from cluster.status_server import StatusServer
from cluster.telemetry import process_registry

_log = logging.getLogger("autoadmin")


async def serve(settings: AutoAdminSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set. Raises StartError, and OSError when a port is taken."""
    clock = SystemClock()
    security = security_of(settings, AUTO_ADMIN, clock.wall)
    try:
        store = LmdbState(settings.data)
    except StateError as error:
        raise StartError(str(error)) from error
    executor, transport = ThreadExecutor("state"), GrpcTransport(security)
    service = AutoAdmin(settings, store, transport, executor, clock)
    registry = process_registry()
    status = StatusServer(registry, lambda: bool(service.address))
    try:
        await service.start()
        registry.register(AutoAdminMetrics(service))
        await status.start(settings.metrics_listen)
        _log.info("auto-admin serves at %s", service.address, extra={"metrics": status.address})
        await _until_either(stop, service)
    except StateError as error:
        raise StartError(str(error)) from error
    finally:
        await status.stop()
        await service.stop()
        await transport.close()
        executor.close()
        store.close()


async def _until_either(stop: asyncio.Event, service: AutoAdmin) -> None:
    """Return when `stop` is set. Raises what the service cannot go on with."""
    works = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(service.run())]
    try:
        done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        for work in done:
            await work
    finally:
        for work in works:
            work.cancel()


def main() -> int:
    """Run the process; its exit code."""
    return run_service("autoadmin", AutoAdminSettings, serve)


if __name__ == "__main__":
    sys.exit(main())
